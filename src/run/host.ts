// What a run needs of its process: environment, streams, signals, clocks. bin/ fills it with the real
// process, a test with its own.

import { readFileSync } from 'node:fs';
import { type Environment, orNull } from '../base/parse.ts';
import type { SignalName } from '../decide/model.ts';

/** The process that the program runs in. */
export type Host = {
  readonly env: Environment;
  /** Without the program's own name. */
  readonly argv: readonly string[];
  /** Only `explain` opens and reads it. */
  readonly stdin: () => AsyncIterable<string | Uint8Array> & { readonly isTTY?: boolean };
  readonly stdout: (text: string) => void;
  readonly stderr: (text: string) => void;
  readonly onSignal: (listener: (name: SignalName) => void) => void;
  /** Calls back at an uncaught error; the process exits at once with the newest listener's code. */
  readonly onUncaught: (listener: (error: unknown) => number) => void;
  readonly pid: number;
  /** Sends a signal, or with 0 only tries whether it may. @throws with the code ESRCH or EPERM. */
  readonly kill: (pid: number, signal: string | 0) => void;
  /** Of the Node that runs this, such as `24.21.0`. */
  readonly nodeVersion: string;
  /** Monotonic; it does not begin where performance.now() does. */
  readonly nowMs: () => number;
  /** Since 1970, UTC. */
  readonly wallMs: () => number;
  /** CPU time of this process so far. */
  readonly cpuMs: () => number;
};

/** How the process ends. `isUrgent`: at once, even with open handles. */
export type Exit = { readonly code: number; readonly isUrgent: boolean };

/** An end with this code, once nothing is open any more. */
export function exitWith(code: number): Exit {
  return { code, isUrgent: false };
}

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

/**
 * Listens from now on; PID 1 of a container never hears of a signal that nothing listens to. `isEnd`: SIGTERM
 * is main's end, and a second one nothing new: containerd repeats it where it was restarted (seen, 1.6.20).
 */
export function listenForSignals(host: Pick<Host, 'onSignal' | 'nowMs'>, isEnd = false): Signals {
  const first = new AbortController();
  const second = new AbortController();
  const signals = {
    terminatedAtMs: null as number | null,
    secondName: null as SignalName | null,
    first: first.signal,
    second: second.signal,
  };
  host.onSignal((name) => {
    if (signals.terminatedAtMs === null) {
      signals.terminatedAtMs = host.nowMs();
      first.abort('interrupted');
    } else if (!isEnd || name === 'SIGINT') {
      signals.secondName ??= name;
      second.abort('interrupted');
    }
  });
  return signals;
}

/**
 * Whether SIGTERM came while Node started, as it does where a pod's main ends at once: Node's own handler
 * resets the signal's disposition, and raises it again, which does nothing to PID 1 (seen, Node 24.21.0).
 */
export function hasMissedSigterm(): boolean {
  const SIGTERM_BIT = 1n << 14n;
  const status = orNull(() => readFileSync('/proc/self/status', 'latin1')) ?? '';
  const [, caught] = /^SigCgt:\s*([0-9a-f]+)$/m.exec(status) ?? [];
  return caught !== undefined && (BigInt(`0x${caught}`) & SIGTERM_BIT) === 0n;
}
