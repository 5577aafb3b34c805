// A misconfigured lastscrape that stays until main has ended: an ended container makes the pod NotReady, and
// main's Services would lose it. It holds, stops and sends nothing.

import { openWallTime } from '../base/waits.ts';
import { buildPolicy, type Config } from '../config/config.ts';
import { formatDuration } from '../config/values.ts';
import { EXIT } from '../decide/exit-codes.ts';
import type { Exit, Host, Signals } from './host.ts';
import { runLoop } from './loop.ts';
import { buildLoopParts, closeInTime, openConfiguredExporter, openConfiguredFront } from './parts.ts';

/** Stays until main has ended, watched by `config`. Reports only a main that was never seen. */
export async function outlastMain(host: Host, config: Config, signals: Signals): Promise<Exit> {
  // A startupProbe may ask the front, and main starts only once that is answered.
  const opened = await openConfiguredFront(host, config, openWallTime(host), () => {});
  const front = opened?.kind === 'open' ? opened.front : null;
  const exporter = openConfiguredExporter(config, front, null);
  const { state, next } = await runLoop({
    ...buildLoopParts(host, config, { exporter, front, keeper: null }, signals),
    policy: buildPolicy({ ...config, push: null, webhook: null, tombstonePath: null }),
    log: () => {},
    progress: () => {},
  });
  if (signals.terminatedAtMs === null && state.phase.kind === 'quitting' && state.phase.outcome === 'neverStarted') {
    const conditions = config.conditions.map(({ text }) => text).join(',');
    const waited = formatDuration(config.limits.startTimeoutMs);
    host.stderr(
      `Stopped waiting for main, which was never seen: ${conditions} showed nothing alive for ${waited}; the errors above still stand\n`,
    );
  }
  const isClosed = (await closeInTime(exporter, signals.second)) && (await closeInTime(front, signals.second));
  return { code: EXIT.done, isUrgent: next.by !== null || !isClosed };
}
