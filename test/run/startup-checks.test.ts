import assert from 'node:assert/strict';
import { chmodSync, copyFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { formatLogEntry } from '../../src/check/help.ts';
import type { Config } from '../../src/config/config.ts';
import { MESSAGES } from '../../src/decide/messages.ts';
import { listWarnings } from '../../src/run/startup-checks.ts';
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
const DB = { name: 'db' };

function listFormatted(config: object): readonly string[] {
  const plain = { targets: [], conditions: [{}], quitTimeoutMs: 30_000, thresholds: [] };
  return listWarnings({ ...plain, ...config } as unknown as Config).map(formatLogEntry);
}

const ALL = { conditions: [{ waitsForAll: true }] };
const WAITING =
  'container:* waits for every other container: list the targets in LASTSCRAPE_SIDECARS (targets app,istio)';
const EARLY = 'a mesh proxy is not the last to quit: it carries scrapes and reports';
const SHORT_TIME = 'LASTSCRAPE_QUIT_TIMEOUT is too short: a target may need longer to exit';
const threshold = (text: string, name: string, limit: number) => ({ text, name, comparison: '>' as const, limit });
const LAST_SECONDS = threshold('p95 > 1', 'locust_requests_current_response_time_percentile_95', 500);
const PLAIN = threshold('a > 1', 'a', 1);

/** What is warned of, the configuration, and the warnings. */
const WARNINGS: readonly (readonly [string, object, readonly string[]])[] = [
  ['targets that main is waited for together with', { ...ALL, targets: [APP, ISTIO] }, [WAITING]],
  ['the only one of these', { ...ALL, targets: [APP] }, [WAITING.replace('app,istio', 'app')]],
  ['no target', ALL, []],
  ['a mesh proxy at the end', { targets: [APP, ISTIO] }, []],
  ['two at the end', { targets: [APP, LINKERD, ISTIO] }, []],
  ['one before a target', { targets: [ISTIO, APP] }, [`${EARLY} (target istio, before app)`]],
  [
    'two before a target, one of them before two',
    { targets: [ISTIO, APP, LINKERD, DB] },
    [`${EARLY} (target istio, before app,db)`, `${EARLY} (target linkerd, before db)`],
  ],
  [
    'a time-out that ends before the target had its time',
    { targets: [ISTIO], quitTimeoutMs: 5_000 },
    [`${SHORT_TIME} (target istio, needsSeconds 5, quitTimeoutSeconds 5)`],
  ],
  ['one that ends after it', { targets: [ISTIO], quitTimeoutMs: 5_001 }, []],
  ['one where nothing is known of the target', { targets: [APP], quitTimeoutMs: 0 }, []],
  [
    'one for a target that needs a moment',
    { targets: [{ ...APP, needsMs: 1 }], quitTimeoutMs: 1 },
    [`${SHORT_TIME} (target app, needsSeconds 0.001, quitTimeoutSeconds 0.001)`],
  ],
  [
    'the first threshold on what Locust shows of its last seconds alone',
    { thresholds: [PLAIN, LAST_SECONDS] },
    [`${MESSAGES.thresholdOfLastSeconds.text} (entry p95 > 1)`],
  ],
  [
    'a limit in another unit',
    { thresholds: [PLAIN, threshold('r > 5', 'fail_ratio', 5)] },
    [`${MESSAGES.thresholdOddLimit.text} (entry r > 5, because a ratio is between 0 and 1: 5 % is 0.05)`],
  ],
  ['another threshold', { thresholds: [PLAIN] }, []],
];

for (const [name, config, warnings] of WARNINGS) {
  test(`listWarnings() looks at ${name}`, () => assert.deepEqual(listFormatted(config), warnings));
}
