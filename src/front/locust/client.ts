// GETs from Locust, one at a time over one kept connection: shortly before its end it accepts no new one.

import { openByteBuffer } from '../../base/byte-buffer.ts';
import { type Headers, prepareHeadersFile } from '../../base/mounted-file.ts';
import { type ExchangeResult, openExchange } from '../../base/net/exchange.ts';
import { USER_AGENT } from '../../base/version.ts';
import { countGarbage } from '../../snapshot/chunks.ts';

type LocustClientParts = {
  readonly url: URL;
  readonly headersFile: string | null;
  /** The file of headers cannot be used: the request goes without them. */
  readonly onHeadersUnreadable: (why: string) => void;
};

/** Of the file of headers: a mount may hang, and Locust does not wait. */
const FILE_TIMEOUT_MS = 1_000;
/** How long to keep waiting for a late answer: it may have the last numbers. */
const ANSWER_TIMEOUT_MS = 30_000;
/** 500 rows of the page and as many errors, each with a long text; a CSV of 10,000 rows has 2 MB. */
const BODY_MAX_BYTES = 16 * 1024 * 1024;

/** Opens the client; connects at the first `get`. */
export function openLocustClient({ url, headersFile, onHeadersUnreadable }: LocustClientParts) {
  const exchange = openExchange(url);
  const base = url.pathname.replace(/\/+$/, '');
  const closing = new AbortController();
  const readFile = headersFile === null ? null : prepareHeadersFile(headersFile);
  // One buffer for many bodies, one after the other: V8 frees old buffers late.
  const body = openByteBuffer();
  let last: Promise<void> = Promise.resolve();

  /** Read for each request, since a Secret may change. */
  async function readHeaders(): Promise<Headers> {
    if (readFile === null) return {};
    const read = await readFile({ timeoutMs: FILE_TIMEOUT_MS, signal: closing.signal });
    if ('headers' in read) return read.headers;
    onHeadersUnreadable(read.why);
    return {};
  }

  /** False: the body is too long. */
  function takePiece(piece: Uint8Array): boolean {
    if (body.sizeBytes + piece.length > BODY_MAX_BYTES) return false;
    countGarbage(piece.length);
    body.append(piece);
    return true;
  }

  async function send(path: string): Promise<ExchangeResult> {
    const headers = { accept: '*/*', 'user-agent': USER_AGENT, ...(await readHeaders()) };
    const request = { method: 'GET', path: base + path, headers, timeoutMs: ANSWER_TIMEOUT_MS, signal: closing.signal };
    const read = async () => {
      body.clear();
      const result = await exchange.send({ ...request, onBody: takePiece });
      if (result.kind !== 'answered' || result.status !== 200) body.clear();
      return result;
    };
    const first = await read();
    // A kept connection may end in the instant in which it is used (RFC 9112, 9.3.1).
    return first.kind === 'dropped' ? read() : first;
  }

  return {
    /** Sends a GET, in turn. `body`: of a 200, else empty; overwritten after `take` has returned. */
    get(path: string, take: (result: ExchangeResult, body: Buffer) => void): void {
      last = last.then(async () => take(await send(path), body.view()));
    },
    async close(): Promise<void> {
      closing.abort('closed');
      await exchange.close();
    },
  };
}
