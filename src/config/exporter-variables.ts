// The variables of Locust's exporter: set by the Locust operator on lastscrape's container, they put it in
// the exporter's place. Pure. Source: main.go of locust_exporter 0.5.2; the operator sets the first two.

import { type Environment, readVariable } from '../base/parse.ts';
import { type Problem, quote } from './entries.ts';
import { LOCUST_TLS, parseFrontAddress, parseMetricsUrl } from './values.ts';

/** The variable that puts lastscrape in the exporter's place. */
export const EXPORTER_URI = 'LOCUST_EXPORTER_URI';
const LISTEN_ADDRESS = 'LOCUST_EXPORTER_WEB_LISTEN_ADDRESS';
const TELEMETRY_PATH = 'LOCUST_EXPORTER_WEB_TELEMETRY_PATH';
const NAMESPACE = 'LOCUST_METRIC_NAMESPACE';

const URI_USAGE =
  'an http: URL without user, password and query, such as "http://localhost:8089", without /stats/requests; or set LASTSCRAPE_METRICS_URL, which takes precedence';

/** The exporter's own defaults. */
const DEFAULTS = { front: '9646', path: '/metrics', namespace: 'locust' };

/** What the exporter would do, as our own variables put it; an unreadable value counts as its default. */
export type ExporterVariables = {
  /** The default of METRICS_URL; null: lastscrape is not in the exporter's place. */
  readonly metricsUrl: string | null;
  /** The default of FRONT if Locust's page is the source; null: the usual one. */
  readonly front: string | null;
  /** The prefix of the metrics' names. */
  readonly namespace: string;
  /** The path that the front serves in addition to /metrics. */
  readonly path: string;
};

/** Reads them; with LASTSCRAPE_FRONT=none lastscrape is not in the exporter's place. */
export function readExporterVariables(env: Environment): ExporterVariables {
  const uri = isTaken(env) ? readVariable(env, EXPORTER_URI) : '';
  const address = readVariable(env, LISTEN_ADDRESS);
  const path = readVariable(env, TELEMETRY_PATH);
  const namespace = readVariable(env, NAMESPACE);
  return {
    metricsUrl: uri !== '' && isUri(uri) ? `locust+${uri}` : null,
    front: (address === '' ? null : findFront(address)) ?? (uri === '' ? null : DEFAULTS.front),
    namespace: isNamespace(namespace) ? namespace : DEFAULTS.namespace,
    path: isPath(path) ? path : DEFAULTS.path,
  };
}

/** Lists unreadable values; `isLocust`: Locust's page is the source, by them or by METRICS_URL. */
export function listExporterProblems(env: Environment, isLocust: boolean): readonly Problem[] {
  const problems: Problem[] = [];
  const check = (name: string, isReadable: (text: string) => boolean, must: string) => {
    const text = readVariable(env, name);
    if (text !== '' && !isReadable(text)) problems.push({ name, problem: `it is ${quote(text)}; must be ${must}` });
  };
  if (isTaken(env)) {
    const isTls = /^https:/i.test(readVariable(env, EXPORTER_URI));
    check(EXPORTER_URI, isUri, isTls ? LOCUST_TLS : URI_USAGE);
  }
  if (isLocust) {
    if (readVariable(env, 'LASTSCRAPE_FRONT') === '') {
      check(
        LISTEN_ADDRESS,
        (text) => findFront(text) !== null,
        'a port with or without an IP address, such as ":9646"',
      );
    }
    check(TELEMETRY_PATH, isPath, 'a path such as "/metrics" that does not begin with "/-/"');
    check(NAMESPACE, isNamespace, 'letters, digits and "_", no digit first, such as "locust"');
  }
  return problems;
}

/** Whether our own variables leave open what to read. */
function isTaken(env: Environment): boolean {
  return readVariable(env, 'LASTSCRAPE_METRICS_URL') === '' && readVariable(env, 'LASTSCRAPE_FRONT') !== 'none';
}

function isUri(text: string): boolean {
  return 'value' in parseMetricsUrl(`locust+${text}`);
}

/** In Go `:9646` means all addresses. */
function findFront(address: string): string | null {
  const front = address.replace(/^:/, '');
  return 'value' in parseFrontAddress(front) ? front : null;
}

function isNamespace(text: string): boolean {
  return /^[a-zA-Z_:][a-zA-Z0-9_:]*$/.test(text);
}

function isPath(text: string): boolean {
  return /^\/[^?#\s]*$/.test(text) && !/^\/(-\/|quitquitquit$)/.test(text);
}
