// The lastscrape of a pod: its settings, read as it reads them itself, and its last report. Pure.

import { at, type Json, parseObject, toObjects, toText, toTexts } from '../base/json.ts';
import { type Config, type Kinds, type Program, readConfig, readFallbackConfig } from '../config/config.ts';
import { parseTarget } from '../config/entries.ts';
import type { Target, TargetContext } from '../quit/target-kind.ts';
import type { ContainerFacts } from './container.ts';
import { quoteText } from './words.ts';

/** A lastscrape in a pod. */
export type LastscrapeFacts = {
  readonly container: ContainerFacts;
  readonly config: Config;
  /** Variables that it cannot read. */
  readonly unreadable: readonly string[];
  /** False: a variable comes from a ConfigMap, a Secret or another place that the JSON does not show. */
  readonly isComplete: boolean;
  /** What the JSON shows of its environment. */
  readonly env: Readonly<Record<string, string>>;
  /** null: it left none. */
  readonly report: ReadReport | null;
};

/** What of the report concerns the pod. */
export type ReadReport = {
  readonly summary: string;
  readonly outcome: string;
  /** LASTSCRAPE_FAIL_IF failed the run. */
  readonly isFailed: boolean;
  readonly problems: readonly string[];
  readonly targets: readonly ReadTarget[];
};

/** An entry of LASTSCRAPE_QUIT in the report. */
export type ReadTarget = Pick<Target, 'stops'> & { readonly result: string; readonly hint: string };

/** Nothing that is read here is opened. */
const PROGRAM: Program = { pid: 1, kill: refuse, pod: { open: refuse, close: refuse } };
const TARGET_CONTEXT: TargetContext = { ...PROGRAM, env: {}, metricsUrl: new URL('http://localhost') };

/** Reads the settings of the lastscrape in a container. @param metadata of its pod */
export function readLastscrape(container: ContainerFacts, metadata: Json, kinds: Kinds): LastscrapeFacts {
  const values = toObjects(container.spec['env']).map((entry) => ({
    name: toText(entry['name']),
    value: readValue(entry, metadata),
  }));
  const env = Object.fromEntries(values.flatMap(({ name, value }) => (value === null ? [] : [[name, value]])));
  const result = readConfig(env, kinds, PROGRAM);
  const isComplete =
    toObjects(container.spec['envFrom']).length === 0 &&
    values.every(({ name, value }) => value !== null || !/^(?:LASTSCRAPE|LOCUST)_/.test(name));
  return {
    container,
    config: 'config' in result ? result.config : readFallbackConfig(env, result.unreadable, kinds, PROGRAM),
    unreadable: 'config' in result || !isComplete ? [] : result.unreadable,
    isComplete,
    env,
    report: readReport(container, kinds),
  };
}

/** Whether the JSON shows what a variable is. */
export function isKnown({ isComplete, env }: LastscrapeFacts, name: string): boolean {
  return isComplete || (env[name] ?? '').trim() !== '';
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
function readReport({ ended, lastEnded }: ContainerFacts, kinds: Kinds): ReadReport | null {
  const report = parseObject(ended?.message || lastEnded?.message || '');
  if (report === null || toText(report['outcome']) === '') return null;
  return {
    summary: toText(report['summary']),
    outcome: toText(report['outcome']),
    isFailed: report['verdict'] === 'failed',
    problems: toTexts(report['problems']),
    targets: toObjects(report['targets']).map((each) => {
      const read = parseTarget(toText(each['target']), kinds.targets, TARGET_CONTEXT);
      const { stops } = 'value' in read ? read.value : {};
      return { ...(stops && { stops }), result: toText(each['result']), hint: toText(each['hint']) };
    }),
  };
}

function refuse(): never {
  throw new Error('Bug: explain opens and signals nothing');
}
