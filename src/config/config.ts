// The configuration, read from the environment by the table of variables. Pure. Finds all problems at once;
// never repairs a value.

import { type Environment, readVariable } from '../base/parse.ts';
import { cut, joinNames } from '../base/text.ts';
import { hasHold, type Limits, type Policy } from '../decide/model.ts';
import { RESERVE_MS } from '../decide/quit/quitting.ts';
import type { ConditionContext, ConditionKind } from '../observe/condition-kind.ts';
import type { TargetContext, TargetKind } from '../quit/target-kind.ts';
import { suggestCondition, suggestVariables } from './advice.ts';
import { listConflicts } from './conflicts.ts';
import { parseCondition, parseTarget, SHOWN_MAX_LENGTH } from './entries.ts';
import { EXPORTER_URI, readExporterVariables } from './exporter-variables.ts';
import { isLocustPage, parseBoolean } from './values.ts';
import { type ReadSettings, ROWS, type Row, type Settings, VARIABLES, type Variable } from './variables.ts';

export type Config = Settings & {
  /** Whether anything needs what the exporter shows: a metric, a threshold, a hold, a front or a push. */
  readonly isExporterRead: boolean;
  /** Settings of Locust's exporter, for lastscrape in its place. */
  readonly locust: { readonly namespace: string; readonly path: string; readonly headersFile: string | null };
  /** The variable of Locust's exporter that puts lastscrape in its place; null: none does. */
  readonly placeBy: string | null;
};

/** Where the report goes; a default path is written only where it exists. */
export type TerminationLog = Config['terminationLog'];

/** The kinds that DONE_WHEN and QUIT know, from main's tables. */
export type Kinds = { readonly conditions: readonly ConditionKind[]; readonly targets: readonly TargetKind[] };

/** lastscrape's own process and pod. */
export type OwnProcess = Pick<TargetContext, 'pid' | 'kill'> & Pick<ConditionContext, 'pod'>;

type ConfigResult = { readonly config: Config } | Misconfigured;

/** Problems; EXIT_ZERO and TERMINATION_LOG apply even if other values are wrong. */
export type Misconfigured = ReportSettings & {
  readonly problems: readonly string[];
  /** The variable of each problem. */
  readonly unreadable: readonly string[];
};

/** What applies to a run that cannot begin. */
export type ReportSettings = Pick<Config, 'isExitZero' | 'terminationLog'>;

/** Ignored: what main's hook reads, and what Kubernetes sets for a Service `lastscrape…` (docker links). */
const IGNORED =
  /^LASTSCRAPE(_SNAPSHOT_URL|(_.+)?_(SERVICE_HOST|SERVICE_PORT(_[A-Z0-9_]+)?|PORT(_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)?))$/;

/** Reads what can be read; an empty or blank value means that a variable is not set. */
function readEnvironment(env: Environment, kinds: Kinds, program: OwnProcess) {
  const unreadable: string[] = [];
  const problems: string[] = [];
  function addProblem(name: string, problem: string): void {
    unreadable.push(name);
    problems.push(problem);
  }

  const known: readonly string[] = VARIABLES.map(({ name }) => name);
  const unknown = Object.keys(env).filter((name) => !known.includes(name) && !IGNORED.test(name));
  for (const name of unknown.sort()) {
    const meant = suggestVariables(cut(name, SHOWN_MAX_LENGTH), known);
    // Not meant for lastscrape.
    if (meant === null) continue;
    const advice = meant.length === 0 ? 'see lastscrape --help' : `did you mean ${joinNames(meant, 'or')}?`;
    addProblem(name, `Cannot use ${cut(name, SHOWN_MAX_LENGTH)}: unknown variable; ${advice}`);
  }
  const { pid, pod } = program;
  const sidecars = ROWS.sidecars.read(readText(env, ROWS.sidecars));
  const shared = { pid, pod, sidecars: 'value' in sidecars ? sidecars.value : [] };
  const limits: Record<string, unknown> = {};
  const fields: Record<string, unknown> = { limits };
  // Each row sets its own field.
  const settings = fields as ReadSettings;
  const context = {
    parseCondition: (entry: string) => parseCondition(entry, kinds.conditions, shared),
    parseTarget: (entry: string) => {
      const metricsUrl = settings.metricsUrl ?? new URL('http://localhost');
      return parseTarget(entry, kinds.targets, { ...program, env, metricsUrl });
    },
  };
  const exporter = readExporterVariables(env);
  for (const [field, row] of Object.entries<Row>(ROWS)) {
    const { name, default: usual, findDefault, isLimit = false } = row;
    const result = row.read(readText(env, { name, default: findDefault?.(settings, exporter) ?? usual }), context);
    if ('value' in result) (isLimit ? limits : fields)[field] = result.value;
    else for (const problem of result.problems) addProblem(name, `Cannot read ${name}: ${problem}`);
  }
  for (const { name, problem } of exporter.problems) {
    const isUsed = name === EXPORTER_URI || isLocustPage(settings.metricsUrl);
    if (isUsed) addProblem(name, `Cannot read ${name}: ${problem}`);
  }
  for (const { name, problem } of listConflicts(settings)) addProblem(name, `Cannot use ${name}: ${problem}`);
  return { settings, exporter, problems, unreadable };
}

