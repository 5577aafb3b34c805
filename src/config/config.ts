// The configuration: what is read from the environment by the table of variables (config-rows.ts). Pure: the environment is a parameter.
// All problems are found at once; a value is never repaired.

import { cut } from '../base/text.ts';
import { hasHold } from '../decide/model.ts';
import type { ConditionContext, ConditionKind, KindVariable } from '../observe/condition.ts';
import type { TargetContext, TargetKind } from '../quit/target.ts';
import { findMeantCondition, findMeantVariables } from './advice.ts';
import { listConflicts } from './conflicts.ts';
import { or, parseCondition, parseTarget, SHOWN_MAX_LENGTH } from './entries.ts';
import { type Environment, EXPORTER_URI, listExporterProblems, readExporterVariables } from './exporter-variables.ts';
import { type ReadResult, readListOrNone } from './lists.ts';
import { isLocustPage, parseBoolean } from './values.ts';
import { type ReadSettings, ROWS, type Row, type Settings, TERMINATION_LOG, type Variable } from './variables.ts';

/** A valid configuration. */
export type Config = Settings & {
  /** There is a metric to read, a number to judge, a scrape to wait for, or a front or a push that wants what was read. */
  readonly isExporterRead: boolean;
  /** What Locust's exporter is told, where it is in its place. */
  readonly locust: { readonly namespace: string; readonly path: string; readonly headersFile: string | null };
  /** Why Locust's page is the source, in the exporter's place: the variable of it that is set; null: it is not, or our own says so. */
  readonly placeBy: string | null;
};

/** Where the report goes; a path that the user did not choose is written only where it exists. */
export type TerminationLog = Config['terminationLog'];

export type { Environment } from './exporter-variables.ts';

/** The kinds that DONE_WHEN and QUIT know, from main's tables. */
export type Kinds = { readonly conditions: readonly ConditionKind[]; readonly targets: readonly TargetKind[] };

/** What the program knows of itself: its process, and its pod. */
export type Program = Pick<TargetContext, 'pid' | 'kill'> & Pick<ConditionContext, 'pod'>;

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
    addProblem(name, `Cannot use ${cut(name, SHOWN_MAX_LENGTH)}: there is no such variable; ${advice}`);
  }
  const { pid, pod } = program;
  const readKinds = kinds.conditions.map((kind) => {
    const { variable } = kind;
    const names = variable === undefined ? [] : (take(variable, readNames(env, variable)) ?? []);
    return { kind, context: { pid, pod, names } };
  });
  const limits: Record<string, unknown> = {};
  const fields: Record<string, unknown> = { limits };
  // Each row puts its value there, unless there is a problem.
  const settings = fields as ReadSettings;
  const context = {
    above: settings,
    parseCondition: (entry: string) => parseCondition(entry, readKinds),
    parseTarget: (entry: string) => {
      const metricsUrl = settings.metricsUrl ?? new URL('http://localhost');
      return parseTarget(entry, kinds.targets, { ...program, env, metricsUrl });
    },
  };
  const exporter = readExporterVariables(env);
  for (const row of ROWS as readonly Row[]) {
    const { text, isSet } = readText(env, { ...row, default: row.findDefault?.(settings, exporter) ?? row.default });
    (row.isLimit === true ? limits : fields)[row.field] = take(row, row.read(text, { ...context, isSet }));
  }
  for (const { kind, context } of readKinds) {
    if (kind.variable === undefined || context.names.length === 0 || settings.conditions === undefined) continue;
    const { name, usedBy } = kind.variable;
    if (settings.conditions.some(({ text }) => text === usedBy)) continue;
    addProblem(
      name,
      `Cannot use ${name}: only ${usedBy} goes by it; add that to LASTSCRAPE_DONE_WHEN, or unset ${name}`,
    );
  }
  const isLocust = isLocustPage(settings.metricsUrl);
  for (const { name, problem } of listExporterProblems(env, isLocust)) {
    addProblem(name, `Cannot read ${name}: ${problem}`);
  }
  for (const { name, problem } of listConflicts(settings)) addProblem(name, `Cannot use ${name}: ${problem}`);
  if (problems.length > 0) return { problems, unreadable, ...readReportSettings(env) };
  const valid = settings as Settings;
  const hasMetric = valid.conditions.some(({ metricName }) => metricName !== null);
  return {
    config: {
      ...valid,
      isExporterRead:
        hasMetric ||
        hasHold(valid.limits) ||
        valid.front !== null ||
        valid.push !== null ||
        valid.thresholds.length > 0,
      locust: { namespace: exporter.namespace, path: exporter.path, headersFile: valid.metricsHeadersFile },
      placeBy: isLocust && exporter.metricsUrl !== null ? EXPORTER_URI : null,
    },
  };
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
 * stops nothing. Where DONE_WHEN names a signal, that alone is waited for. Where DONE_WHEN cannot be read, Locust's conditions
 * are a guess: a main that they do not show alive within 60 s is not waited for. `unreadable`: from `Misconfigured`.
 */
