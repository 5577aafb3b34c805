// The composition root: holds the tables of kinds, puts the parts together, turns what they came to into output and an
// exit code. Everything of the process comes in as a parameter.

import { findForgottenMesh, formatWarning, listTargetWarnings } from './act/order.ts';
import { PRESETS, presetKind } from './act/presets.ts';
import { signalKind } from './act/signal-target.ts';
import type { TargetKind } from './act/target.ts';
import { writeTerminationMessage } from './act/termination-message.ts';
import { findTombstoneProblem, openTombstone } from './act/tombstone.ts';
import { urlKind } from './act/url-target.ts';
import type { Clock } from './clock.ts';
import {
  type Config,
  type ConfigResult,
  type Environment,
  type Kinds,
  type Misconfigured,
  type Program,
  readConfig,
  readFallbackConfig,
  type TerminationLog,
} from './config.ts';
import type { LogEntry } from './decide/messages.ts';
import type { Policy } from './decide/model.ts';
import {
  buildBugReport,
  buildMisconfiguredReport,
  buildReport,
  EXIT,
  fitReport,
  type Report,
} from './decide/report.ts';
import type { State } from './decide/state.ts';
import { formatHelp, formatPlan } from './help.ts';
import { openLog } from './log.ts';
import { type LoopParts, runLoop, type Signals } from './loop.ts';
import type { Condition, ConditionKind } from './observe/condition.ts';
import { containerKind } from './observe/container.ts';
import { openExporter } from './observe/exporter.ts';
import { fileKind } from './observe/file.ts';
import { metricKind } from './observe/metric.ts';
import { beginObservation } from './observe/observation.ts';
import { portKind } from './observe/port.ts';
import { processKind } from './observe/process.ts';
import { tombstoneKind } from './observe/tombstone.ts';
import { describeNamespace } from './procfs.ts';
import { COMMIT, VERSION } from './version.ts';

/** Every kind of condition; a new one is a file in observe/ and a row here. */
export const CONDITION_KINDS: readonly ConditionKind[] = [
  metricKind,
  portKind,
  fileKind,
  processKind,
  tombstoneKind,
  containerKind,
];
/** Every kind of target; a new one is a file in act/ and a row here (a preset: a row of PRESETS). The first that takes an entry has it. */
export const TARGET_KINDS: readonly TargetKind[] = [...PRESETS.map(presetKind), signalKind, urlKind];

export const KINDS: Kinds = { conditions: CONDITION_KINDS, targets: TARGET_KINDS };

/** The signals that are heard; the second one decides the exit code. */
export type SignalName = 'SIGTERM' | 'SIGINT';

/** What main needs of the process. */
export type Process = {
  readonly env: Environment;
  /** Without the program's own name. */
  readonly argv: readonly string[];
  readonly stdout: (text: string) => void;
  readonly stderr: (text: string) => void;
  /** Calls back at each signal. */
  readonly onSignal: (listener: (name: SignalName) => void) => void;
  /** Calls back at an error that nobody caught; main writes the report, the process ends with the code it returns. */
  readonly onUncaught: (listener: (error: unknown) => number) => void;
  readonly pid: number;
  /** Sends a signal, or with 0 only looks whether it may. @throws with the code ESRCH or EPERM. */
  readonly kill: (pid: number, signal: string | 0) => void;
  /** Of the Node that runs this, such as `24.21.0`. */
  readonly nodeVersion: string;
  /** Monotonic. */
  readonly nowMs: () => number;
  /** Since 1970, UTC. */
  readonly wallMs: () => number;
};

/** `isUrgent`: end the process at once, whatever is still open. */
export type Exit = { readonly code: number; readonly isUrgent: boolean };

