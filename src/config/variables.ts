// The table of variables: a row for each, with its default, its meaning, and how its text is read. Pure.

import type { Parse } from '../base/parse.ts';
import { redactPathEntry } from '../base/text.ts';
import type { Condition } from '../observe/condition-kind.ts';
import type { Target } from '../quit/target-kind.ts';
import { type ReadResult, readList, readListOrNone, readValue, readValueOrNone } from './entries.ts';
import type { ExporterVariables } from './exporter-variables.ts';
import { readThresholds } from './thresholds.ts';
import {
  type FrontAddress,
  isLocustPage,
  parseBoolean,
  parseChoice,
  parseContainerName,
  parseDuration,
  parseFilePath,
  parseFolderPath,
  parseFrontAddress,
  parseHandOver,
  parseMetricsUrl,
  parsePortName,
  parsePush,
  parsePushLabel,
  parseScrapes,
  parseWebhook,
} from './values.ts';

/** A variable, as `--help` and docs/reference.md show it. */
export type Variable = {
  readonly name: `LASTSCRAPE_${string}`;
  /** As the user would write it. */
  readonly default: string;
  /** How the default depends on other variables; shown in parentheses after the usual one. */
  readonly defaultOtherwise?: string;
  readonly meaning: string;
};

/** A row of the table: the variable, and how its text is read. */
export type Row = Variable & {
  /** The value is a limit of the rules. Default: false. */
  readonly isLimit?: true;
  /** The default that `defaultOtherwise` describes, as text; null: the usual one. */
  readonly findDefault?: (above: Above, exporter: ExporterVariables) => string | null;
  readonly read: (text: string, context: ReadContext) => ReadResult<unknown>;
};

/** Values of earlier rows; undefined: unreadable. */
export type Above = {
  readonly metricsUrl?: URL | undefined;
  readonly front?: FrontAddress | null | undefined;
  readonly conditions?: readonly Condition[] | undefined;
};

type ReadContext = {
  readonly parseCondition: Parse<Condition>;
  readonly parseTarget: Parse<Target>;
};

/** Where the kubelet reads a container's last words (documentation, "Container v1 core"). */
const TERMINATION_LOG = '/dev/termination-log';

function hasFront(front: Above['front']): boolean {
  return front !== undefined && front !== null;
}

/** Whether QUIT is Locust's exporter by default: a user's own program quits only if the user says so. */
function isLocustsExporter({ metricsUrl, front, conditions = [] }: Above): boolean {
  const isElsewhere = metricsUrl !== undefined && metricsUrl.protocol !== 'http:';
  if (isElsewhere || conditions.some(({ isSignal }) => isSignal)) return false;
  return !hasFront(front) || conditions.some(({ metricName }) => metricName === 'locust_up');
}

/** A row whose value is a duration that limits the run. */
function limit(name: Variable['name'], defaultText: string, meaning: string, minMs = 0) {
  const read = readValue((text: string) => parseDuration(text, minMs));
  return { name, default: defaultText, isLimit: true, meaning, read } as const;
}

/** A text that is no path may be what the file should hold, such as a header with a token. */
function hideNoPath(text: string): string {
  return text.startsWith('/') ? text : '***';
}

/** A row whose value is the path of a file, such as `example`, or `none`. */
function filePath(name: Variable['name'], example: string, meaning: string) {
  const must = `"none" or an absolute path such as "${example}"`;
  const read = readValueOrNone((text: string) => parseFilePath(text, must), hideNoPath);
  return { name, default: 'none', meaning, read } as const;
}

/** The policy for labelled pods passes an annotation that is not `python` on, for this to name it. */
const HOOKS_MUST =
  '"none" or an absolute path such as "/lastscrape-hooks" (the annotation lastscrape.dev/hook must be "python")';

