import assert from 'node:assert/strict';
import { test } from 'node:test';
import { findForgottenMesh, formatWarning, listTargetWarnings } from '../../src/act/order.ts';
import { PRESETS, type Preset } from '../../src/act/presets.ts';
import type { Target } from '../../src/act/target.ts';
import { closedPort, openPeer } from '../support/peer.ts';

function target(name: string, more: Partial<Target> = {}): Target {
  return {
    name,
    request: name,
    ask: async () => ({ kind: 'refused' }),
    probe: async () => 'refused',
    hint: () => '',
    ...more,
  };
}

const APP = target('app');
const ISTIO = target('istio', { isMesh: true, needsMs: 5_000 });
const LINKERD = target('linkerd', { isMesh: true });

/** The warnings of a list, each as its message and the target it names. */
function said(targets: readonly Target[], quitTimeoutMs = 30_000): readonly string[] {
  return listTargetWarnings(targets, { quitTimeoutMs, waitsForAll: false }).map(formatWarning);
}

test('listTargetWarnings() warns of targets that main is waited for together with', () => {
  const seen = (targets: readonly Target[]) =>
    listTargetWarnings(targets, { quitTimeoutMs: 30_000, waitsForAll: true }).map(formatWarning);
  const waiting =
    'container:* waits for every other container: name those that are to be quit in LASTSCRAPE_SIDECARS (targets app,istio)';
  assert.deepEqual(seen([APP, ISTIO]), [waiting]);
  assert.deepEqual(seen([]), []);
});

test('listTargetWarnings() warns of a mesh proxy before another target, and of nothing else', () => {
  const early = 'a mesh proxy is not the last to quit: it carries scrapes and reports';
  assert.deepEqual(said([]), []);
  assert.deepEqual(said([APP, ISTIO]), []);
  assert.deepEqual(said([APP, LINKERD, ISTIO]), [], 'two proxies at the end');
  assert.deepEqual(said([ISTIO, APP]), [`${early} (target istio, before app)`]);
  assert.deepEqual(said([ISTIO, APP, LINKERD, target('db')]), [
    `${early} (target istio, before app,db)`,
    `${early} (target linkerd, before db)`,
  ]);
});

test('listTargetWarnings() warns of a time-out that ends before the target had its time', () => {
  const short = 'LASTSCRAPE_QUIT_TIMEOUT is too short: a target may need longer to go';
  assert.deepEqual(said([ISTIO], 5_000), [`${short} (target istio, needsSeconds 5, quitTimeoutSeconds 5)`]);
  assert.deepEqual(said([ISTIO], 5_001), []);
  assert.deepEqual(said([APP], 1), [], 'nothing is known of it');
});

/** Presets that are found by these ports. */
function found(...ports: readonly number[]): readonly Preset[] {
  const [any] = PRESETS;
  return ports.map((foundBy, index) => ({ ...(any as Preset), name: `mesh${index}`, foundBy }));
}

test('findForgottenMesh() names the proxy that answers although it was not listed, and sends it nothing', async () => {
  await using proxy = await openPeer(() => {});
  const [note, ...more] = await findForgottenMesh([APP], found(await closedPort(), proxy.port));
  assert.deepEqual(more, []);
  assert.equal(note?.id, 'meshForgotten');
  assert.deepEqual(note?.fields, { port: proxy.port, add: 'mesh1, as the last entry of LASTSCRAPE_QUIT' });
  await proxy.closed(1);
  assert.deepEqual(proxy.requests, []);
});

test('findForgottenMesh() does not look where nothing is to be stopped, or a proxy was listed', async () => {
  await using proxy = await openPeer(() => {});
  assert.deepEqual(await findForgottenMesh([], found(proxy.port)), []);
  assert.deepEqual(await findForgottenMesh([APP, ISTIO], found(proxy.port)), []);
  assert.equal(proxy.connectionsCount(), 0);
});

test('findForgottenMesh() makes two looks by default: Istio and Linkerd', () => {
  const ports = PRESETS.flatMap(({ name, foundBy }) => (foundBy === null ? [] : [[name, foundBy]]));
  assert.deepEqual(ports, [
    ['istio', 15021],
    ['linkerd', 4191],
  ]);
});
