// Hides secrets in what a receiver answers: where they stand as written; an answer that may repeat one in
// another notation is not shown. Pure.

import { orNull } from '../base/parse.ts';

/** Of shorter secrets, and shorter parts, there are too many by chance. */
const LONG_MIN_LENGTH = 8;
const RUN_MIN_LENGTH = 5;
/** How much of a secret may stand at the end of a text that is cut. */
const PART_MAX_LENGTH = 3;

/**
 * The text with `***` for each secret as written; null: it must not be shown. `isCut`: it may end within one.
 */
export function hideSecrets(text: string, secrets: readonly string[], isCut = false): string | null {
  const long = secrets.filter(({ length }) => length >= LONG_MIN_LENGTH);
  // A short one may be a part of a long one.
  const rest = hideAll(text, long);
  const isRepeated = long.flatMap(findRun).some((run) => rest.includes(run));
  return isRepeated || (isCut && long.some((secret) => endsWithStart(rest, secret))) ? null : hideAll(text, secrets);
}

/** The longest part that JSON, a URL and HTML write as it is; none where that is all of it, or too short. */
function findRun(secret: string): readonly string[] {
  const [longest = ''] = secret.split(/[^A-Za-z0-9_.-]+/).toSorted((one, other) => other.length - one.length);
  return longest.length < RUN_MIN_LENGTH || longest === secret ? [] : [longest];
}

/** The longest first: one may be a part of another. */
function hideAll(text: string, secrets: readonly string[]): string {
  const longestFirst = secrets.toSorted((one, other) => other.length - one.length);
  return longestFirst.reduce((rest, secret) => rest.replaceAll(secret, '***'), text);
}

function endsWithStart(text: string, secret: string): boolean {
  for (let length = Math.min(text.length, secret.length - 1); length > PART_MAX_LENGTH; length--) {
    if (text.endsWith(secret.slice(0, length))) return true;
  }
  return false;
}

/** The query and, with `isPathSecret`, the path; and their parts, as written and decoded. */
export function listUrlSecrets(url: URL, isPathSecret: boolean): readonly string[] {
  const written = url.search
    .slice(1)
    .split('&')
    .map((part) => part.slice(part.indexOf('=') + 1));
  const query = [url.search, url.search.slice(1), ...written, ...url.searchParams.values()];
  const parts = url.pathname.split('/').filter((part) => part.length >= 8);
  const decoded = parts.map((part) => orNull(() => decodeURIComponent(part)) ?? part);
  const path = isPathSecret ? [url.pathname, ...parts, ...decoded] : [];
  return [...query, ...path].filter((text) => text.length >= 4);
}
