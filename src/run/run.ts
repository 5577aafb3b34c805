// One run: puts the parts of a configuration together, drives the loop, and turns its end into log, report and exit code.

import { type Clock, openWallTime } from '../base/clock.ts';
import { redactHref, redactPath, redactUrl } from '../base/text.ts';
import { REPORT_BUGS_TO, VERSION } from '../base/version.ts';
import { waitUnless } from '../base/wait-unless.ts';
import type { Config, Misconfigured, ReportSettings, TerminationLog } from '../config/config.ts';
import { buildPolicy } from '../config/policy.ts';
import { formatDuration } from '../config/values.ts';
import type { LogEntry, LogLevel } from '../decide/messages.ts';
import {
  buildBugReport,
  buildMisconfiguredReport,
  buildReport,
  EXIT,
  fitReport,
  type Report,
} from '../decide/report.ts';
import type { State } from '../decide/state.ts';
import { isAnybodyTold } from '../decide/tell.ts';
import type { Front, OpenedFront } from '../front/front.ts';
import { type Exporter, openExporter } from '../observe/exporter.ts';
import { beginObservation } from '../observe/observation.ts';
import { findForgottenMesh } from '../quit/mesh.ts';
import { PRESETS } from '../quit/presets.ts';
import type { Keeper } from '../snapshot/keep.ts';
import type { Telling } from '../tell/telling.ts';
import type { Exit, Host, SignalName } from './host.ts';
import { type Log, openLog } from './log.ts';
import { type LoopParts, runLoop } from './loop.ts';
import { openTombstone } from './own-tombstone.ts';
import type { ReceivedSignals } from './signals.ts';
import { listWarnings, warnOfOthers } from './startup-checks.ts';
import { writeTerminationMessage } from './termination-message.ts';

/** Longest wait for connections to close: it takes a millisecond, and the end of the process closes them as well. */
const CLOSE_TIMEOUT_MS = 1_000;
/** Longest search for another lastscrape, for what is wrong with a file, and for a mesh's proxy. */
const SEARCH_TIMEOUT_MS = 1_000;

/**
 * Watches, holds, quits and reports; or says what is wrong, where its front cannot listen. Rejects on a bug only, and before
 * anything is watched.
 */
export async function run(host: Host, config: Config, signals: ReceivedSignals): Promise<Exit | Misconfigured> {
  const { terminationLog } = config;
  const policy = buildPolicy(config);
  const log = openRunLog(host, config.logLevel);
  const toWallMs = openWallTime(host);
  let hasWriteFailed = false;
  const write = (report: Report) => {
    const problem = writeReport(terminationLog, report);
    if (problem === null || hasWriteFailed) return;
    hasWriteFailed = true;
    log.write({ id: 'messageUnwritable', fields: { problem } });
  };
  const tombstone =
    config.tombstonePath === null || config.isDryRun
      ? null
      : openTombstone({
          path: config.tombstonePath,
          pid: host.pid,
          time: () => formatTime(host.wallMs()),
          signal: signals.second,
          warn: (problem) => log.write({ id: 'tombstoneUnwritable', fields: { problem } }),
        });
  const onBug = (error: unknown) => reportBug(host, config, error, log);
  host.onUncaught(onBug);
  const report = (state: State, isFinished: boolean, isLeftPending = false) =>
    fitReport(
      buildReport({
        state,
        policy,
        exporterAt: `${config.metricsUrl.hostname}:${config.metricsUrl.port || 80}`,
        nowMs: host.nowMs(),
        toTime: (atMs) => formatTime(toWallMs(atMs)),
        isFinished,
        isLeftPending,
        isGivenUp: signals.secondName !== null,
        version: VERSION,
      }),
    );

  const opened = await openConfiguredFront(host, config, toWallMs, log.write);
  if (opened?.kind === 'failed') {
    const problems = [`Cannot use LASTSCRAPE_FRONT: ${opened.problem}`];
    return { problems, unreadable: ['LASTSCRAPE_FRONT'], isExitZero: config.isExitZero, terminationLog };
  }
  const front = opened?.front ?? null;
  log.write({ id: 'watching', fields: planFields(config) });
  if (config.placeBy !== null) {
    const fields = { because: `${config.placeBy} is set`, source: redactHref(config.metricsUrl) };
    log.write({ id: 'inExportersPlace', fields });
  }
  if (front !== null) signals.first.addEventListener('abort', front.expectEnd);
  listWarnings(config).forEach(log.write);
  try {
    const told = await openConfiguredTelling(host, config, front, log.write);
    await tombstone?.checkFolder();
    const searches = [warnOfOthers(host.pid), ...(told === null ? [] : [told.telling.warnOfFiles(signals.second)])];
    for (const search of searches) (await waitUnless(search, signals.second, SEARCH_TIMEOUT_MS))?.forEach(log.write);
    const keeper = told?.keeper ?? null;
    const exporter = openConfiguredExporter(config, front, keeper);
    const newest = front?.newest ?? keeper?.newest ?? (async () => null);
    const state = await watch(host, config, { exporter, front, keeper }, signals, {
      log: log.write,
      async afterHold() {
        await close(front, signals.second);
      },
      async beforeQuit() {
        await tombstone?.declareDead();
        if (config.tombstonePath !== null && config.isDryRun) {
          const fields = { path: config.tombstonePath };
          log.write({ id: 'tombstoneSkipped', fields });
        }
      },
      ...(told === null
        ? {}
        : {
            async push(limit, lastCall) {
              const snapshot = await waitUnless(newest(), limit);
              if (snapshot === null && limit.aborted) return { kind: 'failed', why: 'no time was left' };
              return told.telling.push(snapshot, limit, lastCall);
            },
            tell: (now, limit, lastCall) => told.telling.tell(report(now, true, true), limit, lastCall),
          }),
      progress: (now) => write(report(now, false)),
    });
    await close(told?.telling ?? null, signals.second);
    if (signals.terminatedAtMs === null) {
      // A pod that is being stopped ends its proxies by itself.
      const found = findForgottenMesh(config.targets, PRESETS);
      (await waitUnless(found, signals.second, SEARCH_TIMEOUT_MS))?.forEach(log.write);
    }
    const built = report(state, true);
    const code = findExitCode(signals.secondName, built.exitCode);
    const final = { ...built, exitCode: code };
    write(final);
    // What was asked for is no trouble of our own.
    const exitCode = config.isExitZero && code !== EXIT.thresholdFailed ? EXIT.done : code;
    await tombstone?.close(exitCode);
    log.report(final);
    const isClosed = (await close(exporter, signals.second)) && (await close(front, signals.second));
    return { code: exitCode, isUrgent: signals.secondName !== null || !isClosed };
  } catch (error) {
    const code = onBug(error);
    await tombstone?.close(code);
    return { code, isUrgent: true };
  }
}