/** Runs lastscrape; never rejects. */
export async function main(process: Process): Promise<Exit> {
  const { argv } = process;
  if (argv.length > 1 || (argv.length === 1 && !['--check', '--version', '--help'].includes(argv[0] as string))) {
    process.stderr(
      `Cannot read the command line: it is ${JSON.stringify(argv.join(' '))}; must be empty, --check, --version or --help\n`,
    );
    return leave(EXIT.usage);
  }
  if (argv[0] === '--version') {
    const source = COMMIT === null ? 'from source' : `commit ${COMMIT}`;
    process.stdout(`lastscrape ${VERSION} (${source}, Node ${process.nodeVersion})\n`);
    return leave(EXIT.done);
  }
  if (argv[0] === '--help') {
    process.stdout(formatHelp(KINDS));
    return leave(EXIT.done);
  }
  // Before entries are checked, which asks servers: PID 1 of a container never hears of a signal that nobody listened to.
  const heard = argv[0] === '--check' ? null : listen(process);
  const result = await checked(readConfig(process.env, KINDS, toProgram(process)));
  if (!('config' in result)) {
    process.stderr(`${result.problems.join('\n')}\n`);
    if (heard === null) return leave(EXIT.misconfigured);
    const report = fitReport(buildMisconfiguredReport(result.problems, VERSION));
    const problem = writeReport(result.terminationLog, report);
    if (problem !== null) process.stderr(`${problem}\n`);
    return result.isExitZero ? outlastMain(process, result, heard) : leave(EXIT.misconfigured);
  }
  if (heard === null) {
    process.stdout(formatPlan(result.config, await inspect(result.config, process.pid)));
    await closeAll(result.config.conditions);
    return leave(EXIT.done);
  }
  return run(process, result.config, heard);
}

/** A configuration whose entries can work in this very pod, or the problems. */
async function checked(result: ConfigResult): Promise<ConfigResult> {
  if (!('config' in result)) return result;
  const { conditions, targets, isExitZero, terminationLog } = result.config;
  const problems: string[] = [];
  const unreadable: string[] = [];
  const add = async (entry: string, variable: string, check: (() => Promise<string | null>) | undefined) => {
    const problem = (await check?.()) ?? null;
    if (problem === null) return;
    problems.push(`Cannot use "${entry}" of ${variable}: ${problem}`);
    unreadable.push(variable);
  };
  for (const { text, check } of conditions) await add(text, 'LASTSCRAPE_DONE_WHEN', check);
  for (const { name, check } of targets) await add(name, 'LASTSCRAPE_QUIT', check);
  if (problems.length === 0) return result;
  await closeAll(conditions);
  return { problems, unreadable, isExitZero, terminationLog };
}

function toProgram({ pid, kill }: Process): Program {
  return { version: VERSION, pid, kill };
}

async function closeAll(conditions: readonly Condition[]): Promise<void> {
  for (const { close } of conditions) await close?.();
}

/** What `--check` can tell of this very pod. */
async function inspect(config: Config, ownPid: number): Promise<readonly string[]> {
  const { conditions, targets, tombstonePath } = config;
  const lines = [`process namespace: ${await describeNamespace(ownPid)}`];
  for (const { text, inspect: look } of conditions) lines.push(...(await about(text, look)));
  for (const { name, inspect: look } of targets) lines.push(...(await about(name, look)));
  const problem = tombstonePath === null ? null : findTombstoneProblem(tombstonePath);
  if (problem !== null) lines.push(`warning: ${problem}`);
  lines.push(...targetNotes(config).map((note) => `warning: ${formatWarning(note)}`));
  return lines;
}

function targetNotes({ targets, conditions, quitTimeoutMs }: Config): readonly LogEntry[] {
  const waitsForAll = conditions.some((condition) => condition.waitsForAll === true);
  return listTargetWarnings(targets, { quitTimeoutMs, waitsForAll });
}

async function about(name: string, look: (() => Promise<readonly string[]>) | undefined): Promise<readonly string[]> {
  return ((await look?.()) ?? []).map((line) => `${name}: ${line}`);
}

