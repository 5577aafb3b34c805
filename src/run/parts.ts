// The parts of a run, opened from its configuration: each room is handed its own settings, and only here.
// What is not configured is null, and its code is not loaded.

import { readVariable } from '../base/parse.ts';
import { openClock, waitUnless } from '../base/waits.ts';
import { buildPolicy, type Config, hasReceivers } from '../config/config.ts';
import { findRestFactor } from '../decide/serve/budget.ts';
import type { HandOverResult, Holding } from '../decide/state.ts';
import type { Front, OpenedFront } from '../front/front.ts';
import type { KeptPages } from '../front/kept-source.ts';
import { openExporter } from '../observe/exporter.ts';
import { beginObservation } from '../observe/observation.ts';
import { type ExporterReads, openExporterReads } from '../observe/reads.ts';
import type { Host, Signals } from './host.ts';
import type { Log } from './log.ts';
import type { LoopParts } from './loop.ts';
import type { OwnTombstone } from './own-tombstone.ts';

/** Longest wait for connections to close, which takes a millisecond; exit closes them as well. */
const CLOSE_TIMEOUT_MS = 1_000;

/** What reads the exporter: the front, else its client, which keeps its page if a push needs that. */
type ReadingParts = { readonly exporter: OpenedExporter | null; readonly front: Front | null };

/** The exporter's client; `newest`: it keeps its page for a push. */
type OpenedExporter = ExporterReads & Partial<Pick<KeptPages, 'newest'>>;

/** What every part is opened with. `toWallMs`: a monotonic moment as milliseconds since 1970. */
export type Opening = {
  readonly host: Host;
  readonly config: Config;
  readonly signals: Signals;
  readonly toWallMs: (atMs: number) => number;
  readonly log: Log;
};

/** What the loop watches, and by which clock and signals. */
export function buildLoopParts({ host, config, signals, log }: Opening, { exporter, front }: ReadingParts) {
  const clock = openClock(host);
  const observeFront = front && (() => front.settle().then(front.observe));
  const sources = {
    conditions: config.conditions,
    readExporter: front?.readExporter ?? exporter?.observe ?? null,
    ...(observeFront && { observeFront }),
  };
  return {
    policy: buildPolicy(config),
    clock,
    signals,
    observe: (effect) => beginObservation(sources, clock, effect),
    front,
    closeFront: () => closeInTime(front && { close: front.retire }, signals.second),
    ...(exporter !== null && { onView: exporter.takeView }),
    targets: config.targets,
    log: log.write,
  } satisfies Partial<LoopParts>;
}

/** The front, if one is set. */
export async function openConfiguredFront({ host, config, toWallMs, log }: Opening): Promise<OpenedFront | null> {
  if (config.front === null) return null;
  const { openFront } = await import('../front/front.ts');
  return openFront({
    at: config.front,
    url: config.metricsUrl,
    locust: config.locust,
    podIp: readVariable(host.env, 'POD_IP'),
    metricNames: listMetricNames(config),
    selectors: config.thresholds,
    isOnlyEvidence: isPageOnlyEvidence(config),
    isPushed: config.push !== null,
    isHooked: config.hooksPath !== null,
    pollMs: config.limits.pollMs,
    ttlMs: config.limits.ttlMs,
    clock: openClock(host),
    readCpuMs: host.cpuMs,
    toUnixSeconds: (atMs) => toWallMs(atMs) / 1000,
    log: log.write,
  });
}

/** The exporter's client, where no front reads it; with a push one that keeps its page. */
export async function openConfiguredExporter(
  { host, config, log }: Opening,
  front: Front | null,
): Promise<OpenedExporter | null> {
  const { isExporterRead, metricsUrl: url, thresholds: selectors } = config;
  // A file is for a front, which may be one that cannot listen.
  const isRead = isExporterRead && front === null && url.protocol === 'http:';
  if (!isRead) return null;
  const metricNames = listMetricNames(config);
  const { pollMs } = config.limits;
  const isBeside = config.push === null;
  const restFactor = findRestFactor({ isOnlyEvidence: isPageOnlyEvidence(config), isBeside });
  const clock = openClock(host);
  const settings = { clock, pollMs, restFactor };
  if (config.push === null) return openExporterReads(openExporter(url, metricNames, selectors, { clock }), settings);
  const { openKeptExporter } = await import('../front/kept-source.ts');
  const findMoment = () => ({ atMs: host.nowMs(), seconds: host.wallMs() / 1000 });
  const kept = openKeptExporter({ url, metricNames, selectors }, { findMoment, log: log.write, pollMs }, { clock });
  const reads = openExporterReads(kept, settings);
  return {
    ...reads,
    // The hold is over, so that one more read is not taken for a scrape.
    async newest() {
      await reads.readLast();
      return kept.newest();
    },
  };
}

/** What hands the last numbers over to a keeper; null where none is set. */
export async function openConfiguredHandOver({ host, config, toWallMs }: Opening, front: Front | null) {
  const { handOver: to, handOverPort, handOverFolder: folder, front: at } = config;
  if (to?.kind !== 'keeper' || front === null || at === null) return null;
  const { askKeeper, handOver } = await import('../tell/hand-over.ts');
  const target = { ...handOverPort, port: at.port };
  const parts = { url: to.url, env: host.env, folder, target };
  return {
    handOver: async ({ mainEndedAtMs }: Holding, signal: AbortSignal): Promise<HandOverResult> => {
      const endedAtSeconds = toWallMs(mainEndedAtMs) / 1000;
      return handOver({ ...parts, signal }, { pages: await front.lastPages(), endedAtSeconds });
    },
    withdraw: (signal: AbortSignal) => askKeeper('withdraw', { ...parts, signal }),
  };
}

/** The push and the webhook. */
export async function openConfiguredTelling({ host, config, log }: Opening) {
  if (!hasReceivers(config)) return null;
  const [{ openTelling }, { findIdentitySources }] = await Promise.all([
    import('../tell/telling.ts'),
    import('../pod/identity.ts'),
  ]);
  const { env, wallMs } = host;
  return openTelling({ settings: config, identity: findIdentitySources(env), wallMs, log: log.write });
}

/** lastscrape's own tombstone. */
export async function openConfiguredTombstone({ host, config, signals, log }: Opening): Promise<OwnTombstone | null> {
  const { tombstonePath, isDryRun } = config;
  if (tombstonePath === null || isDryRun) return null;
  const { openTombstone } = await import('./own-tombstone.ts');
  const warn = (problem: string) => log.write({ id: 'tombstoneUnwritable', fields: { problem } });
  return openTombstone(tombstonePath, host, signals.second, warn);
}

/** Closes what is open, if anything; false where that did not end in time, or before the signal. */
export async function closeInTime(opened: Pick<Front, 'close'> | null, signal: AbortSignal): Promise<boolean> {
  if (opened === null) return true;
  const closed = opened.close().then(() => true);
  return (await waitUnless(closed, { timeoutMs: CLOSE_TIMEOUT_MS, signal })) ?? false;
}

/** Nothing but the page can show main's end. */
function isPageOnlyEvidence({ conditions }: Config): boolean {
  return conditions.length > 0 && conditions.every(({ metricName }) => metricName !== null);
}

function listMetricNames({ conditions }: Config): readonly string[] {
  return conditions.flatMap(({ metricName }) => (metricName === null ? [] : [metricName]));
}
