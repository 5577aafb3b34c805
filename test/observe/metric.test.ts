import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ExporterObservation } from '../../src/decide/model.ts';
import type { Reading } from '../../src/exposition/exposition.ts';
import { metricKind } from '../../src/observe/metric.ts';
import { ANSWERED } from '../decide/phases.ts';
import { CONTEXT, UNDISTURBED } from './condition-context.ts';

async function observe(reading: Reading, hasRequests: boolean, observation: ExporterObservation = ANSWERED) {
  const parsed = metricKind.read('locust_up', CONTEXT);
  assert.ok('value' in parsed);
  assert.deepEqual([parsed.value.text, parsed.value.metricName], ['metric:locust_up', 'locust_up']);
  const metric = (name: string): Reading => (name === 'locust_up' ? reading : { kind: 'unknown', why: 'another' });
  return parsed.value.observe({ ...UNDISTURBED, exporter: { observation, metric, hasRequests } });
}

test('observe() is done at 0, alive at anything else, unknown where it cannot be read', async () => {
  const alive = (seen: string) => ({ kind: 'alive', seen });
  assert.deepEqual(await observe({ kind: 'value', value: 1 }, true), alive('locust_up 1'));
  assert.deepEqual(await observe({ kind: 'value', value: -1 }, false), alive('locust_up -1'));
  assert.deepEqual(await observe({ kind: 'value', value: 0.1 }, false), alive('locust_up 0.1'));
  const done = { kind: 'done', seen: 'locust_up 0' };
  assert.deepEqual(await observe({ kind: 'value', value: 0 }, true), { ...done, provesWasAlive: true });
  assert.deepEqual(await observe({ kind: 'value', value: 0 }, false), { ...done, provesWasAlive: false });
  const unknown = { kind: 'unknown', why: 'locust_up unknown: HTTP 500' };
  assert.deepEqual(await observe({ kind: 'unknown', why: 'HTTP 500' }, true), unknown);
});

test('observe() shows nothing where the page was not read', async () => {
  const reading = await observe({ kind: 'unknown', why: 'not read' }, false, { kind: 'none' });
  assert.deepEqual(reading, { kind: 'notObserved' });
});

test('read() takes names of the text format', () => {
  for (const name of ['locust_up', 'a', '_', ':a:b', 'A9']) assert.ok('value' in metricKind.read(name, CONTEXT), name);
  for (const name of ['', '9a', 'a-b', 'a b', 'a{b="c"}', 'ü', 'a\n', ' a']) {
    assert.deepEqual(metricKind.read(name, CONTEXT), { problem: 'a metric name such as "locust_up"' }, name);
  }
});