async function run(process: Process, config: Config, { signals, secondSignal }: Heard): Promise<Exit> {
  const { terminationLog } = config;
  const policy = buildPolicy(config);
  const time = () => new Date(process.wallMs()).toISOString();
  const log = openLog({ level: config.logLevel, write: process.stdout, time });
  const codeOf = (code: number) => (config.isExitZero ? EXIT.done : code);
  let hasWriteFailed = false;
  const write = (report: Report) => {
    const problem = writeReport(terminationLog, report);
    if (problem === null || hasWriteFailed) return;
    hasWriteFailed = true;
    log.note({ id: 'messageUnwritable', fields: { problem } });
  };
  const tombstone =
    config.tombstonePath === null || config.isDryRun
      ? null
      : openTombstone({
          path: config.tombstonePath,
          pid: process.pid,
          time,
          warn: (problem) => log.note({ id: 'tombstoneUnwritable', fields: { problem } }),
        });
  const onBug = (error: unknown): number => {
    const text = error instanceof Error ? (error.stack ?? error.message) : String(error);
    const report = fitReport(buildBugReport(error instanceof Error ? error.message : text, VERSION));
    log.note({ id: 'bug', fields: { error: text } });
    write(report);
    log.report(report);
    tombstone?.close(codeOf(EXIT.bug));
    return codeOf(EXIT.bug);
  };
  process.onUncaught(onBug);
  const report = (state: State, isFinished: boolean) =>
    fitReport(
      buildReport({
        state,
        policy,
        nowMs: process.nowMs(),
        toTime: (atMs) => new Date(process.wallMs() - process.nowMs() + atMs).toISOString(),
        isFinished,
        version: VERSION,
      }),
    );

  log.note({ id: 'watching', fields: planFields(config) });
  targetNotes(config).forEach(log.note);
  try {
    const state = await watch(process, config, signals, {
      log: log.note,
      beforeQuit() {
        tombstone?.die();
        if (config.tombstonePath !== null && config.isDryRun) {
          const fields = { path: config.tombstonePath };
          log.note({ id: 'tombstoneSkipped', fields });
        }
      },
      progress: (now) => write(report(now, false)),
    });
    // A pod that is being stopped ends its proxies by itself.
    if (signals.terminatedAtMs === null) (await findForgottenMesh(config.targets, PRESETS)).forEach(log.note);
    const second = secondSignal();
    const built = report(state, true);
    const code =
      second === 'SIGINT' ? EXIT.interrupted : second === 'SIGTERM' ? EXIT.done : (built.exitCode ?? EXIT.done);
    const last = { ...built, exitCode: code };
    write(last);
    tombstone?.close(codeOf(code));
    log.report(last);
    return { code: codeOf(code), isUrgent: second !== null };
  } catch (error) {
    return { code: onBug(error), isUrgent: true };
  }
}

/**
 * Stays until main has ended, although the configuration is wrong: an ended container makes the pod NotReady, and main's
 * Services would lose it. Watches by what could be read, and by defaults; holds, stops and says nothing.
 */
async function outlastMain(
  process: Process,
  { unreadable }: Misconfigured,
  { signals, secondSignal }: Heard,
): Promise<Exit> {
  const config = readFallbackConfig(process.env, unreadable, KINDS, toProgram(process));
  process.onUncaught(() => EXIT.done);
  await watch(process, config, signals, { log: () => {}, beforeQuit: () => {}, progress: () => {} });
  return { code: EXIT.done, isUrgent: secondSignal() !== null };
}

/** What `step` decides by. */
export function buildPolicy({ limits, conditions, targets, quitTimeoutMs, isDryRun }: Config): Policy {
  return {
    limits,
    conditions: conditions.map(({ metricName }) => ({ isMetric: metricName !== null })),
    targets: targets.map(({ name, request, needsMs = 0, force }) => ({
      name,
      request,
      needsMs,
      canForce: force !== undefined,
    })),
    quitTimeoutMs,
    isDryRun,
  };
}

/** Runs the loop with the real parts of the configuration. */
async function watch(
  process: Process,
  config: Config,
  signals: Signals,
  words: Pick<LoopParts, 'log' | 'beforeQuit' | 'progress'>,
): ReturnType<typeof runLoop> {
  const metricNames = config.conditions.flatMap(({ metricName }) => (metricName === null ? [] : [metricName]));
  const exporter = config.isExporterRead ? openExporter(config.metricsUrl, metricNames, VERSION) : null;
  try {
    const clock = clockOf(process);
    const sources = { conditions: config.conditions, readExporter: exporter?.read ?? null };
    return await runLoop({
      policy: buildPolicy(config),
      clock,
      signals,
      observe: (limits) => beginObservation(sources, clock, limits),
      targets: config.targets,
      ...words,
    });
  } finally {
    await exporter?.close();
    await closeAll(config.conditions);
  }
}

type Heard = { readonly signals: Signals; readonly secondSignal: () => SignalName | null };

/** Turns signals into what the loop reads. */
function listen(process: Process): Heard {
  const first = new AbortController();
  const second = new AbortController();
  let terminatedAtMs: number | null = null;
  let secondName: SignalName | null = null;
  process.onSignal((name) => {
    if (terminatedAtMs === null) {
      terminatedAtMs = process.nowMs();
      first.abort('interrupted');
    } else {
      secondName ??= name;
      second.abort('interrupted');
    }
  });
  const signals: Signals = {
    get terminatedAtMs() {
      return terminatedAtMs;
    },
    first: first.signal,
    second: second.signal,
  };
  return { signals, secondSignal: () => secondName };
}

function clockOf({ nowMs }: Process): Clock {
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

function leave(code: number): Exit {
  return { code, isUrgent: false };
}
