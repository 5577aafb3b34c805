// Whether somebody could listen on a port: binds it and lets it go at once. Answers nobody.

import { once } from 'node:events';
import { createServer } from 'node:net';

/** The kernel has no IPv6, or no ::1: what is left is IPv4. */
const NO_IPV6 = ['EAFNOSUPPORT', 'EADDRNOTAVAIL'];

/**
 * Why nothing can listen on the port of the host, as the system's code, such as EADDRINUSE; null: it is free. `localhost` is 127.0.0.1
 * and ::1, null is all addresses, both without IPv6 where there is none. Never rejects.
 */
export async function findListenProblem(host: string | null, port: number): Promise<string | null> {
  const [ipv6, ipv4] = host === null ? ['::', '0.0.0.0'] : host === 'localhost' ? ['::1', '127.0.0.1'] : [host, null];
  const problem = await tryListen(ipv6, port);
  if (ipv4 === null || (problem !== null && !NO_IPV6.includes(problem))) return problem;
  // All of IPv6 has IPv4 with it; its loopback has not.
  return problem === null && host === null ? null : tryListen(ipv4, port);
}

async function tryListen(host: string, port: number): Promise<string | null> {
  const server = createServer((socket) => socket.destroy());
  try {
    await once(server.listen({ host, port, exclusive: true }), 'listening');
  } catch (error) {
    return String((error as NodeJS.ErrnoException).code);
  }
  server.close();
  await once(server, 'close');
  return null;
}
