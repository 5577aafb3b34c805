// A peer that answers with the bytes a test wants; it reads requests without a body.
import { once } from 'node:events';
import { createServer, type Socket } from 'node:net';
import { listen } from './listen.ts';

/** Answers one request; `request` is its head, `count` how many came before it, over all connections. */
export type Answerer = (socket: Socket, request: string, count: number) => void;

export type Peer = Awaited<ReturnType<typeof openPeer>>;

/** Opens a peer; disposing of it destroys its connections. */
export async function openPeer(answer: Answerer, path = '/metrics') {
  const requests: string[] = [];
  const sockets = new Set<Socket>();
  let openedCount = 0;
  let closedCount = 0;
  const server = createServer((socket) => {
    sockets.add(socket);
    openedCount++;
    let head = '';
    // A client that gives up resets the connection.
    socket.on('error', () => {});
    socket.on('close', () => {
      sockets.delete(socket);
      closedCount++;
      server.emit('connectionClosed');
    });
    socket.on('data', (piece) => {
      head += piece.toString('latin1');
      for (let end = head.indexOf('\r\n\r\n'); end !== -1; end = head.indexOf('\r\n\r\n')) {
        requests.push(head.slice(0, end));
        head = head.slice(end + 4);
        answer(socket, requests.at(-1) as string, requests.length - 1);
        server.emit('asked');
      }
    });
  });
  const port = await listen(server);
  const peer = {
    port,
    url: new URL(path, `http://127.0.0.1:${port}`),
    requests,
    connectionsCount: () => openedCount,
    async closed(count: number): Promise<void> {
      while (closedCount < count) await once(server, 'connectionClosed');
    },
    async asked(count: number): Promise<void> {
      while (requests.length < count) await once(server, 'asked');
    },
    /** Refuses connections and cuts those that are open, as the end of a process does. */
    async stop(): Promise<void> {
      for (const socket of sockets) socket.destroy();
      if (server.listening) await once(server.close(), 'close');
    },
    /** Listens again, on the same port. */
    start: () => listen(server, '127.0.0.1', port),
    [Symbol.asyncDispose]: () => peer.stop(),
  };
  return peer;
}

/** An answer with a declared length. */
export function answerWith(body: string, status = '200 OK', headers = ''): string {
  return `HTTP/1.1 ${status}\r\nContent-Type: text/plain\r\n${headers}Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`;
}
