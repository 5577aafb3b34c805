import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { type TestContext, test } from 'node:test';
import { findListenProblem } from '../../src/net/try-listen.ts';

/** A port that somebody listens on, until the test ends or it is let go. */
async function takePort(context: TestContext, host: string): Promise<{ port: number; letGo: () => Promise<void> }> {
  const server = createServer().listen(0, host);
  await once(server, 'listening');
  const letGo = async () => {
    if (!server.listening) return;
    server.close();
    await once(server, 'close');
  };
  context.after(letGo);
  return { port: (server.address() as AddressInfo).port, letGo };
}

const HOSTS = [null, 'localhost', '127.0.0.1', '0.0.0.0'] as const;

test('findListenProblem() finds a port that is taken, and takes none itself', async (context) => {
  const { port, letGo } = await takePort(context, '127.0.0.1');
  for (const host of HOSTS) assert.equal(await findListenProblem(host, port), 'EADDRINUSE', String(host));
  await letGo();
  for (const host of [...HOSTS, ...HOSTS]) assert.equal(await findListenProblem(host, port), null, String(host));
});

test('findListenProblem() says what the system says of an address that is not its own', async () => {
  // 192.0.2.0/24 is nobody's (RFC 5737).
  assert.equal(await findListenProblem('192.0.2.1', 9469), 'EADDRNOTAVAIL');
});
