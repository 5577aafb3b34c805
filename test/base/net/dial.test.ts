import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { networkInterfaces } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { type DialResult, dial, dialBeside, isRefused, lookUp } from '../../../src/base/net/dial.ts';
import { makeFolder } from '../../support/folder.ts';
import { findFreePort } from '../../support/listen.ts';
import { gateNamespaces } from '../../support/pid-namespace.ts';
import { freezePort } from './frozen-port.ts';

const VERDICTS: readonly (readonly [codes: string, isRefused: boolean])[] = [
  ['', false],
  ['ECONNREFUSED', true],
  ['ECONNREFUSED ECONNREFUSED', true],
  ['ECONNREFUSED EADDRNOTAVAIL', false],
  ['timed_out ECONNREFUSED', false],
  ['EADDRNOTAVAIL', false],
];

for (const [codes, expected] of VERDICTS) {
  test(`isRefused() takes "${codes}" for ${expected ? '' : 'not '}refused`, () => {
    assert.equal(isRefused(codes === '' ? [] : codes.split(' ')), expected);
  });
}

async function listen(context: TestContext, host: string, port = 0): Promise<number> {
  const sockets = new Set<Socket>();
  const server: Server = createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => {}).resume();
  });
  await once(server.listen(port, host), 'listening');
  context.after(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return (server.address() as AddressInfo).port;
}

async function dialOnce(host: string, port: number, signal?: AbortSignal, by = dial): Promise<DialResult> {
  const result = await by(host, port, { timeoutMs: 60_000, signal });
  if (result.kind === 'open') result.socket.destroy();
  return result;
}

const hasIpv6 = Object.values(networkInterfaces()).some((all) => all?.some(({ address }) => address === '::1'));

test('dial() finds a listener that has IPv4 only', async (context) => {
  const port = await listen(context, '127.0.0.1');
  assert.equal((await dialOnce('localhost', port)).kind, 'open');
  assert.equal((await dialOnce('127.0.0.1', port)).kind, 'open');
});

test('dial() leaves its local port to who listens there, while it is connected and afterwards', async (context) => {
  const port = await listen(context, '127.0.0.1');
  for (const isOver of [false, true]) {
    const result = await dial('localhost', port, { timeoutMs: 60_000 });
    assert.ok(result.kind === 'open');
    const { localPort = 0 } = result.socket;
    if (isOver) await once(result.socket.destroy(), 'close');
    assert.equal(await listen(context, '0.0.0.0', localPort), localPort);
    result.socket.destroy();
  }
});

