// A target with a quit endpoint: asks by one HTTP request, and proves by the port of the same URL.

import type { Answer } from '../decide/quit.ts';
import { dial } from '../net/dial.ts';
import { openExchange } from '../net/exchange.ts';
import { redactUrl } from '../redact.ts';
import type { Target } from './target.ts';

const PROBE_TIMEOUT_MS = 1_000;

export type HttpTargetOptions = {
  readonly name?: string;
  readonly method: string;
  /** `http:`; a user and a password become a Basic authorization. */
  readonly url: URL;
  readonly version: string;
  /** What an answer means for this very target; null: what it means for any. */
  readonly hint?: (answer: Answer) => string | null;
};

/** A target that is asked at a URL. */
export function httpTarget({ name, method, url, version, hint }: HttpTargetOptions): Target {
  const request = `${method} ${redactUrl(url.href)}`;
  const headers: Record<string, string> = { 'user-agent': `lastscrape/${version}`, 'content-length': '0' };
  if (method === 'GET' || method === 'HEAD') delete headers['content-length'];
  if (url.username !== '' || url.password !== '') {
    const user = `${decodeURIComponent(url.username)}:${decodeURIComponent(url.password)}`;
    headers['authorization'] = `Basic ${btoa(String.fromCodePoint(...new TextEncoder().encode(user)))}`;
  }
  return {
    name: name ?? request,
    request,
    async ask(timeoutMs, signal) {
      // A connection of its own: one that a quitting server closes must not be taken for the next request.
      const exchange = openExchange(url);
      try {
        const exchanged = await exchange.send({ method, path: url.pathname + url.search, headers, timeoutMs, signal });
        switch (exchanged.kind) {
          case 'answered':
            return { kind: 'answered', status: exchanged.status, isHtml: exchanged.contentType.includes('html') };
          case 'failed':
            return { kind: 'failed', why: exchanged.why };
          case 'refused':
          case 'dropped':
            return { kind: exchanged.kind };
        }
      } finally {
        await exchange.close();
      }
    },
    async probe(signal) {
      const dialled = await dial(url.hostname, Number(url.port || 80), { timeoutMs: PROBE_TIMEOUT_MS, signal });
      if (dialled.kind === 'open') dialled.socket.destroy();
      return dialled.kind;
    },
    hint: (answer) => (answer === null ? 'no request could be made' : (hint?.(answer) ?? commonHint(answer))),
  };
}

/** What an answer usually means where the target still listens (fixtures/recordings/quit-endpoints: 15 programs). */
function commonHint(answer: Answer): string {
  switch (answer.kind) {
    case 'dropped':
      return 'it closed the connection and listens again: was it restarted, or is a proxy in between?';
    case 'refused':
      return 'it refused our request and listens again: was it restarted?';
    case 'failed':
      return `no answer (${answer.why}): is it overloaded, or is this another program's port?`;
    case 'answered':
      break;
  }
  const said = `it answered ${answer.status}`;
  if (answer.status === 401 || answer.status === 403)
    return `${said}: it wants credentials, or quitting is switched off`;
  if (answer.status === 404) return `${said}: no such path, or quitting is switched off`;
  if (answer.status === 405) return `${said}: it wants another method`;
  if (answer.status < 300 && answer.isHtml) return `${said} with a page of HTML: it has no quit endpoint at this path`;
  if (answer.status < 300)
    return `${said} and lives on: it needs longer (LASTSCRAPE_QUIT_TIMEOUT), or this is no quit endpoint`;
  return `${said}: look into its log`;
}
