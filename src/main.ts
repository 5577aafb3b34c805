// The command line, and the tables of kinds: where a new kind of condition or target becomes known.

import { PRESETS, presetKind } from './act/presets.ts';
import { signalKind } from './act/signal-target.ts';
import type { TargetKind } from './act/target.ts';
import { urlKind } from './act/url-target.ts';
import { findEntryProblems, inspectPod } from './check.ts';
import { type ConfigResult, type Kinds, type Program, readConfig, readFallbackConfig } from './config.ts';
import { EXIT } from './decide/report.ts';
import { formatHelp, formatPlan } from './help.ts';
import type { Exit, Host } from './host.ts';
import type { ConditionKind } from './observe/condition.ts';
import { containerKind } from './observe/container.ts';
import { fileKind } from './observe/file.ts';
import { metricKind } from './observe/metric.ts';
import { portKind } from './observe/port.ts';
import { processKind } from './observe/process.ts';
import { tombstoneKind } from './observe/tombstone.ts';
import { closeConditions, outlastMain, reportMisconfigured, run } from './run.ts';
import { listenForSignals } from './signals.ts';
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

const OPTIONS: readonly string[] = ['--check', '--version', '--help'];

/** Runs lastscrape; never rejects. */
export async function main(host: Host): Promise<Exit> {
  const { argv } = host;
  const [option = null] = argv;
  if (argv.length > 1 || (option !== null && !OPTIONS.includes(option))) {
    host.stderr(
      `Cannot read the command line: it is ${JSON.stringify(argv.join(' '))}; must be empty, --check, --version or --help\n`,
    );
    return exitWith(EXIT.usage);
  }
  if (option === '--version') {
    const source = COMMIT === null ? 'from source' : `commit ${COMMIT}`;
    host.stdout(`lastscrape ${VERSION} (${source}, Node ${host.nodeVersion})\n`);
    return exitWith(EXIT.done);
  }
  if (option === '--help') {
    host.stdout(formatHelp(KINDS));
    return exitWith(EXIT.done);
  }
  return option === '--check' ? checkOnly(host) : watchMain(host);
}

/** `--check`: tells what a run would do, or what is wrong. */
async function checkOnly(host: Host): Promise<Exit> {
  const result = await readUsableConfig(host);
  if (!('config' in result)) {
    host.stderr(`${result.problems.join('\n')}\n`);
    return exitWith(EXIT.misconfigured);
  }
  host.stdout(formatPlan(result.config, await inspectPod(result.config, host.pid)));
  await closeConditions(result.config);
  return exitWith(EXIT.done);
}

async function watchMain(host: Host): Promise<Exit> {
  // Before entries are checked, which asks servers: a signal must not be lost meanwhile.
  const signals = listenForSignals(host);
  const result = await readUsableConfig(host);
  if ('config' in result) return run(host, result.config, signals);
  reportMisconfigured(host, result);
  if (!result.isExitZero) return exitWith(EXIT.misconfigured);
  return outlastMain(host, readFallbackConfig(host.env, result.unreadable, KINDS, toProgram(host)), signals);
}

/** A configuration whose entries can work in this very pod, or the problems. */
async function readUsableConfig(host: Host): Promise<ConfigResult> {
  const result = readConfig(host.env, KINDS, toProgram(host));
  if (!('config' in result)) return result;
  const problems = await findEntryProblems(result.config);
  if (problems === null) return result;
  await closeConditions(result.config);
  return problems;
}

function toProgram({ pid, kill }: Host): Program {
  return { version: VERSION, pid, kill };
}

function exitWith(code: number): Exit {
  return { code, isUrgent: false };
}
