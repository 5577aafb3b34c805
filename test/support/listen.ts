// A server of a test on a free port of loopback.

import { once } from 'node:events';
import { type AddressInfo, createServer, type Server } from 'node:net';

/** Starts listening, by default on a free port. Returns the port. */
export async function listen(server: Server, host = '127.0.0.1', at = 0): Promise<number> {
  await once(server.listen(at, host), 'listening');
  return (server.address() as AddressInfo).port;
}

/** Below the ports that the kernel hands out (ip_local_port_range), above those of well-known services. */
const PORTS = { first: 18_000, count: 14_000 };
const given = new Set<number>();

/** A free port of this host; no other call in this process gets it. */
export async function findFreePort(): Promise<number> {
  for (;;) {
    const port = PORTS.first + Math.floor(Math.random() * PORTS.count);
    if (given.has(port)) continue;
    const server = createServer();
    try {
      await listen(server, '127.0.0.1', port);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'EADDRINUSE') continue;
      throw error;
    }
    given.add(port);
    await once(server.close(), 'close');
    return port;
  }
}
