// The machine: a state and one event give the next state, what to log, and the one next effect. Pure.
//
//   waiting ──▶ running ──▶ holding ──▶ quitting ──▶ done
//
// While it watches (`watch.ts`) there is one effect, to observe; from quitting (`quitting.ts`) there is no
// way back. The second signal ends every phase at once.

import { assertNever, type Policy } from '../model.ts';
import { decideQuitEvent, endRun } from '../quit/quitting.ts';
import type { Decision, StepInput, WatchDecision } from '../state.ts';
import { initialState } from './facts.ts';
import { decideHandedOver } from './hand-over.ts';
import { buildObserve } from './pace.ts';
import { decideWatchEvent } from './watch.ts';

/** The first decision: observe at once. */
export function begin(nowMs: number, policy: Policy): WatchDecision {
  const state = initialState(nowMs);
  return { kind: 'watching', state, log: [], next: buildObserve(state, nowMs, nowMs, policy) };
}

/** Decides what an event means. The state is from the last decision; events come in order of time. */
export function step(input: StepInput, policy: Policy): Decision {
  switch (input.kind) {
    case 'watching':
      return decideWatchEvent(input.state, input.event, policy);
    case 'handingOver':
      return decideHandedOver(input.state, input.event, policy);
    case 'quitting':
      return decideQuitEvent(input.state, input.event, policy);
    case 'interrupted':
      return endRun(input.state, input.by, [], policy);
    default:
      return assertNever(input);
  }
}
