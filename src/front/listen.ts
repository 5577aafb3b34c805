// Where the front listens, and why it cannot.

import { once } from 'node:events';
import type { Server } from 'node:http';

/** All addresses: `::` takes IPv4 too (libuv clears IPV6_V6ONLY); the second is for hosts without IPv6. */
export const ALL_HOSTS: readonly string[] = ['::', '0.0.0.0'];

/** A missing address family: `ipv6.disable=1` gives the first; an address without interface the second. */
const MISSING: readonly string[] = ['EAFNOSUPPORT', 'EADDRNOTAVAIL', 'EINVAL'];

/** The addresses to try, in order. `localhost` is never looked up. */
export function listListenHosts(host: string | null, allHosts: readonly string[]): readonly string[] {
  if (host === null) return allHosts;
  return [host === 'localhost' ? '127.0.0.1' : host];
}

/** Listens at the first of the addresses that exists. Null when it does, else the code of the last error. */
export async function listen(server: Server, hosts: readonly string[], port: number): Promise<string | null> {
  let code: string | null = null;
  for (const host of hosts) {
    code = await listenAt(server, host, port);
    if (code === null || !MISSING.includes(code)) return code;
  }
  return code;
}

async function listenAt(server: Server, host: string, port: number): Promise<string | null> {
  try {
    await once(server.listen({ host, port }), 'listening');
    return null;
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    return code ?? message;
  }
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
