// A program's own /metrics as the source: one GET at a time over one connection, its body handed on as it comes.

import { openExchange, type Request } from '../../base/net/exchange.ts';
import { BODY_MAX_BYTES, openExposition } from '../../exposition/exposition.ts';
import type { Selector } from '../../exposition/selector.ts';
import type { ExporterReading } from '../../observe/condition.ts';
import { isPlain, makeFailedReading, makeReading, READ_HEADERS, REFUSED } from '../../observe/exporter.ts';
import { openBody } from '../../snapshot/body.ts';
import type { Beginning, Source } from './source.ts';

type Headers = Parameters<NonNullable<Request['onAnswer']>>[1];

/** Opens the source at `url`; `metricNames` are the conditions' metrics, `selectors` what is judged. Connects at the first read. */
export function openHttpSource(url: URL, metricNames: readonly string[], selectors: readonly Selector[] = []): Source {
  const exchange = openExchange(url);

  async function read(signal: AbortSignal, begin: (beginning: Beginning) => void): Promise<ExporterReading> {
    const exposition = openExposition(metricNames, selectors);
    const { body, push, end, breakOff } = openBody();
    let problem: string | null = null;
    let hasEnd = true;
    let sizeBytes = 0;
    const request: Request = {
      method: 'GET',
      path: url.pathname + url.search,
      headers: READ_HEADERS,
      signal,
      onAnswer(status, answered) {
        hasEnd = 'content-length' in answered || 'transfer-encoding' in answered;
        problem = status === 200 ? findProblem(answered) : `HTTP ${status}`;
        begin(problem === null ? { kind: 'answered', body } : { kind: 'failed', why: problem });
      },
      onBody(piece) {
        sizeBytes += piece.length;
        if (sizeBytes > BODY_MAX_BYTES) return false;
        // What nobody can use is read to its end, so that the connection can be kept.
        if (problem !== null) return true;
        exposition.write(piece);
        push(piece);
        return true;
      },
    };
    const fail = (why: string, mayCount: boolean) => {
      breakOff(why);
      begin({ kind: 'failed', why });
      return makeFailedReading(why, mayCount);
    };
    let result = await exchange.send(request);
    // A kept connection may end in the instant in which it is used (RFC 9112, 9.3.1): a GET is sent again, as Go's client does.
    if (result.kind === 'dropped') result = await exchange.send(request);
    switch (result.kind) {
      case 'refused':
        begin({ kind: 'refused' });
        return REFUSED;
      case 'dropped':
        return fail('the connection was closed', true);
      case 'failed':
        return fail(problem ?? result.why, result.wasSent && (result.status ?? 200) === 200);
      case 'answered':
        if (problem !== null) return fail(problem, result.status === 200);
        // Only the end of the connection ends it, which is also that of a program that was killed: no number may be cut.
        if (!hasEnd && !body.endsWithLineFeed) return fail('the connection was closed within a line', true);
        end();
        return makeReading(exposition.end());
    }
  }

  return {
    isProcess: true,
    path: url.pathname === '/metrics' ? null : url.pathname,
    close: exchange.close,
    read(signal) {
      const begun = Promise.withResolvers<Beginning>();
      return { ended: read(signal, begun.resolve), begun: begun.promise };
    },
  };
}

/** Why the body of a 200 is none in the text format; null: it is. A program that names no type at all is believed. */
function findProblem(headers: Headers): string | null {
  const type = String(headers['content-type'] ?? '').trim();
  const encoding = String(headers['content-encoding'] ?? '').trim();
  if (!isPlain(encoding)) return `Content-Encoding ${encoding.slice(0, 40)}`;
  if (type === '' || isTextFormat(type)) return null;
  return `Content-Type ${type.slice(0, 80)}`;
}

/** The text format is version 0.0.4, said or not (Prometheus documentation, "Exposition formats"). */
function isTextFormat(type: string): boolean {
  const [media = '', ...parameters] = type.split(';').map((part) => part.trim().toLowerCase());
  const version = parameters.find((parameter) => /^version\s*=/.test(parameter));
  return media === 'text/plain' && (version === undefined || /^version\s*=\s*"?0\.0\.4"?$/.test(version));
}
