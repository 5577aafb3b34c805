import assert from 'node:assert/strict';
import { test } from 'node:test';
import { processKind } from '../../src/observe/process.ts';
import { gateNamespaces, openPidNamespace, signalInnermost } from '../support/pid-namespace.ts';
import { CONTEXT } from './condition-context.ts';

const skip = gateNamespaces('test/observe/process.test.ts');

/** Ends when main does: no exporter, no hold, nothing to quit. */
const WATCH = {
  LASTSCRAPE_DONE_WHEN: 'process:tail',
  LASTSCRAPE_SCRAPES: '0',
  LASTSCRAPE_QUIT: 'none',
  LASTSCRAPE_POLL: '100ms',
  LASTSCRAPE_SETTLE: '0',
};

test('read() takes a name without a folder', () => {
  for (const name of ['', '/usr/bin/nginx', 'a/b', 'a\0b']) {
    assert.deepEqual(processKind.read(name, CONTEXT), {
      problem: 'the name of a program without its folder, such as "nginx"',
    });
  }
});

test('a watcher with another UID sees main run and end in a shared namespace', { skip }, async () => {
  await using namespace = await openPidNamespace();
  const main = await namespace.start(['tail', '-f', '/dev/null'], { uid: 1000, comm: 'tail' });
  const watcher = namespace.watch(WATCH);
  await watcher.said('main is running');
  process.kill(main.pid, 'SIGKILL');
  const { code, report, log } = await watcher.ended;
  assert.deepEqual([code, report?.['outcome']], [0, 'released'], 'main that is killed is done as well');
  assert.ok(log.some((line) => line['msg'] === 'main ended' && line['seen'] === 'no process tail'));
});

test('a watcher that never saw the process waits for it, and the kernel says nothing of before', { skip }, async () => {
  await using namespace = await openPidNamespace();
  const { code, report } = await namespace.watch({ ...WATCH, LASTSCRAPE_START_TIMEOUT: '500ms' }).ended;
  assert.deepEqual([code, report?.['outcome']], [0, 'neverStarted']);
});

test('a watcher in a namespace of its own says what is missing in the spec of the pod', { skip }, async () => {
  await using namespace = await openPidNamespace();
  const env = { ...WATCH, LASTSCRAPE_QUIT: 'signal:INT:tail', LASTSCRAPE_START_TIMEOUT: '1ms' };
  const { code, stderr, stdout } = await namespace.watch(env, { isAlone: true }).ended;
  assert.deepEqual([code, stdout], [78, '']);
  const why =
    'the containers of this pod do not share a process namespace (PID 1 is lastscrape, or started it); set shareProcessNamespace: true in the spec of the pod';
  assert.equal(
    stderr,
    `Cannot use "process:tail" of LASTSCRAPE_DONE_WHEN: ${why}\nCannot use "signal:INT:tail" of LASTSCRAPE_QUIT: ${why}\n`,
  );
  const inPod = { KUBERNETES_SERVICE_HOST: '127.0.0.1', LASTSCRAPE_QUIT: 'signal:tail' };
  const plain = await namespace.watch(inPod, { args: ['--check'], isAlone: true }).ended;
  assert.match(plain.stdout, /^ {2}process namespace: not shared \(PID 1 is lastscrape, or started it\)/m);
  const shared = await namespace.watch(inPod, { args: ['--check'] }).ended;
  assert.match(shared.stdout, /^ {2}process namespace: shared; PID 1 is "sleep"$/m);
  const other = await namespace.watch({ KUBERNETES_SERVICE_HOST: '127.0.0.1' }, { args: ['--check'] }).ended;
  assert.doesNotMatch(other.stdout, /namespace/, 'no entry goes by it');
});

test('a watcher that a /proc with hidepid shows nothing is blind, and says what to do', { skip }, async () => {
  await using namespace = await openPidNamespace({ isHiding: true });
  const main = await namespace.start(['tail', '-f', '/dev/null'], { uid: 1000, comm: 'tail' });
  const watcher = namespace.watch({ ...WATCH, LASTSCRAPE_START_TIMEOUT: '1ms', LASTSCRAPE_LOG_LEVEL: 'debug' });
  await watcher.said('a condition cannot be checked');
  signalInnermost(watcher.child, 'SIGKILL');
  process.kill(main.pid, 'SIGKILL');
  const { log } = await watcher.ended;
  const why = 'process tail unknown: /proc does not show PID 1 (is it mounted with hidepid?)';
  assert.deepEqual(log.find(({ conditions }) => Array.isArray(conditions))?.['conditions'], [`blind: ${why}`]);
  assert.match(String(log.find(({ problem }) => problem)?.['problem']), /mount \/proc without hidepid/);
});
