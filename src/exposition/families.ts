// Which families of an exposition have samples, and an exposition without some of its families.
// Goes by names at the start of lines only; whether a line can be read is not asked. Pure; holds one line at most.
//
// A family is what `# TYPE name` announces: `name_bucket`, `name_sum` and `name_count` belong to the histogram or summary `name`
// (Prometheus documentation, "Exposition formats"), `name_created` too; any other sample is of the family of its own name.

import { openLineCutter } from './line-cutter.ts';

export type FamilyScan = {
  /** Takes the next piece of the body, of any size. */
  readonly write: (chunk: Uint8Array) => void;
  /** The names of the families that have a sample; the body has ended. */
  readonly end: () => ReadonlySet<string>;
};

export type FamilyFilter = {
  /** Takes the next piece of the body, of any size, and returns what is kept of the lines that have ended. */
  readonly write: (chunk: Uint8Array) => readonly Uint8Array[];
  /** The body has ended: what is kept of its last line. */
  readonly end: () => readonly Uint8Array[];
};

export type FilterOptions = {
  /** Whether blank lines, and comments that are neither HELP nor TYPE, are kept. Default: true. */
  readonly keepsOther?: boolean;
};

/** Lines of one family that follow each other, or a part of a very long one; `other`: comments and blank lines. */
type Run =
  | { readonly kind: 'samples' | 'header'; readonly family: string }
  | { readonly kind: 'other'; readonly family: null };

/** Of a longer line only the start is judged, and the rest goes the same way. */
const LINE_MAX_BYTES = 64 * 1024;
const LINE_FEED = 0x0a;

const NAME = '[a-zA-Z_:][\\w:]*(?![\\w:])';
const QUOTED = String.raw`"[^"\\\n]*(?:\\[^\n][^"\\\n]*)*"`;
/** One header line, or as many samples of one name as follow each other, or any other line. */
const RUN = new RegExp(
  [
    `[ \\t]*(?:#[ \\t]*(?:(TYPE)|HELP)[ \\t]+(${NAME}|${QUOTED})(?:[ \\t]+(\\w+))?[^\\n]*\\n`,
    `(${NAME})[^\\n]*\\n(?:[ \\t]*\\4(?![\\w:])[^\\n]*\\n)*`,
    `\\{[ \\t]*(${QUOTED})[^\\n]*\\n`,
    `[^\\n]*\\n(?:[ \\t]*\\r?\\n)*)`,
  ].join('|'),
  'y',
);
const SUFFIX = /_(?:bucket|sum|count|created)$/;
const SUFFIXED_TYPES: readonly (string | undefined)[] = ['histogram', 'summary'];

const OTHER: Run = { kind: 'other', family: null };

/** Opens the scan of one body. */
export function openFamilyScan(): FamilyScan {
  const families = new Set<string>();
  const walk = openWalk(({ kind, family }) => {
    if (kind === 'samples') families.add(family);
  });
  return {
    write: walk.write,
    end() {
      walk.end();
      return families;
    },
  };
}

/** Opens the filter of one body: the HELP, TYPE and sample lines of families that are not kept are left out, all else stays as it is. */
export function openFamilyFilter(
  isKept: (family: string) => boolean,
  { keepsOther = true }: FilterOptions = {},
): FamilyFilter {
  let kept: { block: Buffer; from: number; to: number }[] = [];
  const walk = openWalk(({ family }, block, from, to) => {
    if (family === null ? !keepsOther : !isKept(family)) return;
    const last = kept.at(-1);
    if (last?.block === block && last.to === from) last.to = to;
    else kept.push({ block, from, to });
  });
  function take(): readonly Uint8Array[] {
    const pieces = kept.map(({ block, from, to }) => block.subarray(from, to));
    kept = [];
    return pieces;
  }
  return {
    write(chunk) {
      walk.write(chunk);
      return take();
    },
    end() {
      walk.end();
      return take();
    },
  };
}

/** Walks the lines of one body; `onRun` is called with where they are; `to` may be one more than there is, at the body's end. */
function openWalk(onRun: (run: Run, block: Buffer, from: number, to: number) => void) {
  // The type of each family that has a TYPE line.
  const types = new Map<string, string>();
  /** The rest of a very long line belongs to it. */
  let long: Run | null = null;

  function findFamily(name: string): string {
    if (!SUFFIX.test(name) || types.has(name)) return name;
    const base = name.replace(SUFFIX, '');
    return SUFFIXED_TYPES.includes(types.get(base)) ? base : name;
  }
  function readRun(match: RegExpExecArray): Run {
    const [, isType, announced, type = '', sampled, quoted] = match;
    if (announced !== undefined) {
      const family = copyName(announced);
      if (isType !== undefined) types.set(family, copyName(type));
      return { kind: 'header', family };
    }
    const name = sampled ?? quoted;
    return name === undefined ? OTHER : { kind: 'samples', family: findFamily(copyName(name)) };
  }
  /** `text` is that of the block, and ends with a line feed. Returns the last run. */
  function walk(block: Buffer, text: string): Run {
    let run = OTHER;
    for (let at = 0; at < text.length; ) {
      const from = at;
      RUN.lastIndex = from;
      // Its last alternative takes any line.
      run = readRun(RUN.exec(text) as RegExpExecArray);
      // Kept here: what `onRun` calls may use the same expression.
      at = RUN.lastIndex;
      onRun(run, block, from, at);
    }
    return run;
  }
  const walkPending = () => {
    const line = cutter.takePending();
    return walk(line, `${line.toString('latin1')}\n`);
  };
  const cutter = openLineCutter((lines) => {
    walk(lines, lines.toString('latin1'));
  });

  return {
    write(bytes: Uint8Array) {
      let chunk = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
      if (long !== null) {
        const end = chunk.indexOf(LINE_FEED) + 1;
        onRun(long, chunk, 0, end === 0 ? chunk.length : end);
        if (end === 0) return;
        long = null;
        chunk = chunk.subarray(end);
      }
      cutter.write(chunk);
      if (cutter.pendingBytes > LINE_MAX_BYTES) long = walkPending();
    },
    end() {
      if (cutter.pendingBytes > 0) walkPending();
    },
  };
}

/** A text of its own: a part of a text keeps the whole of it in memory. Quotes are dropped, and UTF-8 is read. */
function copyName(name: string): string {
  return Buffer.from(name.startsWith('"') ? name.slice(1, -1) : name, 'latin1').toString();
}
