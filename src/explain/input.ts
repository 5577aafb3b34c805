// What comes through stdin → the pods and Jobs in it, or what is wrong with it and what to do. Pure.

import { at, isObject, type Json, toObjects, toText } from '../base/json.ts';
import { quoteShell, quoteText } from './words.ts';

/** The longest text that is read: a list of a thousand pods or so, within the heap that the binary allows itself. */
export const INPUT_MAX_BYTES = 8 * 1024 * 1024;

/** What is to be typed. */
export const USAGE = 'kubectl get pod NAME --output=json | lastscrape explain';

/** Objects to explain, or why there are none. */
export type InputResult =
  | {
      readonly objects: readonly Json[] /** Of a list: what is neither pod nor Job, by kind. */;
      readonly others: readonly string[];
    }
  | { readonly problem: string };

/** Reads a Pod, a Job, or a list of them; never throws. */
export function readInput(text: string): InputResult {
  const trimmed = text.replace(/^\ufeff/, '').trim();
  if (trimmed === '') {
    return problem(
      'stdin is empty',
      `must be a pod's JSON: "${USAGE}" (where kubectl found nothing, its own message tells why)`,
    );
  }
  if (!/^[{[]/.test(trimmed)) return describeOther(trimmed);
  let value: unknown;
  try {
    value = JSON.parse(trimmed);
  } catch (error) {
    const isCut = !/[}\]]$/.test(trimmed);
    return problem(
      isCut
        ? `it ends after ${trimmed.length} characters in the midst of the JSON`
        : `it is no JSON (${quoteText(String((error as Error).message), 120)})`,
      isCut ? `must be the whole of it: "${USAGE}"` : `must be one document of JSON: "${USAGE}"`,
    );
  }
  return Array.isArray(value) ? readList(value, 'list') : readRoot(value as Json);
}

function readRoot(root: Json): InputResult {
  const kind = toText(root['kind']);
  if (kind === 'Pod' || kind === 'Job') return isWhole(root) ? { objects: [root], others: [] } : describePart(kind);
  if (/^(?:Pod|Job)?List$/.test(kind) && Array.isArray(root['items'])) return readList(root['items'], kind);
  return describeKind(root, kind);
}

/** A list that kubectl prints has objects with a kind; one of the API itself (PodList) has none in them. */
function readList(items: readonly unknown[], kind: string): InputResult {
  const known = kind.replace(/List$/, '');
  const objects = items
    .filter(isObject)
    .map((item) => (toText(item['kind']) === '' && /^(?:Pod|Job)$/.test(known) ? { ...item, kind: known } : item));
  if (objects.length === 0) {
    return problem('the list is empty', 'must have a pod or a Job: are the namespace and the selector right?');
  }
  const wanted = objects.filter((each) => ['Pod', 'Job'].includes(toText(each['kind'])) && isWhole(each));
  const others = objects
    .filter((each) => !wanted.includes(each))
    .map((each) => toText(each['kind']) || 'an object without a kind');
  if (wanted.length > 0) return { objects: wanted, others };
  return problem(
    `the list has no pod or Job, but ${[...new Set(others)].map((each) => quoteText(each, 60)).join(', ')}`,
    `must have one: "${USAGE}"`,
  );
}

/** A pod without containers is a part of one, or made by hand. */
function isWhole(root: Json): boolean {
  const spec = at(root, 'spec');
  return root['kind'] === 'Job' ? isObject(spec['template']) : toObjects(spec['containers']).length > 0;
}

function describePart(kind: string): InputResult {
  return problem(
    `the ${kind} has no ${kind === 'Job' ? 'spec.template' : 'spec.containers'}`,
    `must be the whole object: "${USAGE}"`,
  );
}

function describeKind(root: Json, kind: string): InputResult {
  const name = toText(at(root, 'metadata')['name']);
  if (kind === '') return problem('it has no "kind"', `must be the whole object that kubectl prints: "${USAGE}"`);
  if (kind === 'Status')
    return problem(
      `it is an error of the API server (${quoteText(toText(root['message']))})`,
      'must be a pod or a Job',
    );
  if (kind === 'CronJob') {
    return problem(
      `it is a CronJob`,
      `must be a Job that it made, or a pod: "kubectl get jobs --output=json | lastscrape explain"`,
    );
  }
  if (kind === 'LocustTest') {
    const selector = quoteShell(`performance-test-pod-name=${name}-master`);
    return problem(
      'it is a LocustTest',
      `must be its pod: "kubectl get pods --selector=${selector} --output=json | lastscrape explain"`,
    );
  }
  const labels = Object.entries(at(at(at(root, 'spec'), 'selector'), 'matchLabels')).map(
    ([key, value]) => `${key}=${toText(value)}`,
  );
  const command =
    labels.length === 0
      ? USAGE
      : `kubectl get pods --selector=${quoteShell(labels.join())} --output=json | lastscrape explain`;
  return problem(`it is a ${quoteText(kind, 60)}`, `must be a Pod, a Job or a List of them: "${quoteText(command)}"`);
}

/** What people pipe by mistake. */
function describeOther(text: string): InputResult {
  const json = `must be JSON: "${USAGE}"`;
  if (/^NAME\s/.test(text)) return problem("it is kubectl's table", json);
  if (/^(?:Name|Namespace):\s/.test(text)) return problem('it is what "kubectl describe" prints', json);
  if (/^(?:---\s|#|%YAML|apiVersion:|kind:|metadata:|items:|spec:)/.test(text)) return problem('it is YAML', json);
  if (/^(?:Error from server|error:|No resources found)/i.test(text))
    return problem(`it is an error of kubectl (${quoteText(text, 120)})`, json);
  return problem(`it is no JSON (it begins with ${JSON.stringify(quoteText(text, 30))})`, json);
}

function problem(is: string, must: string): InputResult {
  return { problem: `Cannot explain what stdin has: ${is}; ${must}` };
}
