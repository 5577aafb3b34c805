// The configuration: one table with a row for each variable, and what is read from it. Pure: the environment is a parameter.
// All problems are found at once; a value is never repaired.

import type { Target, TargetContext, TargetKind } from './act/target.ts';
import { findMeantVariables, splitOtherwise } from './config-advice.ts';
import { cut, or, parseCondition, parseTarget, quote } from './config-entries.ts';
import {
  parseBoolean,
  parseDuration,
  parseLogLevel,
  parseMetricsUrl,
  parseScrapes,
  parseTombstonePath,
} from './config-values.ts';
import { hasHold } from './decide/model.ts';
import type { Condition, ConditionContext, ConditionKind, KindVariable } from './observe/condition.ts';
import type { ParseResult } from './parse-result.ts';

/** A variable, as `--help` and the README show it. */
export type Variable = {
  readonly name: `LASTSCRAPE_${string}`;
  /** As the user would write it. */
  readonly default: string;
  readonly meaning: string;
};

/** A row of the table: the variable, how its text is read, and where the value goes. */
type Row = Variable & {
  /** Its field of `Config`, or of `Config['limits']`. */
  readonly field: string;
  /** The value is a limit of the rules. Default: false. */
  readonly isLimit?: true;
  readonly read: (text: string, context: ReadContext) => ReadResult<unknown>;
};

/** The value, or every problem of the text: each completes "Cannot read NAME: ". */
type ReadResult<Value> = { readonly value: Value } | { readonly problems: readonly string[] };

/** What a value may be read beside. */
type ReadContext = {
  /** The user set the variable; else the text is its default. */
  readonly isSet: boolean;
  readonly parseCondition: (entry: string) => ParseResult<Condition>;
  readonly parseTarget: (entry: string) => ParseResult<Target>;
};

const TERMINATION_LOG = {
  name: 'LASTSCRAPE_TERMINATION_LOG',
  default: '/dev/termination-log',
} as const;

/** Every variable but those of a kind of condition. A new variable is a row here, and one of the README's table. */
const ROWS = [
  {
    name: 'LASTSCRAPE_METRICS_URL',
    default: 'http://localhost:9646/metrics',
    meaning: 'the exporter to watch and to count scrapes on; `http:`, without user and password',
    field: 'metricsUrl',
    read: readValue(parseMetricsUrl),
  },
  {
    name: 'LASTSCRAPE_DONE_WHEN',
    default: 'metric:locust_up,port:5557',
    meaning: 'main is done when all of these hold',
    field: 'conditions',
    read: (text: string, { parseCondition }: ReadContext) => readList(text, parseCondition),
  },
  {
    name: 'LASTSCRAPE_SCRAPES',
    default: '1',
    meaning: 'how many scrapes by others to wait for; `0` does not hold',
    field: 'scrapesWantedCount',
    isLimit: true,
    read: readValue(parseScrapes),
  },
  {
    name: 'LASTSCRAPE_TTL',
    default: '90s',
    meaning: 'how long to hold at most, from the moment main ended; `0` does not hold',
    field: 'ttlMs',
    isLimit: true,
    read: readValue(parseDuration),
  },
  {
    name: 'LASTSCRAPE_QUIT',
    default: 'locust-exporter',
    meaning: 'what to stop, in this order; `none` stops nothing',
    field: 'targets',
    read: (text: string, { parseTarget }: ReadContext) => readListOrNone(text, parseTarget),
  },
  {
    name: 'LASTSCRAPE_QUIT_TIMEOUT',
    default: '30s',
    meaning: 'for each target: from the first request until it must be gone; more than 0',
    field: 'quitTimeoutMs',
    read: readValue((text) => parseDuration(text, 1)),
  },
  {
    name: 'LASTSCRAPE_POLL',
    default: '1s',
    meaning: 'from the start of one poll to the start of the next while main runs; at least `100ms`',
    field: 'pollMs',
    isLimit: true,
    read: readValue((text) => parseDuration(text, 100)),
  },
  {
    name: 'LASTSCRAPE_SETTLE',
    default: '3s',
    meaning: 'how long "done" must hold without a break, in two polls at least',
    field: 'settleMs',
    isLimit: true,
    read: readValue(parseDuration),
  },
  {
    name: 'LASTSCRAPE_START_TIMEOUT',
    default: '10m',
    meaning: 'stop waiting for a main that was not seen alive for so long; `0` waits for ever',
    field: 'startTimeoutMs',
    isLimit: true,
    read: readValue(parseDuration),
  },
  {
    name: 'LASTSCRAPE_RUN_TIMEOUT',
    default: '0',
    meaning: 'treat a main that runs longer as done; `0` sets no limit',
    field: 'runTimeoutMs',
    isLimit: true,
    read: readValue(parseDuration),
  },
  {
    name: 'LASTSCRAPE_TERMINATION_GRACE',
    default: '25s',
    meaning: 'after SIGTERM: how long to watch, hold and quit; quitting gets at least 1 s, also with `0`',
    field: 'terminationGraceMs',
    isLimit: true,
    read: readValue(parseDuration),
  },
  {
    ...TERMINATION_LOG,
    meaning: 'where the report goes; the default only where it exists',
    field: 'terminationLog',
    read: (path: string, { isSet }: ReadContext) => ({ value: { path, isChosen: isSet } }),
  },
  {
    name: 'LASTSCRAPE_TOMBSTONE',
    default: 'none',
    meaning: 'a file in the graveyard of kubexit that says when the hold ended; `none` writes none',
    field: 'tombstonePath',
    read: readValue(parseTombstonePath),
  },
  {
    name: 'LASTSCRAPE_EXIT_ZERO',
    default: 'false',
    meaning: 'always exit 0; on a configuration error not before main ended',
    field: 'isExitZero',
    read: readValue(parseBoolean),
  },
  {
    name: 'LASTSCRAPE_DRY_RUN',
    default: 'false',
    meaning: 'do everything but the quitting',
    field: 'isDryRun',
    read: readValue(parseBoolean),
  },
  {
    name: 'LASTSCRAPE_LOG_LEVEL',
    default: 'info',
    meaning: '`debug`, `info`, `warn` or `error`',
    field: 'logLevel',
    read: readValue(parseLogLevel),
  },
] as const satisfies readonly Row[];

