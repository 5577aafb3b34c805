// The signals that lastscrape gets: the first starts the grace, the second gives up at once.

import type { SignalName } from '../decide/model.ts';
import type { Host } from './host.ts';

/** The signals that came so far. */
export type Signals = {
  /** When the first one came; null before. */
  readonly terminatedAtMs: number | null;
  /** The name of the second one; null before. */
  readonly secondName: SignalName | null;
  /** Aborted by the first one. */
  readonly first: AbortSignal;
  /** Aborted by the second one: give up at once. */
  readonly second: AbortSignal;
};

/** Listens from now on; PID 1 of a container never hears of a signal that nothing listens to. */
export function listenForSignals(host: Pick<Host, 'onSignal' | 'nowMs'>): Signals {
  const first = new AbortController();
  const second = new AbortController();
  let terminatedAtMs: number | null = null;
  let secondName: SignalName | null = null;
  host.onSignal((name) => {
    if (terminatedAtMs === null) {
      terminatedAtMs = host.nowMs();
      first.abort('interrupted');
    } else {
      secondName ??= name;
      second.abort('interrupted');
    }
  });
  return {
    get terminatedAtMs() {
      return terminatedAtMs;
    },
    get secondName() {
      return secondName;
    },
    first: first.signal,
    second: second.signal,
  };
}
