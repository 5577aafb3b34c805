// What is remembered of the numbers that are judged: whose they are, and when they count. Pure.

import type { Evidence } from './evidence.ts';
import { advanceContinuity } from './lost-numbers.ts';
import type { Observation } from './model.ts';
import type { Facts, Phase } from './state.ts';
import { type JudgedNumbers, takeReadings } from './verdict.ts';

/** The numbers after one more observation, which `facts` already include; `phase` is from before it. */
export function advanceNumbers(
  { facts, phase }: { readonly facts: Facts; readonly phase: Phase },
  { exporter, front }: Observation,
  { isAlive, isDone, areOthersDone, isStalled }: Pick<Evidence, 'isAlive' | 'isDone' | 'areOthersDone' | 'isStalled'>,
): JudgedNumbers {
  const isEndSeen = isDone || areOthersDone || wasEndSeen(phase);
  // A process that stood still may have seen a refusal of long ago.
  const seen = exporter.kind === 'refused' && isStalled ? ({ kind: 'none' } as const) : exporter;
  const continuity = advanceContinuity(facts.numbers.continuity, seen, isAlive || !isEndSeen);
  const numbers = { ...facts.numbers, continuity };
  // What was shown before main was known to be alive is of another run.
  if (facts.aliveSinceMs === null && !facts.wasAliveBefore) return numbers;
  // A front keeps the newest readings, those that scrapes got.
  if (front !== undefined) return takeReadings(numbers, front.thresholds ?? []);
  if (continuity.isLost || exporter.kind !== 'answered') return numbers;
  return takeReadings(numbers, exporter.thresholds ?? []);
}

function wasEndSeen(phase: Phase): boolean {
  switch (phase.kind) {
    case 'waiting':
      return phase.done !== null;
    case 'running':
      return phase.done !== null || phase.others !== null;
    default:
      return true;
  }
}
