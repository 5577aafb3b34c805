// Signals in a shared PID namespace: to processes by name, and to the owner of a quit endpoint that does not
// take the request.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { readUid } from '../../src/base/procfs.ts';
import { sendSignal, signalKind } from '../../src/quit/signal-target.ts';
import { findFreePort } from '../support/listen.ts';
import { gateNamespaces, openPidNamespace, type PidNamespace, WATCHER_UID } from '../support/pid-namespace.ts';
import { until } from '../support/until.ts';

const skip = gateNamespaces('test/quit/signal-target.test.ts');

/** Main never ends: quitting begins at once. */
const QUIT = {
  LASTSCRAPE_DONE_WHEN: 'file:/no/such/file',
  LASTSCRAPE_SCRAPES: '0',
  LASTSCRAPE_RUN_TIMEOUT: '1ms',
  LASTSCRAPE_POLL: '100ms',
};
/** Ends by TERM and by INT, as a program does that handles none. */
const TAIL = ['tail', '-f', '/dev/null'];
const DEAF = ['sh', '-c', 'trap "" TERM; exec sleep 600'];

type Line = Readonly<Record<string, unknown>>;
type Options = Parameters<PidNamespace['watch']>[1];

/** Runs lastscrape, which only quits. */
async function quit(
  namespace: PidNamespace,
  entry: string,
  more: Readonly<Record<string, string>> = {},
  how: Options = {},
) {
  const { code, log, report, stderr } = await namespace.watch({ ...QUIT, LASTSCRAPE_QUIT: entry, ...more }, how).ended;
  const [target] = (report?.['targets'] ?? []) as readonly Line[];
  const said = (msg: string) => log.filter((line) => line['msg'] === msg);
  const forced = said('target did not exit: signalling its process');
  return {
    code,
    stderr,
    forced,
    said,
    result: target?.['result'],
    hint: String(target?.['hint']),
    seconds: target?.['seconds'],
  };
}

function listPids(line: Line | undefined): readonly number[] {
  return (line?.['pids'] ?? []) as readonly number[];
}

test('read() takes a signal and a name', () => {
  const context = { metricsUrl: new URL('http://localhost'), env: {}, pid: 7, kill: () => {} };
  const read = (entry: string) => signalKind.read(entry, context);
  for (const [entry, request] of [
    ['signal:nginx', 'SIGTERM to every process named nginx'],
    ['signal:INT:nginx', 'SIGINT to every process named nginx'],
    ['signal:SIGUSR1:a b', 'SIGUSR1 to every process named a b'],
    ['signal:KILL:INT', 'SIGKILL to every process named INT'],
  ] as const) {
    const parsed = read(entry);
    assert.ok(parsed !== null && 'value' in parsed, entry);
    assert.deepEqual([parsed.value.name, parsed.value.request], [entry, request]);
  }
  for (const entry of [
    'signal:',
    'signal:INT:',
    'signal:STOP:nginx',
    'signal:int:nginx',
    'signal:/bin/nginx',
    'signal::x',
  ]) {
    const parsed = read(entry);
    assert.ok(parsed !== null && 'problem' in parsed, entry);
    assert.match(parsed.problem, /^signal:NAME or signal:SIGNAL:NAME, .*TERM, INT, QUIT, HUP, USR1, USR2, KILL/);
  }
  for (const entry of ['signals:nginx', 'nginx', 'http://signal:80/']) assert.equal(read(entry), null, entry);
});

test('a signal ends every process of the name with the same UID, no other, and the log says what that leaves', {
  skip,
}, async () => {
  await using namespace = await openPidNamespace();
  const uid = WATCHER_UID;
  const [one, two] = [
    await namespace.start(TAIL, { uid, comm: 'tail' }),
    await namespace.start(TAIL, { uid, comm: 'tail' }),
  ];
  const other = await namespace.start(DEAF, { uid, comm: 'sleep' });
  const { code, said, result } = await quit(namespace, 'signal:tail');
  assert.deepEqual([code, result], [0, 'stopped']);
  assert.deepEqual([await one.ended, await two.ended], [143, 143]);
  const lines = said('target signalled');
  assert.equal(lines.length, 1);
  assert.deepEqual([lines[0]?.['signal'], listPids(lines[0]).length], ['TERM', 2]);
  assert.match(String(lines[0]?.['leaves']), /^exit code 143 .*Never the pod is Failed/);
  process.kill(other.pid, 0);
  const gone = await quit(namespace, 'signal:tail');
  assert.equal(gone.result, 'alreadyGone');
  const sleep = await quit(namespace, 'signal:INT:sleep');
  assert.equal(sleep.result, 'stopped');
  assert.equal(await other.ended, 130);
  const sent = listPids(sleep.said('target signalled')[0]);
  assert.ok(sent.length === 1 && !sent.includes(1), 'not to PID 1, a sleep too');
  assert.match(String(sleep.said('target signalled')[0]?.['leaves']), /^exit code 130 /);
});