/** Every variable, by its field of `Config` or `Config['limits']`. */
export const ROWS = {
  metricsUrl: {
    name: 'LASTSCRAPE_METRICS_URL',
    default: 'http://localhost:9646/metrics',
    defaultOtherwise: '`locust+` and `LOCUST_EXPORTER_URI`, if set',
    findDefault: (_: Above, { metricsUrl }: ExporterVariables) => metricsUrl,
    meaning:
      "the page to read: an `http:` URL without user and password; with a front also `file:///FILE`, `file:///FOLDER/` (its `*.prom`), `locust+http://HOST:PORT` (Locust's page, instead of its exporter), or `pushgateway://127.0.0.1:PORT` (what is pushed there, instead of to a Pushgateway)",
    read: readValue(parseMetricsUrl),
  },
  metricsHeadersFile: filePath(
    'LASTSCRAPE_METRICS_HEADERS_FILE',
    '/etc/locust/headers',
    "a file of headers for Locust's page, one `Name: value` a line, such as `Authorization` if the page asks for a login",
  ),
  front: {
    name: 'LASTSCRAPE_FRONT',
    default: 'none',
    defaultOtherwise: 'with `locust+`: `LOCUST_EXPORTER_WEB_LISTEN_ADDRESS`, or `9646`',
    findDefault: ({ metricsUrl }: Above, { front }: ExporterVariables) => (isLocustPage(metricsUrl) ? front : null),
    meaning:
      '`[HOST:]PORT` where lastscrape serves that page, and the last one once main is gone; PORT alone listens on all addresses; `none` does not listen',
    read: readValueOrNone(parseFrontAddress),
  },
  conditions: {
    name: 'LASTSCRAPE_DONE_WHEN',
    default: 'metric:locust_up,port:5557',
    defaultOtherwise: 'with `locust+`: `LOCUST_METRIC_NAMESPACE` and `_up`',
    findDefault: ({ metricsUrl }: Above, { namespace }: ExporterVariables) =>
      isLocustPage(metricsUrl) ? `metric:${namespace}_up,port:5557` : null,
    meaning: 'main is done when all of these hold',
    read: (text: string, { parseCondition }: ReadContext) => readList(text, parseCondition),
  },
  sidecars: {
    name: 'LASTSCRAPE_SIDECARS',
    default: 'none',
    meaning: 'containers that `container:*` does not wait for',
    read: (text: string) => readListOrNone(text, parseContainerName),
  },
  scrapesWantedCount: {
    name: 'LASTSCRAPE_SCRAPES',
    default: '1',
    defaultOtherwise: '`auto` with a front',
    findDefault: ({ front }: Above) => (hasFront(front) ? 'auto' : null),
    meaning: 'how many scrapes by others to wait for; `auto`: one by each active scraper; `0` does not hold',
    isLimit: true,
    read: readValue(parseScrapes),
  },
  ttlMs: limit('LASTSCRAPE_TTL', '90s', "how long to hold at most, counted from main's end; `0` does not hold"),
  targets: {
    name: 'LASTSCRAPE_QUIT',
    default: 'locust-exporter',
    defaultOtherwise: '`none` with `locust+`, `sigterm`, or a front but no `metric:locust_up`',
    findDefault: (above: Above) => (isLocustsExporter(above) ? null : 'none'),
    meaning: 'what to stop, in this order; `none` stops nothing',
    read: (text: string, { parseTarget }: ReadContext) => readListOrNone(text, parseTarget),
  },
  quitTimeoutMs: {
    name: 'LASTSCRAPE_QUIT_TIMEOUT',
    default: '30s',
    meaning: 'how long each target may take to be gone, from the first request; more than 0',
    read: readValue((text) => parseDuration(text, 1)),
  },
  pollMs: limit(
    'LASTSCRAPE_POLL',
    '1s',
    'from the start of one poll to the start of the next while main runs; at least `100ms`',
    100,
  ),
  settleMs: limit('LASTSCRAPE_SETTLE', '3s', 'how long "done" must hold without a break, in at least two polls'),
  startTimeoutMs: limit(
    'LASTSCRAPE_START_TIMEOUT',
    '10m',
    'how long to wait for a main that is not seen alive; `0` waits for ever',
  ),
  runTimeoutMs: limit(
    'LASTSCRAPE_RUN_TIMEOUT',
    '0',
    'how long main may run before it is treated as done; `0` sets no limit',
  ),
  terminationGraceMs: limit(
    'LASTSCRAPE_TERMINATION_GRACE',
    '25s',
    'how long to watch, hold and quit after SIGTERM; quitting gets at least 1 s, even with `0`',
  ),
  thresholds: {
    name: 'LASTSCRAPE_FAIL_IF',
    default: 'none',
    meaning:
      'a list of `METRIC[{label="value"}] OP NUMBER`, such as `locust_requests_fail_ratio > 0.01`: the exit code is 1 if one is true of main\'s last numbers, or cannot be judged; OP is `>`, `>=`, `<`, `<=`, `==` or `!=`',
    read: readThresholds,
  },
  terminationLog: {
    name: 'LASTSCRAPE_TERMINATION_LOG',
    default: TERMINATION_LOG,
    meaning: 'where the report goes; the default is used only if it exists',
    read: (text: string) => {
      const must = `an absolute path such as "${TERMINATION_LOG}"`;
      const result = readValue((each) => parseFilePath(each, must), hideNoPath)(text);
      return 'value' in result ? { value: { path: result.value, isChosen: result.value !== TERMINATION_LOG } } : result;
    },
  },
  tombstonePath: filePath(
    'LASTSCRAPE_TOMBSTONE',
    '/graveyard/lastscrape',
    "a tombstone to write to kubexit's graveyard when the hold ends; `none` writes none",
  ),
  hooksPath: {
    name: 'LASTSCRAPE_HOOKS',
    default: 'none',
    meaning: 'a folder, mounted in main too, for a hook that ends a Python program with a snapshot; `none` writes none',
    read: readValueOrNone((text) => parseFolderPath(text, HOOKS_MUST)),
  },
  handOver: {
    name: 'LASTSCRAPE_HAND_OVER',
    default: 'none',
    meaning:
      'what to do instead of the hold: the URL of a keeper (`lastscrape keep`), such as `http://lastscrape-keeper.monitoring.svc:9470`, which serves the last numbers until they were scraped; or `push`, where LASTSCRAPE_PUSH goes; `none` holds. If it fails, the hold begins',
    read: readValueOrNone(parseHandOver),
  },
  handOverPort: {
    name: 'LASTSCRAPE_HAND_OVER_AS',
    default: 'lastscrape/lastscrape',
    meaning: 'CONTAINER/PORT_NAME of the port that Prometheus scrapes, for a keeper: as the pod names it',
    read: readValue(parsePortName),
  },
  handOverFolder: {
    name: 'LASTSCRAPE_HAND_OVER_FOLDER',
    default: '/var/run/lastscrape/pod',
    meaning:
      "a folder for a keeper, with the pod's `token` for the audience `lastscrape`, `labels` and `annotations`, as a projected volume has them",
    read: readValue((text) => parseFolderPath(text, 'an absolute path such as "/var/run/lastscrape/pod"')),
  },
  push: {
    name: 'LASTSCRAPE_PUSH',
    default: 'none',
    meaning:
      'where to push the last numbers if no scrape took them: `pushgateway+http://…`, `remote-write+http://…` or `otlp+http://…`, each also with `https`; `none` pushes nothing',
    // Without its kind it may be a webhook's.
    read: readValueOrNone(parsePush, (text) => (/^[a-z-]+\+/.test(text) ? text : redactPathEntry(text))),
  },
  pushWhen: {
    name: 'LASTSCRAPE_PUSH_WHEN',
    default: 'expired',
    meaning: '`expired`: only if the wanted scrapes did not come; or `always`',
    read: readValue((text) => parseChoice(text, ['expired', 'always'])),
  },
  pushLabels: {
    name: 'LASTSCRAPE_PUSH_LABELS',
    default: 'none',
    meaning: 'labels to push with, `NAME=VALUE,…`; `namespace`, `pod` and `job` are added where they are known',
    // A header belongs into a file, and here its value is a secret too.
    read: (text: string) =>
      readListOrNone(text, parsePushLabel, (entry) => entry.replace(/^([\w-]+ *[:=] *).+/s, '$1***')),
  },
  pushHeadersFile: filePath(
    'LASTSCRAPE_PUSH_HEADERS_FILE',
    '/etc/push/headers',
    'a file of headers for the push, one `Name: value` a line, such as `Authorization`',
  ),
  webhook: {
    name: 'LASTSCRAPE_WEBHOOK',
    default: 'none',
    meaning: 'a URL that gets the report by POST, as JSON; `none` sends nothing',
    read: readValueOrNone(parseWebhook, redactPathEntry),
  },
  webhookHeadersFile: filePath(
    'LASTSCRAPE_WEBHOOK_HEADERS_FILE',
    '/etc/webhook/headers',
    'a file of headers for the webhook, one `Name: value` a line',
  ),
  caFile: filePath(
    'LASTSCRAPE_CA_FILE',
    '/etc/authorities/ca.crt',
    'a PEM file of authorities to trust in addition to the usual ones, for push and webhook',
  ),
  isExitZero: {
    name: 'LASTSCRAPE_EXIT_ZERO',
    default: 'false',
    meaning:
      'exit with 0; a failed `LASTSCRAPE_FAIL_IF` still exits with 1, except with `sigterm`; after a configuration error, only once main has ended',
    read: readValue(parseBoolean),
  },
  isDryRun: {
    name: 'LASTSCRAPE_DRY_RUN',
    default: 'false',
    meaning: 'do everything except quitting',
    read: readValue(parseBoolean),
  },
  logLevel: {
    name: 'LASTSCRAPE_LOG_LEVEL',
    default: 'info',
    meaning: '`debug`, `info`, `warn` or `error`',
    read: readValue((text) => parseChoice(text, ['debug', 'info', 'warn', 'error'])),
  },
} as const satisfies Readonly<Record<string, Row>>;

/** Every variable, in the order of `--help`. */
export const VARIABLES: readonly Variable[] = Object.values(ROWS);

type Rows = typeof ROWS;
type LimitField = { [Field in keyof Rows]: Rows[Field] extends { readonly isLimit: true } ? Field : never }[keyof Rows];
type ValueOf<Field extends keyof Rows> = Extract<ReturnType<Rows[Field]['read']>, { readonly value: unknown }>['value'];

/** All values: a field for each row of the table, the limits in a field of their own. */
export type Settings = { readonly [Field in Exclude<keyof Rows, LimitField>]: ValueOf<Field> } & {
  readonly limits: { readonly [Field in LimitField]: ValueOf<Field> };
};

type Readable<Fields> = { readonly [Field in keyof Fields]?: Fields[Field] | undefined };

/** The values that could be read; undefined: unreadable. */
export type ReadSettings = Readable<Omit<Settings, 'limits'>> & { readonly limits: Readable<Settings['limits']> };
