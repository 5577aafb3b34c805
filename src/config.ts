// The configuration: every variable, its default, how it is read. Pure: the environment is a parameter.
// All problems are found at once; a value is never repaired.

import type { Target, TargetContext, TargetKind } from './act/target.ts';
import type { LogLevel } from './decide/messages.ts';
import { hasHold, type Limits } from './decide/model.ts';
import type { Condition, ConditionContext, ConditionKind } from './observe/condition.ts';
import type { ParseResult } from './parse-result.ts';
import { redactUrl } from './redact.ts';

/** One row of the table of variables, as `--help` and the README show it. */
export type Variable = {
  readonly name: `LASTSCRAPE_${string}`;
  /** As the user would write it. */
  readonly default: string;
  readonly meaning: string;
};

/** Every variable; an empty or blank value means that it is not set. */
export const VARIABLES = [
  {
    name: 'LASTSCRAPE_METRICS_URL',
    default: 'http://localhost:9646/metrics',
    meaning: 'the exporter to watch and to count scrapes on; `http:`, without user and password',
  },
  {
    name: 'LASTSCRAPE_DONE_WHEN',
    default: 'metric:locust_up,port:5557',
    meaning: 'main is done when all of these hold',
  },
  {
    name: 'LASTSCRAPE_SIDECARS',
    default: 'none',
    meaning: 'containers that `container:*` does not wait for; `none` names none',
  },
  { name: 'LASTSCRAPE_SCRAPES', default: '1', meaning: 'how many scrapes by others to wait for; `0` does not hold' },
  {
    name: 'LASTSCRAPE_TTL',
    default: '90s',
    meaning: 'how long to hold at most, from the moment main ended; `0` does not hold',
  },
  { name: 'LASTSCRAPE_QUIT', default: 'locust-exporter', meaning: 'what to stop, in this order; `none` stops nothing' },
  {
    name: 'LASTSCRAPE_QUIT_TIMEOUT',
    default: '30s',
    meaning: 'for each target: from the first request until it must be gone; more than 0',
  },
  {
    name: 'LASTSCRAPE_POLL',
    default: '1s',
    meaning: 'from the start of one look to the start of the next while main runs; at least `100ms`',
  },
  {
    name: 'LASTSCRAPE_SETTLE',
    default: '3s',
    meaning: 'how long "done" must hold without a break, in two looks at least',
  },
  {
    name: 'LASTSCRAPE_START_TIMEOUT',
    default: '10m',
    meaning: 'stop waiting for a main that was not seen alive for so long; `0` waits for ever',
  },
  {
    name: 'LASTSCRAPE_RUN_TIMEOUT',
    default: '0',
    meaning: 'treat a main that runs longer as done; `0` sets no limit',
  },
  {
    name: 'LASTSCRAPE_TERMINATION_GRACE',
    default: '25s',
    meaning: 'after SIGTERM: how long to watch, hold and quit; quitting gets at least 1 s, also with `0`',
  },
  {
    name: 'LASTSCRAPE_TERMINATION_LOG',
    default: '/dev/termination-log',
    meaning: 'where the report goes; the default only where it exists',
  },
  {
    name: 'LASTSCRAPE_TOMBSTONE',
    default: 'none',
    meaning: 'a file in the graveyard of kubexit that says when the hold ended; `none` writes none',
  },
  {
    name: 'LASTSCRAPE_EXIT_ZERO',
    default: 'false',
    meaning: 'always exit 0; on a configuration error not before main ended',
  },
  { name: 'LASTSCRAPE_DRY_RUN', default: 'false', meaning: 'do everything but the quitting' },
  { name: 'LASTSCRAPE_LOG_LEVEL', default: 'info', meaning: '`debug`, `info`, `warn` or `error`' },
] as const satisfies readonly Variable[];

type VariableName = (typeof VARIABLES)[number]['name'];

const VARIABLE_NAMES: readonly string[] = VARIABLES.map(({ name }) => name);

/** The environment, as `process.env` gives it. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** The kinds that DONE_WHEN and QUIT know, from main's tables. */
export type Kinds = { readonly conditions: readonly ConditionKind[]; readonly targets: readonly TargetKind[] };

/** Where the report goes. */
export type TerminationLog = {
  readonly path: string /** Else it is written only where it exists. */;
  readonly isChosen: boolean;
};

