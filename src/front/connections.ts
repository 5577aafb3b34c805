// The connections that are open at the front: their numbers, how many there may be, and how long one may be idle.
// Knows nothing of what is asked over them.

import type { Socket } from 'node:net';
import { type Clock, callAfter } from '../base/clock.ts';

export type ConnectionLimits = {
  /** How many may be open. */
  readonly connectionsCount: number;
  /** How long one may be kept without a request, after the first answer. */
  readonly idleMs: number;
};

export type Connection = {
  /** From 1 in the order of accepting. */
  readonly number: number;
  readonly socket: Socket;
  /** The peer's; an IPv4 one without `::ffff:`. */
  readonly address: string;
  /** Whether the peer's address is 127.0.0.1 or ::1. */
  readonly isLoopback: boolean;
  /** Aborted when the connection ends, whoever ended it; the reason is a string. */
  readonly gone: AbortSignal;
  /** Whether an error of the connection was seen, such as a reset. */
  readonly hasFailed: boolean;
  /** The agent that has taken a scrape over it; null: none yet. */
  scraperAgent: string | null;
  /** Requests that are answered or wait for that. */
  readonly requestsCount: number;
  readonly beginRequest: () => void;
  readonly endRequest: () => void;
  /** Ends it so that the client sees an error, whatever it has got so far. `why`: see `gone`. */
  readonly reset: (why: string) => void;
};

export type Connections = {
  /** Registers an accepted connection; null: there are too many, it was closed. */
  readonly accept: (socket: Socket) => Connection | null;
  readonly find: (socket: Socket) => Connection | undefined;
  readonly list: () => readonly Connection[];
  /** Ends all of them at once; what the kernel has is still delivered. */
  readonly closeAll: (why: string) => void;
};

type Entry = {
  readonly connection: Connection;
  /** Null while something is answered. */
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
    // The error of a connection is the end of it and nothing else, whoever else listens for it.
    socket.on('error', () => {});
    if (!makeRoom()) {
      socket.destroy();
      return null;
    }
    const gone = new AbortController();
    let idleSinceMs: number | null = clock.nowMs();
    let requestsCount = 0;
    let hasFailed = false;
    let cancelIdle = () => {};
    // A client that ends its side has hung up: it cannot be told from one that would still read (Go's server does the same).
    // Where nothing is being answered, Node ends our side.
    socket.once('end', () => gone.abort('the client hung up'));
    socket.once('error', () => {
      hasFailed = true;
    });
    socket.once('close', () => {
      cancelIdle();
      open.delete(socket);
      gone.abort('the client hung up');
    });
    const { remoteAddress = '' } = socket;
    const address = remoteAddress.replace(/^::ffff:/i, '');
    const connection: Connection = {
      number: ++acceptedCount,
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
        cancelIdle = callAfter(clock, limits.idleMs, () => socket.destroy());
      },
      reset(why) {
        gone.abort(why);
        // Where our side is being ended (the client ended its own), libuv refuses to reset, and Node 24 then never closes the
        // connection. Without its last bytes the answer is not whole either way.
        if (socket.writableEnded) socket.destroy();
        else socket.resetAndDestroy();
      },
    };
    const close = (why: string) => {
      gone.abort(why);
      socket.destroy();
    };
    open.set(socket, { connection, idleSinceMs: () => idleSinceMs, close });
    return connection;
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
