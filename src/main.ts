// The command line, and the tables of kinds: where a new kind of condition or target becomes known.

import { COMMIT, REPORT_BUGS_TO, VERSION } from './base/version.ts';
import { waitUnless } from './base/waits.ts';
import { findSignalEntry, type Kinds, readConfig, readFallbackConfig, readReportSettings } from './config/config.ts';
import { VARIABLES } from './config/variables.ts';
import { EXIT } from './decide/quit/exit-codes.ts';
import { containerKind, openPodSource, type PodSource } from './observe/container.ts';
import { fileKind } from './observe/file.ts';
import { metricKind } from './observe/metric.ts';
import { portKind } from './observe/port.ts';
import { processKind } from './observe/process.ts';
import { sigtermKind } from './observe/sigterm.ts';
import { tombstoneKind } from './observe/tombstone.ts';
import { presetKind, urlKind } from './quit/http-target.ts';
import { PRESETS } from './quit/programs.ts';
import { signalKind } from './quit/signal-target.ts';
import { type Exit, exitWith, type Host, listenForSignals, type Signals } from './run/host.ts';
import { describeError, reportBug, reportMisconfigured } from './run/outcome.ts';
import { closeInTime } from './run/parts.ts';
import { outlastMain, run } from './run/run.ts';
import { findEntryProblems } from './run/startup-checks.ts';

/** Every kind: a file in observe/ or quit/, and an entry here. The first target to read an entry takes it. */
export const KINDS: Kinds = {
  conditions: [metricKind, portKind, fileKind, processKind, tombstoneKind, containerKind, sigtermKind],
  targets: [...PRESETS.map(presetKind), signalKind, urlKind],
};

/** What the command line may be, by what people write. */
const OPTIONS = {
  '--check': ['--check', 'check'],
  '--ready': ['--ready', 'ready'],
  '--version': ['--version', '-v', '-V', 'version'],
  '--help': ['--help', '-h', 'help'],
  explain: ['explain', '--explain'],
  keep: ['keep'],
} as const satisfies Readonly<Record<string, readonly string[]>>;
const OPTION_NAMES = Object.keys(OPTIONS) as readonly (keyof typeof OPTIONS)[];

/** What may follow `keep`. */
const KEEP_ARGUMENTS: readonly (string | undefined)[] = [undefined, '--check', '--help'];

/** What a command line must be that begins with one of these. */
const MUST: Readonly<Record<string, string>> = {
  explain: '"explain", with --json or --targets FILE, and reads stdin: "lastscrape explain < FILE"',
  keep: '"keep", "keep --check" or "keep --help"',
};

/** Runs lastscrape; never rejects. `kinds`: the tables above, others for tests. */
export async function main(host: Host, kinds: Kinds = KINDS): Promise<Exit> {
  const { argv } = host;
  const [text = null] = argv;
  const option = text === null ? null : OPTION_NAMES.find((name) => OPTIONS[name].some((each) => each === text));
  const targetsAt = argv.indexOf('--targets');
  const targetsFile = targetsAt === -1 ? undefined : argv[targetsAt + 1];
  const others = targetsFile === undefined ? argv.slice(1) : argv.toSpliced(targetsAt, 2).slice(1);
  if (option === 'explain' && others.every((each) => each === '--json')) {
    return guard(host, printBug(host), async () => {
      const { runExplain } = await import('./explain/run-explain.ts');
      return exitWith(await runExplain(host, kinds, others.length > 0, targetsFile));
    });
  }
  if (option === 'keep' && argv.length <= 2 && KEEP_ARGUMENTS.includes(argv[1])) {
    return guard(host, printBug(host), async () => (await import('./keeper/keep.ts')).runKeep(host, argv[1]));
  }
  if (argv.length > 1 || option === undefined) {
    const must = MUST[option ?? ''] ?? 'empty, --check, --ready, --version, --help, explain or keep';
    host.stderr(`Cannot read the command line: it is ${JSON.stringify(argv.join(' '))}; must be ${must}\n`);
    return exitWith(EXIT.usage);
  }
  if (option === '--version') {
    const source = COMMIT === null ? 'from source' : `commit ${COMMIT}`;
    host.stdout(`lastscrape ${VERSION} (${source}, Node ${host.nodeVersion})\n`);
    return exitWith(EXIT.done);
  }
  if (option === '--help') {
    const { formatHelp } = await import('./check/help.ts');
    host.stdout(formatHelp(kinds));
    return exitWith(EXIT.done);
  }
  if (option === '--check') return guard(host, printBug(host), () => checkInTime(host, kinds));
  if (option === '--ready') {
    // Where lastscrape runs here too, this is its hook, whose failure keeps main from starting.
    const isHook = VARIABLES.some(({ name }) => name !== 'LASTSCRAPE_FRONT' && host.env[name] !== undefined);
    const toCode = (code: number) => (isHook ? EXIT.done : code);
    const work = async () => exitWith(toCode(await awaitFront(host, kinds)));
    return guard(host, (error) => toCode(printBug(host)(error)), work);
  }
  const onBug = (error: unknown) => reportBug(host, readReportSettings(host.env), error);
  return guard(host, onBug, () => watchMain(host, kinds));
}