/** A valid configuration. */
export type Config = {
  readonly metricsUrl: URL;
  readonly conditions: readonly Condition[];
  readonly limits: Limits;
  /** In the order in which they are asked; empty for `none`. */
  readonly targets: readonly Target[];
  readonly quitTimeoutMs: number;
  readonly terminationLog: TerminationLog;
  /** The path of lastscrape's own tombstone; null: none is written. */
  readonly tombstonePath: string | null;
  readonly isExitZero: boolean;
  readonly isDryRun: boolean;
  readonly logLevel: LogLevel;
  /** There is a metric to read, or a scrape to wait for. */
  readonly isExporterRead: boolean;
};

/** What the program knows of itself: its version, its process. */
export type Self = Pick<TargetContext, 'version' | 'pid' | 'kill'>;

/** What reading the environment came to. */
export type ConfigResult = { readonly config: Config } | Misconfigured;

/** EXIT_ZERO and TERMINATION_LOG count also where other values are wrong. */
export type Misconfigured = {
  readonly problems: readonly string[];
  /** The variables that the problems are about. */
  readonly unreadable: readonly string[];
  readonly isExitZero: boolean;
  readonly terminationLog: TerminationLog;
};

/** Longest duration: a year. */
const DURATION_MAX_MS = 365 * 24 * 3_600_000;
const SCRAPES_MAX = 1_000;

/** Variables that Kubernetes makes from a Service named `lastscrape…` (docker links). */
const SERVICE_LINK =
  /^LASTSCRAPE(_.+)?_(SERVICE_HOST|SERVICE_PORT(_[A-Z0-9_]+)?|PORT(_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)?)$/;

