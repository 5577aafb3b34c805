// The table of variables: a row for each, with its default, what it means, and how its text is read. Pure.

import type { ParseResult } from '../base/parse.ts';
import { redactPathEntry } from '../base/text.ts';
import type { Condition } from '../observe/condition.ts';
import type { Target } from '../quit/target.ts';
import type { ExporterVariables } from './exporter-variables.ts';
import { type ReadResult, readList, readListOrNone, readValue } from './lists.ts';
import { readThresholds } from './thresholds.ts';
import {
  type Front,
  isLocustPage,
  parseBoolean,
  parseDuration,
  parseFilePath,
  parseFront,
  parseLogLevel,
  parseMetricsUrl,
  parsePush,
  parsePushLabel,
  parsePushWhen,
  parseScrapes,
  parseTombstonePath,
  parseWebhook,
} from './values.ts';

/** A variable, as `--help` and the README show it. */
export type Variable = {
  readonly name: `LASTSCRAPE_${string}`;
  /** As the user would write it. */
  readonly default: string;
  /** How the default depends on other variables, to stand in parentheses behind the usual one. */
  readonly defaultOtherwise?: string;
  readonly meaning: string;
};

/** A row of the table: the variable, how its text is read, and where the value goes. */
export type Row = Variable & {
  /** Its field of `Config`, or of `Config['limits']`. */
  readonly field: string;
  /** The value is a limit of the rules. Default: false. */
  readonly isLimit?: true;
  /** The text of the default that `defaultOtherwise` tells of; null: the usual one counts. */
  readonly findDefault?: (above: Above, exporter: ExporterVariables) => string | null;
  readonly read: (text: string, context: ReadContext) => ReadResult<unknown>;
};

/** What rows above one have read, by their fields; undefined: it cannot be read. */
export type Above = {
  readonly metricsUrl?: URL | undefined;
  readonly front?: Front | null | undefined;
  readonly conditions?: readonly Condition[] | undefined;
};

/** What a value may be read beside. */
export type ReadContext = {
  /** The user set the variable; else the text is its default. */
  readonly isSet: boolean;
  readonly above: Above;
  readonly parseCondition: (entry: string) => ParseResult<Condition>;
  readonly parseTarget: (entry: string) => ParseResult<Target>;
};

/** Where the report goes; it counts also where other values are wrong. */
export const TERMINATION_LOG = {
  name: 'LASTSCRAPE_TERMINATION_LOG',
  default: '/dev/termination-log',
} as const;

function hasFront(front: Above['front']): boolean {
  return front !== undefined && front !== null;
}

/** Nobody's own program is asked to quit unless its user says so. */
function isLocustsExporter({ metricsUrl, front, conditions = [] }: Above): boolean {
  if ((metricsUrl !== undefined && metricsUrl.protocol !== 'http:') || conditions.some(({ isSignal }) => isSignal))
    return false;
  return !hasFront(front) || conditions.some(({ text }) => text === 'metric:locust_up');
}

