// Keeps the few wanted sample lines of an exposition, fed in chunks of any size; scans the bytes of all others once.
// Knows where lines begin and end and what name they bear, nothing more. Pure; holds one line at most.
//
// Lines end at line feed only, and a name is matched at a line's start only: request names may contain CR, NUL, U+2028 and text
// that looks like a sample (fixtures/recordings, 13-odd-names).

/** A longer line is skipped: an odd error text must not cost memory. */
export const LINE_MAX_BYTES = 64 * 1024;

/** Lines to keep. */
export type WantedLine = {
  /** The metric's name, or with `isPrefix` how the name begins. */
  readonly name: string;
  readonly isPrefix: boolean;
  /**
   * What the labels must begin with, blanks aside, each from `{` on, without blanks of its own; empty: any labels or none.
   * A line that is kept by this may still have other labels: blanks inside of quotes are skipped as well.
   */
  readonly labels: readonly string[];
  /** Texts that the line must have somewhere, byte by byte. Default: none. */
  readonly contains?: readonly string[];
  /** Called for each such line that is longer than LINE_MAX_BYTES: its rest is not known. */
  readonly onTooLong?: () => void;
  /** Called with the line, blanks normalised, without its end; answering false: no more of these. */
  readonly onLine: (line: string) => boolean;
};

export type SampleFilter = {
  readonly write: (chunk: Uint8Array) => void;
  /** The body has ended as HTTP says: what follows the last line feed is a whole line. */
  readonly end: () => void;
  /** Wanted lines that were longer than LINE_MAX_BYTES. */
  readonly tooLongCount: number;
};

const LINE_FEED = 0x0a;
const SPACE = 0x20;
const TAB = 0x09;
const OPENING_BRACE = 0x7b;

type Pattern = {
  readonly wanted: WantedLine;
  readonly name: Uint8Array;
  /** The name behind a line feed: what is searched for. */
  readonly start: Uint8Array;
  readonly labels: readonly Uint8Array[];
  readonly contains: readonly Buffer[];
  isEnough: boolean;
};

/** Opens a filter for one body. */
export function openSampleFilter(wanted: readonly WantedLine[]): SampleFilter {
  const encoder = new TextEncoder();
  const decoder = new TextDecoder();
  const patterns: readonly Pattern[] = wanted.map((each) => ({
    wanted: each,
    name: encoder.encode(each.name),
    start: encoder.encode(`\n${each.name}`),
    labels: each.labels.map((text) => encoder.encode(text)),
    contains: (each.contains ?? []).map((text) => Buffer.from(text)),
    isEnough: false,
  }));
  // The line that the last chunk did not end; null: nobody wants it.
  let pending: Uint8Array | null = new Uint8Array(0);
  let tooLongCount = 0;

  function keep(line: Uint8Array, pattern: Pattern): void {
    if (pattern.isEnough || !isWanted(line, pattern)) return;
    if (line.length > LINE_MAX_BYTES) {
      tooLongCount++;
      pattern.wanted.onTooLong?.();
    } else if (pattern.contains.every((text) => includes(line, text)))
      pattern.isEnough = !pattern.wanted.onLine(normaliseBlanks(decoder.decode(line)));
  }
  /** Whether a line that begins like this may become a wanted one. */
  function mayBeWanted(start: Uint8Array): boolean {
    return patterns.some(({ name, isEnough }) => {
      if (isEnough) return false;
      return start.length < name.length ? startsWith(name, start) : startsWith(start, name);
    });
  }
  /** Every whole line behind a line feed of this chunk; the search itself is the buffer's own, so that other lines cost no step here. */
  function keepWithin(chunk: Buffer, pattern: Pattern): void {
    for (
      let at = chunk.indexOf(pattern.start);
      at !== -1 && !pattern.isEnough;
      at = chunk.indexOf(pattern.start, at + 1)
    ) {
      const end = chunk.indexOf(LINE_FEED, at + 1);
      if (end === -1) return;
      keep(chunk.subarray(at + 1, end), pattern);
    }
  }
  /** The same where a line begins with blanks, which no known exporter writes: each line in turn, so that their order is kept. */
  function keepEach(chunk: Buffer, from: number, to: number): void {
    for (let at = from; at < to; ) {
      const end = chunk.indexOf(LINE_FEED, at);
      const line = withoutLeadingBlanks(chunk.subarray(at, end));
      for (const pattern of patterns) keep(line, pattern);
      at = end + 1;
    }
  }
  function extendPending(piece: Uint8Array): void {
    if (pending === null || pending.length > LINE_MAX_BYTES) return;
    const line = joined(pending, pending.length === 0 ? withoutLeadingBlanks(piece) : piece);
    pending = mayBeWanted(line) ? line : null;
  }
  function keepPending(): void {
    if (pending !== null) for (const pattern of patterns) keep(pending, pattern);
  }

  return {
    get tooLongCount() {
      return tooLongCount;
    },
    write(bytes) {
      const chunk = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
      const first = chunk.indexOf(LINE_FEED);
      if (first === -1) {
        extendPending(chunk);
        return;
      }
      extendPending(chunk.subarray(0, first));
      keepPending();
      const last = chunk.lastIndexOf(LINE_FEED);
      if (chunk.includes('\n ') || chunk.includes('\n\t')) keepEach(chunk, first + 1, last + 1);
      else for (const pattern of patterns) keepWithin(chunk, pattern);
      pending = new Uint8Array(0);
      extendPending(chunk.subarray(last + 1));
    },
    end() {
      keepPending();
      pending = null;
    },
  };
}

