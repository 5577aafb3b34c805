// Sends an answer, plain or packed, at the client's pace within a limit. Half of it never looks whole.

import type { IncomingMessage, ServerResponse } from 'node:http';
import { type ConnectionPorts, readUnacknowledged } from '../base/procfs.ts';
import { type Clock, waitWithin } from '../base/waits.ts';
import { TEXT_TYPE } from '../exposition/format.ts';
import { compress, HAS_ZSTD } from '../snapshot/packing.ts';
import { CONNECTION_CLOSED, type Connection } from './connections.ts';

/**
 * What is sent; each `read` gives the same bytes, in pieces that are valid until the next is asked for, and
 * waits for none once the client is gone.
 */
export type AnswerBody = {
  readonly read: () => AsyncIterable<Uint8Array>;
  /** null: not known in advance. */
  readonly sizeBytes: number | null;
  /** The same, packed by gzip already; `sizeBytes`: so packed. Default: packed as it is sent. */
  readonly gzip?: { readonly read: () => AsyncIterable<Uint8Array>; readonly sizeBytes: number };
  /** Default: text 0.0.4. */
  readonly contentType?: string;
  /** It is sent once the client's kernel has it, not only ours; that takes some ms of CPU. Default: false. */
  readonly mustArrive?: boolean;
  /** All was read, and did not end as its format must: no scraper takes it. Default: never. */
  readonly isCut?: () => boolean;
};

/** One request and its answer. `takeMs`: how long to wait for the client in all. */
export type Exchange = {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly connection: Connection;
  readonly clock: Clock;
  readonly takeMs: number;
};

/**
 * Sends a 200 with that body. True if the kernel has all of it (of one that must arrive: the client's), and
 * the client had neither hung up nor reset the connection by then; else the connection is reset, unless the
 * body itself is cut. Never rejects.
 */
export async function sendBody(exchange: Exchange, body: AnswerBody): Promise<boolean> {
  const { request, response, connection } = exchange;
  try {
    const accepted = request.headers['accept-encoding']?.toString() ?? '';
    const encoding = chooseEncoding(accepted, HAS_ZSTD && body.gzip === undefined);
    const packed = encoding === null ? null : (body.gzip ?? { sizeBytes: null });
    const { sizeBytes } = packed ?? body;
    response.writeHead(200, {
      'Content-Type': body.contentType ?? TEXT_TYPE,
      Vary: 'Accept, Accept-Encoding',
      ...(encoding !== null && { 'Content-Encoding': encoding }),
      ...(sizeBytes !== null && { 'Content-Length': sizeBytes }),
    });
    const pieces = request.method === 'HEAD' ? null : ((packed && body.gzip)?.read() ?? body.read());
    const sent = pieces === null || encoding === null || body.gzip ? pieces : compress(pieces, encoding);
    return (await send(exchange, sent, pieces && sizeBytes, body.mustArrive)) && body.isCut?.() !== true;
  } catch (error) {
    connection.reset(String(error));
    return false;
  }
}

/** Sends a short text, as a line if there is any. Never rejects. */
export async function sendText(exchange: Exchange, status: number, text: string): Promise<void> {
  const { response, connection } = exchange;
  const bytes = Buffer.from(text === '' ? '' : `${text}\n`);
  try {
    response.writeHead(status, { 'Content-Type': 'text/plain; charset=utf-8', 'Content-Length': bytes.length });
    await send(exchange, exchange.request.method === 'HEAD' ? null : [bytes], bytes.length);
  } catch (error) {
    connection.reset(String(error));
  }
}

/** Of pieces that are not waited for. */
const COPIED_MAX_BYTES = 64 * 1024;

/** Waits for a client's kernel, each twice as long as the one before. */
const ACKNOWLEDGED_POLL_MS = { first: 20, most: 320 };

