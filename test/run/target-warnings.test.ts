import assert from 'node:assert/strict';
import { test } from 'node:test';
import { formatLogEntry } from '../../src/check/help.ts';
import { listTargetWarnings, type TargetTraits } from '../../src/run/startup-checks.ts';

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
