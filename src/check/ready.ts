// `--ready`: whether the lastscrape of this pod listens, for a hook of the kubelet that holds main back until
// then, and for the chart's test. It asks by loopback, which no mesh redirects, and sends no byte.

import { dial } from '../base/net/dial.ts';
import { pause, SYSTEM_CLOCK } from '../base/waits.ts';
import type { Config } from '../config/config.ts';

/** Main waits as long where the front cannot listen: its port is taken, or lastscrape has crashed. */
const WAIT_MS = 5_000;
/** Between two looks: 1 ms of CPU each, which lastscrape needs to start where both have 10 ms in 100. */
const PAUSE_MS = 100;

/** Waits until the front listens. Why it does not, or null; a signal ends the wait. */
export async function findFrontProblem(
  front: Config['front'],
  signal: AbortSignal,
  waitMs = WAIT_MS,
): Promise<string | null> {
  if (front === null) return 'Cannot wait for the front: LASTSCRAPE_FRONT is not set';
  const { nowMs } = SYSTEM_CLOCK;
  const untilMs = nowMs() + waitMs;
  for (;;) {
    const result = await dial(front.host ?? 'localhost', front.port, { timeoutMs: WAIT_MS, signal });
    if (result.kind === 'open') {
      result.socket.destroy();
      return null;
    }
    if (nowMs() >= untilMs || signal.aborted) {
      const seen = result.kind === 'refused' ? 'refused' : result.why;
      return `Cannot reach the front at ${front.host ?? 'localhost'}:${front.port}: ${seen}; is lastscrape in this pod?`;
    }
    await pause(PAUSE_MS, [signal]);
  }
}
