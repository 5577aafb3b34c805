// Hides secrets in what a receiver answers, in every notation in which it may repeat them. Pure.

/** Shorter secrets are hidden only as written: in other notations they would match half of a text. */
const SPELLED_MIN_LENGTH = 8;
/** A longer secret would make a regular expression of more than 200 KB. */
const SPELLED_MAX_LENGTH = 4096;
/** How deep notations may be nested, such as a URL in JSON. */
const NESTED_MAX_COUNT = 3;

const NAMED_LETTERS: Readonly<Record<string, string>> = { '&': 'amp', '<': 'lt', '>': 'gt', '"': 'quot', "'": 'apos' };
/** A letter as JSON, a URL or HTML writes it. */
const ESCAPED_LETTER =
  /\\(["\\/])|(?:\\u00|%)([0-9a-f]{2})|&#x0*([0-9a-f]{1,2});|&#0*(\d{1,3});|&(amp|lt|gt|quot|apos);/gi;

/** Replaces each secret by `***`; null if one is left, in nested notations. */
export function hideSecrets(text: string, secrets: readonly string[]): string | null {
  // The longest first: one may be a part of another.
  const sorted = secrets.toSorted((one, other) => other.length - one.length);
  const spelled = sorted.filter(({ length }) => length >= SPELLED_MIN_LENGTH);
  let shown = sorted.reduce((rest, secret) => rest.replaceAll(secret, '***'), text);
  for (const secret of spelled) {
    if (secret.length <= SPELLED_MAX_LENGTH) shown = shown.replace(matchSpellings(secret), '***');
  }
  let decoded = shown;
  for (let count = 0; count < NESTED_MAX_COUNT; count++) {
    decoded = decodeLetters(decoded);
    if (spelled.some((secret) => decoded.includes(secret))) return null;
  }
  return shown;
}

/** Matches a secret, each of its letters in any notation. */
function matchSpellings(secret: string): RegExp {
  const letters = Array.from(secret, (letter) => {
    const code = letter.charCodeAt(0);
    const hex = code.toString(16).padStart(2, '0');
    const plain = `\\u${hex.padStart(4, '0')}`;
    const url = code < 0x80 ? `%${hex}` : encodeURIComponent(letter);
    const named = NAMED_LETTERS[letter] === undefined ? '' : `|&${NAMED_LETTERS[letter]};`;
    return `(?:\\\\u00${hex}|${url}|&#x0*${hex};|&#0*${code};${named}|\\\\?${plain})`;
  });
  return new RegExp(letters.join(''), 'gi');
}

function decodeLetters(text: string): string {
  return text.replace(ESCAPED_LETTER, (_, plain, hex, entityHex, entityCode, named) => {
    if (plain !== undefined) return plain;
    if (named !== undefined)
      return Object.entries(NAMED_LETTERS).find(([, name]) => name === named.toLowerCase())?.[0] ?? '';
    return String.fromCharCode(entityCode === undefined ? Number.parseInt(hex ?? entityHex, 16) : Number(entityCode));
  });
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
