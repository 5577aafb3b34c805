import assert from 'node:assert/strict';
import { test } from 'node:test';
import { findForgottenMesh } from '../../src/quit/http-target.ts';
import { PRESETS, type Preset } from '../../src/quit/programs.ts';
import type { Target } from '../../src/quit/target-kind.ts';
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
const ISTIO = target('istio', { isMesh: true });

function presetsFoundBy(...ports: readonly number[]): readonly Preset[] {
  const [any] = PRESETS;
  return ports.map((foundBy, index) => ({ ...(any as Preset), name: `mesh${index}`, foundBy }));
}

test('findForgottenMesh() names the proxy that answers although it was not listed, and sends it nothing', async () => {
  await using proxy = await openPeer(() => {});
  const [entry, ...more] = await findForgottenMesh([APP], presetsFoundBy(await closedPort(), proxy.port));
  assert.deepEqual(more, []);
  assert.equal(entry?.id, 'meshForgotten');
  assert.deepEqual(entry?.fields, { port: proxy.port, add: 'mesh1, as the last entry of LASTSCRAPE_QUIT' });
  await proxy.closed(1);
  assert.deepEqual(proxy.requests, []);
});

test('findForgottenMesh() connects to nothing where nothing is to be stopped, or a proxy was listed', async () => {
  await using proxy = await openPeer(() => {});
  assert.deepEqual(await findForgottenMesh([], presetsFoundBy(proxy.port)), []);
  assert.deepEqual(await findForgottenMesh([APP, ISTIO], presetsFoundBy(proxy.port)), []);
  assert.equal(proxy.connectionsCount(), 0);
});

test('findForgottenMesh() tries two ports by default: Istio and Linkerd', () => {
  const ports = PRESETS.flatMap(({ name, foundBy }) => (foundBy === undefined ? [] : [[name, foundBy]]));
  assert.deepEqual(ports, [
    ['istio', 15021],
    ['linkerd', 4191],
  ]);
});
