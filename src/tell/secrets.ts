// Hides secrets in what a receiver answers: where they stand as written; an answer that may repeat one in
// another notation is not shown. Pure.

/** Shorter secrets are looked for only as written: in other notations they would match half of a text. */
const SPELLED_MIN_LENGTH = 8;
/** How deep notations may be nested, such as a URL in JSON. Each takes as long as reading the text. */
const NESTED_MAX_COUNT = 8;
/** How much of a secret may stand at the end of a text that is cut. */
const PART_MAX_LENGTH = 3;

const NAMED_LETTERS: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'" };
/** A letter as JSON, a URL (UTF-8, else Latin-1) or HTML writes it. At most one alternative matches. */
const ESCAPED_LETTER = new RegExp(
  [
    String.raw`\\(["\\/])`,
    String.raw`\\u([0-9a-f]{4})`,
    '((?:%[cd][0-9a-f]|%e[0-9a-f]%[89ab][0-9a-f]|%f[0-7](?:%[89ab][0-9a-f]){2})%[89ab][0-9a-f])',
    '%([0-9a-f]{2})',
    '&#x0*([0-9a-f]{1,6});',
    String.raw`&#0*(\d{1,7});`,
    '&(amp|lt|gt|quot|apos);',
  ].join('|'),
  'gi',
);
const CODE_POINT_MAX = 0x10ffff;
/** The start of a letter that is escaped, at the end of a text that is cut. */
const CUT_LETTER = /(?:\\(?:u[\da-f]{0,3})?|%[\da-f]?|&(?:[a-z]{0,4}|#x?[\da-f]{0,9}))$/;

/**
 * The text with `***` for each secret as written; null: it must not be shown. `isCut`: it may end within one.
 */
export function hideSecrets(text: string, secrets: readonly string[], isCut = false): string | null {
  // What only looks like a notation in a secret is read like one in the text.
  const spelled = new Set(secrets.filter(({ length }) => length >= SPELLED_MIN_LENGTH));
  // A short one may be a part of a long one in another notation.
  let read = hideAll(text, [...spelled]);
  const shown = hideAll(read, secrets);
  for (let count = 0; count <= NESTED_MAX_COUNT && spelled.size > 0; count++) {
    if ([...spelled].some((secret) => read.includes(secret) || (isCut && endsWithStart(read, secret)))) return null;
    const next = decodeLetters(read);
    if (next === read) return shown;
    read = next;
    for (const secret of [...spelled]) {
      const decoded = decodeLetters(secret);
      if (decoded.length >= SPELLED_MIN_LENGTH) spelled.add(decoded);
    }
  }
  return spelled.size === 0 ? shown : null;
}

/** The longest first: one may be a part of another. */
function hideAll(text: string, secrets: readonly string[]): string {
  const longestFirst = secrets.toSorted((one, other) => other.length - one.length);
  return longestFirst.reduce((rest, secret) => rest.replaceAll(secret, '***'), text);
}

function endsWithStart(text: string, secret: string): boolean {
  const whole = text.replace(CUT_LETTER, '');
  for (let length = Math.min(whole.length, secret.length - 1); length > PART_MAX_LENGTH; length--) {
    if (whole.endsWith(secret.slice(0, length))) return true;
  }
  return false;
}

/** Reads each letter that is escaped, once. */
function decodeLetters(text: string): string {
  return text.replace(ESCAPED_LETTER, (...match: string[]) => readLetter(match));
}

function readLetter([written = '', plain, unit, utf8, byte, hex, code, named]: readonly string[]): string {
  if (plain !== undefined) return plain;
  if (utf8 !== undefined) return decodePart(utf8);
  if (named !== undefined) return NAMED_LETTERS[named.toLowerCase()] as string;
  const point = code === undefined ? Number.parseInt((unit ?? byte ?? hex) as string, 16) : Number(code);
  return point > CODE_POINT_MAX ? written : String.fromCodePoint(point);
}

/** The query and, with `isPathSecret`, the path; and their parts, as written and decoded. */
export function listUrlSecrets(url: URL, isPathSecret: boolean): readonly string[] {
  const written = url.search
    .slice(1)
    .split('&')
    .map((part) => part.slice(part.indexOf('=') + 1));
  const query = [url.search, url.search.slice(1), ...written, ...url.searchParams.values()];
  const parts = url.pathname.split('/').filter((part) => part.length >= 8);
  const path = isPathSecret ? [url.pathname, ...parts, ...parts.map(decodePart)] : [];
  return [...query, ...path].filter((text) => text.length >= 4);
}

function decodePart(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
