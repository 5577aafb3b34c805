// Hands an answer over to its client: compressed or not, at the client's pace but not for ever, and never half as if it were
// whole. What is in the answer is no business of this file.

import type { IncomingMessage, ServerResponse } from 'node:http';
import { pipeline } from 'node:stream';
import { createGzip } from 'node:zlib';
import { type Clock, callAfter } from '../base/clock.ts';
import { takesGzip } from './accept-encoding.ts';
import type { Connection } from './connections.ts';

/** The text format that every answer is in. */
const CONTENT_TYPE = 'text/plain; version=0.0.4; charset=utf-8';

export type AnswerBody = {
  /** The pieces in order. May wait for more; throws where the source broke off. Every call gives the same bytes again. */
  readonly read: () => AsyncIterable<Uint8Array>;
  /** Of all pieces; null: not known yet. */
  readonly sizeBytes: number | null;
};

/** One request and what its answer goes by. */
export type Exchange = {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly connection: Connection;
  readonly clock: Clock;
  /** How long the client may let us wait, in all. Only the waiting for the client counts, not that for the source. */
  readonly takeMs: number;
};

/**
 * Sends a 200 with that body. Whether it was handed over whole: the kernel has all of it, and until then the client had
 * neither hung up nor reset the connection. Where it was not, the connection is reset. Never rejects.
 */
export async function sendBody(exchange: Exchange, body: AnswerBody): Promise<boolean> {
  const { request, response, connection } = exchange;
  try {
    const isGzip = hasChunks(request) && takesGzip(request.headers['accept-encoding']?.toString());
    const sizeBytes = isGzip ? null : (body.sizeBytes ?? (await measureFor(exchange, body)));
    response.writeHead(200, {
      'Content-Type': CONTENT_TYPE,
      Vary: 'Accept-Encoding',
      ...(isGzip && { 'Content-Encoding': 'gzip' }),
      ...(sizeBytes !== null && { 'Content-Length': sizeBytes }),
    });
    const pieces = request.method === 'HEAD' ? null : readUnless(body.read(), connection.gone);
    return await send(exchange, pieces === null || !isGzip ? pieces : compress(pieces), pieces && sizeBytes);
  } catch (error) {
    // Broken off, hung up or too slow: whoever still reads must not take what came for the whole.
    connection.reset(String(error));
    return false;
  }
}

/** Sends a short text. Never rejects. */
export async function sendText(exchange: Exchange, status: number, text: string): Promise<void> {
  const { response, connection } = exchange;
  const bytes = Buffer.from(`${text}\n`);
  try {
    response.writeHead(status, { 'Content-Type': 'text/plain; charset=utf-8', 'Content-Length': bytes.length });
    const pieces = (async function* () {
      yield bytes;
    })();
    await send(exchange, exchange.request.method === 'HEAD' ? null : pieces, bytes.length);
  } catch (error) {
    connection.reset(String(error));
  }
}

/** Node answers every other version without chunks. */
function hasChunks(request: IncomingMessage): boolean {
  return request.httpVersion === '1.1';
}

/**
 * The size of an answer that has to be known before its first byte: HTTP/1.0 has no chunks, and there the end of the
 * connection would end a half answer like a whole one. The body is read once more when it is sent.
 */
async function measureFor({ request, connection }: Exchange, body: AnswerBody): Promise<number | null> {
  if (hasChunks(request) || request.method === 'HEAD') return null;
  let sizeBytes = 0;
  for await (const piece of readUnless(body.read(), connection.gone)) sizeBytes += piece.length;
  return sizeBytes;
}

/** `pieces`: null for none. `sizeBytes`: what was declared; null: nothing. @throws where it cannot be handed over whole. */
async function send(
  { response, connection, clock, takeMs }: Exchange,
  pieces: AsyncIterable<Uint8Array> | null,
  sizeBytes: number | null,
): Promise<boolean> {
  const waitForClient = openClientWait(response, connection.gone, clock, takeMs);
  let isFlushed = false;
  // Before Node's own listener, which ends the connection of a client that wants no other answer.
  response.prependListener('finish', () => {
    const { socket } = connection;
    isFlushed = !socket.destroyed && socket.errored === null && !connection.gone.aborted;
  });
  let sentBytes = 0;
  let last: Uint8Array | null = null;
  for await (const piece of pieces ?? []) {
    sentBytes += piece.length;
    // Nothing may be waited for behind the last byte that was declared: the client may have it all and be gone.
    if (sizeBytes !== null && sentBytes >= sizeBytes) {
      last = piece;
      break;
    }
    if (!response.write(piece)) await waitForClient('drain');
  }
  if (pieces !== null && sizeBytes !== null && sentBytes !== sizeBytes) {
    throw new Error(`Cannot send an answer: ${sizeBytes} bytes were declared and ${sentBytes} came`);
  }
  // A client that hung up before the last bytes did not take the answer, and one that hangs up behind them may have: what the
  // kernel knows of it by now must be known here.
  await turn();
  connection.gone.throwIfAborted();
  const finished = waitForClient('finish');
  response.end(last);
  await finished;
  await turn();
  return isFlushed && !connection.hasFailed;
}

/** Lets every event happen that the kernel has for us now: the first pass may be of a poll that began before. */
async function turn(): Promise<void> {
  for (let pass = 0; pass < 2; pass++) await new Promise((resolve) => setImmediate(resolve));
}

/** Waits for an event of the response; rejects when the client hangs up, or has let us wait for `takeMs` in all. */
function openClientWait(response: ServerResponse, gone: AbortSignal, clock: Clock, takeMs: number) {
  let leftMs = takeMs;
  return (event: 'drain' | 'finish'): Promise<void> =>
    new Promise((resolve, reject) => {
      const beganAtMs = clock.nowMs();
      const settle = (done: () => void) => {
        leftMs -= clock.nowMs() - beganAtMs;
        cancel();
        response.off(event, onEvent);
        gone.removeEventListener('abort', onGone);
        done();
      };
      const onEvent = () => settle(resolve);
      const onGone = () => settle(() => reject(gone.reason));
      const cancel = callAfter(clock, leftMs, () => settle(() => reject('the client was too slow')));
      response.once(event, onEvent);
      gone.addEventListener('abort', onGone, { once: true });
      if (gone.aborted) onGone();
    });
}

/**
 * The same pieces; throws as soon as the signal is aborted, whatever the source of them does. No promise may live for as long as
 * the answer: Promise.race with one would keep every piece until then.
 */
async function* readUnless(pieces: AsyncIterable<Uint8Array>, gone: AbortSignal): AsyncGenerator<Uint8Array> {
  const iterator = pieces[Symbol.asyncIterator]();
  let reject = (_: unknown): void => {};
  const onGone = () => reject(gone.reason);
  gone.addEventListener('abort', onGone, { once: true });
  try {
    for (;;) {
      gone.throwIfAborted();
      const next = await new Promise<IteratorResult<Uint8Array>>((resolve, rejectNext) => {
        reject = rejectNext;
        iterator.next().then(resolve, rejectNext);
      });
      if (next.done) return;
      yield next.value;
    }
  } finally {
    gone.removeEventListener('abort', onGone);
    // Not awaited: it returns only when its source has answered.
    iterator.return?.().catch(() => {});
  }
}

/** Level 1: zlib's cheapest, a tenth of the bytes of most expositions. */
function compress(pieces: AsyncIterable<Uint8Array>): AsyncIterable<Uint8Array> {
  return pipeline(pieces, createGzip({ level: 1 }), () => {});
}
