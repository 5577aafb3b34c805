// Hides secrets in what a receiver answers, in every notation in which it may repeat them. Pure.

/** Shorter secrets are hidden only as written: in other notations they would match half of a text. */
const SPELLED_MIN_LENGTH = 8;
/** How deep notations may be nested, such as a URL in JSON. Each takes as long as reading the text. */
const NESTED_MAX_COUNT = 8;

const NAMED_LETTERS: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'" };
/** A letter as JSON, a URL (UTF-8, else Latin-1) or HTML writes it. At most one alternative matches. */
const ESCAPED_LETTER = new RegExp(
  [
    String.raw`\\(["\\/])`,
    String.raw`\\u(d[89ab][0-9a-f]{2})\\u(d[c-f][0-9a-f]{2})`,
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

/** A text, and of each of its 16-bit units, and of its end, where that stands in the text as it came. */
type View = { readonly text: string; readonly at: readonly number[] };
type Range = readonly [from: number, to: number];

/** How much of a secret may stand at the end of a text that is cut. */
const PART_MAX_LENGTH = 3;
/** The start of a letter that is escaped. */
const CUT_LETTER = /(?:\\(?:u[\da-f]{0,3})?|%[\da-f]?|&(?:[a-z]{0,4}|#x?[\da-f]{0,9}))$/;

/**
 * Replaces each secret by `***`; null if notations are nested too deep to know whether one is left. `isCut`:
 * the text may end within one.
 */
export function hideSecrets(text: string, secrets: readonly string[], isCut = false): string | null {
  const found = secrets.flatMap((secret) => findAll(text, secret));
  const at = Array.from({ length: text.length + 1 }, (_, index) => index);
  let view: View = { text, at };
  // What only looks like a notation in a secret is read like one in the text.
  const spelled = new Set(secrets.filter(({ length }) => length >= SPELLED_MIN_LENGTH).map(foldCase));
  for (let count = 0; count <= NESTED_MAX_COUNT && spelled.size > 0; count++) {
    const folded = foldCase(view.text);
    for (const secret of spelled) {
      const ranges = isCut ? [...findAll(folded, secret), ...findStart(folded, secret)] : findAll(folded, secret);
      for (const [from, to] of ranges) found.push([view.at[from] as number, view.at[to] as number]);
    }
    const next = decodeLetters(view);
    if (next.text === view.text) break;
    if (count === NESTED_MAX_COUNT) return null;
    view = next;
    for (const secret of [...spelled]) {
      const decoded = foldCase(decodeLetters({ text: secret, at: [] }).text);
      if (decoded.length >= SPELLED_MIN_LENGTH) spelled.add(decoded);
    }
  }
  return replaceRanges(text, found);
}

/** Letters of ASCII only: others may change the length. */
function foldCase(text: string): string {
  return text.replace(/[A-Z]+/g, (letters) => letters.toLowerCase());
}

function findAll(text: string, part: string): readonly Range[] {
  const ranges: Range[] = [];
  // Not by a regular expression: V8 refuses some of 32,768 letters, and a header may have more.
  for (let from = text.indexOf(part); from >= 0; from = text.indexOf(part, from + part.length)) {
    ranges.push([from, from + part.length]);
  }
  return ranges;
}

/** The start of `part` that the text ends with. */
function findStart(text: string, part: string): readonly Range[] {
  const whole = text.replace(CUT_LETTER, '');
  for (let length = Math.min(whole.length, part.length - 1); length > PART_MAX_LENGTH; length--) {
    if (whole.endsWith(part.slice(0, length))) return [[whole.length - length, text.length]];
  }
  return [];
}

/** Reads each letter that is escaped, once. */
function decodeLetters({ text, at }: View): View {
  const decoded: string[] = [];
  const decodedAt: number[] = [];
  let from = 0;
  for (const match of text.matchAll(ESCAPED_LETTER)) {
    const { index } = match;
    const letter = readLetter(match);
    decoded.push(text.slice(from, index), letter);
    for (; from < index; from++) decodedAt.push(at[from] as number);
    for (let unit = 0; unit < letter.length; unit++) decodedAt.push(at[index] as number);
    from = index + match[0].length;
  }
  decoded.push(text.slice(from));
  for (; from <= text.length; from++) decodedAt.push(at[from] as number);
  return { text: decoded.join(''), at: decodedAt };
}

function readLetter([written, plain, high, low, unit, utf8, byte, hex, code, named]: RegExpExecArray): string {
  if (plain !== undefined) return plain;
  if (high !== undefined) return String.fromCharCode(Number.parseInt(high, 16), Number.parseInt(low as string, 16));
  if (utf8 !== undefined) return decodePart(utf8);
  if (named !== undefined) return NAMED_LETTERS[named.toLowerCase()] as string;
  const point = code === undefined ? Number.parseInt((unit ?? byte ?? hex) as string, 16) : Number(code);
  return point > CODE_POINT_MAX ? written : String.fromCodePoint(point);
}

function replaceRanges(text: string, ranges: readonly Range[]): string {
  let shown = '';
  let shownTo = 0;
  for (const [from, to] of ranges.toSorted((one, other) => one[0] - other[0] || other[1] - one[1])) {
    if (from >= shownTo) shown += `${text.slice(shownTo, from)}***`;
    shownTo = Math.max(shownTo, to);
  }
  return shown + text.slice(shownTo);
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
