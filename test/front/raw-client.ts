// An HTTP client that sends the bytes a test wants and says when it reads: one connection to a port of loopback.
import { EventEmitter } from 'node:events';
import { connect, type Socket } from 'node:net';

/** One answer as it came. `body`: without chunk sizes. */
export type RawAnswer = {
  readonly status: number;
  /** By name in lower case. */
  readonly headers: ReadonlyMap<string, string>;
  readonly body: Buffer;
};

export type RawClient = {
  readonly socket: Socket;
  readonly send: (text: string | Uint8Array) => void;
  /** The next answer that came whole. `hasBody` false: to a HEAD. @throws where the connection ended before. */
  readonly readAnswer: (hasBody?: boolean) => Promise<RawAnswer>;
  /** Resolves when that many bytes have come and were not read as an answer. @throws where the connection ended before. */
  readonly readBytes: (count: number) => Promise<Buffer>;
  /** Everything that came and was not read as an answer. */
  readonly received: () => Buffer;
  /** When the connection is closed: the code of its error, '' without one. */
  readonly closed: Promise<string>;
};

export async function openRawClient(
  port: number,
  options: { readonly host?: string; readonly localAddress?: string } = {},
): Promise<RawClient> {
  const socket = connect({ host: '127.0.0.1', port, ...options });
  // Grows by doubling: some answers are large.
  let space = Buffer.alloc(64 * 1024);
  let received = space.subarray(0, 0);
  let code = '';
  socket.on('error', (error: NodeJS.ErrnoException) => {
    code = error.code ?? error.message;
  });
  const closed = new Promise<string>((resolve) => socket.once('close', () => resolve(code)));
  const arrivals = new EventEmitter();
  await Promise.race([new Promise<void>((resolve) => socket.once('connect', resolve)), closed]);
  socket.on('data', (bytes) => {
    const length = received.length + bytes.length;
    const start = received.byteOffset - space.byteOffset;
    if (start + length > space.length) {
      space = Buffer.alloc(2 * length);
      received.copy(space);
      received = space.subarray(0, length);
    } else {
      received = space.subarray(start, start + length);
    }
    bytes.copy(received, length - bytes.length);
    arrivals.emit('bytes');
  });
  async function receiveUntil<Found>(find: () => Found | null): Promise<Found> {
    for (;;) {
      const found = find();
      if (found !== null) return found;
      const isClosed = await Promise.race([
        new Promise<false>((resolve) => arrivals.once('bytes', () => resolve(false))),
        closed.then(() => true),
      ]);
      if (isClosed && find() === null)
        throw new Error(`closed ${code} after ${JSON.stringify(received.toString('latin1'))}`);
    }
  }
  return {
    socket,
    send: (text) => socket.write(text),
    readAnswer: (hasBody = true) =>
      receiveUntil(() => {
        const parsed = parseAnswer(received, hasBody);
        if (parsed !== null) received = received.subarray(parsed.length);
        return parsed?.answer ?? null;
      }),
    readBytes: (count) => receiveUntil(() => (received.length >= count ? received : null)),
    received: () => received,
    closed,
  };
}

function parseAnswer(bytes: Buffer, hasBody: boolean): { readonly answer: RawAnswer; readonly length: number } | null {
  const headEnd = bytes.indexOf('\r\n\r\n');
  if (headEnd === -1) return null;
  const [statusLine = '', ...lines] = bytes.subarray(0, headEnd).toString('latin1').split('\r\n');
  const status = Number(statusLine.split(' ')[1]);
  const headers = new Map(
    lines.map((line) => {
      const [name = '', ...value] = line.split(': ');
      return [name.toLowerCase(), value.join(': ')] as const;
    }),
  );
  const start = headEnd + 4;
  if (!hasBody || status < 200) return { answer: { status, headers, body: Buffer.alloc(0) }, length: start };
  if (headers.get('transfer-encoding') !== 'chunked') {
    const length = start + Number(headers.get('content-length') ?? 0);
    if (bytes.length < length) return null;
    return { answer: { status, headers, body: bytes.subarray(start, length) }, length };
  }
  const pieces: Buffer[] = [];
  for (let at = start; ; ) {
    const lineEnd = bytes.indexOf('\r\n', at);
    if (lineEnd === -1) return null;
    const size = Number.parseInt(bytes.subarray(at, lineEnd).toString('latin1'), 16);
    const next = lineEnd + 2 + size + 2;
    if (bytes.length < next) return null;
    if (size === 0) return { answer: { status, headers, body: Buffer.concat(pieces) }, length: next };
    pieces.push(bytes.subarray(lineEnd + 2, next - 2));
    at = next;
  }
}