function isWanted(line: Uint8Array, { wanted, name, labels }: Pattern): boolean {
  if (!startsWith(line, name)) return false;
  let at = name.length;
  if (wanted.isPrefix) while (isNameByte(line[at])) at++;
  else if (isNameByte(line[at])) return false;
  return labels.length === 0 || labels.some((pattern) => startsWithoutBlanks(line, at, pattern));
}

function includes({ buffer, byteOffset, length }: Uint8Array, text: Buffer): boolean {
  return Buffer.from(buffer, byteOffset, length).includes(text);
}

function startsWith(line: Uint8Array, start: Uint8Array): boolean {
  if (line.length < start.length) return false;
  let at = 0;
  while (at < start.length && line[at] === start[at]) at++;
  return at === start.length;
}

function startsWithoutBlanks(line: Uint8Array, from: number, start: Uint8Array): boolean {
  let at = from;
  for (const byte of start) {
    while (line[at] === SPACE || line[at] === TAB) at++;
    if (line[at++] !== byte) return false;
  }
  return true;
}

function withoutLeadingBlanks(line: Uint8Array): Uint8Array {
  let at = 0;
  while (line[at] === SPACE || line[at] === TAB) at++;
  return line.subarray(at);
}

/** `[a-zA-Z0-9_:]`, as the text format's metric names go on. */
function isNameByte(byte: number | undefined): boolean {
  if (byte === undefined || byte >= OPENING_BRACE) return false;
  return byte >= 0x61 || (byte >= 0x41 && byte <= 0x5a) || (byte >= 0x30 && byte <= 0x3a) || byte === 0x5f;
}

function joined(first: Uint8Array, second: Uint8Array): Uint8Array {
  // One byte over the limit is enough to know that the line is too long.
  const more = second.subarray(0, Math.max(0, LINE_MAX_BYTES + 1 - first.length));
  const both = new Uint8Array(first.length + more.length);
  both.set(first);
  both.set(more, first.length);
  return both;
}

/** Next to these a blank inside of braces means nothing. */
const SIGNS = '{},=';

/**
 * Drops the blanks between labels and round `=`, on which parse-prometheus-text-format 1.1.1 throws, makes one space of the
 * others, and drops those at the end (a CR before the line feed among them). What stands in quotes stays as it is, and a blank
 * inside of a label's name stays a blank: `{co de="200"}` is no `{code="200"}`.
 */
function normaliseBlanks(line: string): string {
  let text = '';
  let last = '';
  let isBlankBefore = false;
  let isQuoted = false;
  let isInBraces = false;
  for (let at = 0; at < line.length; at++) {
    const letter = line[at] as string;
    if (isQuoted) {
      text += letter;
      if (letter === '\\') text += line[++at] ?? '';
      else if (letter === '"') isQuoted = false;
    } else if (letter === ' ' || letter === '\t' || (letter === '\r' && at === line.length - 1)) {
      isBlankBefore = true;
    } else {
      const isIdle = isInBraces ? SIGNS.includes(last) || SIGNS.includes(letter) : letter === '{';
      if (isBlankBefore && !isIdle) text += ' ';
      isBlankBefore = false;
      if (letter === '{') isInBraces = true;
      else if (letter === '}') isInBraces = false;
      else if (letter === '"') isQuoted = isInBraces;
      text += letter;
      last = letter;
    }
  }
  return text;
}