/** Reads the environment; never throws. */
export function readConfig(env: Environment, kinds: Kinds, self: Self): ConfigResult {
  const unreadable = unknownVariables(env);
  const problems = unreadable.map(
    (name) => `Cannot use ${cut(name)}: there is no such variable; did you mean ${nearest(name, VARIABLE_NAMES)}?`,
  );
  function addProblem(name: VariableName, problem: string): void {
    unreadable.push(name);
    problems.push(`Cannot read ${name}: ${problem}`);
  }

  function read<Value>(name: VariableName, parse: (text: string) => ParseResult<Value>): Value | undefined {
    const text = textOf(env, name);
    const parsed = parse(text);
    if ('value' in parsed) return parsed.value;
    addProblem(name, `it is ${quote(text)}; must be ${parsed.problem}`);
    return undefined;
  }
  function readEntries<Value>(name: VariableName, parse: (entry: string) => ParseResult<Value>): readonly Value[] {
    return textOf(env, name)
      .split(',')
      .flatMap((entry) => {
        const parsed = parse(entry.trim());
        if ('value' in parsed) return [parsed.value];
        addProblem(name, `${quote(entry.trim())} must be ${parsed.problem}`);
        return [];
      });
  }

  const isExitZero = read('LASTSCRAPE_EXIT_ZERO', parseBoolean) ?? false;
  const terminationLog = {
    path: textOf(env, 'LASTSCRAPE_TERMINATION_LOG'),
    isChosen: (env['LASTSCRAPE_TERMINATION_LOG'] ?? '').trim() !== '',
  };
  const metricsUrl = read('LASTSCRAPE_METRICS_URL', parseMetricsUrl);
  const sidecars = isNoneOf(env, 'LASTSCRAPE_SIDECARS') ? [] : readEntries('LASTSCRAPE_SIDECARS', parseContainerName);
  const watching: ConditionContext = { pid: self.pid, env, version: self.version, sidecars };
  const conditions = readEntries('LASTSCRAPE_DONE_WHEN', (entry) => parseCondition(entry, kinds.conditions, watching));
  const isWhole = unreadable.includes('LASTSCRAPE_DONE_WHEN') || conditions.some(({ text }) => text === 'container:*');
  if (sidecars.length > 0 && !isWhole) {
    unreadable.push('LASTSCRAPE_SIDECARS');
    problems.push(
      'Cannot use LASTSCRAPE_SIDECARS: only container:* leaves them out; add that to LASTSCRAPE_DONE_WHEN, or unset LASTSCRAPE_SIDECARS',
    );
  }
  const scrapesWantedCount = read('LASTSCRAPE_SCRAPES', parseScrapes);
  const ttlMs = read('LASTSCRAPE_TTL', (text) => parseDuration(text));
  const context: TargetContext = { metricsUrl: metricsUrl ?? new URL('http://localhost'), env, ...self };
  const isNone = isNoneOf(env, 'LASTSCRAPE_QUIT');
  const targets = isNone ? [] : readEntries('LASTSCRAPE_QUIT', (entry) => parseTarget(entry, kinds.targets, context));
  const quitTimeoutMs = read('LASTSCRAPE_QUIT_TIMEOUT', (text) => parseDuration(text, 1));
  const pollMs = read('LASTSCRAPE_POLL', (text) => parseDuration(text, 100));
  const settleMs = read('LASTSCRAPE_SETTLE', (text) => parseDuration(text));
  const startTimeoutMs = read('LASTSCRAPE_START_TIMEOUT', (text) => parseDuration(text));
  const runTimeoutMs = read('LASTSCRAPE_RUN_TIMEOUT', (text) => parseDuration(text));
  const terminationGraceMs = read('LASTSCRAPE_TERMINATION_GRACE', (text) => parseDuration(text));
  const tombstonePath = read('LASTSCRAPE_TOMBSTONE', parseTombstonePath);
  const isDryRun = read('LASTSCRAPE_DRY_RUN', parseBoolean);
  const logLevel = read('LASTSCRAPE_LOG_LEVEL', parseLogLevel);

  if (
    problems.length > 0 ||
    metricsUrl === undefined ||
    scrapesWantedCount === undefined ||
    ttlMs === undefined ||
    quitTimeoutMs === undefined ||
    pollMs === undefined ||
    settleMs === undefined ||
    startTimeoutMs === undefined ||
    runTimeoutMs === undefined ||
    terminationGraceMs === undefined ||
    tombstonePath === undefined ||
    isDryRun === undefined ||
    logLevel === undefined
  ) {
    return { problems, unreadable, isExitZero, terminationLog };
  }
  const isMetric = conditions.map((condition) => condition.metricName !== null);
  const limits = {
    scrapesWantedCount,
    ttlMs,
    settleMs,
    startTimeoutMs,
    runTimeoutMs,
    terminationGraceMs,
    pollMs,
  };
  return {
    config: {
      metricsUrl,
      conditions,
      limits,
      targets,
      quitTimeoutMs,
      terminationLog,
      tombstonePath,
      isExitZero,
      isDryRun,
      logLevel,
      isExporterRead: isMetric.includes(true) || hasHold(limits),
    },
  };
}

/** A span as the table writes it: `500ms`, `90s`, `1m30s`. */
export function formatDuration(ms: number): string {
  if (ms === 0) return '0';
  const units = [
    ['h', 3_600_000],
    ['m', 60_000],
    ['s', 1_000],
    ['ms', 1],
  ] as const;
  let leftMs = ms;
  return units
    .map(([unit, unitMs]) => {
      const count = Math.floor(leftMs / unitMs);
      leftMs -= count * unitMs;
      return count === 0 ? '' : `${count}${unit}`;
    })
    .join('');
}

function textOf(env: Environment, name: VariableName): string {
  const text = env[name]?.trim() ?? '';
  if (text !== '') return text;
  return VARIABLES.find((variable) => variable.name === name)?.default as string;
}

function isNoneOf(env: Environment, name: VariableName): boolean {
  return textOf(env, name) === 'none';
}

function unknownVariables(env: Environment): string[] {
  return Object.keys(env)
    .filter((name) => name.startsWith('LASTSCRAPE_') && !VARIABLE_NAMES.includes(name) && !SERVICE_LINK.test(name))
    .sort();
}

function parseMetricsUrl(text: string): ParseResult<URL> {
  const url = URL.parse(text);
  if (url === null || url.protocol !== 'http:' || url.username !== '' || url.password !== '') {
    return { problem: 'an http: URL without user and password, such as "http://localhost:9646/metrics"' };
  }
  return { value: url };
}