type AnyRow = (typeof ROWS)[number];
type LimitRow = Extract<AnyRow, { readonly isLimit: true }>;
type ValueFrom<R extends Row> = Extract<ReturnType<R['read']>, { readonly value: unknown }>['value'];

/** A valid configuration: a field for each row of the table, those of the limits together. */
export type Config = {
  readonly [R in Exclude<AnyRow, LimitRow> as R['field']]: ValueFrom<R>;
} & {
  readonly limits: { readonly [R in LimitRow as R['field']]: ValueFrom<R> };
  /** There is a metric to read, or a scrape to wait for. */
  readonly isExporterRead: boolean;
};

/** Where the report goes; a path that the user did not choose is written only where it exists. */
export type TerminationLog = Config['terminationLog'];

/** The environment, as `process.env` gives it. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** The kinds that DONE_WHEN and QUIT know, from main's tables. */
export type Kinds = { readonly conditions: readonly ConditionKind[]; readonly targets: readonly TargetKind[] };

/** What the program knows of itself: its version and its process. */
export type Program = Pick<TargetContext, 'version' | 'pid' | 'kill'> & Pick<ConditionContext, 'pod'>;

/** A configuration, or what is wrong with the environment. */
export type ConfigResult = { readonly config: Config } | Misconfigured;

/** EXIT_ZERO and TERMINATION_LOG count also where other values are wrong. */
export type Misconfigured = ReportSettings & {
  readonly problems: readonly string[];
  /** The variables that the problems are about. */
  readonly unreadable: readonly string[];
};

/** What counts for a run that cannot begin. */
export type ReportSettings = Pick<Config, 'isExitZero' | 'terminationLog'>;

/** Variables that Kubernetes makes from a Service named `lastscrape…` (docker links). */
const SERVICE_LINK =
  /^LASTSCRAPE(_.+)?_(SERVICE_HOST|SERVICE_PORT(_[A-Z0-9_]+)?|PORT(_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)?)$/;

