// HTTP for clients that nobody vouches for: where it listens, and why it cannot; the limits; the requests of
// each connection, one after the other.

import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { orNull } from '../base/parse.ts';
import type { Clock } from '../base/waits.ts';
import { type ConnectionLimits, openConnections } from './connections.ts';
import type { Exchange } from './send-answer.ts';

/** All addresses: `::` takes IPv4 too (libuv clears IPV6_V6ONLY); the second is for hosts without IPv6. */
const ALL_HOSTS: readonly string[] = ['::', '0.0.0.0'];

/** A missing address family: `ipv6.disable=1` gives the first; an address without interface the second. */
const MISSING: readonly string[] = ['EAFNOSUPPORT', 'EADDRNOTAVAIL', 'EINVAL'];

/** Listens; the code of the error where it cannot. `host` null: at the first of `allHosts` that exists. */
export async function listen(
  server: Server,
  host: string | null,
  port: number,
  allHosts: readonly string[] = ALL_HOSTS,
): Promise<string | null> {
  let code: string | null = null;
  // `localhost` is never looked up.
  for (const each of host === null ? allHosts : [host === 'localhost' ? '127.0.0.1' : host]) {
    const listening = once(server.listen({ host: each, port }), 'listening');
    code = await listening.then(
      () => null,
      (error: NodeJS.ErrnoException) => error.code ?? error.message,
    );
    if (code === null || !MISSING.includes(code)) return code;
  }
  return code;
}

/** What is wrong and what to do, to follow `Cannot use LASTSCRAPE_FRONT: `. */
export function describeListenProblem(host: string | null, port: number, code: string): string {
  switch (code) {
    case 'EADDRINUSE':
      return `port ${port} is taken by something else in this pod; choose another one, here and for its clients`;
    case 'EACCES':
      return `port ${port} is not allowed for this user; choose one above 1023, or set the pod's sysctl net.ipv4.ip_unprivileged_port_start to 0`;
    case 'EADDRNOTAVAIL':
    case 'EAFNOSUPPORT':
      return `this pod has no address ${host}; leave the host out to listen on all addresses, such as "${port}"`;
    default:
      return `listening on port ${port} gives ${code}; choose another port`;
  }
}

/** Limits for clients; tests have smaller ones. */
export type ServerLimits = ConnectionLimits & {
  readonly headersBytes: number;
  /** For a whole request: from connecting; on a kept connection from its first byte. */
  readonly requestMs: number;
  /** How often Node looks for slower requests; its default is 30 s. */
  readonly requestCheckMs: number;
  readonly takeMs: number;
  /** Pipelined requests that may wait on one connection. Scrapers send none. */
  readonly waitingCount: number;
  /** Where to listen without a host: at the first that exists. */
  readonly allHosts: readonly string[];
};

export const SERVER_LIMITS: ServerLimits = {
  connectionsCount: 64,
  headersBytes: 16 * 1024,
  requestMs: 10_000,
  requestCheckMs: 1_000,
  idleMs: 300_000,
  takeMs: 30_000,
  waitingCount: 2,
  allHosts: ALL_HOSTS,
};

/**
 * Opens a server, which does not listen yet. `take` gets each request as it comes; what it returns answers
 * it, once the ones before it on its connection were answered, and never rejects.
 */
export function openServing(
  clock: Clock,
  take: (exchange: Exchange) => () => Promise<void>,
  limits: ServerLimits = SERVER_LIMITS,
) {
  const connections = openConnections(clock, limits);
  const http = createServer({
    maxHeaderSize: limits.headersBytes,
    headersTimeout: limits.requestMs,
    requestTimeout: limits.requestMs,
    connectionsCheckingInterval: limits.requestCheckMs,
    keepAliveTimeout: limits.idleMs,
    // What is read of a body before it is asked for, beyond one read of 64 KB: hundreds wait at a keeper.
    highWaterMark: 16 * 1024,
  });
  // A client may end its side after a request and wait for the answer; Node has this setting without a page
  // of its own. 16 KB hold thousands of tiny headers, whose strings fill the heap while requests wait.
  Object.assign(http, { httpAllowHalfOpen: true, maxHeadersCount: 100 });
  http.on('connection', (socket) => connections.accept(socket));
  http.on('request', onRequest);

  function onRequest(request: IncomingMessage, response: ServerResponse): void {
    response.on('error', () => {});
    const connection = connections.find(request.socket);
    if (connection === undefined || connection.requestsCount > limits.waitingCount)
      return void request.socket.destroy();
    connection.beginRequest();
    const answer = take({ request, response, connection, clock, takeMs: limits.takeMs });
    connection.answered = connection.answered.then(answer).finally(connection.endRequest);
  }

  return {
    http,
    connections,
    onRequest,
    async listen(host: string | null, port: number): Promise<string | null> {
      const code = await listen(http, host, port, limits.allHosts);
      // A connection could not be accepted; the next one may be.
      http.on('error', () => {});
      return code;
    },
    /** Stops listening and closes every connection at once, whose last words are taken by then. */
    close(): Promise<void> {
      const closed = new Promise<void>((resolve) => http.close(() => setImmediate(resolve)));
      connections.closeAll('the front closes');
      return closed;
    },
  };
}

/**
 * The normalised path without its query: `/%6Detrics` is `/metrics`, `/a%2fb` is `/a%2Fb`. Never resolves
 * dots or double slashes. Takes the absolute form too (RFC 9112, 3.2.2). Null: no path, such as `*`.
 */
export function readRequestPath(target: string): string | null {
  const [, origin, rest = ''] = /^(https?:\/\/[^/?#]*)?(.*)$/is.exec(target) ?? [];
  const path = rest.replace(/[?#].*$/s, '');
  if (origin !== undefined && path === '') return '/';
  if (!path.startsWith('/')) return null;
  return path.replace(/[^/]+/g, (segment) => orNull(() => encodeURIComponent(decodeURIComponent(segment))) ?? segment);
}
