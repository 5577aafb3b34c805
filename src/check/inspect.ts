// What `--check` looks at: the exporter, every condition, every target, the files that are written, and what is odd. It asks
// nobody to end, and writes nothing. Imported only for `--check`.

import { existsSync } from 'node:fs';
import { describeNamespace, isRunningBeside } from '../base/procfs.ts';
import { redactHref } from '../base/text.ts';
import type { Config, Environment, TerminationLog } from '../config/config.ts';
import type { FrontAddress } from '../config/front-address.ts';
import { hasReceivers } from '../config/policy.ts';
import { isLocustPage } from '../config/values.ts';
import type { ConditionObservation, ExporterObservation } from '../decide/model.ts';
import { judgeNumbers, NO_NUMBERS } from '../decide/verdict.ts';
import type { Condition, ExporterReading } from '../observe/condition.ts';
import { NOT_READ, openExporter } from '../observe/exporter.ts';
import type { Target } from '../quit/target.ts';
import { findTombstoneProblem } from '../run/own-tombstone.ts';
import { findOthers, formatEntryProblem, listEntryProblems, listWarnings } from '../run/startup-checks.ts';
import { findMessageProblem } from '../run/termination-message.ts';
import type { Listener } from '../tell/check.ts';
import { findListenProblem, type ListenProblem, readSource } from './front-check.ts';
import { formatLogEntry } from './help.ts';
import { listOddSettings } from './odd-settings.ts';
import type { Findings } from './plan.ts';

/** What is around the process that checks. */
export type Surroundings = {
  readonly env: Environment;
  /** It runs in a pod of Kubernetes. */
  readonly isPod: boolean;
  readonly openExporter: typeof openExporter;
  readonly describeNamespace: () => Promise<string>;
  /** A lastscrape that may hold the pod runs in this very container, or can be seen beside it. */
  readonly isRunningBeside: () => Promise<boolean>;
  /** PIDs of others that can be seen in a shared process namespace. */
  readonly findOthers: () => Promise<readonly number[]>;
  /** Why the file cannot be written; null: it can. */
  readonly findMessageProblem: (log: TerminationLog) => string | null;
  readonly findTombstoneProblem: (path: string, signal: AbortSignal) => Promise<string | null>;
  /** Why the front cannot listen; null: it can. */
  readonly findListenProblem: (front: FrontAddress) => Promise<ListenProblem | null>;
  /** Reads what a front would serve. */
  readonly readSource: typeof readSource;
  /** Those who are told; tries to connect where they can be reached from here. */
  readonly findListeners: (
    config: Config,
    options: { readonly isTried: boolean; readonly signal: AbortSignal },
  ) => Promise<readonly Listener[]>;
};

/** The marks of a pod: Kubernetes sets the variable in every container, and the kubelet mounts the files in most. */
const POD_VARIABLE = 'KUBERNETES_SERVICE_HOST';
const POD_FILES = ['/var/run/secrets/kubernetes.io', '/dev/termination-log'];

/** The surroundings of this very process. */
export function findSurroundings(env: Environment, ownPid: number): Surroundings {
  return {
    env,
    isPod: (env[POD_VARIABLE] ?? '') !== '' || POD_FILES.some((path) => existsSync(path)),
    openExporter,
    describeNamespace: () => describeNamespace(ownPid),
    isRunningBeside: () => isRunningBeside(ownPid),
    findOthers: () => findOthers(ownPid),
    findMessageProblem: ({ path, isChosen }) => findMessageProblem(path, isChosen),
    findTombstoneProblem,
    findListenProblem,
    readSource,
    async findListeners(config, options) {
      if (!hasReceivers(config)) return [];
      const [{ findListeners }, { findIdentitySources }] = await Promise.all([
        import('../tell/check.ts'),
        import('../pod/identity.ts'),
      ]);
      return findListeners(config, findIdentitySources(env), options);
    },
  };
}

type Line = Findings['lines'][number];

/** The problem itself is printed with the others. */
const CANNOT = 'cannot work in this pod: see the end';