test('a process that takes no TERM gets KILL after half of the time, and TERM only once', { skip }, async () => {
  await using namespace = await openPidNamespace();
  const deaf = await namespace.start(DEAF, { uid: WATCHER_UID, comm: 'sleep' });
  const { code, said, result, forced, seconds } = await quit(namespace, 'signal:sleep', {
    LASTSCRAPE_QUIT_TIMEOUT: '5s',
  });
  assert.deepEqual([code, result], [0, 'stopped']);
  assert.equal(await deaf.ended, 137);
  assert.equal(said('target signalled').length, 1);
  assert.deepEqual([forced[0]?.['level'], forced[0]?.['signal']], ['warn', 'KILL']);
  assert.match(String(forced[0]?.['leaves']), /^exit code 137 /);
  assert.ok(Number(seconds) >= 2.5, 'TERM has its half');
});

test('another UID is a problem at the start, where the process is there already', { skip }, async () => {
  await using namespace = await openPidNamespace();
  const tail = await namespace.start(TAIL, { uid: 1000, comm: 'tail' });
  const { code, stderr } = await quit(namespace, 'signal:tail');
  assert.equal(code, 78);
  assert.match(
    stderr,
    /^Cannot use "signal:tail" of LASTSCRAPE_QUIT: PID \d+ runs as UID 1000 and lastscrape as UID 65532, which may not signal it; set the same runAsUser for both, or /,
  );
  process.kill(tail.pid, 0);
  const root = await quit(namespace, 'signal:tail', {}, { uid: 0 });
  assert.equal(root.result, 'stopped', 'root with CAP_KILL may');
});

test('another UID of a process that comes later is the hint of a target that still runs', { skip }, async () => {
  await using namespace = await openPidNamespace();
  const main = await namespace.start(['sleep', '600'], { uid: WATCHER_UID, comm: 'sleep' });
  const watcher = namespace.watch({
    ...QUIT,
    LASTSCRAPE_DONE_WHEN: 'process:sleep',
    LASTSCRAPE_SETTLE: '0',
    LASTSCRAPE_QUIT: 'signal:tail',
    LASTSCRAPE_QUIT_TIMEOUT: '1s',
    LASTSCRAPE_RUN_TIMEOUT: '10m',
  });
  await watcher.said('main is running');
  const tail = await namespace.start(TAIL, { uid: 1000, comm: 'tail' });
  process.kill(main.pid, 'SIGKILL');
  const { code, report } = await watcher.ended;
  assert.equal(code, 69);
  const [target] = (report?.['targets'] ?? []) as readonly Line[];
  assert.equal(target?.['result'], 'failed');
  const hint = String(target?.['hint']);
  assert.match(hint, /^PID \d+ runs as UID 1000 and lastscrape as UID 65532, which may not signal it/);
  process.kill(tail.pid, 0);
});

test('--check names the processes and signals none', { skip }, async () => {
  await using namespace = await openPidNamespace();
  const tail = await namespace.start(TAIL, { uid: WATCHER_UID, comm: 'tail' });
  const env = { ...QUIT, LASTSCRAPE_QUIT: 'signal:tail, signal:INT:cloud-sql-proxy, signal:vault' };
  const inPod = { ...env, KUBERNETES_SERVICE_HOST: '127.0.0.1' };
  const { code, stdout } = await namespace.watch(inPod, { args: ['--check'] }).ended;
  assert.equal(code, 0);
  assert.match(stdout, /^ {2}signal:tail: runs as PID \d+, and may be signalled$/m);
  assert.match(stdout, /^ {2}signal:tail: TERM leaves exit code 143 /m);
  assert.match(stdout, /^ {2}signal:INT:cloud-sql-proxy: no such process runs$/m);
  // Which preset, and which flag, avoids the signal.
  assert.match(stdout, /^ {2}signal:tail: instead: a quit endpoint, as METHOD URL in LASTSCRAPE_QUIT, if it has one$/m);
  assert.match(
    stdout,
    /: instead: cloud-sql-proxy in LASTSCRAPE_QUIT, with --quitquitquit set on it; or its flag --exit-zero-on-sigterm$/m,
  );
  assert.match(stdout, /^ {2}signal:vault: instead: vault-agent in LASTSCRAPE_QUIT, with agent_api .* set on it$/m);
  process.kill(tail.pid, 0);
});

/** Half of it is left after the signal. */
const FORCED = { LASTSCRAPE_QUIT_TIMEOUT: '10s' };
/** All of it is waited for. */
const LEFT_ALONE = { LASTSCRAPE_QUIT_TIMEOUT: '5s' };

