// What the lastscrape of a pod was told, and what it told at its end: its environment, and the report in its termination message. Pure.

import { at, isObject, type Json, parseObject, toObjects, toText } from '../base/json.ts';
import { parseDuration } from '../config/values.ts';
import { findAnnotation } from './lines.ts';
import type { ContainerFacts, PodFacts } from './pod.ts';

/** What of the report concerns the pod. */
export type ToldReport = {
  readonly summary: string;
  readonly outcome: string;
  readonly problems: readonly string[];
  readonly targets: readonly { readonly target: string; readonly result: string; readonly hint: string }[];
};

/** Variables whose default is needed here (src/config/variables.ts; compared by the test). */
export const DEFAULTS = {
  LASTSCRAPE_DONE_WHEN: 'metric:locust_up,port:5557',
  LASTSCRAPE_SCRAPES: '1',
  LASTSCRAPE_TTL: '90s',
  LASTSCRAPE_QUIT: 'locust-exporter',
  LASTSCRAPE_QUIT_TIMEOUT: '30s',
  LASTSCRAPE_SETTLE: '3s',
  LASTSCRAPE_START_TIMEOUT: '10m',
  LASTSCRAPE_TERMINATION_GRACE: '25s',
} as const;

export type SettingName = keyof typeof DEFAULTS;

/** A setting as lastscrape got it; null: it comes from where the JSON does not reach. */
export function readSetting(lastscrape: ContainerFacts, pod: PodFacts, name: SettingName): string | null {
  const entry = toObjects(lastscrape.spec['env']).find((each) => each['name'] === name);
  // A ConfigMap or a Secret may have it.
  if (entry === undefined)
    return toObjects(lastscrape.spec['envFrom']).length > 0 ? null : findDefault(lastscrape, pod, name);
  if (entry['valueFrom'] === undefined) return toText(entry['value']).trim() || findDefault(lastscrape, pod, name);
  const annotation = findAnnotation([entry], name);
  if (annotation === null) return null;
  return toText(pod.annotations[annotation]).trim() || findDefault(lastscrape, pod, name);
}

/** The same as milliseconds. */
export function readSettingMs(lastscrape: ContainerFacts, pod: PodFacts, name: SettingName): number | null {
  const text = readSetting(lastscrape, pod, name);
  const parsed = text === null ? null : parseDuration(text);
  return parsed !== null && 'value' in parsed ? parsed.value : null;
}

/** The report of a lastscrape that has ended; of one that was started again, the one before. null: it left none. */
export function readReport({ ended, lastEnded }: ContainerFacts): ToldReport | null {
  const report = parseObject(ended?.message || lastEnded?.message || '');
  if (report === null || toText(report['outcome']) === '') return null;
  return {
    summary: toText(report['summary']),
    outcome: toText(report['outcome']),
    problems: Array.isArray(report['problems']) ? report['problems'].map(toText) : [],
    targets: toObjects(report['targets']).map((each) => ({
      target: toText(each['target']),
      result: toText(each['result']),
      hint: toText(each['hint']),
    })),
  };
}

/** What is stopped depends on other variables where QUIT is not set. */
function findDefault(lastscrape: ContainerFacts, pod: PodFacts, name: SettingName): string {
  if (name !== 'LASTSCRAPE_QUIT') return DEFAULTS[name];
  const doneWhen = readSetting(lastscrape, pod, 'LASTSCRAPE_DONE_WHEN') ?? '';
  const has = (variable: string) =>
    toObjects(lastscrape.spec['env']).some((each) => each['name'] === variable && isSet(each));
  const isAlone =
    doneWhen.includes('sigterm') ||
    has('LOCUST_EXPORTER_URI') ||
    (has('LASTSCRAPE_FRONT') && !doneWhen.includes('metric:locust_up'));
  return isAlone ? 'none' : DEFAULTS[name];
}

function isSet(entry: Json): boolean {
  return toText(entry['value']) !== '' || isObject(at(entry, 'valueFrom')['secretKeyRef']);
}