/** Looks at everything that the configuration names. `signal` ends it early; never rejects but on a bug. */
export async function inspect(config: Config, surroundings: Surroundings, signal: AbortSignal): Promise<Findings> {
  const { isPod } = surroundings;
  const { conditions, targets, front, isExporterRead } = config;
  const problems = isPod ? await listEntryProblems(config) : [];
  const isWrong = (entry: string) => problems.some((problem) => problem.entry === entry);

  const observed = new Map<Condition, ConditionObservation>();
  const observe = async (exporter: ExporterReading, wanted: (condition: Condition) => boolean) => {
    for (const condition of conditions.filter((each) => wanted(each) && !isWrong(each.text))) {
      observed.set(condition, await condition.observe({ exporter, signal }));
    }
  };
  await observe(NOT_READ, ({ metricName }) => isPod && metricName === null);
  // The GET of a check counts as a scrape by others, but not where a front counts: it must not end a hold.
  const mayHold = front === null && [...observed.values()].every(({ kind }) => kind !== 'alive');
  const isLeftAlone = isExporterRead && isPod && mayHold && (await surroundings.isRunningBeside());
  const exporter = isLeftAlone || !isExporterRead ? null : await readExporter(config, surroundings, signal);
  if (exporter !== null) await observe(exporter, ({ metricName }) => metricName !== null);

  const lines: Line[] = [];
  if (isExporterRead) lines.push(describeExporter(config, exporter, isPod));
  const unheard = front === null || !isPod ? null : await surroundings.findListenProblem(front);
  if (front !== null) lines.push({ name: `front ${front.text}`, text: describeFront(unheard, isPod) });
  if (isPod && usesProcesses(config)) {
    lines.push({ name: 'process namespace', text: await surroundings.describeNamespace() });
  }
  for (const condition of conditions) {
    const { text: name } = condition;
    const text = isWrong(name) ? CANNOT : await describeCondition(condition, observed.get(condition), isPod);
    lines.push({ name, text });
  }
  for (const target of targets) {
    const { name } = target;
    const texts = isWrong(name) ? [CANNOT] : await describeTarget(target, isPod);
    lines.push(...texts.map((text) => ({ name, text })));
  }
  lines.push(...describeThresholds(config, exporter, isPod));
  for (const { name, problems: found } of await surroundings.findListeners(config, { isTried: isPod, signal })) {
    lines.push({ name, text: describeListener(found, isPod) });
  }
  const files = await describeFiles(config, surroundings, signal);
  const odd = listOddSettings({
    config,
    isSet: (name) => (surroundings.env[name] ?? '').trim() !== '',
    exporter: isPod ? (exporter?.observation ?? null) : null,
  });
  const pids = isPod ? await surroundings.findOthers() : [];
  const warnings = [
    ...files.warnings,
    ...odd.map(({ text }) => text),
    ...listWarnings(config).map(formatLogEntry),
    // One of them may be what this very container runs, where `kubectl exec` started the check.
    ...(pids.length === 0
      ? []
      : [`lastscrape runs as PID ${pids.join(', ')}: two in one pod count each other's polls as scrapes`]),
  ];
  const listening = unheard === null || unheard.isTaken ? [] : [`Cannot use LASTSCRAPE_FRONT: ${unheard.problem}`];
  return {
    isPod,
    lines: [...lines, ...files.lines],
    warnings,
    problems: [...listening, ...problems.map(formatEntryProblem)],
  };
}

function describeFront(problem: ListenProblem | null, isPod: boolean): string {
  if (!isPod) {
    const need = 'no other container may listen there, and scrapers must reach it';
    return describeOutside({ why: "these are not the pod's ports", need });
  }
  if (problem === null) return 'can be listened on';
  // A check often runs in the container of a lastscrape that listens there.
  return problem.isTaken
    ? 'taken, by a lastscrape that runs here or by another program: which one cannot be told'
    : CANNOT;
}

function describeListener(problems: readonly string[], isPod: boolean): string {
  if (!isPod) {
    const need = 'the pod must reach it, and the files for it must be mounted';
    return describeOutside({ why: "this is not the pod's network", need });
  }
  return problems.length === 0 ? 'can be reached; nothing was sent' : `would not arrive now: ${problems.join('; ')}`;
}

/** It says of itself what is unknown, for a log. */
function describeUnknown(why: string): string {
  return `unknown (${why.replace(/^.*? unknown: /, '')})`;
}

async function readExporter(
  { conditions, metricsUrl, front, locust, thresholds }: Config,
  surroundings: Surroundings,
  signal: AbortSignal,
): Promise<ExporterReading> {
  const metricNames = conditions.flatMap(({ metricName }) => metricName ?? []);
  if (front !== null) return surroundings.readSource(metricsUrl, metricNames, signal, locust, thresholds);
  const exporter = surroundings.openExporter(metricsUrl, metricNames, thresholds);
  try {
    return await exporter.read(signal);
  } finally {
    await exporter.close();
  }
}

/** What each entry of FAIL_IF would come to now; null: the exporter was not read. */
function describeThresholds({ thresholds }: Config, exporter: ExporterReading | null, isPod: boolean): readonly Line[] {
  const observation = exporter?.observation;
  const readings = observation?.kind === 'answered' ? (observation.thresholds ?? []) : null;
  return thresholds.map((threshold, index): Line => {
    const { text: name } = threshold;
    if (readings === null) {
      const outside = { why: 'no exporter here serves it', need: 'the exporter must serve it until main ends' };
      return { name, text: isPod ? 'not read' : describeOutside(outside) };
    }
    const reading = readings[index] ?? { kind: 'none' };
    const verdict = judgeNumbers([threshold], { ...NO_NUMBERS, readings: [reading] });
    const seen = reading.kind === 'value' ? reading.value : verdict?.kind === 'failed' ? verdict.failed[0]?.seen : '';
    const isLater = reading.kind === 'none' || reading.kind === 'unmatched';
    const later = isLater ? ', unless there is one by the end' : '';
    return { name, text: `${seen} now: ${verdict?.kind === 'failed' ? `fails${later}` : 'passes'}` };
  });
}