test('dial() opens a socket with one buffer, which loses nothing that comes before it is read', async (context) => {
  const pieces = ['first', 'second'];
  const server = createServer((socket) => {
    socket.on('error', () => {});
    socket.write('early');
    socket.on('data', () => socket.write(pieces.shift() ?? ''));
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  context.after(() => server.close());
  const result = await dial('127.0.0.1', (server.address() as AddressInfo).port, { buffer: Buffer.alloc(16) });
  assert.ok(result.kind === 'open');
  const { socket } = result;
  context.after(() => socket.destroy());
  while (socket.readableLength < 'early'.length) await delay(1);
  socket.write('go on');
  while (socket.readableLength < 'earlyfirst'.length) await delay(1);
  assert.equal(String(socket.read()), 'earlyfirst');
  const taken: Buffer[] = [];
  socket.on('readable', () => {
    const piece = socket.read();
    if (piece !== null) taken.push(piece);
  });
  socket.write('go on');
  while (taken.length < 1) await delay(1);
  assert.equal(String(taken[0]), 'second');
});

test('dial() finds a listener that has IPv6 only', { skip: hasIpv6 ? false : 'no ::1 here' }, async (context) => {
  const port = await listen(context, '::1');
  assert.equal((await dialOnce('localhost', port)).kind, 'open');
  assert.equal((await dialOnce('[::1]', port)).kind, 'open');
  assert.equal((await dialOnce('127.0.0.1', port)).kind, 'refused');
});

test('dial() finds a listener that has both', { skip: hasIpv6 ? false : 'no ::1 here' }, async (context) => {
  const port = await listen(context, '127.0.0.1');
  await listen(context, '::1', port);
  for (const host of ['localhost', '127.0.0.1', '[::1]']) assert.equal((await dialOnce(host, port)).kind, 'open');
});

test('dial() is refused where nothing listens', async () => {
  const port = await findFreePort();
  assert.deepEqual(await dialOnce('localhost', port), { kind: 'refused' });
  assert.deepEqual(await dialOnce('127.0.0.1', port), { kind: 'refused' });
});

test('dialBeside() finds what listens at the other address alone', async (context) => {
  const port = await listen(context, '127.0.0.2');
  const by = dialBeside('127.0.0.2');
  const ask = async (host: string, how = by) => (await dialOnce(host, port, undefined, how)).kind;
  assert.deepEqual([await ask('localhost'), await ask('127.0.0.1')], ['open', 'refused']);
  for (const other of ['', 'localhost', '127.0.0.3'])
    assert.equal(await ask('localhost', dialBeside(other)), 'refused');
});

test('dial() gives up at once when it is aborted', async (context) => {
  const port = await listen(context, '127.0.0.1');
  const aborted = AbortSignal.abort('interrupted');
  assert.deepEqual(await dialOnce('localhost', port, aborted), { kind: 'unknown', why: 'interrupted' });
  const controller = new AbortController();
  const result = dialOnce('localhost', port, controller.signal);
  controller.abort('interrupted');
  assert.deepEqual(await result, { kind: 'unknown', why: 'interrupted' });
});

test('dial() does not take a full backlog for refused', async () => {
  using frozen = await freezePort();
  const { port, result } = frozen;
  assert.deepEqual(result, { kind: 'unknown', why: 'timed out' });
  const controller = new AbortController();
  const hanging = dial('localhost', port, { timeoutMs: 600_000, signal: controller.signal });
  setImmediate(() => controller.abort('interrupted'));
  assert.deepEqual(await hanging, { kind: 'unknown', why: 'interrupted' });
});

const skip = gateNamespaces('test/base/net/dial.test.ts');
const folder = makeFolder();
const hosts = join(folder, 'hosts');
writeFileSync(hosts, '127.0.0.1 two.example\n10.9.9.1 two.example\n');

type Namespace = {
  readonly name: string;
  readonly prepare: string;
  readonly results: Readonly<Record<string, string>>;
};

const NAMESPACES: readonly Namespace[] = [
  {
    name: 'IPv6 switched off',
    prepare: 'ip link set lo up; echo 1 >/proc/sys/net/ipv6/conf/all/disable_ipv6',
    results: { localhost: 'refused', '127.0.0.1': 'refused', '[::1]': 'refused', 'localhost=127.0.0.1': 'open' },
  },
  {
    name: 'IPv6 only',
    prepare: 'ip link set lo up; ip address del 127.0.0.1/8 dev lo',
    results: { localhost: 'refused', '127.0.0.1': 'refused', '[::1]': 'refused', 'localhost=::1': 'open' },
  },
  {
    name: 'no loopback at all',
    prepare: ':',
    results: { localhost: 'refused', '127.0.0.1': 'refused', '[::1]': 'refused' },
  },
  {
    // 127.0.0.1 gives EADDRNOTAVAIL then, and ::1 refuses.
    name: 'every local port in use',
    prepare: 'ip link set lo up; echo 40000 40001 >/proc/sys/net/ipv4/ip_local_port_range',
    results: { localhost: 'refused', 'localhost=127.0.0.1+2': 'unknown EADDRNOTAVAIL' },
  },
  {
    name: 'every local port in use, and IPv6 switched off',
    prepare:
      'ip link set lo up; echo 1 >/proc/sys/net/ipv6/conf/all/disable_ipv6; echo 40000 40001 >/proc/sys/net/ipv4/ip_local_port_range',
    results: { localhost: 'refused', 'localhost=127.0.0.1+2': 'unknown EADDRNOTAVAIL' },
  },
  {
    // The kernel picks the port that is asked as the local one: TCP connects to itself.
    name: 'no local port but the one that is asked',
    prepare: 'ip link set lo up; echo 5557 5557 >/proc/sys/net/ipv4/ip_local_port_range',
    results: { '127.0.0.1': 'refused', '[::1]': 'refused', localhost: 'refused' },
  },
  {
    // An AggregateError, whose own code is ECONNREFUSED here.
    name: 'a name with one address that refuses and one that is prohibited',
    prepare: `ip link set lo up; ip route add prohibit 10.9.9.0/24; mount --bind '${hosts}' /etc/hosts`,
    results: { 'two.example': 'unknown EACCES', 'two.example=127.0.0.1': 'open' },
  },
];

for (const { name, prepare, results } of NAMESPACES) {
  test(`dial() gives the right results with ${name}`, { skip }, () => {
    const inside = join(import.meta.dirname, 'dial-inside.ts');
    const command = ['-n', '-m', 'sh', '-ec', `${prepare}; exec "$@"`, 'sh', process.execPath, inside];
    const output = execFileSync('unshare', [...command, ...Object.keys(results)], { encoding: 'utf8' });
    const expected = Object.entries(results).map(([argument, kind]) => `${argument} ${kind}`);
    assert.deepEqual(output.trim().split('\n'), expected);
  });
}

test('lookUp() finds a name, and says why it does not', async () => {
  const found = await lookUp('localhost', { timeoutMs: 60_000 });
  assert.ok('addresses' in found && found.addresses.some(({ address }) => ['127.0.0.1', '::1'].includes(address)));
  const missing = await lookUp('no.such.name.invalid', { timeoutMs: 60_000 });
  assert.ok('code' in missing && ['ENOTFOUND', 'EAI_AGAIN'].includes(missing.code), JSON.stringify(missing));
});

test('dial() keeps to one lookup while it hangs, uses its late answer, and serves that again', { skip }, () => {
  const folder = makeFolder();
  writeFileSync(join(folder, 'resolv.conf'), 'nameserver 127.0.0.1\noptions timeout:1 attempts:5\n');
  writeFileSync(join(folder, 'nsswitch.conf'), 'hosts: dns\n');
  const mounts = ['resolv.conf', 'nsswitch.conf'].map((file) => `mount --bind '${folder}/${file}' /etc/${file}`);
  const prepare = `ip link set lo up; ${mounts.join('; ')}; exec "$@"`;
  const inside = join(import.meta.dirname, 'lookup-inside.ts');
  const command = ['-n', '-m', 'sh', '-ec', prepare, 'sh', process.execPath, inside];
  const output = execFileSync('unshare', command, { encoding: 'utf8' });
  assert.deepEqual(output.trim().split('\n'), [
    'unknown timed out, 1 under way',
    'unknown interrupted, 1 under way',
    'unknown the time is up, 1 under way',
    'open, 0 under way',
    'open, 0 under way',
    'asked 0 times more',
  ]);
});
