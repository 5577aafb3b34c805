// What lastscrape finds in a PID namespace, as --check prints it: which names match, and what is hidden.

import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { copyFileSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { isStillRunning } from '../../src/base/procfs.ts';
import { writeHooks } from '../../src/run/hooks.ts';
import { makeFolder } from '../support/folder.ts';
import { gateNamespaces, openPidNamespace, type PidNamespace } from '../support/pid-namespace.ts';
import { until } from '../support/until.ts';
import { COMMAND, startWatcher } from '../support/watcher.ts';

const skip = gateNamespaces('test/base/procfs.test.ts');

async function findByCheck(namespace: PidNamespace, name: string, uid?: number): Promise<string> {
  const env = { KUBERNETES_SERVICE_HOST: '127.0.0.1', LASTSCRAPE_DONE_WHEN: `process:${name}` };
  const { code, stdout, stderr } = await namespace.watch(env, { args: ['--check'], ...(uid && { uid }) }).ended;
  assert.equal(code, 0, stderr);
  const [, found = ''] = new RegExp(`^  process:${name}: (.*)$`, 'm').exec(stdout) ?? [];
  return found.replace(/\d+/g, 'N');
}

/** The line of /proc of a process's one child, once that is a zombie. */
function readZombieChild(pid: number): Promise<string> {
  return until('a child that is a zombie', 60_000, async () => {
    const child = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim();
    const text = readFileSync(`/proc/${child}/stat`, 'utf8');
    return / Z /.test(text) ? text : undefined;
  });
}

const RUNS = 'alive (runs as PID N)';
const NONE = 'done, or not started yet (no such process runs)';

test('findProcesses() matches comm and the base name of argv[0], cut as the kernel cuts it', { skip }, async () => {
  await using namespace = await openPidNamespace();
  const long = join(namespace.folder, 'name-of-more-than-15-bytes');
  copyFileSync('/bin/sleep', long);
  const uid = 1000;
  await namespace.start([long, '600'], { uid, comm: 'name-of-more-th' });
  await namespace.start(['bash', '-c', 'exec -a /opt/bin/other-name tail -f /dev/null'], { uid, comm: 'tail' });
  await namespace.start(['bash', '-c', 'exec -a "odd name) S 1 (" env -u X sleep 600'], { uid, comm: 'sleep' });
  for (const [what, name, found] of [
    ['long', 'name-of-more-than-15-bytes', RUNS],
    ['another long name with the same 15 bytes', 'name-of-more-than-15-of-them', NONE],
    ['the cut name', 'name-of-more-th', RUNS],
    ['argv[0]', 'other-name', RUNS],
    ['comm with another argv[0]', 'tail', RUNS],
    ['an argument', 'null', NONE],
    ['a part of a name', 'slee', NONE],
  ] as const) {
    assert.equal(await findByCheck(namespace, name), found, what);
  }
});

test('findProcesses() never finds PID 1, lastscrape itself, or a zombie', { skip }, async () => {
  await using namespace = await openPidNamespace();
  assert.equal(await findByCheck(namespace, 'sleep'), NONE, 'PID 1 is a sleep');
  assert.equal(await findByCheck(namespace, 'node'), NONE, 'lastscrape is a node');
  assert.equal(await findByCheck(namespace, 'lastscrape-linux-x64'), NONE, 'or a binary');
  // The parent is a tail by then, which does not wait for its child.
  const zombie = await namespace.start(['sh', '-c', '/bin/true & exec tail -f /dev/null'], { uid: 1000, comm: 'tail' });
  assert.match(await readZombieChild(zombie.pid), /^\d+ \(true\) Z /);
  assert.equal(await findByCheck(namespace, 'true'), NONE);
  assert.equal(await findByCheck(namespace, 'tail'), RUNS, 'and its parent is found');
});

test('findProcesses() finds a process whose first thread ended before the others', { skip }, async () => {
  await using namespace = await openPidNamespace();
  // The system call exit ends one thread: number 60 on x86-64, 93 on arm64.
  const program = `import ctypes, os, threading, time
threading.Thread(target=time.sleep, args=[600]).start()
ctypes.CDLL(None).syscall({'x86_64': 60, 'aarch64': 93}[os.uname().machine], 0)`;
  const { pid } = await namespace.start(['python3', '-c', program], { uid: 1000, comm: 'python3' });
  await until(
    'a first thread that is a zombie',
    60_000,
    async () => readFileSync(`/proc/${pid}/stat`, 'utf8').includes('(python3) Z ') || undefined,
  );
  assert.equal(await findByCheck(namespace, 'python3'), RUNS);
});

test('findProcesses() does not know what a /proc with hidepid hides', { skip }, async () => {
  await using namespace = await openPidNamespace({ isHiding: true });
  await namespace.start(['tail', '-f', '/dev/null'], { uid: 1000, comm: 'tail' });
  assert.match(await findByCheck(namespace, 'tail'), /^process tail unknown: .*hidepid/);
  const hidden = await findByCheck(namespace, 'tail', 1000);
  assert.equal(hidden, 'process tail unknown: /proc does not show PID N (is it mounted with hidepid?)');
});

test('isStillRunning() is false for another process that reuses the PID', async () => {
  const stat = readFileSync(`/proc/${process.pid}/stat`, 'utf8');
  // The 22nd field (proc(5)); what stands before the last parenthesis is two of them.
  const startTicks = Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[22 - 3]);
  assert.equal(await isStillRunning({ pid: process.pid, startTicks }), true);
  assert.equal(await isStillRunning({ pid: process.pid, startTicks: startTicks - 1 }), false);
  const child = spawn('true');
  await once(child, 'close');
  assert.equal(await isStillRunning({ pid: child.pid ?? 0, startTicks }), false);
});