export function readFallbackConfig(
  env: Environment,
  unreadable: readonly string[],
  kinds: Kinds,
  program: Program,
): Config {
  const isReadable = !unreadable.includes('LASTSCRAPE_DONE_WHEN');
  const signal = findSignalEntry(env['LASTSCRAPE_DONE_WHEN'] ?? '', isReadable, kinds, program);
  const isGuess = signal === null && !isReadable;
  const dropped = new Set(unreadable);
  const forced = {
    ...(signal === null ? {} : { LASTSCRAPE_DONE_WHEN: signal }),
    LASTSCRAPE_SCRAPES: '0',
    LASTSCRAPE_QUIT: 'none',
  };
  for (;;) {
    const kept = Object.fromEntries(Object.entries(env).filter(([name]) => !dropped.has(name)));
    const result = readConfig({ ...kept, ...forced }, kinds, program);
    if ('config' in result) {
      const { limits } = result.config;
      const startTimeoutMs = Math.min(limits.startTimeoutMs || UNKNOWN_MAIN_TIMEOUT_MS, UNKNOWN_MAIN_TIMEOUT_MS);
      return isGuess ? { ...result.config, limits: { ...limits, startTimeoutMs } } : result.config;
    }
    // Without one value another may be wrong: a file to serve without its front, the variable of an entry without that.
    const more = result.unreadable.filter((name) => !dropped.has(name));
    if (more.length === 0) throw new Error(`Bug: defaults are wrong: ${result.problems.join('; ')}`);
    for (const name of more) dropped.add(name);
  }
}

/** The entry by which a signal is main's end, where the text cannot be read also a mistyped one; null: there is none. */
function findSignalEntry(text: string, isReadable: boolean, kinds: Kinds, { pid, pod }: Program): string | null {
  const plainKinds = kinds.conditions.filter(({ takesArgument }) => takesArgument === false);
  const readKinds = plainKinds.map((kind) => ({ kind, context: { pid, pod, names: [] } }));
  for (const entry of text.split(isReadable ? ',' : /[,;\s]+/)) {
    const written = entry.trim();
    const meant = (isReadable ? null : findMeantCondition(written, plainKinds)) ?? written;
    const parsed = parseCondition(meant, readKinds);
    if ('value' in parsed && parsed.value.isSignal === true) return meant;
  }
  return null;
}

/** The text of a variable, or its default. */
function readText(env: Environment, variable: Pick<Variable, 'name' | 'default'>): { text: string; isSet: boolean } {
  const text = env[variable.name]?.trim() ?? '';
  return text === '' ? { text: variable.default, isSet: false } : { text, isSet: true };
}

function readNames(env: Environment, variable: KindVariable): ReadResult<readonly string[]> {
  return readListOrNone(readText(env, variable).text, variable.parseName);
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
      const meant = findMeantVariables(cut(name, SHOWN_MAX_LENGTH), known);
      return meant === null ? [] : [{ name, meant }];
    });
}
