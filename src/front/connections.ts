// The open connections of the front: numbered, limited in number, closed when idle.

import type { Socket } from 'node:net';
import { type Clock, callAfter } from '../base/waits.ts';

export type ConnectionLimits = {
  readonly connectionsCount: number;
  /** How long one may be idle after an answer: above usual scrape intervals, it tells replicas apart. */
  readonly idleMs: number;
};

/** One connection of a client. */
export type Connection = {
  /** From 1 in the order of accepting. */
  readonly number: number;
  readonly socket: Socket;
  /** An IPv4 one without `::ffff:`. */
  readonly address: string;
  readonly isLoopback: boolean;
  /** Aborted when the connection ends on either side; the reason is a string. */
  readonly gone: AbortSignal;
  /** The User-Agent of its last scrape; null: none yet. */
  scraperAgent: string | null;
  requestsCount: number;
  /** Once the newest of them is answered. */
  answered: Promise<void>;
  /** Null while a request is being answered. */
  idleSinceMs: number | null;
  readonly beginRequest: () => void;
  readonly endRequest: () => void;
  /** Closes it with an error for the client. `why`: the reason of `gone`. */
  readonly reset: (why: string) => void;
  /** Closes it; the kernel still delivers what it has. */
  readonly close: (why: string) => void;
};

/** The open connections of a server. */
export type Connections = {
  /** Registers an accepted connection; of too many it closes one, which may be the new one. */
  readonly accept: (socket: Socket) => void;
  readonly acceptedCount: () => number;
  readonly find: (socket: Socket) => Connection | undefined;
  readonly list: () => readonly Connection[];
  /** `why`: the reason of each one's `gone`. */
  readonly closeAll: (why: string) => void;
};

/** Opens it empty. */
export function openConnections(clock: Clock, limits: ConnectionLimits): Connections {
  const open = new Map<Socket, Connection>();
  let acceptedCount = 0;

  function accept(socket: Socket): void {
    // Without a listener an error would end the process.
    socket.on('error', () => {});
    acceptedCount++;
    socket.once('close', () => open.delete(socket));
    open.set(socket, openConnection(socket, acceptedCount, clock, limits.idleMs));
    if (open.size > limits.connectionsCount) chooseToClose([...open.values()])?.close('there are too many connections');
  }

  return {
    accept,
    acceptedCount: () => acceptedCount,
    find: (socket) => open.get(socket),
    list: () => [...open.values()],
    closeAll(why) {
      for (const { close } of open.values()) close(why);
    },
  };
}

/**
 * Of too many, `open`, the new one last: the one idle longest before it, else the newest of the address that
 * has most.
 */
function chooseToClose(open: readonly Connection[]): Connection | undefined {
  const idle = open.slice(0, -1).filter(({ idleSinceMs }) => idleSinceMs !== null);
  const [idleLongest] = idle.toSorted((one, other) => Number(one.idleSinceMs) - Number(other.idleSinceMs));
  const groups = [...Map.groupBy(open.toReversed(), ({ address }) => address).values()];
  return idleLongest ?? groups.toSorted((one, other) => other.length - one.length)[0]?.[0];
}

/** Why a connection is gone that nothing here closed: by its client, or by Node after its last answer. */
export const CONNECTION_CLOSED = 'the client hung up';

function openConnection(socket: Socket, number: number, clock: Clock, idleMs: number): Connection {
  const gone = new AbortController();
  let cancelIdle = () => {};
  // A scraper that ended its side has given up. Others may still read, such as
  // `printf 'POST /-/snapshot HTTP/1.1…' | nc`.
  socket.once('end', () => {
    if (connection.scraperAgent !== null) connection.close('the client hung up');
  });
  socket.once('close', () => {
    cancelIdle();
    gone.abort(CONNECTION_CLOSED);
  });
  const address = (socket.remoteAddress ?? '').replace(/^::ffff:/i, '');
  const connection: Connection = {
    number,
    socket,
    address,
    isLoopback: address === '127.0.0.1' || address === '::1',
    gone: gone.signal,
    scraperAgent: null,
    requestsCount: 0,
    answered: Promise.resolve(),
    idleSinceMs: clock.nowMs(),
    beginRequest() {
      connection.requestsCount++;
      connection.idleSinceMs = null;
      cancelIdle();
    },
    endRequest() {
      connection.requestsCount--;
      if (connection.requestsCount > 0 || socket.destroyed) return;
      connection.idleSinceMs = clock.nowMs();
      // Node's own time begins anew with each byte.
      cancelIdle = callAfter(clock, idleMs, () => socket.destroy());
    },
    reset(why) {
      gone.abort(why);
      // While our side is ending, libuv refuses to reset, and Node 24 then never closes the connection.
      if (socket.writableEnded) socket.destroy();
      else socket.resetAndDestroy();
    },
    close(why) {
      gone.abort(why);
      socket.destroy();
    },
  };
  return connection;
}
