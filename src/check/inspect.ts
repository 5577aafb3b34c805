// What `--check` looks at: the exporter, every condition, every target, the files to write, and odd settings.
// It asks no target to quit, and writes nothing. Imported only for `--check`.

import { join } from 'node:path';
import type { Environment } from '../base/parse.ts';
import { redactHref } from '../base/text.ts';
import { type Config, nameHandOver } from '../config/config.ts';
import { isLocustPage, isPushUrl, readPushAddress } from '../config/values.ts';
import type { ConditionObservation } from '../decide/model.ts';
import { judgeNumbers, NO_NUMBERS } from '../decide/verdict.ts';
import type { Condition, ExporterReading } from '../observe/condition-kind.ts';
import { NOT_READ } from '../observe/exporter.ts';
import { listEntryProblems, listWarnings } from '../run/startup-checks.ts';
import { formatLogEntry } from './help.ts';
import type { Findings } from './plan.ts';
import { listOddSettings } from './setting-warnings.ts';
import type { ListenProblem, Surroundings } from './surroundings.ts';

type Line = Findings['lines'][number];

/** The problem itself is printed with the others. */
const CANNOT = 'cannot work in this pod: see the end';

/** As long as a run would wait. */
const KEEPER_TIMEOUT_MS = 2_000;

/** Looks at everything that the configuration names. `signal` ends it early; rejects only on a bug. */
export async function inspect(config: Config, surroundings: Surroundings, signal: AbortSignal): Promise<Findings> {
  const { isPod } = surroundings;
  const { conditions, targets, front, isExporterRead } = config;
  const problems = isPod ? await listEntryProblems(config) : [];
  const isWrong = (entry: string) => problems.some((problem) => problem.entry === entry);

  const observed = new Map<Condition, ConditionObservation>();
  const observe = async (exporter: ExporterReading, isWanted: (condition: Condition) => boolean) => {
    for (const condition of conditions.filter((each) => isWanted(each) && !isWrong(each.text))) {
      observed.set(condition, await condition.observe({ exporter, signal }));
    }
  };
  await observe(NOT_READ, ({ metricName }) => isPod && metricName === null);
  // Without a front the GET of a check counts as a scrape by others: it must not end a hold.
  const mayHold = front === null && [...observed.values()].every(({ kind }) => kind !== 'alive');
  const { metricsUrl } = config;
  const pushes = isPushUrl(metricsUrl) ? readPushAddress(metricsUrl) : null;
  const isSpared = isExporterRead && isPod && mayHold && (await surroundings.isRunningBeside());
  const isRead = isExporterRead && pushes === null && !isSpared;
  const exporter = isRead ? await surroundings.readExporter(config, signal) : null;
  if (exporter !== null) await observe(exporter, ({ metricName }) => metricName !== null);

  const lines: Line[] = [];
  const add = (name: string, ...texts: readonly string[]) => lines.push(...texts.map((text) => ({ name, text })));
  if (isExporterRead && pushes === null) add(redactHref(metricsUrl), describeExporter(config, exporter, isPod));
  const listenProblems: string[] = [];
  const places = [
    { name: `pushes ${pushes?.text}`, variable: 'LASTSCRAPE_METRICS_URL', need: 'main must push there', at: pushes },
    { name: `front ${front?.text}`, variable: 'LASTSCRAPE_FRONT', need: 'scrapers must reach it', at: front },
  ];
  for (const { name, variable, need, at } of places) {
    if (at === null) continue;
    const problem = isPod ? await surroundings.findListenProblem(at) : null;
    add(name, describeListening(problem, isPod, need));
    if (problem?.isTaken === false) listenProblems.push(`Cannot use ${variable}: ${problem.problem}`);
  }
  if (isPod && [...conditions, ...targets].some(({ usesProcesses }) => usesProcesses === true)) {
    add('process namespace', await surroundings.describeNamespace());
  }
  for (const condition of conditions) {
    const { text } = condition;
    add(text, isWrong(text) ? CANNOT : await describeCondition(condition, observed.get(condition), isPod));
  }
  for (const { name, inspect: inspectTarget, need } of targets) {
    if (isWrong(name)) add(name, CANNOT);
    else if (isPod) add(name, ...((await inspectTarget?.()) ?? []));
    else add(name, describeOutside(need));
  }
  for (const [index, { text }] of config.thresholds.entries()) {
    add(text, describeThreshold(config, index, exporter, isPod));
  }
  for (const { name, problems: found } of await surroundings.findListeners(config, { isTried: isPod, signal })) {
    add(name, describeReceiver(found, isPod));
  }
  if (config.handOver?.kind === 'keeper') {
    add(`keeper ${nameHandOver(config)}`, await describeKeeper(config, surroundings.env, isPod, signal));
  }
  const unwritable: string[] = [];
  for (const { path, problem, need } of await findFileProblems(config, surroundings, signal)) {
    if (problem === null) add(path, 'can be written');
    else if (isPod) unwritable.push(problem);
    else add(path, describeOutside(need));
  }
  const odd = listOddSettings({ config, isPod, exporter: isPod ? (exporter?.observation ?? null) : null });
  // With `kubectl exec` one of them may be what this very container runs.
  const pids = isPod ? await surroundings.findOthers() : [];
  const others = `lastscrape runs as PID ${pids.join(', ')}: two in one pod count each other's polls as scrapes`;
  return {
    isPod,
    lines,
    warnings: [
      ...unwritable,
      ...odd.map(({ text }) => text),
      ...listWarnings(config).map(formatLogEntry),
      ...(pids.length === 0 ? [] : [others]),
    ],
    problems: [...listenProblems, ...problems.map(({ problem }) => problem)],
  };
}

function describeOutside(need = 'it must be there'): string {
  return `not checked here; in the pod, ${need}`;
}

