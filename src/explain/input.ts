// What comes through stdin → the pods and Jobs in it, or what is wrong with it and what to do. Pure.

import { at, isObject, type Json, toObjects, toText } from '../base/json.ts';
import { quoteText } from './words.ts';

/** The longest text that is read: about a thousand pods, within the heap that the binary allows itself. */
export const INPUT_MAX_BYTES = 8 * 1024 * 1024;

/** What to type. */
export const USAGE = 'kubectl get pod NAME --output=json | lastscrape explain';

/** What to type to get an answer for --targets. */
export const TARGETS_USAGE = 'curl --silent PROMETHEUS:9090/api/v1/targets > FILE';

/** Splits two documents: kubectl's ends with a brace in the first column, jq's with its line. */
export function splitInput(text: string): readonly [string, string] {
  const end = /^[}\]][ \t\r]*$/m.exec(text) ?? /$/m.exec(text);
  const length = (end?.index ?? 0) + (end?.[0].length ?? 0);
  return [text.slice(0, length), text.slice(length)];
}

/** Objects to explain, and the kinds of the others in a list; or what stdin has, and what it must be. */
type InputResult =
  | { readonly objects: readonly Json[]; readonly others: readonly string[] }
  | { readonly is: string; readonly must: string };

/** Reads a Pod, a Job, or a list of them; never throws. */
export function readInput(text: string): InputResult {
  const trimmed = text.replace(/^\ufeff/, '').trim();
  if (trimmed === '') {
    const must = `a pod's JSON: "${USAGE}" (if kubectl found nothing, its own message says why)`;
    return { is: 'stdin is empty', must };
  }
  if (!/^[{[]/.test(trimmed)) {
    // YAML, a table, what "kubectl describe" prints, or an error of kubectl.
    const is = `it is not JSON (it begins with ${JSON.stringify(quoteText(trimmed, 60))})`;
    return { is, must: `JSON: "${USAGE}"` };
  }
  let value: unknown;
  try {
    value = JSON.parse(trimmed);
  } catch (error) {
    // Cut, or more than one document.
    const is = `it is not JSON (${quoteText(String((error as Error).message), 120)})`;
    return { is, must: `one whole document: "${USAGE}"` };
  }
  return Array.isArray(value) ? readList(value, 'list') : readRoot(value as Json);
}

function readRoot(root: Json): InputResult {
  const kind = toText(root['kind']);
  if (kind === 'Pod' || kind === 'Job') {
    if (isWhole(root)) return { objects: [root], others: [] };
    const field = kind === 'Job' ? 'spec.template' : 'spec.containers';
    return { is: `the ${kind} has no ${field}`, must: `the whole object: "${USAGE}"` };
  }
  if (/^(?:Pod|Job)?List$/.test(kind) && Array.isArray(root['items'])) return readList(root['items'], kind);
  return describeKind(root, kind);
}

/** A list that kubectl prints has objects with a kind; one of the API itself (PodList) has none in them. */
function readList(items: readonly unknown[], listKind: string): InputResult {
  const known = listKind.replace(/List$/, '');
  const objects = items
    .filter(isObject)
    .map((item) => (toText(item['kind']) === '' && /^(?:Pod|Job)$/.test(known) ? { ...item, kind: known } : item));
  if (objects.length === 0) {
    return { is: 'the list is empty', must: 'a list with a pod or a Job: check the namespace and the selector' };
  }
  const wanted = objects.filter((each) => ['Pod', 'Job'].includes(toText(each['kind'])) && isWhole(each));
  const others = objects
    .filter((each) => !wanted.includes(each))
    .map((each) => toText(each['kind']) || 'an object without a kind');
  if (wanted.length > 0) return { objects: wanted, others };
  const kinds = [...new Set(others)].map((each) => quoteText(each, 60)).join(', ');
  return { is: `the list has no pod or Job, but ${kinds}`, must: `a list with one: "${USAGE}"` };
}

/** A pod without containers is a part of one, or made by hand. */
function isWhole(root: Json): boolean {
  const spec = at(root, 'spec');
  return root['kind'] === 'Job' ? isObject(spec['template']) : toObjects(spec['containers']).length > 0;
}

function describeKind(root: Json, kind: string): InputResult {
  if (kind === '') return { is: 'it has no "kind"', must: `the whole object that kubectl prints: "${USAGE}"` };
  if (kind === 'Status') {
    return { is: `it is an error of the API server (${quoteText(toText(root['message']))})`, must: 'a pod or a Job' };
  }
  return { is: `it is a ${quoteText(kind, 60)}`, must: `a Pod, a Job or a List of them: "${USAGE}"` };
}
