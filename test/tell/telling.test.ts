// What is known of receivers; test/binary/telling.test.ts tests what they get.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { listLabels } from '../../src/tell/telling.ts';

test('listLabels() has what is known of the pod, and in its place what the user says', () => {
  const identity = { namespace: 'load', pod: 'checkout-x7k2p', job: 'checkout' };
  assert.deepEqual(
    listLabels(identity, [
      ['job', 'nightly'],
      ['team', 'shop'],
    ]),
    [
      ['namespace', 'load'],
      ['pod', 'checkout-x7k2p'],
      ['job', 'nightly'],
      ['team', 'shop'],
    ],
  );
  assert.deepEqual(listLabels({}, [['job', 'nightly']]), [['job', 'nightly']]);
});
