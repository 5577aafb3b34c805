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

test('readHandOver() keeps labels that are texts, and no other', () => {
  const pod = { namespace: 'a', name: 'b', uid: 'c', labels: { app: 'x', n: 1, o: {} }, annotations: ['y'] };
  const { labels, annotations } = readHandOver(readLine({ pod }), null, '::1').pod;
  assert.deepEqual([labels, annotations], [{ app: 'x' }, {}]);
});