/** Every variable in the order of the README; one of a kind of condition comes behind DONE_WHEN. */
export function listVariables({ conditions }: Pick<Kinds, 'conditions'>): readonly Variable[] {
  const ownVariables = conditions.flatMap(({ variable }) => variable ?? []);
  return ROWS.flatMap((row): readonly Variable[] =>
    row.name === 'LASTSCRAPE_DONE_WHEN' ? [row, ...ownVariables] : [row],
  );
}

/** Reads the environment; an empty or blank value means that a variable is not set. */
export function readConfig(env: Environment, kinds: Kinds, program: Program): ConfigResult {
  const known = listVariables(kinds).map(({ name }) => name);
  const unreadable: string[] = [];
  const problems: string[] = [];
  function addProblem(name: string, problem: string): void {
    unreadable.push(name);
    problems.push(problem);
  }
  function take<Value>({ name }: Variable, result: ReadResult<Value>): Value | undefined {
    if ('value' in result) return result.value;
    for (const problem of result.problems) addProblem(name, `Cannot read ${name}: ${problem}`);
    return undefined;
  }

  for (const { name, meant } of findUnknownNames(env, known)) {
    const advice = meant.length === 0 ? 'no name is near; lastscrape --help lists them' : `did you mean ${or(meant)}?`;
    addProblem(name, `Cannot use ${cut(name)}: there is no such variable; ${advice}`);
  }
  const { pid, pod } = program;
  const readKinds = kinds.conditions.map((kind) => {
    const { variable } = kind;
    const names = variable === undefined ? [] : (take(variable, readNames(env, variable)) ?? []);
    return { kind, context: { pid, pod, names } };
  });
  const parsedUrl = parseMetricsUrl(readText(env, ROWS[0]).text);
  const metricsUrl = 'value' in parsedUrl ? parsedUrl.value : new URL('http://localhost');
  const context = {
    parseCondition: (entry: string) => parseCondition(entry, readKinds),
    parseTarget: (entry: string) => parseTarget(entry, kinds.targets, { ...program, env, metricsUrl }),
  };
  const limits: Record<string, unknown> = {};
  const fields: Record<string, unknown> = { limits };
  for (const row of ROWS as readonly Row[]) {
    const { text, isSet } = readText(env, row);
    (row.isLimit === true ? limits : fields)[row.field] = take(row, row.read(text, { ...context, isSet }));
  }
  // Each row has put its value here, unless there is a problem.
  const config = fields as Omit<Config, 'isExporterRead'>;
  for (const { kind, context } of readKinds) {
    if (kind.variable === undefined || context.names.length === 0 || config.conditions === undefined) continue;
    const { name, usedBy } = kind.variable;
    if (config.conditions.some(({ text }) => text === usedBy)) continue;
    addProblem(
      name,
      `Cannot use ${name}: only ${usedBy} goes by it; add that to LASTSCRAPE_DONE_WHEN, or unset ${name}`,
    );
  }
  if (config.conditions?.some(({ text }) => text === `tombstone:${config.tombstonePath}`)) {
    addProblem(
      'LASTSCRAPE_TOMBSTONE',
      'Cannot use LASTSCRAPE_TOMBSTONE: it is that of main, which LASTSCRAPE_DONE_WHEN waits for; must be a file of its own, such as "/graveyard/lastscrape"',
    );
  }
  if (problems.length > 0) return { problems, unreadable, ...readReportSettings(env) };
  const hasMetric = config.conditions.some(({ metricName }) => metricName !== null);
  return { config: { ...config, isExporterRead: hasMetric || hasHold(config.limits) } };
}

/** Reads what counts also where other values are wrong; a wrong value is the default. */
export function readReportSettings(env: Environment): ReportSettings {
  const isExitZero = parseBoolean((env['LASTSCRAPE_EXIT_ZERO'] ?? '').trim());
  const { text: path, isSet } = readText(env, TERMINATION_LOG);
  return { isExitZero: 'value' in isExitZero && isExitZero.value, terminationLog: { path, isChosen: isSet } };
}

/** How long a main that nobody described is waited for: longer than a small image takes to be pulled, and no test's life. */
const UNKNOWN_MAIN_TIMEOUT_MS = 60_000;