/** Null: no pieces, no declared length. @throws where the answer cannot be handed over whole */
async function send(
  exchange: Exchange,
  pieces: Iterable<Uint8Array> | AsyncIterable<Uint8Array> | null,
  sizeBytes: number | null,
  mustArrive = false,
): Promise<boolean> {
  const { response, connection } = exchange;
  const waitForClient = openClientWait(exchange);
  const { socket } = connection;
  // A socket that has ended has none.
  const { localPort, remotePort } = socket;
  let isFlushed = false;
  // Before Node's own listener, which may close the connection.
  response.prependListener('finish', () => {
    isFlushed = !socket.destroyed && socket.errored === null && !connection.gone.aborted;
  });
  /** Sends the last piece; a client that hung up before did not take the answer. */
  async function end(last: Uint8Array | null): Promise<boolean> {
    // Learn what the kernel knows by now.
    await turn();
    connection.gone.throwIfAborted();
    await waitForClient((done) => {
      response.once('finish', done);
      response.end(last);
    });
    // What is lost on the way is sent again only while the pod's network lives.
    if (mustArrive) {
      const isTaken = await untilAcknowledged(exchange, { localPort, remotePort }, waitForClient.leftMs());
      if (!isTaken) throw new Error('the client has not taken all of it');
    }
    await turn();
    return isFlushed && socket.errored === null;
  }
  let sentBytes = 0;
  let copiedBytes = 0;
  for await (const piece of pieces ?? []) {
    sentBytes += piece.length;
    copiedBytes += piece.length;
    // After the last declared byte the client may be gone.
    if (sentBytes === sizeBytes) return await end(piece);
    if (sizeBytes !== null && sentBytes > sizeBytes) break;
    // It changes afterwards: the first are copied, so that the kernel gets a short page with our families.
    if (copiedBytes <= COPIED_MAX_BYTES) response.write(Buffer.from(piece));
    else {
      await waitForClient((done) => response.write(piece, done));
      copiedBytes = 0;
    }
  }
  if (pieces !== null && sizeBytes !== null && sentBytes !== sizeBytes) {
    throw new Error(`Cannot send an answer: ${sizeBytes} bytes were declared and ${sentBytes} came`);
  }
  return end(null);
}

/** Handles all events that the kernel has now; the first pass may belong to a poll that began before. */
async function turn(): Promise<void> {
  for (let pass = 0; pass < 2; pass++) await new Promise((resolve) => setImmediate(resolve));
}

/** Our end of a connection, in what is not acknowledged. */
const END_BYTES = 1;

/**
 * Whether the client's kernel gets all that was written, in that time. The connection may end meanwhile: by
 * us, as with `Connection: close`, or by the client, which takes nothing more from then on.
 */
async function untilAcknowledged(
  { connection, clock }: Exchange,
  ports: ConnectionPorts,
  leftMs: number,
): Promise<boolean> {
  const { socket, gone } = connection;
  const untilMs = clock.nowMs() + leftMs;
  let hasTaken: boolean | null = null;
  const onEnd = () => {
    hasTaken ??= readUnacknowledged(ports) === 0;
  };
  // Before the listeners that end our side too.
  socket.prependOnceListener('end', onEnd);
  for (
    let pollMs = ACKNOWLEDGED_POLL_MS.first;
    hasTaken === null;
    pollMs = Math.min(2 * pollMs, ACKNOWLEDGED_POLL_MS.most)
  ) {
    const leftBytes = readUnacknowledged(ports);
    // Node ends a connection that is not to be kept; any other end has been asked for here.
    const isCut = gone.aborted && gone.reason !== CONNECTION_CLOSED;
    if (leftBytes <= END_BYTES) hasTaken = true;
    else if (leftBytes === Number.POSITIVE_INFINITY || isCut || clock.nowMs() >= untilMs) hasTaken = false;
    else await new Promise<void>((resolve) => clock.after(pollMs, resolve));
  }
  socket.off('end', onEnd);
  return hasTaken;
}

/** Waits until `begin` calls back; rejects when the client hangs up, or has used up `takeMs` in all. */
function openClientWait({ connection, clock, takeMs }: Exchange) {
  const { gone } = connection;
  let leftMs = takeMs;
  async function wait(begin: (done: (error?: Error | null) => void) => void): Promise<void> {
    const beganAtMs = clock.nowMs();
    const why = await waitWithin<string | null>(
      { timeoutMs: leftMs, signal: gone, clock },
      () => (gone.aborted ? String(gone.reason) : 'the client was too slow'),
      (end) => begin((error) => end(error ? String(error) : null)),
    );
    leftMs -= clock.nowMs() - beganAtMs;
    if (why !== null) return Promise.reject(why);
  }
  return Object.assign(wait, { leftMs: () => leftMs });
}

/** What weighs most, zstd before gzip, and no less than identity; null: neither. No weight of 0 to 1 is 0. */
export function chooseEncoding(acceptEncoding: string, hasZstd: boolean): 'zstd' | 'gzip' | null {
  const weights = new Map<string, number>();
  for (const entry of acceptEncoding.split(',')) {
    const [coding = '', ...parameters] = entry.split(';').map((part) => part.trim().toLowerCase());
    const weight = Number(parameters.find((parameter) => parameter.startsWith('q='))?.slice(2) ?? 1);
    weights.set(coding, weight > 0 && weight <= 1 ? weight : 0);
  }
  // Of "any other" (*) every client knows gzip.
  const gzip = weights.get('gzip') ?? weights.get('x-gzip') ?? weights.get('*') ?? 0;
  const zstd = hasZstd ? (weights.get('zstd') ?? 0) : 0;
  const most = Math.max(gzip, zstd);
  if (most === 0 || most < (weights.get('identity') ?? 0)) return null;
  return zstd === most ? 'zstd' : 'gzip';
}
