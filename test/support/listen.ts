// A server of a test on a free port of loopback.

import { once } from 'node:events';
import { createServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Starts listening, by default on a free port, which refuses once the server is closed. Returns the port. */
export async function listen(server: Server, host = '127.0.0.1', at = 0): Promise<number> {
  const port = at || (await findFreePort());
  await once(server.listen(port, host), 'listening');
  return port;
}

/** Below the ports that the kernel hands out (ip_local_port_range), above those of well-known services. */
const PORTS = { first: 18_000, count: 14_000 };

/** A free port of this host; nobody else who calls this gets it, in any process, as long as this one lives. */
export async function findFreePort(): Promise<number> {
  for (;;) {
    const port = PORTS.first + Math.floor(Math.random() * PORTS.count);
    // The kernel frees the name of an abstract socket with its process (unix(7)); other systems have files.
    const name = `lastscrape-test-port-${port}`;
    const path = process.platform === 'linux' ? `\0${name}` : join(tmpdir(), name);
    const server = createServer();
    try {
      await once(createServer().listen(path).unref(), 'listening');
      await listen(server, '127.0.0.1', port);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'EADDRINUSE') continue;
      throw error;
    }
    await once(server.close(), 'close');
    return port;
  }
}