function findExitCode(secondName: SignalName | null, exitCode: number | null): number {
  if (secondName === 'SIGINT') return EXIT.interrupted;
  return secondName === 'SIGTERM' ? EXIT.done : (exitCode ?? EXIT.done);
}

/** Reports on stderr and in the termination message that nothing can be done with this configuration. */
export function reportMisconfigured(host: Host, { problems, terminationLog }: Misconfigured): void {
  host.stderr(`${problems.join('\n')}\n`);
  const problem = writeReport(terminationLog, fitReport(buildMisconfiguredReport(problems, VERSION)));
  if (problem !== null) host.stderr(`${problem}\n`);
}

/** Tells of a bug in the log, in the report and in the termination message; returns the exit code. */
export function reportBug(
  host: Host,
  { isExitZero, terminationLog }: ReportSettings,
  error: unknown,
  log = openRunLog(host, 'info'),
): number {
  const summary = redactUrl(error instanceof Error ? error.message : String(error));
  const report = fitReport(buildBugReport(summary, VERSION));
  log.write({ id: 'bug', fields: { error: describeError(error), reportTo: REPORT_BUGS_TO } });
  const problem = writeReport(terminationLog, report);
  if (problem !== null) {
    log.write({ id: 'messageUnwritable', fields: { problem } });
  }
  log.report(report);
  return isExitZero ? EXIT.done : EXIT.bug;
}

/** What was thrown, for a person: with its stack, and without secrets of a URL. */
export function describeError(error: unknown): string {
  return redactUrl(error instanceof Error ? (error.stack ?? error.message) : String(error));
}

/**
 * Stays until main has ended, although the configuration is wrong: an ended container makes the pod NotReady, and main's
 * Services would lose it. `config` is what main is watched by; nothing is held or stopped, and only a main that was never
 * seen is told of.
 */
export async function outlastMain(host: Host, config: Config, signals: ReceivedSignals): Promise<Exit> {
  // A startupProbe asks it, and main starts when it is answered.
  const opened = await openConfiguredFront(host, config, openWallTime(host), () => {});
  const front = opened?.kind === 'open' ? opened.front : null;
  const exporter = openConfiguredExporter(config, front, null);
  // Nobody is told of a run that holds and stops nothing.
  const quiet: Config = { ...config, push: null, webhook: null };
  const state = await watch(host, quiet, { exporter, front, keeper: null }, signals, {
    log: () => {},
    beforeQuit: async () => {},
    progress: () => {},
  });
  if (signals.terminatedAtMs === null && state.phase.kind === 'quitting' && state.phase.outcome === 'neverStarted') {
    const conditions = config.conditions.map(({ text }) => text).join(',');
    const waited = formatDuration(config.limits.startTimeoutMs);
    host.stderr(
      `Stopped waiting for main, which was never seen: ${conditions} showed nothing alive for ${waited}; the errors above still stand\n`,
    );
  }
  const isClosed = (await close(exporter, signals.second)) && (await close(front, signals.second));
  return { code: EXIT.done, isUrgent: signals.secondName !== null || !isClosed };
}

