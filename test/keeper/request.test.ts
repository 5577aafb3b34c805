import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Refused, readHandOver } from '../../src/keeper/request.ts';
import { writeHandOver } from './keeper.ts';

const PROVEN = { namespace: 'mine', name: 'pod', uid: 'u1', node: 'n9' };
const readLine = (head: Record<string, unknown> = {}) => writeHandOver({ head }).toString().split('\n')[0] ?? '';

test('readHandOver() takes name, namespace, UID and node from the proof, whatever the pod says', () => {
  const pod = { namespace: 'theirs', name: 'other', uid: 'x', node: 'y', ip: '10.0.0.1', labels: {}, annotations: {} };
  const { pod: read } = readHandOver(readLine({ pod }), PROVEN, '10.0.0.1');
  assert.deepEqual(read, { ...PROVEN, ip: '10.0.0.1', labels: {}, annotations: {} });
});

test('readHandOver() refuses an address that the connection does not come from, where pods must prove who they are', () => {
  const pod = { namespace: 'mine', name: 'pod', uid: 'u1', ip: '10.0.0.2', labels: {}, annotations: {} };
  const isOther = (error: unknown) => error instanceof Refused && error.reason === 'otherAddress';
  assert.throws(() => readHandOver(readLine({ pod }), PROVEN, '10.0.0.1'), isOther);
  assert.equal(readHandOver(readLine({ pod }), null, '10.0.0.1').pod.ip, '10.0.0.2');
  assert.equal(readHandOver(readLine({ pod: { ...pod, ip: '' } }), PROVEN, '10.0.0.1').pod.ip, '10.0.0.1');
});

test('readHandOver() keeps labels that are texts with names as a pod may have, and no other', () => {
  const own = { app: 'x', 'example.com/Part_of': '', a: '1' };
  const names = ['__meta_kubernetes_namespace', '__address__', '_address__', 'a_', '', 'a b', 'ä', 'a\n'];
  const no = Object.fromEntries(names.map((name) => [name, 'kube-system']));
  const pod = { namespace: 'a', name: 'b', uid: 'c', labels: { ...own, ...no, n: 1, o: {} }, annotations: no };
  const { labels, annotations } = readHandOver(readLine({ pod }), null, '::1').pod;
  assert.deepEqual([labels, annotations], [own, {}]);
  const list = readHandOver(readLine({ pod: { ...pod, annotations: ['y'] } }), null, '::1').pod.annotations;
  assert.deepEqual(list, {});
});

test('readHandOver() refuses more labels than any pod has: each takes time that others wait for', () => {
  const list = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, index) => [`a${index}`, '']));
  const pod = { namespace: 'a', name: 'b', uid: 'c', labels: list(256), annotations: {} };
  assert.equal(Object.keys(readHandOver(readLine({ pod }), null, '::1').pod.labels).length, 256);
  const isTooLarge = (error: unknown) => error instanceof Refused && error.reason === 'tooLarge';
  assert.throws(() => readHandOver(readLine({ pod: { ...pod, labels: list(257) } }), null, '::1'), isTooLarge);
});