/** A shell that starts what follows, and waits for it as an init does. */
const INIT = ['sh', '-c', '"$@"; exit $?', 'sh'];

test('readNamespace() is not misled by an init or a shell that starts lastscrape', { skip }, async () => {
  await using namespace = await openPidNamespace();
  for (const init of [INIT, [...INIT, ...INIT]]) {
    const processes = { KUBERNETES_SERVICE_HOST: '127.0.0.1', LASTSCRAPE_QUIT: 'signal:tail' };
    const alone = await namespace.watch(processes, { args: ['--check'], isAlone: true, init }).ended;
    assert.match(alone.stdout, /^ {2}process namespace: not shared/m, alone.stderr);
    const beside = await namespace.watch(processes, { args: ['--check'], init }).ended;
    assert.match(beside.stdout, /^ {2}process namespace: shared/m, beside.stderr);
  }
  const env = { LASTSCRAPE_DONE_WHEN: 'process:tail', LASTSCRAPE_START_TIMEOUT: '1ms' };
  const { code, stderr } = await namespace.watch(env, { isAlone: true, init: INIT }).ended;
  assert.equal(code, 78, 'no helper is quit under a main that is not seen');
  assert.match(stderr, /do not share a process namespace/);
});

/** In a PID namespace of its own, as a container is. */
const ALONE = ['unshare', '--pid', '--fork', '--kill-child', '--mount-proc', ...COMMAND];