function parseCondition(
  entry: string,
  kinds: readonly ConditionKind[],
  context: ConditionContext,
): ParseResult<Condition> {
  const colonAt = entry.indexOf(':');
  const kind = kinds.find(({ name }) => name === entry.slice(0, Math.max(0, colonAt)));
  if (kind === undefined) return { problem: `one of ${list(kinds.map(({ usage }) => usage))}` };
  const parsed = kind.read(entry.slice(colonAt + 1).trim(), context);
  return 'value' in parsed ? parsed : { problem: `${kind.usage} with ${parsed.problem}` };
}

function parseTarget(entry: string, kinds: readonly TargetKind[], context: TargetContext): ParseResult<Target> {
  if (entry === 'none') return { problem: 'the only entry: "none" stops nothing' };
  for (const kind of kinds) {
    const parsed = kind.read(entry, context);
    if (parsed !== null) return parsed;
  }
  return { problem: `one of ${list([...kinds.map(({ usage }) => usage), 'none'])}` };
}

function parseScrapes(text: string): ParseResult<number> {
  const count = Number(text);
  if (!/^\d+$/.test(text) || count > SCRAPES_MAX) return { problem: `a whole number from 0 to ${SCRAPES_MAX}` };
  return { value: count };
}

/** RFC 1123 label (Kubernetes documentation, "Object Names and IDs"). */
function parseContainerName(text: string): ParseResult<string> {
  if (!/^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/.test(text)) {
    return { problem: 'the name of a container such as "istio-proxy"' };
  }
  return { value: text };
}

function parseTombstonePath(text: string): ParseResult<string | null> {
  if (text === 'none') return { value: null };
  if (!/^\/.*[^/]$/.test(text)) return { problem: '"none" or an absolute path such as "/graveyard/lastscrape"' };
  return { value: text };
}

function parseBoolean(text: string): ParseResult<boolean> {
  if (text !== 'true' && text !== 'false') return { problem: '"true" or "false"' };
  return { value: text === 'true' };
}

function parseLogLevel(text: string): ParseResult<LogLevel> {
  if (text === 'debug' || text === 'info' || text === 'warn' || text === 'error') return { value: text };
  return { problem: '"debug", "info", "warn" or "error"' };
}

/** `500ms`, `90s`, `1m30s`, `2h`, each unit at most once and the largest first; a bare integer is seconds. */
function parseDuration(text: string, minMs = 0): ParseResult<number> {
  const [match, h = 0, m = 0, s = 0, ms = 0] = /^(?:(\d+)h)?(?:(\d+)m(?!s))?(?:(\d+)s)?(?:(\d+)ms)?$/.exec(text) ?? [];
  const isBare = /^\d+$/.test(text);
  const valueMs = isBare
    ? Number(text) * 1_000
    : Number(h) * 3_600_000 + Number(m) * 60_000 + Number(s) * 1_000 + Number(ms);
  if (!isBare && (match === undefined || match === ''))
    return { problem: 'a duration such as "90s", "1m30s" or "500ms"' };
  if (valueMs < minMs) return { problem: `at least ${formatDuration(minMs)}` };
  if (valueMs > DURATION_MAX_MS) return { problem: `at most ${formatDuration(DURATION_MAX_MS)}` };
  return { value: valueMs };
}

/** The value as it may be printed: without secrets, on one line, not too long. */
function quote(text: string): string {
  return JSON.stringify(cut(redactUrl(text)));
}

function cut(text: string): string {
  return text.length <= 100 ? text : `${text.slice(0, 99)}…`;
}

function list(words: readonly string[]): string {
  return words.map((word) => `"${word}"`).join(', ');
}

function nearest(name: string, names: readonly string[]): string {
  const byDistance = names.map((known) => ({ known, distance: distanceOf(cut(name), known) }));
  return byDistance.reduce((best, next) => (next.distance < best.distance ? next : best)).known;
}

/** Levenshtein distance, in characters. */
function distanceOf(from: string, to: string): number {
  let row = Array.from({ length: to.length + 1 }, (_, index) => index);
  for (const [index, letter] of [...from].entries()) {
    let diagonal = index;
    const next = [index + 1];
    for (let at = 1; at <= to.length; at++) {
      const above = row[at] as number;
      next.push(Math.min(above + 1, (next[at - 1] as number) + 1, diagonal + (letter === to[at - 1] ? 0 : 1)));
      diagonal = above;
    }
    row = next;
  }
  return row[to.length] as number;
}
