// The variables of `lastscrape keep`: a row for each, as in variables.ts. Pure.

import { type Environment, type ParseResult, readVariable } from '../base/parse.ts';
import { cut, findNearest, joinNames } from '../base/text.ts';
import { type ReadResult, readValue, SHOWN_MAX_LENGTH } from './entries.ts';
import { parseChoice, parseDuration, parseFolderPath, parseFrontAddress } from './values.ts';
import type { Row, Variable } from './variables.ts';

const UNITS: Readonly<Record<string, number>> = { Mi: 1024 ** 2, Gi: 1024 ** 3 };

/** Reads `256Mi` or `1Gi`: at least 16 MiB. */
function parseSize(text: string): ParseResult<number> {
  const [, digits = '', unit = ''] = /^(\d{1,5})(Mi|Gi)$/.exec(text) ?? [];
  const sizeBytes = Number(digits) * (UNITS[unit] ?? 0);
  return sizeBytes >= 16 * 1024 ** 2
    ? { value: sizeBytes }
    : { problem: 'a size such as "256Mi" or "1Gi", at least "16Mi"' };
}

function parseCount(text: string): ParseResult<number> {
  const count = /^\d{1,6}$/.test(text) ? Number(text) : 0;
  return count >= 1 ? { value: count } : { problem: 'a whole number from 1 to 999999' };
}

const KEEP_ROWS = {
  listenAt: {
    name: 'LASTSCRAPE_KEEPER_LISTEN',
    default: '9470',
    meaning: '`[HOST:]PORT` where pods hand over',
    read: readValue(parseFrontAddress),
  },
  serveAt: {
    name: 'LASTSCRAPE_KEEPER_SERVE',
    default: '9471',
    meaning: '`[HOST:]PORT` where Prometheus finds `/targets`, the pages and `/metrics`; not for pods',
    read: readValue(parseFrontAddress),
  },
  folder: {
    name: 'LASTSCRAPE_KEEPER_FOLDER',
    default: '/var/lib/lastscrape',
    meaning: 'the folder of the pages',
    read: readValue((text) => parseFolderPath(text, 'an absolute path such as "/var/lib/lastscrape"')),
  },
  maxBytes: {
    name: 'LASTSCRAPE_KEEPER_SIZE',
    default: '256Mi',
    meaning: 'what all pages may take up in the folder, packed; pods that come then hold',
    read: readValue(parseSize),
  },
  maxPages: {
    name: 'LASTSCRAPE_KEEPER_PAGES',
    default: '10000',
    meaning: 'how many pages may be kept',
    read: readValue(parseCount),
  },
  auth: {
    name: 'LASTSCRAPE_KEEPER_AUTH',
    default: 'token',
    meaning: '`token`: a pod proves who it is by a token that the API server checks; `none`: pods are believed',
    read: readValue((text) => parseChoice(text, ['token', 'none'])),
  },
  terminationGraceMs: {
    name: 'LASTSCRAPE_TERMINATION_GRACE',
    default: '25s',
    meaning: 'how long after SIGTERM pages are served that were not scraped yet',
    read: readValue((text) => parseDuration(text)),
  },
} as const satisfies Readonly<Record<string, Variable & { readonly read: (text: string) => ReturnType<Row['read']> }>>;

type Rows = typeof KEEP_ROWS;

/** The settings of `lastscrape keep`: a field for each row. */
export type KeepConfig = {
  readonly [Field in keyof Rows]: Extract<ReturnType<Rows[Field]['read']>, { readonly value: unknown }>['value'];
};

/** Every variable of `lastscrape keep`, in the order of its `--help`. */
export const KEEP_VARIABLES: readonly Variable[] = Object.values(KEEP_ROWS);

/** Not of Kubernetes, which sets `LASTSCRAPE_KEEPER_PORT` and others for a Service of that name. */
const OWN = /^LASTSCRAPE_KEEPER_(?!SERVICE_|PORT(_|$))/;

/** Reads the configuration of `lastscrape keep`, or every problem of it. */
export function readKeepConfig(
  env: Environment,
): { readonly config: KeepConfig } | { readonly problems: readonly string[] } {
  const names: readonly string[] = KEEP_VARIABLES.map(({ name }) => name);
  const problems = Object.keys(env)
    .filter((name) => OWN.test(name) && !names.includes(name))
    .sort()
    .map((name) => {
      const advice = `did you mean ${joinNames(findNearest(name, names), 'or')}?`;
      return `Cannot use ${cut(name, SHOWN_MAX_LENGTH)}: unknown variable; ${advice}`;
    });
  const fields = Object.entries(KEEP_ROWS).map(([field, row]) => {
    const result: ReadResult<unknown> = row.read(readVariable(env, row.name) || row.default);
    if ('value' in result) return [field, result.value];
    problems.push(...result.problems.map((problem) => `Cannot read ${row.name}: ${problem}`));
    return [field, undefined];
  });
  const config = Object.fromEntries(fields);
  const { listenAt, serveAt } = config;
  if (listenAt?.port !== undefined && listenAt.port === serveAt?.port) {
    problems.push(
      `Cannot use LASTSCRAPE_KEEPER_SERVE: port ${serveAt.port} is the one of LASTSCRAPE_KEEPER_LISTEN; must be another`,
    );
  }
  return problems.length > 0 ? { problems } : { config };
}