function describeListening(problem: ListenProblem | null, isPod: boolean, needed: string): string {
  if (!isPod) return describeOutside(`no other container may listen there, and ${needed}`);
  if (problem === null) return 'can be listened on';
  // A check often runs in the container of a lastscrape that listens there.
  return problem.isTaken ? 'taken, by a lastscrape that runs here or by another program' : CANNOT;
}

function describeReceiver(problems: readonly string[], isPod: boolean): string {
  if (!isPod) return describeOutside('the pod must reach it, and its files must be mounted');
  return problems.length === 0 ? 'can be reached; nothing was sent' : `would not arrive now: ${problems.join('; ')}`;
}

async function describeKeeper(
  { handOver, handOverFolder: folder, handOverPort, front }: Config,
  env: Environment,
  isPod: boolean,
  signal: AbortSignal,
): Promise<string> {
  if (!isPod || handOver?.kind !== 'keeper' || front === null) return describeOutside('the keeper must take its token');
  const { askKeeper } = await import('../tell/hand-over.ts');
  const target = { ...handOverPort, port: front.port };
  const limit = AbortSignal.any([signal, AbortSignal.timeout(KEEPER_TIMEOUT_MS)]);
  const to = { url: handOver.url, env, folder, target, signal: limit };
  const result = await askKeeper('check', to);
  return result.kind === 'accepted' ? 'would take a page of this pod' : `would take nothing now: ${result.why}`;
}

/** `exporter`: null if it was not read, so that the check counts as no scrape. */
function describeExporter(config: Config, exporter: ExporterReading | null, isPod: boolean): string {
  if (exporter === null)
    return 'not read: a lastscrape runs here that may hold the pod, and would count it as a scrape';
  const describe = (why: string, question: string, need: string) =>
    isPod ? `${why}: ${question}` : describeOutside(need);
  const { observation } = exporter;
  const isFile = config.metricsUrl.protocol === 'file:';
  const need = isFile ? 'main must write there, in a volume that both mount' : 'the exporter must answer there';
  if (observation.kind === 'failed') {
    return describe(
      observation.why,
      `${config.front === null ? '' : 'this cannot be served; '}is the URL right?`,
      need,
    );
  }
  if (observation.kind !== 'answered') {
    return isFile
      ? describe('nothing is there', 'not written yet, or not in a volume that both mount?', need)
      : describe('nothing listens there', 'not started yet, or elsewhere?', need);
  }
  const up = exporter.metric(`${config.locust.namespace}_up`);
  // In the exporter's place there is an answer even without Locust.
  if (isLocustPage(config.metricsUrl) && up.kind === 'value' && up.value === 0) {
    const page = 'its page must be there, which --headless switches off';
    return describe('Locust does not answer', 'not started yet, --headless, or elsewhere?', page);
  }
  if (config.front !== null) return 'answers, and can be served';
  const { scrapes } = observation;
  return `HTTP 200, ${scrapes === null ? 'no scrape counter of promhttp: a hold would last for the whole LASTSCRAPE_TTL' : `scrape counter at ${scrapes.finishedCount}`}`;
}

async function describeCondition(
  { metricName, isSignal = false, inspect: inspectCondition, need }: Condition,
  observation: ConditionObservation | undefined,
  isPod: boolean,
): Promise<string> {
  // A metric can be read anywhere, through kubectl port-forward for example.
  const isSeen = metricName !== null && observation !== undefined && observation.kind !== 'unknown';
  if (!isPod && !isSeen) return describeOutside(need);
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
      return observation.why;
    default:
      return isSignal ? inspected('not read') : 'not read';
  }
}

/** What an entry that would fail now may need. */
const FAILS_NOW = {
  none: ', unless there is one by the end',
  unmatched: ', unless there is one by the end',
  several: '; add labels until one matches',
  value: '; if this run is healthy, reverse the comparison: an entry says what must not be true',
} as const;

function describeThreshold(
  { thresholds }: Config,
  index: number,
  exporter: ExporterReading | null,
  isPod: boolean,
): string {
  const observation = exporter?.observation;
  if (observation?.kind !== 'answered') {
    return isPod ? 'not read' : describeOutside('the exporter must serve it until main ends');
  }
  const reading = observation.thresholds?.[index] ?? { kind: 'none' };
  const verdict = judgeNumbers(thresholds.slice(index, index + 1), { ...NO_NUMBERS, readings: [reading] });
  const failed = verdict?.kind === 'failed' ? verdict.failed[0] : undefined;
  const { nearest = [] } = failed ?? {};
  const like =
    nearest.length === 0 ? '' : `; ${reading.kind === 'several' ? 'two are' : 'nearest'}: ${nearest.join(', ')}`;
  const result = failed === undefined ? 'passes' : `fails${FAILS_NOW[reading.kind]}${like}`;
  return `${reading.kind === 'value' ? reading.value : (failed?.seen ?? '')} now: ${result}`;
}

/** The files that a run writes, each with why it cannot be written and what it needs in a pod. */
async function findFileProblems(config: Config, surroundings: Surroundings, signal: AbortSignal) {
  const { terminationLog, tombstonePath, hooksPath } = config;
  const { path, isChosen } = terminationLog;
  const need = isChosen ? 'its folder must be writable' : 'the kubelet mounts it';
  const files = [{ path, problem: surroundings.findMessageProblem(terminationLog), need }];
  for (const { path, need } of [
    { path: tombstonePath, need: 'its folder, the graveyard, must be mounted' },
    { path: hooksPath && join(hooksPath, 'python'), need: 'its folder must be a volume that main mounts too' },
  ]) {
    if (path !== null) files.push({ path, problem: await surroundings.findTombstoneProblem(path, signal), need });
  }
  return files;
}
