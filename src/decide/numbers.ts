// What is remembered of the numbers that are judged: whose they are, and when they count. Pure; `verdict.ts` judges them.

import type { Evidence } from './evidence.ts';
import type { Observation } from './model.ts';
import { hasRestarted } from './scrape-count.ts';
import type { Facts, Phase } from './state.ts';
import { type JudgedNumbers, takeReadings } from './verdict.ts';

/** Whether main is or was alive, as far as it is known: what was shown before is not of this run. */
function isKnownAlive({ aliveSinceMs, wasAliveBefore }: Facts): boolean {
  return aliveSinceMs !== null || wasAliveBefore;
}

/**
 * The numbers after one more observation; `facts` have that observation already, `before` and `phase` are from before it. With a
 * front its own are taken, which are those that scrapes got.
 */
export function advanceNumbers(
  { before, facts, phase }: { readonly before: Facts; readonly facts: Facts; readonly phase: Phase },
  observation: Observation,
  evidence: Pick<Evidence, 'isAlive' | 'isDone' | 'areOthersDone' | 'isRefused'>,
): JudgedNumbers {
  const { exporter, front } = observation;
  // It keeps the newest readings by itself.
  if (front !== undefined)
    return isKnownAlive(facts) ? takeReadings(facts.numbers, front.thresholds ?? []) : facts.numbers;
  const isEndSeen = evidence.isDone || evidence.areOthersDone || wasEndSeen(phase);
  const isGone = hasRestarted(before.history, observation) || (evidence.isRefused && before.hasAnswered);
  const isLost = !evidence.isAlive && (facts.numbers.isLost || (isEndSeen && isGone));
  const numbers = { ...facts.numbers, isLost };
  if (isLost || exporter.kind !== 'answered' || !isKnownAlive(facts)) return numbers;
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