/** Every variable but those of a kind of condition. A new variable is a row here, and one of the README's table. */
export const ROWS = [
  {
    name: 'LASTSCRAPE_METRICS_URL',
    default: 'http://localhost:9646/metrics',
    defaultOtherwise: '`locust+` and `LOCUST_EXPORTER_URI`, if set',
    findDefault: (_: Above, { metricsUrl }: ExporterVariables) => metricsUrl,
    meaning:
      "the exporter to watch and to count scrapes on; `http:`, without user and password; with a front also `file:///FILE`, or `file:///FOLDER/` for its `*.prom`, or `locust+http://HOST:PORT`, Locust's page, in the place of its exporter",
    field: 'metricsUrl',
    read: readValue(parseMetricsUrl),
  },
  {
    name: 'LASTSCRAPE_METRICS_HEADERS_FILE',
    default: 'none',
    meaning:
      "a file with headers for Locust's page, such as `Authorization` where it has a login: a line `Name: value` each",
    field: 'metricsHeadersFile',
    read: readValue((text) => parseFilePath(text, '/etc/locust/headers')),
  },
  {
    name: 'LASTSCRAPE_FRONT',
    default: 'none',
    defaultOtherwise: 'with that `LOCUST_EXPORTER_WEB_LISTEN_ADDRESS`, or `9646`',
    findDefault: ({ metricsUrl }: Above, { front }: ExporterVariables) => (isLocustPage(metricsUrl) ? front : null),
    meaning:
      '`[HOST:]PORT` on which lastscrape serves the metrics of `LASTSCRAPE_METRICS_URL`, the last ones when main is gone; PORT alone is all addresses; `none` listens nowhere',
    field: 'front',
    read: readValue(parseFront),
  },
  {
    name: 'LASTSCRAPE_DONE_WHEN',
    default: 'metric:locust_up,port:5557',
    defaultOtherwise: 'with that `LOCUST_METRIC_NAMESPACE`, and `_up`',
    findDefault: ({ metricsUrl }: Above, { namespace }: ExporterVariables) =>
      isLocustPage(metricsUrl) ? `metric:${namespace}_up,port:5557` : null,
    meaning: 'main is done when all of these hold',
    field: 'conditions',
    read: (text: string, { parseCondition }: ReadContext) => readList(text, parseCondition),
  },
  {
    name: 'LASTSCRAPE_SCRAPES',
    default: '1',
    defaultOtherwise: '`auto` with a front',
    findDefault: ({ front }: Above) => (hasFront(front) ? 'auto' : null),
    meaning: 'how many scrapes by others to wait for; `auto`: one by every scraper that lives; `0` does not hold',
    field: 'scrapesWantedCount',
    isLimit: true,
    read: (text: string, { above }: ReadContext) =>
      readValue((each) => parseScrapes(each, hasFront(above.front)))(text),
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
    defaultOtherwise: '`none` with `locust+`, `sigterm`, or a front but no `metric:locust_up`',
    findDefault: (above: Above) => (isLocustsExporter(above) ? null : 'none'),
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
    name: 'LASTSCRAPE_FAIL_IF',
    default: 'none',
    meaning:
      'a list of `METRIC[{label="value"}] OP NUMBER`, such as `locust_requests_fail_ratio > 0.01`: where one holds for the last numbers of main, or cannot be judged, the exit code is 1; OP is `>`, `>=`, `<`, `<=`, `==` or `!=`',
    field: 'thresholds',
    read: readThresholds,
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
    name: 'LASTSCRAPE_PUSH',
    default: 'none',
    meaning:
      'where the last numbers go when nobody came for them: `pushgateway+http://…`, `remote-write+http://…` or `otlp+http://…`, each with `https` as well; `none` pushes nothing',
    field: 'push',
    read: readValue(parsePush),
  },
  {
    name: 'LASTSCRAPE_PUSH_WHEN',
    default: 'expired',
    meaning: '`expired`: where the wanted scrapes did not come; `always`',
    field: 'pushWhen',
    read: (text: string, { isSet }: ReadContext) => {
      const result = readValue(parsePushWhen)(text);
      return 'value' in result ? { value: { when: result.value, isChosen: isSet } } : result;
    },
  },
  {
    name: 'LASTSCRAPE_PUSH_LABELS',
    default: 'none',
    meaning:
      'labels of what is pushed, `NAME=VALUE,…`; `namespace`, `pod` and `job` are there by themselves where they are known',
    field: 'pushLabels',
    read: (text: string) => readListOrNone(text, parsePushLabel),
  },
  {
    name: 'LASTSCRAPE_PUSH_HEADERS_FILE',
    default: 'none',
    meaning: 'a file with headers for the push, such as `Authorization`: a line `Name: value` each',
    field: 'pushHeadersFile',
    read: readValue((text) => parseFilePath(text, '/etc/push/headers')),
  },
  {
    name: 'LASTSCRAPE_WEBHOOK',
    default: 'none',
    meaning: 'a URL that gets the report by POST, as JSON; `none` tells nobody',
    field: 'webhook',
    read: readValue(parseWebhook, redactPathEntry),
  },
  {
    name: 'LASTSCRAPE_WEBHOOK_HEADERS_FILE',
    default: 'none',
    meaning: 'a file with headers for the webhook: a line `Name: value` each',
    field: 'webhookHeadersFile',
    read: readValue((text) => parseFilePath(text, '/etc/webhook/headers')),
  },
  {
    name: 'LASTSCRAPE_CA_FILE',
    default: 'none',
    meaning: 'a PEM file of authorities to trust beside the usual ones, for push and webhook',
    field: 'caFile',
    read: readValue((text) => parseFilePath(text, '/etc/authorities/ca.crt')),
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

/** What is read: a field for each row of the table, those of the limits together. */
export type Settings = {
  readonly [R in Exclude<AnyRow, LimitRow> as R['field']]: ValueFrom<R>;
} & {
  readonly limits: { readonly [R in LimitRow as R['field']]: ValueFrom<R> };
};

type Readable<Fields> = { readonly [Field in keyof Fields]?: Fields[Field] | undefined };

/** What of it could be read. */
export type ReadSettings = Readable<Omit<Settings, 'limits'>> & { readonly limits: Readable<Settings['limits']> };