/**
 * What a misconfigured lastscrape watches main by: the values that can be read, and defaults for the others; it holds and
 * stops nothing. Where DONE_WHEN cannot be read, Locust's conditions are a guess: a main that they do not show alive within
 * 60 s is not waited for. `unreadable`: from `Misconfigured`.
 */
export function readFallbackConfig(
  env: Environment,
  unreadable: readonly string[],
  kinds: Kinds,
  program: Program,
): Config {
  // The variable of a kind belongs to the entries of DONE_WHEN.
  const ownNames = kinds.conditions.flatMap(({ variable }) => variable?.name ?? []);
  const isGuess = unreadable.includes('LASTSCRAPE_DONE_WHEN');
  const dropped = isGuess ? [...unreadable, ...ownNames] : unreadable;
  const kept = Object.fromEntries(Object.entries(env).filter(([name]) => !dropped.includes(name)));
  const result = readConfig({ ...kept, LASTSCRAPE_SCRAPES: '0', LASTSCRAPE_QUIT: 'none' }, kinds, program);
  if (!('config' in result)) throw new Error(`Bug: defaults are wrong: ${result.problems.join('; ')}`);
  const { limits } = result.config;
  const startTimeoutMs = Math.min(limits.startTimeoutMs || UNKNOWN_MAIN_TIMEOUT_MS, UNKNOWN_MAIN_TIMEOUT_MS);
  return isGuess ? { ...result.config, limits: { ...limits, startTimeoutMs } } : result.config;
}

/** The text of a variable, or its default. */
function readText(env: Environment, variable: Pick<Variable, 'name' | 'default'>): { text: string; isSet: boolean } {
  const text = env[variable.name]?.trim() ?? '';
  return text === '' ? { text: variable.default, isSet: false } : { text, isSet: true };
}

function readNames(env: Environment, variable: KindVariable): ReadResult<readonly string[]> {
  return readListOrNone(readText(env, variable).text, variable.parseName);
}

function readValue<Value>(parse: (text: string) => ParseResult<Value>): (text: string) => ReadResult<Value> {
  return (text) => {
    const parsed = parse(text);
    return 'value' in parsed ? parsed : { problems: [`it is ${quote(text)}; must be ${parsed.problem}`] };
  };
}

/** Of one list; whoever has more sees the pattern. */
const PROBLEMS_MAX_COUNT = 20;

function readList<Value>(text: string, parse: (entry: string) => ParseResult<Value>): ReadResult<readonly Value[]> {
  const values: Value[] = [];
  const problems: string[] = [];
  const entries = text.split(',').map((each) => each.trim());
  for (const [index, entry] of entries.entries()) {
    if (entry === '') {
      problems.push(`entry ${index + 1} of ${entries.length} is empty; must be left out, with its comma`);
      continue;
    }
    const pieces = splitOtherwise(entry, (piece) => 'value' in parse(piece));
    const parsed = parse(entry);
    if (pieces !== null) problems.push(`${quote(entry)} must be separated by commas: ${quote(pieces.join(','))}`);
    else if ('value' in parsed) values.push(parsed.value);
    else problems.push(`${quote(entry)} must be ${parsed.problem}`);
  }
  if (problems.length === 0) return { value: values };
  const moreCount = problems.length - PROBLEMS_MAX_COUNT;
  return moreCount <= 0
    ? { problems }
    : {
        problems: [
          ...problems.slice(0, PROBLEMS_MAX_COUNT),
          `${moreCount} more entries are wrong; must be mended as well`,
        ],
      };
}

function readListOrNone<Value>(
  text: string,
  parse: (entry: string) => ParseResult<Value>,
): ReadResult<readonly Value[]> {
  return text === 'none' ? { value: [] } : readList(text, parse);
}

/** Names that are meant for lastscrape and are none of its variables, and what they may be meant for. */
function findUnknownNames(
  env: Environment,
  known: readonly string[],
): readonly { readonly name: string; readonly meant: readonly string[] }[] {
  return Object.keys(env)
    .filter((name) => !known.includes(name) && !SERVICE_LINK.test(name))
    .sort()
    .flatMap((name) => {
      const meant = findMeantVariables(cut(name), known);
      return meant === null ? [] : [{ name, meant }];
    });
}
