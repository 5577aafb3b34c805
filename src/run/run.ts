// One run: opens its parts, drives the loop, and ends with the report and the exit code; and what stays
// in its place where the configuration is wrong.

import { redactHref, redactPath } from '../base/text.ts';
import { VERSION } from '../base/version.ts';
import { onAbort, openWallTime, waitUnless } from '../base/waits.ts';
import { buildPolicy, type Config, type Misconfigured, nameHandOver } from '../config/config.ts';
import { formatDuration } from '../config/values.ts';
import { EXIT, findProcessExitCode } from '../decide/quit/exit-codes.ts';
import type { Front } from '../front/front.ts';
import { findForgottenMesh } from '../quit/http-target.ts';
import { PRESETS } from '../quit/programs.ts';
import type { Exit, Host, Signals } from './host.ts';
import { endLate, type LoopParts, runLoop } from './loop.ts';
import { openReporter, openRunLog, reportBug } from './outcome.ts';
import type { OwnTombstone } from './own-tombstone.ts';
import {
  buildLoopParts,
  closeInTime,
  type Opening,
  openConfiguredExporter,
  openConfiguredFront,
  openConfiguredHandOver,
  openConfiguredTelling,
  openConfiguredTombstone,
} from './parts.ts';
import { listWarnings, warnOfOthers } from './startup-checks.ts';

/** Longest search for another lastscrape, for what is wrong with a file, and for a mesh's proxy. */
const SEARCH_TIMEOUT_MS = 1_000;

/** Watches, holds, quits and reports; or says why the front cannot listen. Rejects on an early bug only. */
export async function run(host: Host, config: Config, signals: Signals): Promise<Exit | Misconfigured> {
  const log = openRunLog(host, config.logLevel);
  const opening: Opening = { host, config, signals, toWallMs: openWallTime(host), log };
  const onBug = (error: unknown) => reportBug(host, config, error, log);
  host.onUncaught(onBug);
  const tombstone = await openConfiguredTombstone(opening);
  const { hooksPath } = config;
  const hooksProblem = hooksPath && (await (await import('./hooks.ts')).writeHooks(hooksPath, host.pid));
  const opened = await openConfiguredFront(opening);
  if (opened?.kind === 'failed') {
    const { variable } = opened;
    const problems = [`Cannot use ${variable}: ${opened.problem}`];
    const { isExitZero, terminationLog } = config;
    return { problems, unreadable: [variable], isExitZero, terminationLog };
  }
  const front = opened?.front ?? null;
  log.write({ id: 'watching', fields: planFields(config) });
  if (config.placeBy !== null) {
    const fields = { because: `${config.placeBy} is set`, source: redactHref(config.metricsUrl) };
    log.write({ id: 'inExportersPlace', fields });
  }
  if (front !== null) onAbort(signals.first, front.expectEnd);
  if (hooksProblem !== null) log.write({ id: 'hooksUnwritable', fields: { problem: hooksProblem } });
  listWarnings(config).forEach(log.write);
  try {
    return await watchToTheEnd(opening, tombstone, front);
  } catch (error) {
    const code = onBug(error);
    await tombstone?.close(code);
    return { code, isUrgent: true };
  }
}

async function watchToTheEnd(opening: Opening, tombstone: OwnTombstone | null, front: Front | null): Promise<Exit> {
  const { host, config, signals, log } = opening;
  const reporter = openReporter(opening);
  const logFound = async (search: ReturnType<typeof warnOfOthers>) =>
    (await waitUnless(search, { timeoutMs: SEARCH_TIMEOUT_MS, signal: signals.second }))?.forEach(log.write);
  const telling = await openConfiguredTelling(opening);
  await tombstone?.checkFolder();
  for (const search of [warnOfOthers(host.pid), telling?.warnOfFiles(signals.second)]) {
    if (search !== undefined) await logFound(search);
  }
  const exporter = await openConfiguredExporter(opening, front);
  const newest = front?.newest ?? exporter?.newest ?? (async () => null);
  const receivers: Partial<LoopParts> =
    telling === null
      ? {}
      : {
          async push(limit) {
            const snapshot = await waitUnless(newest(), { signal: limit });
            if (snapshot === null && limit.aborted) return { kind: 'failed', why: 'no time was left' };
            return telling.push(snapshot, limit);
          },
          callWebhook: (now, limit) => telling.tell(reporter.build(now, { kind: 'beforeTargets' }), limit),
        };
  const handOver =
    config.handOver?.kind === 'push'
      ? receivers.push && { handOver: handOverByPush(receivers.push) }
      : await openConfiguredHandOver(opening, front);
  const loopParts = buildLoopParts(opening, { exporter, front });
  const end = await runLoop({
    ...loopParts,
    ...receivers,
    ...handOver,
    ...(tombstone && { declareDead: tombstone.declareDead }),
    progress: (now) => reporter.write(reporter.build(now, { kind: 'unfinished' })),
  });
  await closeInTime(telling, signals.second);
  // A pod that is being stopped ends its proxies itself.
  if (signals.terminatedAtMs === null) await logFound(findForgottenMesh(config.targets, PRESETS));
  const { state, next } = endLate(end, loopParts);
  const final = reporter.build(state, next);
  reporter.write(final);
  const code = findProcessExitCode(next.exitCode, config);
  await tombstone?.close(code);
  log.report(final);
  const isClosed = (await closeInTime(exporter, signals.second)) && (await closeInTime(front, signals.second));
  return { code, isUrgent: next.by !== null || !isClosed };
}

/** The push in place of the hold. */
function handOverByPush(push: Required<LoopParts>['push']): Required<LoopParts>['handOver'] {
  return async (_, signal) => {
    const result = await push(signal);
    return result.kind === 'accepted' ? { kind: 'accepted' } : result;
  };
}

/**
 * A misconfigured lastscrape stays until main has ended, watched by `config`: an ended container makes the
 * pod NotReady, and main's Services would lose it. It holds, stops and sends nothing, and reports only a main
 * that was never seen.
 */
export async function outlastMain(host: Host, config: Config, signals: Signals): Promise<Exit> {
  // --ready may wait for the front, and main for that.
  const log = openRunLog({ ...host, stdout: () => {} }, 'error');
  const opening: Opening = { host, config, signals, toWallMs: openWallTime(host), log };
  const opened = await openConfiguredFront(opening);
  const front = opened?.kind === 'open' ? opened.front : null;
  const exporter = await openConfiguredExporter({ ...opening, config: { ...config, push: null } }, front);
  const { state, next } = await runLoop({
    ...buildLoopParts(opening, { exporter, front }),
    policy: buildPolicy({ ...config, handOver: null, push: null, webhook: null, tombstonePath: null }),
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

function planFields(config: Config): Readonly<Record<string, unknown>> {
  const { conditions, targets, limits, front, isDryRun, push, webhook, handOver } = config;
  return {
    version: VERSION,
    doneWhen: conditions.map(({ text }) => text).join(','),
    ...(front === null ? {} : { front: front.text }),
    scrapes: limits.scrapesWantedCount,
    ttlSeconds: limits.ttlMs / 1000,
    quit: targets.length === 0 ? 'none' : targets.map(({ name }) => name).join(','),
    ...(handOver === null ? {} : { handOver: nameHandOver(config) }),
    ...(push === null ? {} : { push: `${push.to}+${redactPath(push.url)}` }),
    ...(webhook === null ? {} : { webhook: redactPath(webhook) }),
    ...(isDryRun ? { dryRun: true } : {}),
  };
}
