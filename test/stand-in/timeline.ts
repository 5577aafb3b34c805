// Prints who did what when, for a person. Both demos use it; it reads lastscrape's log as JSON lines.

/** A colour of the terminal's own palette. */
type Tone = 'green' | 'yellow' | 'magenta' | 'cyan' | 'red' | 'bold' | 'dim';

type TimelineOptions = {
  /** Takes whole lines, each with its line feed. */
  readonly write: (text: string) => void;
  /** Who may speak, in the colours that they speak in; it sets the width of the column. */
  readonly speakers: Readonly<Record<string, Tone>>;
  /** Where several pods are shown: their marks, in a column of their own. */
  readonly pods?: readonly string[];
  /** The fields of a log entry that are shown; default all. Those of a warning or an error always are. */
  readonly shownFields?: readonly string[];
  /** Default false: plain text, for a pipe, or where NO_COLOR is set. */
  readonly hasColor?: boolean;
  /** Longer lines are wrapped between words; 0, the default: no wrapping. */
  readonly width?: number;
};

/** How wide a terminal is, and whether it shows colours; a pipe has no width, and some terminals say 0. */
export function readTerminal(
  stdout: { readonly isTTY?: boolean; readonly columns?: number },
  noColor: string | undefined,
): Required<Pick<TimelineOptions, 'hasColor' | 'width'>> {
  return { hasColor: stdout.isTTY === true && (noColor ?? '') === '', width: stdout.columns ?? 0 };
}

export type Timeline = ReturnType<typeof openTimeline>;

/** One entry of the watcher's log: what is said, and the fields that vary. */
export type LogEntry = {
  readonly level: string;
  readonly msg: string;
  readonly fields: Readonly<Record<string, unknown>>;
};

/** The fields of the watcher's log that both demos show. */
export const SHOWN_FIELDS = ['outcome', 'heldSeconds', 'target', 'hint'];

/** Reads a line of the watcher's log; `undefined` if it is not one. */
export function readLogEntry(line: string): LogEntry | undefined {
  try {
    const { time: _, level, msg, ...fields } = JSON.parse(line);
    return typeof level === 'string' && typeof msg === 'string' ? { level, msg, fields } : undefined;
  } catch {
    return undefined;
  }
}

/** Writes fields for a person: `scrapes 1, target locust-exporter`; leaves out what is null. */
function describeFields(fields: Readonly<Record<string, unknown>>): string {
  return Object.entries(fields)
    .filter(([, value]) => value !== null && value !== undefined && value !== '')
    .map(([name, value]) => `${splitWords(name)} ${describeValue(value, name)}`)
    .join(', ');
}

