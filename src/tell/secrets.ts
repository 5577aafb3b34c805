// Hides secrets in what a receiver answers: where they stand as written; an answer that may repeat one in
// another notation is not shown. Pure.

/** Of shorter parts there are too many by chance. */
const RUN_MIN_LENGTH = 5;

/** The text with `***` for each secret as written; null: it must not be shown. */
export function hideSecrets(text: string, secrets: readonly string[]): string | null {
  // The longest first: another one may be a part of it.
  const longestFirst = secrets.toSorted((one, other) => other.length - one.length);
  const rest = longestFirst.reduce((left, secret) => left.replaceAll(secret, '***'), text);
  return secrets.some((secret) => rest.includes(findRun(secret))) ? null : rest;
}

/** The longest part that JSON, a URL and HTML write as it is; where that is short, all of it. */
function findRun(secret: string): string {
  const [longest = ''] = secret.split(/[^A-Za-z0-9_.-]+/).toSorted((one, other) => other.length - one.length);
  return longest.length < RUN_MIN_LENGTH ? secret : longest;
}

/** The values of the query, also those without a name, and the parts of the path, a secret of chat tools. */
export function listUrlSecrets({ searchParams, pathname }: URL): readonly string[] {
  const query = [...searchParams].map(([name, value]) => value || name);
  const path = pathname.split('/').filter(({ length }) => length >= 8);
  return [...query, ...path].filter(({ length }) => length >= 4);
}