/** Runs `work`. What it throws, or nothing catches, is a bug: `onBug` reports it, and gives the code. */
async function guard(host: Host, onBug: (error: unknown) => number, work: () => Promise<Exit>): Promise<Exit> {
  host.onUncaught(onBug);
  try {
    return await work();
  } catch (error) {
    return { code: onBug(error), isUrgent: true };
  }
}

/** Reports bugs on stderr, where nothing is watched. */
function printBug(host: Host): (error: unknown) => number {
  return (error) => {
    host.stderr(`Bug in lastscrape: please report it ${REPORT_BUGS_TO}: ${describeError(error)}\n`);
    return EXIT.bug;
  };
}

/** `--check`, until a signal. */
async function checkInTime(host: Host, kinds: Kinds): Promise<Exit> {
  const { first } = listenForSignals(host);
  const pod = openPodSource(host.env);
  const code = await waitUnless(check(host, kinds, pod, first), { signal: first });
  const isClosed = await closeInTime(pod, first);
  return { code: code ?? EXIT.interrupted, isUrgent: !isClosed };
}

/** `--ready`, until a signal. @returns the exit code */
async function awaitFront(host: Host, kinds: Kinds): Promise<number> {
  const { first } = listenForSignals(host);
  const result = readConfig(host.env, kinds, { ...host, pod: openPodSource(host.env) });
  const { findFrontProblem } = await import('./check/ready.ts');
  const problem = 'config' in result ? await findFrontProblem(result.config.front, first) : result.problems.join('\n');
  if (problem === null) return EXIT.done;
  host.stderr(`${problem}\n`);
  return EXIT.misconfigured;
}

/** Prints what a run would do, or what is wrong. @returns the exit code */
async function check(host: Host, kinds: Kinds, pod: PodSource, signal: AbortSignal): Promise<number> {
  const result = readConfig(host.env, kinds, { ...host, pod });
  if (!('config' in result)) {
    host.stderr(`${result.problems.join('\n')}\n`);
    return EXIT.misconfigured;
  }
  const { config } = result;
  const [{ inspect }, { findSurroundings }, { formatPlan }] = await Promise.all([
    import('./check/inspect.ts'),
    import('./check/surroundings.ts'),
    import('./check/plan.ts'),
  ]);
  const found = await inspect(config, findSurroundings(host.env, host.pid), signal);
  const isUsable = found.problems.length === 0;
  // After a signal the output is not wanted any more.
  if (!signal.aborted) {
    host.stdout(formatPlan(config, found));
    if (!isUsable) host.stderr(`${found.problems.join('\n')}\n`);
  }
  return isUsable ? EXIT.done : EXIT.misconfigured;
}

async function watchMain(host: Host, kinds: Kinds): Promise<Exit> {
  // Before entries are checked, which asks servers: a signal must not be lost meanwhile.
  const signals = listenForSignals(host, findSignalEntry(host.env, [], kinds) !== null);
  const pod = openPodSource(host.env);
  const own = { ...host, pod };
  let end = await runUsable(host, kinds, pod, signals);
  if (!('code' in end)) {
    reportMisconfigured(host, end);
    const { isExitZero, unreadable } = end;
    end = exitWith(EXIT.misconfigured);
    // A native sidecar that ends is started again, and while that goes on main may never be.
    if (isExitZero || findSignalEntry(host.env, unreadable, kinds) !== null) {
      const waited = await outlastMain(host, readFallbackConfig(host.env, unreadable, kinds, own), signals);
      end = { ...waited, code: isExitZero ? waited.code : EXIT.misconfigured };
    }
  }
  const isClosed = await closeInTime(pod, signals.second);
  return { code: end.code, isUrgent: end.isUrgent || !isClosed };
}

/** Runs a configuration whose entries can work in this very pod; else the problems. */
async function runUsable(host: Host, kinds: Kinds, pod: PodSource, signals: Signals) {
  const result = readConfig(host.env, kinds, { ...host, pod });
  if (!('config' in result)) return result;
  // After a second signal nothing is checked or watched any more: the run ends at once, and reports.
  const wrong = await waitUnless(findEntryProblems(result.config), { signal: signals.second });
  return wrong ?? run(host, result.config, signals);
}
