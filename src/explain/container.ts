// One container of a pod as kubectl prints it → its facts; and of a lastscrape its settings, read as it does
// itself, and its last report. Pure.

import { at, isObject, type Json, parseObject, toNumber, toObjects, toText, toTexts } from '../base/json.ts';
import { type Environment, readVariable } from '../base/parse.ts';
import { type Kinds, type OwnProcess, readConfig, readFallbackConfig } from '../config/config.ts';
import { parseTarget } from '../config/entries.ts';
import { findProgram } from '../quit/programs.ts';
import type { TargetContext } from '../quit/target-kind.ts';
import type { Since } from './finding.ts';
import { quoteText, readName, readTime } from './words.ts';

export type ContainerFacts = ReturnType<typeof readContainer>;

export function sinceStart({ name, running }: ContainerFacts): Since {
  return { atMs: running?.sinceMs ?? null, what: `${name} was started` };
}

/** The facts of one container. @param done names of regular ones that have ended for good */
export function readContainer(spec: Json, status: Json, isInit: boolean, done: ReadonlySet<string>) {
  const name = readName(spec['name']);
  const state = at(status, 'state');
  const ended = readEnded(state['terminated']);
  const initRole = spec['restartPolicy'] === 'Always' ? 'native' : 'init';
  const role = isInit ? initRole : 'regular';
  const { reason, message } = at(state, 'waiting');
  return {
    name,
    /** `native`: an init container with restartPolicy Always. */
    role,
    spec,
    program: findProgram({
      name,
      image: toText(spec['image']),
      variables: toObjects(spec['env']).map((each) => toText(each['name'])),
    }),
    /** It ended, and will not be started again. */
    isDone: role === 'regular' ? done.has(name) : ended !== null && (role === 'native' || ended.exitCode === 0),
    running: isObject(state['running'])
      ? { sinceMs: readTime(state['running']['startedAt']), hasStarted: status['started'] !== false }
      : null,
    waiting: isObject(state['waiting']) ? { reason: toText(reason), message: toText(message) } : null,
    ended,
    /** The end before this state. */
    lastEnded: readEnded(at(status, 'lastState')['terminated']),
  };
}

function readEnded(value: unknown) {
  if (!isObject(value)) return null;
  return {
    exitCode: toNumber(value['exitCode'], 0),
    reason: readName(value['reason']),
    message: toText(value['message']),
    atMs: readTime(value['finishedAt']),
  };
}

export type LastscrapeFacts = ReturnType<typeof readLastscrape>;

/** Nothing that is read here is opened. */
const PROGRAM: OwnProcess = { pid: 1, kill: refuse, pod: { open: refuse } };
const TARGET_CONTEXT: TargetContext = { ...PROGRAM, env: {}, metricsUrl: new URL('http://localhost') };

/** Reads the settings of the lastscrape in a container. @param metadata of its pod */
export function readLastscrape(container: ContainerFacts, metadata: Json, kinds: Kinds) {
  const values = toObjects(container.spec['env']).map((entry) => ({
    name: toText(entry['name']),
    value: readValue(entry, metadata),
  }));
  const env: Environment = Object.fromEntries(
    values.flatMap(({ name, value }) => (value === null ? [] : [[name, value]])),
  );
  const result = readConfig(env, kinds, PROGRAM);
  const isComplete =
    toObjects(container.spec['envFrom']).length === 0 &&
    values.every(({ name, value }) => value !== null || !/^(?:LASTSCRAPE|LOCUST)_/.test(name));
  return {
    container,
    config: 'config' in result ? result.config : readFallbackConfig(env, result.unreadable, kinds, PROGRAM),
    unreadable: 'config' in result || !isComplete ? [] : result.unreadable,
    /** What is wrong with its settings; empty where the JSON does not show all of them. */
    problems: 'config' in result || !isComplete ? [] : result.problems,
    /** False: a variable comes from a ConfigMap, a Secret or another place that the JSON does not show. */
    isComplete,
    /** What the JSON shows of its environment. */
    env,
    report: readReport(container, kinds),
  };
}

/** Whether the JSON shows what a variable is. */
export function isKnown({ isComplete, env }: LastscrapeFacts, name: string): boolean {
  return isComplete || readVariable(env, name) !== '';
}

/** A variable as it was set, else what it is by default. */
export function showSetting(lastscrape: LastscrapeFacts, name: string, otherwise: readonly string[]): string {
  if (!isKnown(lastscrape, name)) return 'not in the JSON';
  return quoteText(lastscrape.env[name] ?? '') || otherwise.join(', ') || 'none';
}

/** The value of an entry of env; null: the JSON does not show it. */
function readValue(entry: Json, metadata: Json): string | null {
  if (entry['valueFrom'] === undefined) {
    const value = toText(entry['value']);
    // The kubelet puts other variables in.
    return value.includes('$(') ? null : value;
  }
  const path = toText(at(at(entry, 'valueFrom'), 'fieldRef')['fieldPath']);
  const [, field = '', key] = /^metadata\.(\w+)(?:\['([^']+)'\])?$/.exec(path) ?? [];
  if (field === '') return null;
  return toText(key === undefined ? metadata[field] : at(metadata, field)[key]);
}

/** The report of a lastscrape that has ended; of one that was started again, the one before. */
function readReport({ ended, lastEnded }: ContainerFacts, kinds: Kinds) {
  const report = parseObject(ended?.message || lastEnded?.message || '');
  if (report === null || toText(report['outcome']) === '') return null;
  return {
    json: report,
    /** With the hint. */
    summary: [report['summary'], report['hint']].map(toText).filter(Boolean).join('; '),
    outcome: toText(report['outcome']),
    /** Of LASTSCRAPE_FAIL_IF; blank: none. */
    verdict: toText(report['verdict']),
    problems: toTexts(report['problems']),
    /** For how long before main's end changes may be missing; null: not said. */
    mayMissSeconds: 'mayMissSeconds' in report ? toNumber(report['mayMissSeconds'], 0) : null,
    targets: toObjects(report['targets']).map((each) => {
      const read = parseTarget(toText(each['target']), kinds.targets, TARGET_CONTEXT);
      const stops = 'value' in read ? read.value.stops : undefined;
      return { stops, result: toText(each['result']), hint: toText(each['hint']) };
    }),
  };
}

function refuse(): never {
  throw new Error('Bug: explain opens and signals nothing');
}