/** Reads a whole configuration, or lists every problem of the environment. */
export function readConfig(env: Environment, kinds: Kinds, program: OwnProcess): ConfigResult {
  const { settings, exporter, problems, unreadable } = readEnvironment(env, kinds, program);
  if (problems.length > 0) return { problems, unreadable, ...readReportSettings(env) };
  const valid = settings as Settings;
  const { conditions, limits, front, push, thresholds, metricsUrl, metricsHeadersFile } = valid;
  return {
    config: {
      ...valid,
      isExporterRead:
        conditions.some(({ metricName }) => metricName !== null) ||
        hasHold(limits) ||
        front !== null ||
        push !== null ||
        thresholds.length > 0,
      locust: { namespace: exporter.namespace, path: exporter.path, headersFile: metricsHeadersFile },
      placeBy: isLocustPage(metricsUrl) && exporter.metricsUrl !== null ? EXPORTER_URI : null,
    },
  };
}

/** Reads what applies even if other values are wrong; a wrong value counts as its default. */
export function readReportSettings(env: Environment): ReportSettings {
  const isExitZero = parseBoolean(readVariable(env, 'LASTSCRAPE_EXIT_ZERO'));
  const row = ROWS.terminationLog;
  const read = row.read(readText(env, row));
  const terminationLog = 'value' in read ? read.value : { path: row.default, isChosen: false };
  return { isExitZero: 'value' in isExitZero && isExitZero.value, terminationLog };
}

/** How long to wait for a main that is not described: longer than it takes to pull a small image. */
const UNKNOWN_MAIN_TIMEOUT_MS = 60_000;

/**
 * Builds the configuration by which a misconfigured lastscrape waits for main's end: readable values, other
 * defaults, no hold, no targets. A signal in DONE_WHEN counts alone; if DONE_WHEN is unreadable, Locust's
 * conditions are a guess, and waiting ends after 60 s unless they show main alive.
 */
export function readFallbackConfig(
  env: Environment,
  unreadable: readonly string[],
  kinds: Kinds,
  program: OwnProcess,
): Config {
  const signal = findSignalEntry(env, unreadable, kinds);
  const isGuess = signal === null && unreadable.includes('LASTSCRAPE_DONE_WHEN');
  const dropped = new Set(unreadable);
  const forced: Record<string, string> = {
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
    // Dropping one value may break another: a file to serve needs its front.
    const more = result.unreadable.filter((name) => !dropped.has(name));
    if (more.length === 0 && 'LASTSCRAPE_FRONT' in forced) {
      throw new Error(`Bug: defaults are wrong: ${result.problems.join('; ')}`);
    }
    // With Locust's page its default may be the port of the page, or main's.
    if (more.length === 0) forced['LASTSCRAPE_FRONT'] = 'none';
    for (const name of more) dropped.add(name);
  }
}

/**
 * The entry that makes a signal main's end, even mistyped if DONE_WHEN is unreadable, or in a variable whose
 * name is mistyped; null: no entry does.
 */
export function findSignalEntry(env: Environment, unreadable: readonly string[], kinds: Kinds): string | null {
  // Only a signal has no argument.
  const plainKinds = kinds.conditions.filter(({ takesArgument }) => takesArgument === false);
  const name = 'LASTSCRAPE_DONE_WHEN';
  const isReadable = !unreadable.includes(name);
  const split = (text = '', separator: string | RegExp = ',') => text.split(separator).map((each) => each.trim());
  const written = split(env[name], isReadable ? ',' : /[,;\s]+/);
  const meant = isReadable ? written : written.map((each) => suggestCondition(each, plainKinds) ?? each);
  const entries = [...meant, ...unreadable.flatMap((each) => split(env[each]))];
  return entries.find((entry) => plainKinds.some((kind) => kind.name === entry)) ?? null;
}

function readText(env: Environment, { name, default: usual }: Pick<Variable, 'name' | 'default'>): string {
  return readVariable(env, name) || usual;
}

/** Whether a push or a webhook is configured. */
export function hasReceivers({ push, webhook }: Pick<Config, 'push' | 'webhook'>): boolean {
  return push !== null || webhook !== null;
}

/** What takes the hand-over, without secrets. */
export function nameHandOver({ handOver, push }: Pick<Config, 'handOver' | 'push'>): string {
  return handOver?.kind === 'keeper' ? handOver.url.origin : String(push?.to);
}

/** The limits; with a receiver some of the grace is reserved for it. */
export function buildLimits(config: Pick<Config, 'limits' | 'push' | 'webhook'>): Limits {
  return hasReceivers(config) ? { ...config.limits, reserveMs: RESERVE_MS } : config.limits;
}

/** What `step` decides by. */
export function buildPolicy(config: Config): Policy {
  const { conditions, front, thresholds, targets, quitTimeoutMs, isDryRun, push, pushWhen, webhook } = config;
  const { tombstonePath, handOver } = config;
  return {
    limits: buildLimits(config),
    ...(push === null ? {} : { push: { to: push.to, when: pushWhen } }),
    ...(handOver === null ? {} : { handOver: { kind: handOver.kind, to: nameHandOver(config) } }),
    hasWebhook: webhook !== null,
    ...(tombstonePath === null ? {} : { tombstonePath }),
    conditions: conditions.map(({ metricName, isSignal = false }) => ({ isMetric: metricName !== null, isSignal })),
    front: front && { port: front.port },
    ...(thresholds.length === 0 ? {} : { thresholds }),
    targets: targets.map(({ name, request, needsMs = 0, force, isMesh = false }) => ({
      name,
      request,
      needsMs,
      isMesh,
      canForce: force !== undefined,
    })),
    quitTimeoutMs,
    isDryRun,
  };
}
