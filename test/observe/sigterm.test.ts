import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sigtermKind } from '../../src/observe/sigterm.ts';
import { CONTEXT, UNDISTURBED } from './condition-context.ts';

const parsed = sigtermKind.read('', CONTEXT);
assert.ok('value' in parsed);
const condition = parsed.value;

test('sigterm is a signal, which no observation shows', async () => {
  assert.deepEqual([condition.text, condition.metricName, condition.isSignal], ['sigterm', null, true]);
  assert.deepEqual(await condition.observe(UNDISTURBED), { kind: 'notObserved' });
});

test('sigterm says where lastscrape must stand, in a pod and elsewhere', async () => {
  const need =
    /the last of the initContainers, with restartPolicy: Always and without a livenessProbe; as a regular container/;
  assert.match((await condition.inspect?.())?.join() ?? '', need);
  assert.match(condition.need ?? '', need);
});
