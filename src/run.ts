// One run: puts the parts of a configuration together, drives the loop, and turns its end into log, report and exit code.

import { findForgottenMesh } from './act/mesh.ts';
import { PRESETS } from './act/presets.ts';
import { writeTerminationMessage } from './act/termination-message.ts';
import { openTombstone } from './act/tombstone.ts';
import { listWarnings } from './check.ts';
import type { Clock } from './clock.ts';
import type { Config, Misconfigured, TerminationLog } from './config.ts';
import {
  buildBugReport,
  buildMisconfiguredReport,
  buildReport,
  EXIT,
  fitReport,
  type Report,
} from './decide/report.ts';
import type { State } from './decide/state.ts';
import type { Exit, Host } from './host.ts';
import { openLog } from './log.ts';
import { type LoopParts, runLoop } from './loop.ts';
import { openExporter } from './observe/exporter.ts';
import { beginObservation } from './observe/observation.ts';
import { buildPolicy } from './policy.ts';
import type { ReceivedSignals } from './signals.ts';
import { VERSION } from './version.ts';

/** Watches, holds, quits and reports; never rejects. */
export async function run(host: Host, config: Config, signals: ReceivedSignals): Promise<Exit> {
  const { terminationLog } = config;
  const policy = buildPolicy(config);
  const time = () => new Date(host.wallMs()).toISOString();
  const log = openLog({ level: config.logLevel, print: host.stdout, time });
  const toExitCode = (code: number) => (config.isExitZero ? EXIT.done : code);
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
          time,
          warn: (problem) => log.write({ id: 'tombstoneUnwritable', fields: { problem } }),
        });
  const onBug = (error: unknown): number => {
    const text = error instanceof Error ? (error.stack ?? error.message) : String(error);
    const report = fitReport(buildBugReport(error instanceof Error ? error.message : text, VERSION));
    log.write({ id: 'bug', fields: { error: text } });
    write(report);
    log.report(report);
    tombstone?.close(toExitCode(EXIT.bug));
    return toExitCode(EXIT.bug);
  };
  host.onUncaught(onBug);
  const report = (state: State, isFinished: boolean) =>
    fitReport(
      buildReport({
        state,
        policy,
        nowMs: host.nowMs(),
        toTime: (atMs) => new Date(host.wallMs() - host.nowMs() + atMs).toISOString(),
        isFinished,
        version: VERSION,
      }),
    );

  log.write({ id: 'watching', fields: planFields(config) });
  listWarnings(config).forEach(log.write);
  try {
    const state = await watch(host, config, signals, {
      log: log.write,
      beforeQuit() {
        tombstone?.declareDead();
        if (config.tombstonePath !== null && config.isDryRun) {
          const fields = { path: config.tombstonePath };
          log.write({ id: 'tombstoneSkipped', fields });
        }
      },
      progress: (now) => write(report(now, false)),
    });
    // A pod that is being stopped ends its proxies by itself.
    if (signals.terminatedAtMs === null) (await findForgottenMesh(config.targets, PRESETS)).forEach(log.write);
    const second = signals.secondName;
    const built = report(state, true);
    const code =
      second === 'SIGINT' ? EXIT.interrupted : second === 'SIGTERM' ? EXIT.done : (built.exitCode ?? EXIT.done);
    const final = { ...built, exitCode: code };
    write(final);
    tombstone?.close(toExitCode(code));
    log.report(final);
    return { code: toExitCode(code), isUrgent: second !== null };
  } catch (error) {
    return { code: onBug(error), isUrgent: true };
  }
}

/** Reports on stderr and in the termination message that nothing can be done with this configuration. */
export function reportMisconfigured(host: Host, { problems, terminationLog }: Misconfigured): void {
  host.stderr(`${problems.join('\n')}\n`);
  const problem = writeReport(terminationLog, fitReport(buildMisconfiguredReport(problems, VERSION)));
  if (problem !== null) host.stderr(`${problem}\n`);
}

/**
 * Stays until main has ended, although the configuration is wrong: an ended container makes the pod NotReady, and main's
 * Services would lose it. `config` is what main is watched by; nothing is held, stopped or logged.
 */
export async function outlastMain(host: Host, config: Config, signals: ReceivedSignals): Promise<Exit> {
  host.onUncaught(() => EXIT.done);
  await watch(host, config, signals, { log: () => {}, beforeQuit: () => {}, progress: () => {} });
  return { code: EXIT.done, isUrgent: signals.secondName !== null };
}

/** Closes what the conditions keep open; nothing is observed after it. */
export async function closeConditions({ conditions }: Config): Promise<void> {
  for (const { close } of conditions) await close?.();
}

/** Runs the loop with the real parts of the configuration. */
async function watch(
  host: Host,
  config: Config,
  signals: ReceivedSignals,
  callbacks: Pick<LoopParts, 'log' | 'beforeQuit' | 'progress'>,
): ReturnType<typeof runLoop> {
  const metricNames = config.conditions.flatMap(({ metricName }) => (metricName === null ? [] : [metricName]));
  const exporter = config.isExporterRead ? openExporter(config.metricsUrl, metricNames, VERSION) : null;
  try {
    const clock = openClock(host);
    const sources = { conditions: config.conditions, readExporter: exporter?.read ?? null };
    return await runLoop({
      policy: buildPolicy(config),
      clock,
      signals,
      observe: (effect) => beginObservation(sources, clock, effect),
      targets: config.targets,
      ...callbacks,
    });
  } finally {
    await exporter?.close();
    await closeConditions(config);
  }
}

function openClock({ nowMs }: Host): Clock {
  return {
    nowMs,
    after(ms, callback) {
      const timer = setTimeout(callback, ms);
      return () => clearTimeout(timer);
    },
  };
}

function writeReport({ path, isChosen }: TerminationLog, report: Report): string | null {
  return writeTerminationMessage(path, isChosen, JSON.stringify(report));
}

function planFields({ conditions, targets, limits, isDryRun }: Config): Readonly<Record<string, unknown>> {
  return {
    version: VERSION,
    doneWhen: conditions.map(({ text }) => text).join(','),
    scrapes: limits.scrapesWantedCount,
    ttlSeconds: limits.ttlMs / 1000,
    quit: targets.length === 0 ? 'none' : targets.map(({ name }) => name).join(','),
    ...(isDryRun ? { dryRun: true } : {}),
  };
}
