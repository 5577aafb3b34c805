// One observation of everything: the exporter first, then the conditions until one shows that main is alive.
// Each part, and the whole, has a time limit. Never decides.

import { type Clock, callAfter, waitFor, waitUnless } from '../base/waits.ts';
import type { ConditionObservation, FrontObservation, Observation } from '../decide/model.ts';
import { SHORT_READ_MS } from '../decide/run/pace.ts';
import { type ObservationNeed, READ_TIMEOUT_MS } from '../decide/serve/reads.ts';
import type { ObserveEffect } from '../decide/state.ts';
import type { Condition, ExporterReading } from './condition-kind.ts';
import { NOT_READ } from './exporter.ts';

export const CONDITION_TIMEOUT_MS = 5_000;
/** How long a condition may take after its limit to report in its own words. */
const LAST_WORDS_MS = 50;

export type Sources = {
  readonly conditions: readonly Condition[];
  /** Reads the exporter as `need` and the law of reads say; null if there is nothing to read. */
  readonly readExporter: ((signal: AbortSignal, need: ObservationNeed) => Promise<ExporterReading>) | null;
  /** What the front has at the end of an observation; absent without a front. */
  readonly observeFront?: () => FrontObservation | Promise<FrontObservation>;
};

/** When to give up, as `step` decides. */
type ObserveLimits = Pick<ObserveEffect, 'readByMs'>;

/** An observation that has begun. */
export type OngoingObservation = {
  /** Rejects on a bug only. */
  readonly ended: Promise<Observation>;
  /** Gives it less time, never more. */
  readonly limit: (limits: ObserveLimits) => void;
  /** Gives everything up at once. */
  readonly stop: () => void;
};

export function beginObservation(
  sources: Sources,
  clock: Clock,
  { isFresh = false, ...limits }: ObserveLimits & Partial<Pick<ObserveEffect, 'isFresh'>>,
): OngoingObservation {
  const startedAtMs = clock.nowMs();
  const reading = new AbortController();
  const asking = new AbortController();
  let allowedMs = READ_TIMEOUT_MS + sources.conditions.length * CONDITION_TIMEOUT_MS;
  // Metrics first: they have been read.
  const inOrder = [...sources.conditions.entries()].toSorted(
    ([, one], [, other]) => Number(one.metricName === null) - Number(other.metricName === null),
  );
  const cancels: (() => void)[] = [];
  function limit({ readByMs }: ObserveLimits): void {
    if (readByMs === null) return;
    const readEndMs = Math.max(readByMs, startedAtMs + SHORT_READ_MS);
    allowedMs = Math.min(allowedMs, readEndMs + SHORT_READ_MS - startedAtMs);
    cancels.push(
      callAfter(clock, readEndMs - clock.nowMs(), () => reading.abort('the time is up')),
      callAfter(clock, readEndMs + SHORT_READ_MS - clock.nowMs(), () => asking.abort('the time is up')),
    );
  }
  async function observe(): Promise<Observation> {
    try {
      const { readExporter = null } = sources;
      const read = async (need: ObservationNeed) => readExporter?.(reading.signal, need) ?? NOT_READ;
      let exporter = await read(isFresh ? 'last' : 'own');
      let readAtMs = clock.nowMs();
      const conditions: ConditionObservation[] = sources.conditions.map(() => ({ kind: 'notObserved' }));
      const ask = async (asked: typeof inOrder) => {
        for (const [index, condition] of asked) {
          const observation = await observeCondition(condition, exporter, clock, asking.signal);
          conditions[index] = observation;
          if (observation.kind === 'alive') break;
        }
      };
      await ask(inOrder);
      const others = conditions.filter((_, index) => sources.conditions[index]?.metricName === null);
      const isEndShown = others.length > 0 && others.every(({ kind }) => kind === 'done');
      if (exporter.observation.kind === 'none' && isEndShown) {
        exporter = await read('end');
        readAtMs = clock.nowMs();
        await ask(inOrder.filter(([, { metricName }]) => metricName !== null));
      }
      const front = sources.observeFront && { front: await sources.observeFront(), isFresh };
      const { observation } = exporter;
      return { startedAtMs, readAtMs, atMs: clock.nowMs(), allowedMs, exporter: observation, conditions, ...front };
    } finally {
      for (const cancel of cancels) cancel();
    }
  }
  limit(limits);
  return {
    ended: observe(),
    limit,
    stop() {
      reading.abort('interrupted');
      asking.abort('interrupted');
    },
  };
}

async function observeCondition(
  condition: Condition,
  exporter: ExporterReading,
  clock: Clock,
  signal: AbortSignal,
): Promise<ConditionObservation> {
  const own = new AbortController();
  const observed = condition.observe({ exporter, signal: own.signal });
  const result = await waitFor(observed, { timeoutMs: CONDITION_TIMEOUT_MS, signal, clock });
  if (result.kind === 'returned') return result.value;
  own.abort(result.why);
  const last = await waitUnless(observed, { timeoutMs: LAST_WORDS_MS, clock });
  return last ?? { kind: 'blind', why: `${condition.text} unknown: ${result.why}` };
}
