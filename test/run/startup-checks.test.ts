import assert from 'node:assert/strict';
import { chmodSync, copyFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { gateNamespaces, openPidNamespace, WATCHER_UID } from '../support/pid-namespace.ts';

const skip = gateNamespaces('test/check.test.ts');

/** Ends at once: nothing runs, nothing is waited for, nobody is asked. */
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
