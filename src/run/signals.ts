// The signals that lastscrape itself gets: the first starts the grace, the second gives up at once.

import type { Host, SignalName } from './host.ts';
import type { Signals } from './loop.ts';

/** The signals that came so far. */
export type ReceivedSignals = Signals & {
  /** The name of the second one; null before. */
  readonly secondName: SignalName | null;
};

/** Listens from now on; PID 1 of a container never hears of a signal that nobody listened to. */
export function listenForSignals(host: Pick<Host, 'onSignal' | 'nowMs'>): ReceivedSignals {
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