/** Closes what is open, if anything; false where that did not end in time, or before the signal. */
export async function close(
  opened: { readonly close: () => Promise<void> } | null,
  signal: AbortSignal,
): Promise<boolean> {
  if (opened === null) return true;
  return (
    (await waitUnless(
      opened.close().then(() => true),
      signal,
      CLOSE_TIMEOUT_MS,
    )) ?? false
  );
}

/** Those who are told, loaded only where there are any, and what keeps the last exposition for them where no front does. */
async function openConfiguredTelling(
  host: Host,
  config: Config,
  front: Front | null,
  log: (entry: LogEntry) => void,
): Promise<{ readonly telling: Telling; readonly keeper: Keeper | null } | null> {
  if (!isAnybodyTold(config)) return null;
  const [{ openTelling }, { findIdentitySources }] = await Promise.all([
    import('../tell/telling.ts'),
    import('../pod/identity.ts'),
  ]);
  const { env, wallMs } = host;
  const telling = openTelling({ config, identity: findIdentitySources(env), version: VERSION, wallMs, log });
  if (config.push === null || front !== null) return { telling, keeper: null };
  const { openKeeper } = await import('../snapshot/keep.ts');
  const findMoment = () => ({ atMs: host.nowMs(), seconds: host.wallMs() / 1000 });
  return { telling, keeper: openKeeper(listMetricNames(config), findMoment) };
}

/** The exporter that is read where no front reads it. */
function openConfiguredExporter(config: Config, front: Front | null, keeper: Keeper | null): Exporter | null {
  const { isExporterRead, metricsUrl } = config;
  // A file is for a front, which may be one that cannot listen.
  const isRead = isExporterRead && front === null && metricsUrl.protocol === 'http:';
  if (!isRead) return null;
  return openExporter(metricsUrl, listMetricNames(config), VERSION, config.thresholds, keeper?.openTap);
}

/** The front that is configured, loaded only where there is one; null: none is. */
async function openConfiguredFront(
  host: Host,
  config: Config,
  toWallMs: (atMs: number) => number,
  log: (entry: LogEntry) => void,
): Promise<OpenedFront | null> {
  if (config.front === null) return null;
  const { openFront } = await import('../front/front.ts');
  return openFront({
    at: config.front,
    url: config.metricsUrl,
    locust: config.locust,
    metricNames: listMetricNames(config),
    selectors: config.thresholds,
    pollMs: config.limits.pollMs,
    clock: openClock(host),
    toUnixSeconds: (atMs) => toWallMs(atMs) / 1000,
    version: VERSION,
    log,
  });
}

function listMetricNames({ conditions }: Config): readonly string[] {
  return conditions.flatMap(({ metricName }) => (metricName === null ? [] : [metricName]));
}

/** Runs the loop with the real parts of the configuration. */
function watch(
  host: Host,
  config: Config,
  {
    exporter,
    front,
    keeper,
  }: { readonly exporter: Exporter | null; readonly front: Front | null; readonly keeper: Keeper | null },
  signals: ReceivedSignals,
  callbacks: Pick<LoopParts, 'log' | 'afterHold' | 'beforeQuit' | 'push' | 'tell' | 'progress'>,
): ReturnType<typeof runLoop> {
  const clock = openClock(host);
  const sources = {
    conditions: config.conditions,
    readExporter: front?.readExporter ?? exporter?.read ?? null,
    ...(front === null ? {} : { observeFront: front.observe }),
  };
  return runLoop({
    policy: buildPolicy(config),
    clock,
    signals,
    observe: (effect) => beginObservation(sources, clock, effect),
    front,
    ...(keeper === null ? {} : { onView: keeper.tell }),
    targets: config.targets,
    ...callbacks,
  });
}

function openRunLog(host: Host, level: LogLevel): Log {
  return openLog({ level, print: host.stdout, time: () => formatTime(host.wallMs()) });
}

function formatTime(wallMs: number): string {
  return new Date(wallMs).toISOString();
}

function openClock({ nowMs }: Host): Clock {
  return {
    nowMs,
    after(ms, callback) {
      // A timer of Node may come up to 1 ms early: never before a limit that is waited for.
      const timer = setTimeout(callback, Math.ceil(ms) + 1);
      return () => clearTimeout(timer);
    },
  };
}

function writeReport({ path, isChosen }: TerminationLog, report: Report): string | null {
  return writeTerminationMessage(path, isChosen, JSON.stringify(report));
}

function planFields(config: Config): Readonly<Record<string, unknown>> {
  const { conditions, targets, limits, front, isDryRun, push, webhook } = config;
  return {
    version: VERSION,
    doneWhen: conditions.map(({ text }) => text).join(','),
    ...(front === null ? {} : { front: front.text }),
    scrapes: limits.scrapesWantedCount,
    ttlSeconds: limits.ttlMs / 1000,
    quit: targets.length === 0 ? 'none' : targets.map(({ name }) => name).join(','),
    ...(push === null ? {} : { push: `${push.to}+${redactHref(push.url)}` }),
    ...(webhook === null ? {} : { webhook: redactPath(webhook) }),
    ...(isDryRun ? { dryRun: true } : {}),
  };
}