/** Opens a timeline whose seconds count from now. */
export function openTimeline(options: TimelineOptions) {
  const { write, speakers, pods = [], shownFields, hasColor = false } = options;
  const width = options.width === undefined || options.width === 0 ? Number.POSITIVE_INFINITY : options.width;
  const openedMs = performance.now();
  const podWidth = Math.max(0, ...pods.map((pod) => pod.length));
  const columnWidth = Math.max(...Object.keys(speakers).map((speaker) => speaker.length));

  function paint(text: string, tone: Tone | undefined): string {
    return hasColor && tone !== undefined ? `\u001b[${CODES[tone]}m${text}\u001b[0m` : text;
  }

  /** One line now: when, who, what; `pod` is one of the marks. */
  function say(speaker: string, text: string, tone?: Tone, pod = ''): void {
    const time = `${((performance.now() - openedMs) / 1_000).toFixed(1).padStart(4)} s`;
    const mark = podWidth === 0 ? '' : `${pod.padEnd(podWidth)}  `;
    const indent = time.length + mark.length + columnWidth + 4;
    const [first = '', ...rest] = wrap(text, Math.max(20, width - indent));
    const who = paint(speaker.padEnd(columnWidth), speakers[speaker]);
    write(`${paint(time, 'dim')}  ${mark}${who}  ${paint(first, tone)}\n`);
    for (const line of rest) write(`${' '.repeat(indent)}${paint(line, tone)}\n`);
  }

  return {
    say,
    /** One line of the watcher's log, as its entry in the timeline; other text is shown as it is. */
    log(speaker: string, line: string, pod?: string) {
      const entry = readLogEntry(line);
      if (entry === undefined) return say(speaker, line, 'red', pod);
      const isLoud = entry.level === 'warn' || entry.level === 'error';
      const isShown = ([name]: [string, unknown]) => isLoud || shownFields === undefined || shownFields.includes(name);
      const fields = describeFields(Object.fromEntries(Object.entries(entry.fields).filter(isShown)));
      const text = `${isLoud ? `${entry.level}: ` : ''}${entry.msg}${fields === '' ? '' : ` (${fields})`}`;
      say(speaker, text, isLoud ? 'red' : undefined, pod);
    },
    /** Text without a time, between blank lines. */
    heading(text: string): void {
      write(
        `\n${wrap(text, width)
          .map((line) => `${paint(line, 'bold')}\n`)
          .join('')}\n`,
      );
    },
    /** Lines without a time, wrapped. */
    text(text: string, tone?: Tone): void {
      for (const line of wrap(text, width)) write(`${paint(line, tone)}\n`);
    },
    /** Whether all is as it must be, each with a line of its own. */
    verdict(checks: readonly (readonly [isRight: boolean, text: string])[]): boolean {
      this.heading('The verdict');
      for (const [isRight, text] of checks)
        this.text(`  ${isRight ? 'ok ' : 'NOT'}  ${text}`, isRight ? 'green' : 'red');
      return checks.every(([isRight]) => isRight);
    },
    /** Fields without a time, one a line, the names in a column. */
    fields(fields: Readonly<Record<string, unknown>>): void {
      const names = Object.keys(fields).map(splitWords);
      const nameWidth = Math.max(0, ...names.map((name) => name.length));
      for (const [name, value] of Object.entries(fields)) {
        const [first = '', ...rest] = wrap(describeValue(value, name), Math.max(20, width - nameWidth - 4));
        write(`  ${paint(splitWords(name).padEnd(nameWidth), 'dim')}  ${first}\n`);
        for (const line of rest) write(`${' '.repeat(nameWidth + 4)}${line}\n`);
      }
    },
  };
}

// Select Graphic Rendition, ECMA-48.
const CODES: Readonly<Record<Tone, number>> = {
  bold: 1,
  dim: 2,
  red: 31,
  green: 32,
  yellow: 33,
  magenta: 35,
  cyan: 36,
};

/** `scrapesSeen` becomes `scrapes seen`. */
function splitWords(name: string): string {
  return name.replaceAll(/(?<=[a-z])(?=[A-Z])/g, ' ').toLowerCase();
}

function describeValue(value: unknown, name: string): string {
  // A person reads 3 s, not 3.003.
  if (typeof value === 'number') {
    const digits = !/seconds/i.test(name) ? 3 : value < 1 ? 2 : 1;
    return String(Number(value.toFixed(digits)));
  }
  if (Array.isArray(value)) return value.map((each) => describeValue(each, name)).join(' + ');
  if (typeof value === 'object' && value !== null) return describeFields({ ...value });
  return String(value);
}

/** Breaks between words; what follows a break is indented as its paragraph. */
function wrap(text: string, width: number): string[] {
  const lines: string[] = [];
  for (const paragraph of text.split('\n')) {
    const indent = /^ */.exec(paragraph)?.[0] ?? '';
    let line = indent;
    for (const word of paragraph.trim().split(' ')) {
      if (line !== indent && line.length + 1 + word.length > width) {
        lines.push(line);
        line = indent;
      }
      line += line === indent ? word : ` ${word}`;
    }
    lines.push(line);
  }
  return lines;
}
