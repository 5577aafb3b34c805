import assert from 'node:assert/strict';
import { chmodSync, copyFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { formatLogEntry } from '../../src/check/help.ts';
import type { Config } from '../../src/config/config.ts';
import { listTargetWarnings, listWarnings, type TargetTraits } from '../../src/run/startup-checks.ts';
import { gateNamespaces, openPidNamespace, WATCHER_UID } from '../support/pid-namespace.ts';

const skip = gateNamespaces('test/run/startup-checks.test.ts');

/** Ends at once: nothing runs, nothing is waited for or asked. */
const SHORT = {
  LASTSCRAPE_METRICS_URL: 'http://127.0.0.1:1/metrics',
  LASTSCRAPE_DONE_WHEN: 'port:1',
  LASTSCRAPE_START_TIMEOUT: '1ms',
  LASTSCRAPE_QUIT: 'none',
};
const WARNING = 'another lastscrape runs in this pod: each counts the polls of the other as scrapes';

test('a run and --check warn of another lastscrape that they can see', { skip }, async () => {
  await using namespace = await openPidNamespace();
  const alone = await namespace.watch(SHORT).ended;
  assert.ok(!alone.log.some(({ msg }) => msg === WARNING));
  const other = join(namespace.folder, 'lastscrape');
  copyFileSync('/bin/sleep', other);
  chmodSync(other, 0o755);
  await namespace.start([other, '600'], { uid: WATCHER_UID + 1, comm: 'lastscrape' });
  const { code, log } = await namespace.watch(SHORT).ended;
  const warnings = log.filter(({ msg }) => msg === WARNING);
  assert.deepEqual([code, warnings.length, warnings[0]?.['level']], [0, 1, 'warn']);
  const [pid] = (warnings[0]?.['pids'] ?? []) as readonly number[];
  assert.ok(pid !== undefined && pid > 1);
  const inPod = { ...SHORT, KUBERNETES_SERVICE_HOST: '127.0.0.1' };
  const { stdout } = await namespace.watch(inPod, { args: ['--check'] }).ended;
  const line = `warning: lastscrape runs as PID ${pid}: two in one pod count each other's polls as scrapes`;
  assert.ok(stdout.includes(line), stdout);
  const hidden = await namespace.watch(SHORT, { isAlone: true }).ended;
  assert.ok(!hidden.log.some(({ msg }) => msg === WARNING), 'a namespace of its own shows nothing of it');
});

const APP = { name: 'app' };
const ISTIO = { name: 'istio', isMesh: true, needsMs: 5_000 };
const LINKERD = { name: 'linkerd', isMesh: true };

/** The warnings of a list, each as a line. */
function listFormatted(targets: readonly TargetTraits[], quitTimeoutMs = 30_000): readonly string[] {
  return listTargetWarnings(targets, { quitTimeoutMs, waitsForAll: false }).map(formatLogEntry);
}

test('listTargetWarnings() warns of targets that main is waited for together with', () => {
  const seen = (targets: readonly TargetTraits[]) =>
    listTargetWarnings(targets, { quitTimeoutMs: 30_000, waitsForAll: true }).map(formatLogEntry);
  const waiting =
    'container:* waits for every other container: list the targets in LASTSCRAPE_SIDECARS (targets app,istio)';
  assert.deepEqual(seen([APP, ISTIO]), [waiting]);
  assert.deepEqual(seen([APP]), [waiting.replace('app,istio', 'app')]);
  assert.deepEqual(seen([]), []);
});

test('listTargetWarnings() warns of a mesh proxy before another target, and of nothing else', () => {
  const early = 'a mesh proxy is not the last to quit: it carries scrapes and reports';
  assert.deepEqual(listFormatted([]), []);
  assert.deepEqual(listFormatted([APP, ISTIO]), []);
  assert.deepEqual(listFormatted([APP, LINKERD, ISTIO]), [], 'two proxies at the end');
  assert.deepEqual(listFormatted([ISTIO, APP]), [`${early} (target istio, before app)`]);
  assert.deepEqual(listFormatted([ISTIO, APP, LINKERD, { name: 'db' }]), [
    `${early} (target istio, before app,db)`,
    `${early} (target linkerd, before db)`,
  ]);
});

test('listTargetWarnings() warns of a time-out that ends before the target had its time', () => {
  const short = 'LASTSCRAPE_QUIT_TIMEOUT is too short: a target may need longer to exit';
  assert.deepEqual(listFormatted([ISTIO], 5_000), [`${short} (target istio, needsSeconds 5, quitTimeoutSeconds 5)`]);
  assert.deepEqual(listFormatted([ISTIO], 5_001), []);
  assert.deepEqual(listFormatted([APP], 1), [], 'nothing is known of it');
  assert.deepEqual(listFormatted([APP], 0), []);
  assert.equal(listFormatted([{ name: 'app', needsMs: 1 }], 1).length, 1);
});

test('listWarnings() warns of a threshold on what Locust shows of its last seconds alone', () => {
  const listOf = (...texts: readonly string[]) => {
    const thresholds = texts.map((text) => ({ text, name: text.replace(/ .*/, '') }));
    return listWarnings({ targets: [], conditions: [], quitTimeoutMs: 1, thresholds } as unknown as Config);
  };
  const entry = 'locust_requests_current_response_time_percentile_95 > 1';
  assert.deepEqual(listOf('a > 1', entry), [{ id: 'thresholdOfLastSeconds', fields: { entry } }]);
  assert.deepEqual(listOf('a > 1'), []);
});
