// The open connections of the front: numbered, limited in number, closed when idle.

import type { Socket } from 'node:net';
import { type Clock, callAfter } from '../base/clock.ts';

export type ConnectionLimits = {
  readonly connectionsCount: number;
  /** How long a connection may be idle after an answer. */
  readonly idleMs: number;
};

export type Connection = {
  /** From 1 in the order of accepting. */
  readonly number: number;
  readonly socket: Socket;
  /** The peer's; an IPv4 one without `::ffff:`. */
  readonly address: string;
  /** The peer's address is 127.0.0.1 or ::1. */
  readonly isLoopback: boolean;
  /** Aborted when the connection ends on either side; the reason is a string. */
  readonly gone: AbortSignal;
  /** An error of the connection was seen, such as a reset. */
  readonly hasFailed: boolean;
  /** The User-Agent of its last scrape; null: none yet. */
  scraperAgent: string | null;
  /** Requests without a complete answer. */
  readonly requestsCount: number;
  readonly beginRequest: () => void;
  readonly endRequest: () => void;
  /** Closes it with an error for the client. `why`: the reason of `gone`. */
  readonly reset: (why: string) => void;
};

export type Connections = {
  /** Registers an accepted connection; null: it was closed, since there are too many. */
  readonly accept: (socket: Socket) => Connection | null;
  readonly find: (socket: Socket) => Connection | undefined;
  readonly list: () => readonly Connection[];
  /** Closes all at once; the kernel still delivers what it has. */
  readonly closeAll: (why: string) => void;
};

type Entry = {
  readonly connection: Connection;
  /** Null while a request is being answered. */
  readonly idleSinceMs: () => number | null;
  readonly close: (why: string) => void;
};

export function openConnections(clock: Clock, limits: ConnectionLimits): Connections {
  const open = new Map<Socket, Entry>();
  let acceptedCount = 0;

  function makeRoom(): boolean {
    if (open.size < limits.connectionsCount) return true;
    let longest: { socket: Socket; sinceMs: number } | null = null;
    for (const [socket, { idleSinceMs }] of open) {
      const sinceMs = idleSinceMs();
      if (sinceMs !== null && (longest === null || sinceMs < longest.sinceMs)) longest = { socket, sinceMs };
    }
    if (longest === null) return false;
    open.delete(longest.socket);
    longest.socket.destroy();
    return true;
  }

  function accept(socket: Socket): Connection | null {
    // Without a listener an error would end the process.
    socket.on('error', () => {});
    if (!makeRoom()) {
      socket.destroy();
      return null;
    }
    const entry = openEntry(socket, ++acceptedCount, clock, limits.idleMs);
    socket.once('close', () => open.delete(socket));
    open.set(socket, entry);
    return entry.connection;
  }

  return {
    accept,
    find: (socket) => open.get(socket)?.connection,
    list: () => [...open.values()].map(({ connection }) => connection),
    closeAll(why) {
      for (const { close } of open.values()) close(why);
    },
  };
}

/** Follows one connection until it closes. */
function openEntry(socket: Socket, number: number, clock: Clock, idleMs: number): Entry {
  const gone = new AbortController();
  let idleSinceMs: number | null = clock.nowMs();
  let requestsCount = 0;
  let hasFailed = false;
  let cancelIdle = () => {};
  // A client that ends its side counts as gone: whether it still reads cannot be known (Go's server does
  // the same). Without a pending answer Node ends our side.
  socket.once('end', () => gone.abort('the client hung up'));
  socket.once('error', () => {
    hasFailed = true;
  });
  socket.once('close', () => {
    cancelIdle();
    gone.abort('the client hung up');
  });
  const { remoteAddress = '' } = socket;
  const address = remoteAddress.replace(/^::ffff:/i, '');
  const connection: Connection = {
    number,
    socket,
    address,
    isLoopback: address === '127.0.0.1' || address === '::1',
    gone: gone.signal,
    get hasFailed() {
      return hasFailed;
    },
    scraperAgent: null,
    get requestsCount() {
      return requestsCount;
    },
    beginRequest() {
      requestsCount++;
      idleSinceMs = null;
      cancelIdle();
    },
    endRequest() {
      requestsCount--;
      if (requestsCount > 0 || socket.destroyed) return;
      idleSinceMs = clock.nowMs();
      cancelIdle = callAfter(clock, idleMs, () => socket.destroy());
    },
    reset(why) {
      gone.abort(why);
      // While our side is ending (the client ended its own), libuv refuses to reset, and Node 24 then never
      // closes the connection. Either way the answer lacks its last bytes.
      if (socket.writableEnded) socket.destroy();
      else socket.resetAndDestroy();
    },
  };
  const close = (why: string) => {
    gone.abort(why);
    socket.destroy();
  };
  return { connection, idleSinceMs: () => idleSinceMs, close };
}