/** null: it was not read, so that it counts no scrape. */
function describeExporter(config: Config, reading: ExporterReading | null, isPod: boolean): Line {
  const { metricsUrl, front, locust } = config;
  const name = redactHref(metricsUrl);
  if (reading === null) {
    return { name, text: 'not read: a lastscrape runs here that may hold the pod, and would take it for a scrape' };
  }
  const { observation } = reading;
  if (observation.kind === 'answered') {
    const { scrapes } = observation;
    const up = reading.metric(`${locust.namespace}_up`);
    // In the place of Locust's exporter there is an answer without Locust as well.
    if (isLocustPage(metricsUrl) && up.kind === 'value' && up.value === 0) {
      const why = 'Locust does not answer';
      const need = 'its page must be there, which --headless has not';
      return {
        name,
        text: isPod ? `${why}: not started yet, --headless, or elsewhere?` : describeOutside({ why, need }),
      };
    }
    // A front counts by itself.
    if (front !== null) return { name, text: 'answers, and can be served' };
    const counter = scrapes === null ? 'no scrape counter of promhttp' : `scrape counter at ${scrapes.finishedCount}`;
    return { name, text: `HTTP 200, ${counter}` };
  }
  const isFile = metricsUrl.protocol === 'file:';
  const nothing = isFile ? 'nothing is there' : 'nothing listens there';
  const why = observation.kind === 'failed' ? observation.why : nothing;
  if (isPod) return { name, text: `${why}${askAboutExporter(observation, front !== null, isFile)}` };
  const need = isFile ? 'main must write there, in a volume that both mount' : 'the exporter must answer there';
  return { name, text: describeOutside({ why, need }) };
}

/** Why it may be so. */
function askAboutExporter(observation: ExporterObservation, hasFront: boolean, isFile: boolean): string {
  if (observation.kind === 'failed' && observation.why.startsWith('HTTP ')) return ': is the path right?';
  if (observation.kind === 'failed' && hasFront) return ': this cannot be served';
  return isFile ? ': not written yet, or in no volume that both mount?' : ': not started yet, or elsewhere?';
}

async function describeCondition(
  { metricName, isSignal = false, inspect: inspectCondition, outsidePod }: Condition,
  observation: ConditionObservation | undefined,
  isPod: boolean,
): Promise<string> {
  // A metric can be seen anywhere, by way of kubectl port-forward for example.
  const isSeen = metricName !== null && observation !== undefined && observation.kind !== 'unknown';
  if (!isPod && !isSeen) return describeOutside(outsidePod);
  const inspected = async (text: string) => ((await inspectCondition?.()) ?? [text]).join(', ');
  switch (observation?.kind) {
    case 'alive':
      return `alive (${await inspected(observation.seen)})`;
    case 'done':
      return `${observation.provesWasAlive ? 'done' : 'done, or not started yet'} (${await inspected(observation.seen)})`;
    case 'notStarted':
      return `not started yet (${await inspected(observation.why)})`;
    case 'unknown':
    case 'blind':
      return describeUnknown(observation.why);
    default:
      return isSignal ? inspected('not read') : 'not read';
  }
}

async function describeTarget(
  { inspect: inspectTarget, outsidePod }: Target,
  isPod: boolean,
): Promise<readonly string[]> {
  return isPod ? ((await inspectTarget?.()) ?? []) : [describeOutside(outsidePod)];
}

/** The files that a run writes. */
async function describeFiles(
  { terminationLog, tombstonePath }: Config,
  { isPod, ...surroundings }: Surroundings,
  signal: AbortSignal,
): Promise<{ readonly lines: readonly Line[]; readonly warnings: readonly string[] }> {
  const lines: Line[] = [];
  const warnings: string[] = [];
  const add = (name: string, problem: string | null, need: string) => {
    if (problem === null) lines.push({ name, text: 'can be written' });
    else if (isPod) warnings.push(problem);
    else {
      const why = /: ENOENT$| is not there: /.test(problem) ? 'it is not here' : problem;
      lines.push({ name, text: describeOutside({ why, need }) });
    }
  };
  add(
    terminationLog.path,
    surroundings.findMessageProblem(terminationLog),
    terminationLog.isChosen ? 'its folder must be writable' : 'the kubelet mounts it',
  );
  if (tombstonePath !== null) {
    const problem = await surroundings.findTombstoneProblem(tombstonePath, signal);
    add(tombstonePath, problem, 'its folder, the graveyard, must be mounted');
  }
  return { lines, warnings };
}

function usesProcesses({ conditions, targets }: Config): boolean {
  return [...conditions, ...targets].some((entry) => entry.usesProcesses === true);
}

function describeOutside(outside: { readonly why: string; readonly need: string } | undefined): string {
  const { why, need } = outside ?? { why: 'this is no pod', need: 'it must be there' };
  return `not checked here, because ${why}; in the pod, ${need}`;
}
