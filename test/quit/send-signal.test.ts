// A quit endpoint that does not take the request, in a shared PID namespace: its owner is signalled.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { test } from 'node:test';
import { describeExitCode, findSignalProblem } from '../../src/quit/send-signal.ts';
import { listen } from '../support/listen.ts';
import { gateNamespaces, openPidNamespace, type PidNamespace, WATCHER_UID } from '../support/pid-namespace.ts';
import { until } from '../support/until.ts';

const skip = gateNamespaces('test/quit/send-signal.test.ts');

type Line = Readonly<Record<string, unknown>>;

async function freePort(): Promise<number> {
  const server = createServer();
  const port = await listen(server);
  await once(server.close(), 'close');
  return port;
}

/** A server that answers 501 to every POST and goes by TERM; `isDeaf`: not by TERM. Its argv[0] is `name`. */
async function serve(
  namespace: PidNamespace,
  uid: number,
  address: string,
  { isDeaf = false, name = 'python3' }: { readonly isDeaf?: boolean; readonly name?: string } = {},
) {
  const port = await freePort();
  const server = `exec -a ${name} python3 -m http.server --bind ${address} ${port}`;
  const command = ['bash', '-c', isDeaf ? `trap "" TERM; ${server}` : server];
  const inhabitant = await namespace.start(command, { uid, comm: 'python3' });
  const url = `http://${address === '::1' ? '[::1]' : 'localhost'}:${port}`;
  await until('a server', 10_000, async () => (await fetch(url)).ok || undefined);
  return { ...inhabitant, port, url: `${url}/quit` };
}

async function quit(namespace: PidNamespace, entry: string, isAlone = false) {
  const watcher = namespace.watch(
    {
      LASTSCRAPE_DONE_WHEN: 'file:/no/such/file',
      LASTSCRAPE_SCRAPES: '0',
      LASTSCRAPE_RUN_TIMEOUT: '1ms',
      LASTSCRAPE_QUIT: entry,
      LASTSCRAPE_QUIT_TIMEOUT: '2s',
    },
    { isAlone },
  );
  const { code, log, report, stderr } = await watcher.ended;
  const [target] = (report?.['targets'] ?? []) as readonly Line[];
  const forced = log.filter((line) => line['msg'] === 'target did not exit: signalling its process');
  assert.ok(target !== undefined, stderr);
  return { code, target, forced };
}

for (const address of ['127.0.0.1', '0.0.0.0', '::1', '::']) {
  test(`forcePortOwner() sends TERM to what listens on ${address}, with a warning`, { skip }, async () => {
    await using namespace = await openPidNamespace();
    const server = await serve(namespace, WATCHER_UID, address);
    const other = await serve(namespace, WATCHER_UID, address);
    const { code, target, forced } = await quit(namespace, server.url);
    assert.deepEqual([code, target['result']], [0, 'stopped']);
    assert.equal(await server.ended, 143);
    const signals = forced.map((line) => [line['level'], line['signal'], (line['pids'] as unknown[]).length]);
    assert.deepEqual(signals, [['warn', 'TERM', 1]]);
    assert.match(String(forced[0]?.['leaves']), /^exit code 143 /);
    process.kill(other.pid, 0);
  });
}

test('forcePortOwner() sends KILL to what takes no TERM', { skip }, async () => {
  await using namespace = await openPidNamespace();
  const server = await serve(namespace, WATCHER_UID, '127.0.0.1', { isDeaf: true });
  const { code, target, forced } = await quit(namespace, server.url);
  assert.deepEqual([code, target['result']], [0, 'stopped']);
  assert.equal(await server.ended, 137);
  const signals = forced.map((line) => line['signal']);
  assert.deepEqual(signals, ['TERM', 'KILL']);
});

test("forcePortOwner() leaves another program alone that listens on a port of the preset's", { skip }, async () => {
  await using namespace = await openPidNamespace();
  const server = await serve(namespace, WATCHER_UID, '127.0.0.1', { name: '/usr/bin/postgres' });
  for (const [entry, programs] of [
    [`cloud-sql-proxy:${await freePort()}:${server.port}`, 'cloud-sql-proxy'],
    [`istio:${await freePort()}:${server.port}`, 'pilot-agent or envoy'],
    [`prometheus:${server.port}`, 'prometheus'],
  ] as const) {
    const { code, target, forced } = await quit(namespace, entry);
    assert.deepEqual([code, target['result'], forced], [69, 'failed', []], entry);
    const why = String(target['hint']).split('; not forced: ')[1];
    assert.equal(why, `port ${server.port} belongs to another program than ${programs}`);
  }
  process.kill(server.pid, 0);
});

for (const [preset, name] of [
  ['cloud-sql-proxy', '/cloud-sql-proxy'],
  ['alloydb-proxy', '/alloydb-auth-proxy'],
  ['istio', '/usr/local/bin/envoy'],
  ['consul-dataplane', 'envoy'],
] as const) {
  test(`forcePortOwner() sends TERM to ${name}, which serves the port of ${preset}`, { skip }, async () => {
    await using namespace = await openPidNamespace();
    const server = await serve(namespace, WATCHER_UID, '127.0.0.1', { name });
    const { code, target } = await quit(namespace, `${preset}:${await freePort()}:${server.port}`);
    assert.deepEqual([code, target['result']], [0, 'stopped']);
    assert.equal(await server.ended, 143);
  });
}

test('forcePortOwner() says why a process with another UID still runs', { skip }, async () => {
  await using namespace = await openPidNamespace();
  const server = await serve(namespace, 1000, '127.0.0.1');
  const { code, target, forced } = await quit(namespace, server.url);
  assert.deepEqual([code, target['result'], forced], [69, 'failed', []]);
  assert.match(
    String(target['hint']),
    /^it answered 501: .*; not forced: the process that listens on port \d+ cannot be found; that needs its UID and GID, or CAP_SYS_PTRACE$/,
  );
  process.kill(server.pid, 0);
});

test('a target is not forced where the namespace is not shared', { skip }, async () => {
  await using namespace = await openPidNamespace();
  const server = await serve(namespace, WATCHER_UID, '127.0.0.1');
  const { code, target, forced } = await quit(namespace, server.url, true);
  assert.deepEqual([code, target['result'], forced], [69, 'failed', []]);
  assert.equal(target['hint'], 'it answered 501: look into its log');
  process.kill(server.pid, 0);
});

function refuse(code: string) {
  return { pid: 1, kill: () => assert.fail(Object.assign(new Error(code), { code })) };
}

test('findSignalProblem() says whose process it is where that can be read, and nothing of one that is gone', async () => {
  // No process has so high a PID (pid_max is 4,194,304 at most).
  const process = { pid: 4_194_305, startTicks: 0 };
  const problem = (await findSignalProblem(process, refuse('EPERM'))) ?? '';
  assert.match(problem, /^PID 4194305 runs as UID unknown and lastscrape as UID \d+,/);
  assert.equal(await findSignalProblem(process, refuse('ESRCH')), null);
  assert.equal(await findSignalProblem(process, { pid: 1, kill: () => {} }), null);
});

test('describeExitCode() is 128 and the number of the signal', () => {
  assert.match(describeExitCode('TERM'), /^exit code 143 /);
  assert.match(describeExitCode('KILL'), /^exit code 137 /);
});