test('readNamespace() knows the container of a lastscrape that runs there already, from outside', {
  skip,
}, async (context) => {
  const env = { PATH: process.env['PATH'] ?? '', LASTSCRAPE_DONE_WHEN: 'file:/no/such/file', LASTSCRAPE_QUIT: 'none' };
  const first = startWatcher(env, [], ALONE);
  context.after(() => first.child.kill('SIGKILL'));
  await first.said('watching');
  const pid = readFileSync(`/proc/${first.child.pid}/task/${first.child.pid}/children`, 'utf8').trim();
  const exec = ['nsenter', `--pid=/proc/${pid}/ns/pid`, `--mount=/proc/${pid}/ns/mnt`, ...COMMAND];
  const inPod = { ...env, KUBERNETES_SERVICE_HOST: '127.0.0.1', LASTSCRAPE_QUIT: 'signal:tail' };
  const { stdout } = await startWatcher(inPod, ['--check'], exec).ended;
  assert.match(stdout, /^ {2}process namespace: not shared/m);
  // It may hold by then: a read of the exporter would be the scrape that it waits for.
  const ended = { ...inPod, LASTSCRAPE_DONE_WHEN: 'port:1', LASTSCRAPE_METRICS_URL: 'http://127.0.0.1:1/metrics' };
  const beside = await startWatcher(ended, ['--check'], exec).ended;
  assert.match(beside.stdout, /^ {2}http:\/\/127\.0\.0\.1:1\/metrics: not read: a lastscrape runs here/m);
  const alone = await startWatcher(ended, ['--check'], ALONE).ended;
  assert.match(alone.stdout, /^ {2}http:\/\/127\.0\.0\.1:1\/metrics: nothing listens there/m);
});

test("findNamespaceProblem() names the namespace of one container, and the node's", { skip }, async () => {
  for (const args of [[], ['--check']]) {
    const env = {
      LASTSCRAPE_DONE_WHEN: 'process:nginx',
      LASTSCRAPE_QUIT: 'signal:nginx',
      LASTSCRAPE_START_TIMEOUT: '1ms',
      KUBERNETES_SERVICE_HOST: '127.0.0.1',
      PATH: process.env['PATH'] ?? '',
    };
    const node = await startWatcher(env, args).ended;
    assert.equal(node.code, 78, 'every process of the machine can be seen');
    assert.match(
      node.stderr,
      /^Cannot use "process:nginx" of LASTSCRAPE_DONE_WHEN: .*hostPID.*shareProcessNamespace: true/m,
    );
    assert.match(node.stderr, /^Cannot use "signal:nginx" of LASTSCRAPE_QUIT: .*hostPID/m);
  }
});

/** For one port alone, the kernel would use their ports again. */
const LEAVE_SOCKETS = `import socket
for number in range(30_000):
    if number % 5_000 == 0: server = socket.create_server(("127.0.0.1", 0))
    with socket.create_connection(server.getsockname()), server.accept()[0]: pass`;
const SERVE_AND_END = `import atexit, socket, tracemalloc
server = socket.create_server(("127.0.0.1", 0))
atexit.register(lambda: print("main:", tracemalloc.get_traced_memory()[1] < 4e6))
tracemalloc.start()`;
/** A probe of main, say, which has a second. */
const END = `import sys
sys.addaudithook(lambda event, args: event == "open" and "/net/tcp" in str(args[0]) and print("read"))`;

test('30,000 sockets in TIME_WAIT need no memory of lastscrape or the hook, and no time of a probe', {
  skip,
}, async () => {
  const folder = makeFolder();
  assert.equal(await writeHooks(folder, 7), null);
  const procfs = new URL('../../src/base/procfs.ts', import.meta.url);
  const read = `import { readUnacknowledged } from '${procfs}'; console.log('ours:', readUnacknowledged({ localPort: 1 }))`;
  const node = `${process.execPath} --max-old-space-size=16 --input-type=module --eval "$2"`;
  const hooked = `export PYTHONPATH=${folder}/python; python3 -c "$3"; python3 -c "$4" </dev/null 2>&1 | cat`;
  const inside = `ip link set lo up; python3 -c "$1"; ${node}; ${hooked}`;
  const command = ['--net', 'sh', '-ec', inside, 'sh', LEAVE_SOCKETS, read, SERVE_AND_END, END];
  const env = { PATH: process.env['PATH'] ?? '', LASTSCRAPE_SNAPSHOT_URL: 'http://localhost:1/' };
  assert.equal(execFileSync('unshare', command, { encoding: 'utf8', env }), 'ours: 0\nmain: True\n');
});
