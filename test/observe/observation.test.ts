import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ConditionObservation } from '../../src/decide/model.ts';
import { READ_TIMEOUT_MS } from '../../src/decide/serve/reads.ts';
import type { Condition, ExporterReading, ObserveContext } from '../../src/observe/condition-kind.ts';
import { NOT_READ } from '../../src/observe/exporter.ts';
import { beginObservation, CONDITION_TIMEOUT_MS, type Sources } from '../../src/observe/observation.ts';
import { ALIVE, DONE } from '../decide/phases.ts';
import { VirtualClock } from '../support/virtual-clock.ts';

const UNLIMITED = { readByMs: null };

function condition(text: string, observe: (context: ObserveContext) => Promise<ConditionObservation>): Condition {
  return { text, metricName: text.startsWith('metric') ? 'up' : null, observe };
}

const hanging = (text: string) => condition(text, () => new Promise(() => {}));

function readUntilAborted(signal: AbortSignal): Promise<ExporterReading> {
  return new Promise((resolve) =>
    signal.addEventListener('abort', () =>
      resolve({ ...NOT_READ, observation: { kind: 'failed', why: String(signal.reason), mayCount: true } }),
    ),
  );
}

test('beginObservation() reads the exporter first, then the metrics, and stops at the first that is alive', async () => {
  const clock = new VirtualClock();
  const order: string[] = [];
  const note = (text: string, result: ConditionObservation) =>
    condition(text, async () => {
      order.push(text);
      return result;
    });
  const sources = {
    conditions: [note('port', DONE), note('metric', DONE), note('file', ALIVE), note('tombstone', DONE)],
    readExporter: async () => {
      order.push('exporter');
      return NOT_READ;
    },
  };
  const { conditions } = await clock.run(beginObservation(sources, clock, UNLIMITED).ended);
  assert.deepEqual(order, ['exporter', 'metric', 'port', 'file']);
  assert.deepEqual(conditions, [DONE, DONE, ALIVE, { kind: 'notObserved' }]);
  assert.equal(clock.timerCount, 0);
});

test('beginObservation() reads a page that is not due once every other condition shows the end', async () => {
  const gone: ExporterReading = { ...NOT_READ, observation: { kind: 'refused' } };
  for (const [port, reads, conditions] of [
    [ALIVE, ['own'], [{ kind: 'notObserved' }, ALIVE]],
    [{ kind: 'unknown', why: 'timed out' }, ['own'], [{ kind: 'notObserved' }, { kind: 'unknown', why: 'timed out' }]],
    [DONE, ['own', 'end'], [DONE, DONE]],
  ] as const) {
    const clock = new VirtualClock();
    const asked: string[] = [];
    const sources: Sources = {
      conditions: [
        condition('metric:up', async ({ exporter }) => (exporter === gone ? DONE : { kind: 'notObserved' })),
        condition('port:1', async () => port),
      ],
      readExporter: async (_, need) => {
        asked.push(need);
        return need === 'end' ? gone : NOT_READ;
      },
    };
    const seen = await clock.run(beginObservation(sources, clock, UNLIMITED).ended);
    assert.deepEqual([asked, seen.conditions], [reads, conditions]);
    assert.equal(seen.exporter.kind, port === DONE ? 'refused' : 'none');
  }
});

test('beginObservation() gives up a condition that hangs, whatever it is, and goes on with the next', async () => {
  const clock = new VirtualClock();
  const sources = { conditions: [hanging('file:/nfs'), condition('port:1', async () => DONE)], readExporter: null };
  const { conditions, atMs, allowedMs } = await clock.run(beginObservation(sources, clock, UNLIMITED).ended);
  assert.deepEqual(conditions, [{ kind: 'blind', why: 'file:/nfs unknown: timed out' }, DONE]);
  assert.ok(atMs >= CONDITION_TIMEOUT_MS && atMs <= allowedMs);
  assert.equal(allowedMs, READ_TIMEOUT_MS + 2 * CONDITION_TIMEOUT_MS, 'what its own limits add up to');
  assert.equal(clock.timerCount, 0);
});

test('beginObservation() lets a condition that is given up say so in its own words', async () => {
  const clock = new VirtualClock();
  const polite = condition(
    'port:1',
    ({ signal }) =>
      new Promise((resolve) =>
        signal.addEventListener('abort', () => resolve({ kind: 'unknown', why: `port 1: ${signal.reason}` })),
      ),
  );
  const { conditions } = await clock.run(
    beginObservation({ conditions: [polite], readExporter: null }, clock, UNLIMITED).ended,
  );
  assert.deepEqual(conditions, [{ kind: 'unknown', why: 'port 1: timed out' }]);
});

test('beginObservation() cuts the read at its limit, not before its least time, and asks the conditions then', async () => {
  for (const [readByMs, readAtMs] of [
    [5_000, 5_000],
    [200, 1_000],
  ] as const) {
    const clock = new VirtualClock();
    const sources: Sources = { conditions: [condition('port:1', async () => DONE)], readExporter: readUntilAborted };
    const seen = await clock.run(beginObservation(sources, clock, { readByMs }).ended);
    assert.equal(seen.readAtMs, readAtMs);
    assert.deepEqual(seen.conditions, [DONE]);
    assert.equal(seen.allowedMs, readAtMs + 1_000);
  }
});

test('limit() tightens an observation under way, stop() ends it at once', async () => {
  const clock = new VirtualClock();
  const sources = { conditions: [hanging('file:/nfs')], readExporter: readUntilAborted };
  const tightened = beginObservation(sources, clock, UNLIMITED);
  clock.after(3_000, () => tightened.limit({ readByMs: 3_000 }));
  const seen = await clock.run(tightened.ended);
  assert.equal(seen.readAtMs, 3_000);
  assert.ok(seen.atMs >= 4_000 && seen.atMs < 4_100, `${seen.atMs}`);
  const limited = beginObservation(sources, clock, { readByMs: clock.nowMs() + 2_000 });
  limited.limit({ readByMs: clock.nowMs() + 5_000 });
  const { readAtMs, startedAtMs: beganAtMs, allowedMs } = await clock.run(limited.ended);
  assert.deepEqual([readAtMs - beganAtMs, allowedMs], [2_000, 3_000], 'never more time');
  const stopped = beginObservation(sources, clock, UNLIMITED);
  clock.after(100, stopped.stop);
  const { atMs, startedAtMs } = await clock.run(stopped.ended);
  assert.ok(atMs - startedAtMs <= 200);
  assert.equal(clock.timerCount, 0);
});

test('beginObservation() rejects where a condition throws: a bug', async () => {
  const clock = new VirtualClock();
  const broken = condition('port:1', () => Promise.reject(new Error('Bug: never')));
  await assert.rejects(
    clock.run(beginObservation({ conditions: [broken], readExporter: null }, clock, UNLIMITED).ended),
  );
});