/** A server that answers 501 to every POST and goes by TERM; `isDeaf`: not by TERM. Its argv[0] is `name`. */
async function serve(
  namespace: PidNamespace,
  uid: number,
  address: string,
  { isDeaf = false, name = 'python3' }: { readonly isDeaf?: boolean; readonly name?: string } = {},
) {
  const port = await findFreePort();
  const server = `exec -a ${name} python3 -m http.server --bind ${address} ${port}`;
  const command = ['bash', '-c', isDeaf ? `trap "" TERM; ${server}` : server];
  const inhabitant = await namespace.start(command, { uid, comm: 'python3' });
  const url = `http://${address === '::1' ? '[::1]' : 'localhost'}:${port}`;
  await until('a server', 60_000, async () => (await fetch(url)).ok || undefined);
  return { ...inhabitant, port, url: `${url}/quit` };
}

for (const address of ['127.0.0.1', '0.0.0.0', '::1', '::']) {
  test(`forcePortOwner() sends TERM to what listens on ${address}, with a warning`, { skip }, async () => {
    await using namespace = await openPidNamespace();
    const server = await serve(namespace, WATCHER_UID, address);
    const other = await serve(namespace, WATCHER_UID, address);
    const { code, result, forced } = await quit(namespace, server.url, FORCED);
    assert.deepEqual([code, result], [0, 'stopped']);
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
  const { code, result, forced } = await quit(namespace, server.url, FORCED);
  assert.deepEqual([code, result], [0, 'stopped']);
  assert.equal(await server.ended, 137);
  const signals = forced.map((line) => line['signal']);
  assert.deepEqual(signals, ['TERM', 'KILL']);
});

test("forcePortOwner() leaves another program alone that listens on a port of the preset's", { skip }, async () => {
  await using namespace = await openPidNamespace();
  const server = await serve(namespace, WATCHER_UID, '127.0.0.1', { name: '/usr/bin/postgres' });
  for (const [entry, programs] of [
    [`cloud-sql-proxy:${await findFreePort()}:${server.port}`, 'cloud-sql-proxy'],
    [`istio:${await findFreePort()}:${server.port}`, 'pilot-agent or envoy'],
    [`prometheus:${server.port}`, 'prometheus'],
  ] as const) {
    const { code, result, hint, forced } = await quit(namespace, entry, LEFT_ALONE);
    assert.deepEqual([code, result, forced], [69, 'failed', []], entry);
    const why = hint.split('; not forced: ')[1];
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
    const { code, result } = await quit(namespace, `${preset}:${await findFreePort()}:${server.port}`, FORCED);
    assert.deepEqual([code, result], [0, 'stopped']);
    assert.equal(await server.ended, 143);
  });
}

test('forcePortOwner() says why a process with another UID still runs', { skip }, async () => {
  await using namespace = await openPidNamespace();
  const server = await serve(namespace, 1000, '127.0.0.1');
  const { code, result, hint, forced } = await quit(namespace, server.url, LEFT_ALONE);
  assert.deepEqual([code, result, forced], [69, 'failed', []]);
  assert.match(
    hint,
    /^it answered 501: .*; not forced: the process that listens on port \d+ cannot be found; that needs its UID and GID, or CAP_SYS_PTRACE$/,
  );
  process.kill(server.pid, 0);
});

test('a target is not forced where the namespace is not shared', { skip }, async () => {
  await using namespace = await openPidNamespace();
  const server = await serve(namespace, WATCHER_UID, '127.0.0.1');
  const { code, result, hint, forced } = await quit(namespace, server.url, LEFT_ALONE, { isAlone: true });
  assert.deepEqual([code, result, forced], [69, 'failed', []]);
  assert.equal(hint, 'it answered 501: look into its log');
  process.kill(server.pid, 0);
});

test('sendSignal() says whose process may not be signalled, and nothing of one that has just ended', async () => {
  const stat = readFileSync('/proc/self/stat', 'utf8').split(') ')[1]?.split(' ') ?? [];
  const self = { pid: process.pid, startTicks: Number(stat[19]) };
  const refuse = (code: string) => ({ pid: 1, kill: () => assert.fail(Object.assign(new Error(code), { code })) });
  const { reached, why } = await sendSignal(0, [self], refuse('EPERM'));
  assert.deepEqual(reached, []);
  assert.match(why ?? '', new RegExp(`^PID ${process.pid} runs as UID (\\d+) and lastscrape as UID \\1,`));
  assert.deepEqual(await sendSignal(0, [self], refuse('ESRCH')), { reached: [], why: null });
  assert.equal(await readUid(4_194_305), 'unknown', 'no process has so high a PID (pid_max is 4,194,304 at most)');
});
