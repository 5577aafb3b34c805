// The variables of Locust's exporter: set by the Locust operator on lastscrape's container, they put it in
// the exporter's place. Pure. Source: main.go of locust_exporter 0.5.2; the operator sets the first two.

import { type Environment, type Parse, type ParseResult, readVariable } from '../base/parse.ts';
import { type Problem, quote } from './entries.ts';
import { LOCUST_TLS, parseFrontAddress, parseMetricsUrl } from './values.ts';

/** The variable that puts lastscrape in the exporter's place. */
export const EXPORTER_URI = 'LOCUST_EXPORTER_URI';

const URI_USAGE =
  'an http: URL without user, password and query, such as "http://localhost:8089", without /stats/requests; or set LASTSCRAPE_METRICS_URL, which takes precedence';

/** What the exporter would do, as our own variables put it. */
export type ExporterVariables = ReturnType<typeof readExporterVariables>;

/** Reads them where our own variables leave it open; an unreadable value counts as its default. */
export function readExporterVariables(env: Environment) {
  const problems: Problem[] = [];
  function read(name: string, parse: Parse<string>): string | null {
    const text = readVariable(env, name);
    if (text === '') return null;
    const parsed = parse(text);
    if ('value' in parsed) return parsed.value;
    problems.push({ name, problem: `it is ${quote(text)}; must be ${parsed.problem}` });
    return null;
  }
  const ownFront = readVariable(env, 'LASTSCRAPE_FRONT');
  const isTaken = readVariable(env, 'LASTSCRAPE_METRICS_URL') === '' && ownFront !== 'none';
  const metricsUrl = isTaken ? read(EXPORTER_URI, parseUri) : null;
  const address = ownFront === '' ? read('LOCUST_EXPORTER_WEB_LISTEN_ADDRESS', parseAddress) : null;
  return {
    /** The default of METRICS_URL; null: lastscrape is not in the exporter's place. */
    metricsUrl,
    /** The default of FRONT if Locust's page is the source; null: the usual one. */
    front: address ?? (metricsUrl === null ? null : '9646'),
    /** The path that the front serves in addition to /metrics. */
    path: read('LOCUST_EXPORTER_WEB_TELEMETRY_PATH', parsePath) ?? '/metrics',
    /** The prefix of the metrics' names. */
    namespace: read('LOCUST_METRIC_NAMESPACE', parseNamespace) ?? 'locust',
    /** Those of other variables than the URI count only if Locust's page is the source. */
    problems,
  };
}

function parseUri(text: string): ParseResult<string> {
  const value = `locust+${text}`;
  if ('value' in parseMetricsUrl(value)) return { value };
  return { problem: /^https:/i.test(text) ? LOCUST_TLS : URI_USAGE };
}

/** In Go `:9646` means all addresses. */
function parseAddress(text: string): ParseResult<string> {
  const value = text.replace(/^:/, '');
  if ('value' in parseFrontAddress(value)) return { value };
  return { problem: 'a port with or without an IP address, such as ":9646"' };
}

function parsePath(text: string): ParseResult<string> {
  const isPath = /^\/[^?#\s]*$/.test(text) && !/^\/(-\/|quitquitquit$)/.test(text);
  return isPath ? { value: text } : { problem: 'a path such as "/metrics" that does not begin with "/-/"' };
}

function parseNamespace(text: string): ParseResult<string> {
  if (/^[a-zA-Z_:][a-zA-Z0-9_:]*$/.test(text)) return { value: text };
  return { problem: 'letters, digits and "_", no digit first, such as "locust"' };
}
