// The machine: from the state and one event to the next state, what to log, and the one effect that comes next. Pure.
//
//   waiting ──▶ running ──▶ holding ──▶ quitting ──▶ done
//
// While it watches (`watch.ts`) there is one effect, to observe; from quitting (`quit.ts`) there is no way back.

import type { Policy } from './model.ts';
import { firstObserve } from './pace.ts';
import { decideQuitEvent } from './quit.ts';
import {
  type Decision,
  initialState,
  type QuitDecision,
  type QuitEvent,
  type QuitState,
  type WatchDecision,
  type WatchEvent,
  type WatchState,
} from './state.ts';
import { decideObserved, decideScraped, decideSignalled } from './watch.ts';

/** The first decision: observe at once. */
export function begin(nowMs: number, policy: Policy): WatchDecision {
  const state = initialState(nowMs);
  return { kind: 'watching', state, log: [], next: firstObserve(state, nowMs, policy) };
}

/** Decides what an event means; `state` is what the last decision returned, and the event is newer than every one before it. */
export function step(state: WatchState, event: WatchEvent, policy: Policy): Decision;
export function step(state: QuitState, event: QuitEvent, policy: Policy): QuitDecision;
export function step(state: WatchState | QuitState, event: WatchEvent | QuitEvent, policy: Policy): Decision {
  if (state.phase.kind === 'quitting') return decideQuitEvent(state as QuitState, event as QuitEvent, policy);
  if (event.kind === 'observed') return decideObserved(state as WatchState, event.observation, policy);
  if (event.kind === 'scraped') return decideScraped(state as WatchState, event, policy);
  return decideSignalled(state as WatchState, (event as { readonly atMs: number }).atMs, policy);
}
