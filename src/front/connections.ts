// The open connections of the front: numbered, limited in number and for each address, closed when idle.

import type { Socket } from 'node:net';
import { type Clock, callAfter } from '../base/waits.ts';

export type ConnectionLimits = {
  readonly connectionsCount: number;
  /** Of one address, where others want one. */
  readonly addressCount: number;
  /** How long one may be idle after an answer: above usual scrape intervals, it tells replicas apart. */
  readonly idleMs: number;
};

/** One connection of a client. */
export type Connection = {
  /** From 1 in the order of accepting, those counted that were closed at once. */
  readonly number: number;
  readonly socket: Socket;
  /** The peer's. */
  readonly address: string;
  readonly isLoopback: boolean;
  /** Aborted when the connection ends on either side; the reason is a string. */
  readonly gone: AbortSignal;
  /** An error of the connection was seen, such as a reset. */
  hasFailed: boolean;
  /** The User-Agent of its last scrape; null: none yet. */
  scraperAgent: string | null;
  /** Requests without a complete answer. */
  requestsCount: number;
  /** Null while a request is being answered. */
  idleSinceMs: number | null;
  /** Null while the client need not read. */
  blockedSinceMs: number | null;
  readonly beginRequest: () => void;
  readonly endRequest: () => void;
  /** Closes it with an error for the client. `why`: the reason of `gone`. */
  readonly reset: (why: string) => void;
  /** Closes it; the kernel still delivers what it has. */
  readonly close: (why: string) => void;
};

/** The open connections of a server. */
export type Connections = {
  /** Registers an accepted connection, or closes it, since there are too many. */
  readonly accept: (socket: Socket) => void;
  /** With those that were closed at once. */
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

  function makeRoom(address: string): boolean {
    if (open.size < limits.connectionsCount) return true;
    const closed = chooseToClose([...open.values()], address, clock.nowMs(), limits.addressCount);
    if (closed === null) return false;
    open.delete(closed.socket);
    closed.close('there are too many connections');
    return true;
  }

  function accept(socket: Socket): void {
    // Without a listener an error would end the process.
    socket.on('error', () => {});
    acceptedCount++;
    if (!makeRoom(readAddress(socket))) return void socket.destroy();
    socket.once('close', () => open.delete(socket));
    open.set(socket, openConnection(socket, acceptedCount, clock, limits.idleMs));
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

/** A client that has read nothing for this long may lose its connection to another one. */
const BLOCKED_MS = 1_000;

type Since = Pick<Connection, 'idleSinceMs' | 'blockedSinceMs'>;

/**
 * Which connection makes room for one more of `address`: the one idle longest, else the one blocked longest;
 * of the address that has most, if those are `addressCount` or more, which otherwise loses its newest to
 * another address. Null: the new one is closed. `open`: oldest first.
 */
export function chooseToClose<One extends Since & Pick<Connection, 'address'>>(
  open: readonly One[],
  address: string,
  nowMs: number,
  addressCount: number,
): One | null {
  const groups = [...Map.groupBy(open, (each) => each.address).values()];
  const [largest = []] = groups.toSorted((one, other) => other.length - one.length);
  const isCrowd = largest.length >= addressCount;
  const findLongest = (key: keyof Since, untilMs: number) =>
    (isCrowd ? largest : open)
      .filter((each) => (each[key] ?? Number.POSITIVE_INFINITY) <= untilMs)
      .toSorted((one, other) => Number(one[key]) - Number(other[key]))[0];
  const newest = isCrowd && largest[0]?.address !== address ? largest.at(-1) : null;
  return findLongest('idleSinceMs', nowMs) ?? findLongest('blockedSinceMs', nowMs - BLOCKED_MS) ?? newest ?? null;
}

/** The peer's; an IPv4 one without `::ffff:`. */
function readAddress({ remoteAddress = '' }: Socket): string {
  return remoteAddress.replace(/^::ffff:/i, '');
}

/**
 * Why a connection is gone that nothing here closed: its client, or Node after an answer that was its last.
 */
export const CONNECTION_CLOSED = 'the client hung up';

/** Follows one connection until it closes. */
function openConnection(socket: Socket, number: number, clock: Clock, idleMs: number): Connection {
  const gone = new AbortController();
  let cancelIdle = () => {};
  // A scraper that ended its side has given up. Others may still read, such as
  // `printf 'POST /-/snapshot HTTP/1.1…' | nc`.
  socket.once('end', () => {
    if (connection.scraperAgent !== null) connection.close('the client hung up');
  });
  socket.once('error', () => {
    connection.hasFailed = true;
  });
  socket.once('close', () => {
    cancelIdle();
    gone.abort(CONNECTION_CLOSED);
  });
  const address = readAddress(socket);
  const connection: Connection = {
    number,
    socket,
    address,
    isLoopback: address === '127.0.0.1' || address === '::1',
    gone: gone.signal,
    hasFailed: false,
    scraperAgent: null,
    requestsCount: 0,
    idleSinceMs: clock.nowMs(),
    blockedSinceMs: null,
    beginRequest() {
      connection.requestsCount++;
      connection.idleSinceMs = null;
      cancelIdle();
    },
    endRequest() {
      connection.requestsCount--;
      if (connection.requestsCount > 0 || socket.destroyed) return;
      connection.idleSinceMs = clock.nowMs();
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
