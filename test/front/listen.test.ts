import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import type { AddressInfo, ListenOptions } from 'node:net';
import { test } from 'node:test';
import { describeListenProblem, listen } from '../../src/front/listen.ts';
import { openServer } from '../../src/front/server.ts';
import { openPeer } from '../support/peer.ts';
import { answerOf, openFrontServer, REAL_CLOCK, scrapeHead } from './front-server.ts';

const PARTS = {
  paths: ['/metrics'],
  clock: REAL_CLOCK,
  answer: async () => answerOf([]),
  snapshot: async () => ({ kind: 'kept' }) as const,
  onRequest: () => {},
  onServed: () => {},
};

test('openServer() listens on all addresses, and names an IPv4 client by its IPv4 address', async () => {
  await using server = await openFrontServer(() => answerOf(['a 1\n']), { host: null });
  for (const host of ['127.0.0.1', '::1']) {
    const client = await server.dial(scrapeHead(), { host });
    assert.equal((await client.readAnswer()).body.toString(), 'a 1\n', host);
  }
  await server.servedCount(2);
  assert.deepEqual(server.served.map(({ address }) => address).toSorted(), ['127.0.0.1', '::1']);
});

test('openServer() listens on IPv4 alone where there is no IPv6', async () => {
  // 2001:db8::/32 is for documentation: no interface has it.
  const allHosts = ['2001:db8::1', '127.0.0.1'];
  await using server = await openFrontServer(() => answerOf(['a 1\n']), { host: null, limits: { allHosts } });
  const client = await server.dial(scrapeHead());
  assert.equal((await client.readAnswer()).status, 200);
});

test('listen() takes all IPv4 addresses, however the host says that it has no IPv6', async () => {
  for (const code of ['EAFNOSUPPORT', 'EADDRNOTAVAIL', 'EINVAL']) {
    await using server = createServer();
    const listenReally = server.listen.bind(server);
    server.listen = (options?: unknown) => {
      if ((options as ListenOptions).host !== '::') return listenReally(options as ListenOptions);
      process.nextTick(() => server.emit('error', Object.assign(new Error(code), { code })));
      return server;
    };
    assert.equal(await listen(server, null, 0), null, code);
    assert.equal((server.address() as AddressInfo).address, '0.0.0.0', code);
  }
});

test('openServer() listens at the host that was asked for only', async () => {
  await using server = await openFrontServer(() => answerOf([]), { host: 'localhost' });
  const elsewhere = await server.dial('', { host: '127.0.0.2' });
  assert.equal(await elsewhere.closed, 'ECONNREFUSED');
  const client = await server.dial(scrapeHead());
  assert.equal((await client.readAnswer()).status, 200);
});

test('openServer() says what is wrong with a port that is taken, on all addresses and on one', async () => {
  await using peer = await openPeer(() => {});
  for (const host of [null, '127.0.0.1']) {
    assert.deepEqual(await openServer({ host, port: peer.port }, PARTS), {
      kind: 'failed',
      problem: `port ${peer.port} is taken by something else in this pod; choose another one, here and for its clients`,
    });
  }
});

test('openServer() says that the address does not exist', async () => {
  assert.deepEqual(await openServer({ host: '192.0.2.1', port: 9469 }, PARTS), {
    kind: 'failed',
    problem: 'this pod has no address 192.0.2.1; leave the host out to listen on all addresses, such as "9469"',
  });
});

test('describeListenProblem() says what to do about a port that is not allowed, and names what it does not know', () => {
  assert.equal(
    describeListenProblem(null, 80, 'EACCES'),
    "port 80 is not allowed for this user; choose one above 1023, or set the pod's sysctl net.ipv4.ip_unprivileged_port_start to 0",
  );
  assert.equal(describeListenProblem('::1', 80, 'EAFNOSUPPORT'), describeListenProblem('::1', 80, 'EADDRNOTAVAIL'));
  assert.equal(describeListenProblem(null, 80, 'EMFILE'), 'listening on port 80 gives EMFILE; choose another port');
});
