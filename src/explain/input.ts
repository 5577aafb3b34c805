// What comes through stdin → the pods and Jobs in it, or what is wrong with it. Pure.

import { at, isObject, type Json, toObjects, toText } from '../base/json.ts';
import { orNull } from '../base/parse.ts';
import { quoteText } from './words.ts';

/** The longest text that is read: about a thousand pods, within the heap that the binary allows itself. */
export const INPUT_MAX_BYTES = 8 * 1024 * 1024;

/** What to type. */
export const USAGE = 'kubectl get pod NAME --output=json | lastscrape explain';

/** Splits two documents: kubectl's ends with a brace in the first column, jq's with its line. */
export function splitInput(text: string): readonly [string, string] {
  const end = /^[}\]][ \t\r]*$/m.exec(text) ?? /$/m.exec(text);
  const length = (end?.index ?? 0) + (end?.[0].length ?? 0);
  return [text.slice(0, length), text.slice(length)];
}

/** Objects to explain, and the kinds of the others in a list; or what is wrong with stdin. */
type InputResult = { readonly objects: readonly Json[]; readonly others: readonly string[] } | { readonly is: string };

/** Reads a Pod, a Job, or a list of them; never throws. */
export function readInput(text: string): InputResult {
  const trimmed = text.replace(/^\ufeff/, '').trim();
  if (trimmed === '') return { is: 'it is empty (if kubectl found nothing, its own message says why)' };
  const root: unknown = orNull(() => JSON.parse(trimmed));
  // YAML, a table, an error of kubectl; or JSON that is cut, or more than one document.
  if (root === null)
    return { is: `it is not one whole JSON document (it begins with ${JSON.stringify(quoteText(trimmed, 60))})` };
  const objects = listObjects(root);
  const wanted = objects.filter(isWhole);
  const others = objects
    .filter((each) => !wanted.includes(each))
    .map((each) => toText(each['kind']) || 'an object without a kind');
  if (wanted.length > 0) return { objects: wanted, others };
  const found = [...new Set(others)].map((each) => quoteText(each, 60)).join(', ') || 'nothing';
  // The API server's own words, of its errors.
  const message = isObject(root) ? quoteText(toText(root['message'])) : '';
  return { is: `it has no whole pod or Job, but ${found}${message === '' ? '' : ` (${message})`}` };
}

/** A list that kubectl prints has objects with a kind; one of the API itself (PodList) has none in them. */
function listObjects(root: unknown): readonly Json[] {
  if (!isObject(root)) return toObjects(root);
  const [, kind] = /^(.*)List$/.exec(toText(root['kind'])) ?? [];
  return kind === undefined ? [root] : toObjects(root['items']).map((item) => ({ kind, ...item }));
}

/** A pod without containers is a part of one, or made by hand. */
function isWhole(root: Json): boolean {
  const spec = at(root, 'spec');
  if (root['kind'] === 'Job') return isObject(spec['template']);
  return root['kind'] === 'Pod' && toObjects(spec['containers']).length > 0;
}
