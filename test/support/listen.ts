// A server of a test on a free port of loopback.

import { once } from 'node:events';
import type { AddressInfo, Server } from 'node:net';

/** Starts listening, by default on a free port. Returns the port. */
export async function listen(server: Server, host = '127.0.0.1', at = 0): Promise<number> {
  await once(server.listen(at, host), 'listening');
  return (server.address() as AddressInfo).port;
}
