// The variables that the Locust operator, or whoever runs Locust's exporter, sets on its container: where they are set lastscrape
// takes its place. Pure. Source: main.go of locust_exporter 0.5.2; the operator sets the first two.

import { quote } from './entries.ts';
import { parseFront, parseMetricsUrl } from './values.ts';

/** The environment, as `process.env` gives it. */
export type Environment = Readonly<Record<string, string | undefined>>;

export const EXPORTER_URI = 'LOCUST_EXPORTER_URI';
const LISTEN_ADDRESS = 'LOCUST_EXPORTER_WEB_LISTEN_ADDRESS';
const TELEMETRY_PATH = 'LOCUST_EXPORTER_WEB_TELEMETRY_PATH';
const NAMESPACE = 'LOCUST_METRIC_NAMESPACE';

/** The exporter's own defaults. */
const DEFAULTS = { front: '9646', path: '/metrics', namespace: 'locust' };

/** What the exporter would do, in the words of our own variables; a value that cannot be read is its default here. */
export type ExporterVariables = {
  /** What METRICS_URL is by default; null: this is not the exporter's place. */
  readonly metricsUrl: string | null;
  /** What FRONT is by default, with Locust's page as the source; null: nobody says. */
  readonly front: string | null;
  /** What the names of metrics begin with. */
  readonly namespace: string;
  /** Where the front serves them, beside /metrics. */
  readonly path: string;
};

export type ExporterProblem = { readonly name: string; readonly problem: string };

/** Reads them; a front that is switched off by our own variable is no exporter. */
export function readExporterVariables(env: Environment): ExporterVariables {
  const uri = isTaken(env) ? readText(env, EXPORTER_URI) : '';
  const address = readText(env, LISTEN_ADDRESS);
  const path = readText(env, TELEMETRY_PATH);
  const namespace = readText(env, NAMESPACE);
  return {
    metricsUrl: uri !== '' && isUri(uri) ? `locust+${uri}` : null,
    front: (address === '' ? null : findFront(address)) ?? (uri === '' ? null : DEFAULTS.front),
    namespace: isNamespace(namespace) ? namespace : DEFAULTS.namespace,
    path: isPath(path) ? path : DEFAULTS.path,
  };
}

/** What of them cannot be read; `isLocust`: Locust's page is the source, by them or by METRICS_URL. */
export function listExporterProblems(env: Environment, isLocust: boolean): readonly ExporterProblem[] {
  const problems: ExporterProblem[] = [];
  const check = (name: string, isReadable: (text: string) => boolean, must: string) => {
    const text = readText(env, name);
    if (text !== '' && !isReadable(text)) problems.push({ name, problem: `it is ${quote(text)}; must be ${must}` });
  };
  if (isTaken(env)) {
    check(
      EXPORTER_URI,
      isUri,
      'an http: URL without user, password and query, such as "http://localhost:8089", without /stats/requests; or set LASTSCRAPE_METRICS_URL, which counts instead',
    );
  }
  if (isLocust) {
    if (readText(env, 'LASTSCRAPE_FRONT') === '') {
      check(
        LISTEN_ADDRESS,
        (text) => findFront(text) !== null,
        'a port with or without an IP address, such as ":9646"',
      );
    }
    check(TELEMETRY_PATH, isPath, 'a path such as "/metrics", and none that begins with "/-/"');
    check(NAMESPACE, isNamespace, 'letters, digits and "_", no digit first, such as "locust"');
  }
  return problems;
}

/** Our own variables do not say what is to be read. */
function isTaken(env: Environment): boolean {
  return readText(env, 'LASTSCRAPE_METRICS_URL') === '' && readText(env, 'LASTSCRAPE_FRONT') !== 'none';
}

function isUri(text: string): boolean {
  return 'value' in parseMetricsUrl(`locust+${text}`);
}

/** Go's `:9646` is all addresses. */
function findFront(address: string): string | null {
  const front = address.replace(/^:/, '');
  const parsed = parseFront(front);
  return 'value' in parsed && parsed.value !== null ? front : null;
}

function isNamespace(text: string): boolean {
  return /^[a-zA-Z_:][a-zA-Z0-9_:]*$/.test(text);
}

function isPath(text: string): boolean {
  return /^\/[^?#\s]*$/.test(text) && !/^\/(-\/|quitquitquit$)/.test(text);
}

function readText(env: Environment, name: string): string {
  return env[name]?.trim() ?? '';
}
