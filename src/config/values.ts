// How the text of a variable becomes a value, and back: durations, counts, URLs, addresses, paths. Pure.
// A problem completes the sentence "must be …"; a value is never repaired.

import { CONTAINER_NAME, isPortNumber, LOOPBACK, orNull, type ParseResult } from '../base/parse.ts';
import { joinQuoted } from '../base/text.ts';

const DURATION_MAX_MS = 365 * 24 * 3_600_000;
const SCRAPES_MAX = 1_000;

const DURATION = /^(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?(?:(\d+)ms)?$/;
const UNITS_MS = { h: 3_600_000, m: 60_000, s: 1_000, ms: 1 };

/**
 * Reads `500ms`, `90s`, `1m30s`, `2h`: each unit at most once, the largest first; a bare integer is seconds.
 * @returns milliseconds
 */
export function parseDuration(text: string, minMs = 0): ParseResult<number> {
  const [match = '', ...counts] = DURATION.exec(/^\d+$/.test(text) ? `${text}s` : text) ?? [];
  if (match === '') return { problem: 'a duration such as "90s", "1m30s" or "500ms"' };
  const unitsMs = Object.values(UNITS_MS);
  const valueMs = unitsMs.reduce((sumMs, unitMs, index) => sumMs + unitMs * Number(counts[index] ?? 0), 0);
  if (valueMs < minMs) return { problem: `at least ${formatDuration(minMs)}` };
  if (valueMs > DURATION_MAX_MS) return { problem: `at most ${formatDuration(DURATION_MAX_MS)}` };
  return { value: valueMs };
}

/** Writes a duration as `parseDuration` reads it: `500ms`, `1m30s`. */
export function formatDuration(ms: number): string {
  if (ms === 0) return '0';
  let leftMs = ms;
  return Object.entries(UNITS_MS)
    .map(([unit, unitMs]) => {
      const count = Math.floor(leftMs / unitMs);
      leftMs -= count * unitMs;
      return count === 0 ? '' : `${count}${unit}`;
    })
    .join('');
}

/** Reads how many scrapes to wait for; `auto`: one by every scraper. */
export function parseScrapes(text: string): ParseResult<number | 'auto'> {
  if (text === 'auto') return { value: 'auto' };
  const count = Number(text);
  if (/^\d+$/.test(text) && count <= SCRAPES_MAX) return { value: count };
  return { problem: `"auto", or a whole number from 0 to ${SCRAPES_MAX}` };
}

/** Reads the URL of an exporter, or of what a front serves: Locust's page, a file, a folder, or pushes. */
export function parseMetricsUrl(text: string): ParseResult<URL> {
  const url = URL.parse(text);
  if (/^locust\+https:/i.test(text)) return { problem: LOCUST_TLS };
  if (/^locust\+/i.test(text)) return url !== null && isPlainPage(text) ? { value: url } : { problem: LOCUST_URL };
  if (/^pushgateway:/i.test(text)) return url !== null && isPlainPush(url) ? { value: url } : { problem: PUSH_URL };
  if (/^file:/i.test(text)) return url !== null && isPlainFile(text, url) ? { value: url } : { problem: FILE_URL };
  if (url === null || url.protocol !== 'http:' || url.username !== '' || url.password !== '' || url.port === '0') {
    return { problem: 'an http: URL without user and password, such as "http://localhost:9646/metrics"' };
  }
  return { value: url };
}

const LOCUST_URL =
  'a locust+http: URL without user, password and query, such as "locust+http://localhost:8089", with the path of --web-base-path if it is set, and without /stats/requests';

/** What a page of Locust over TLS must be instead. */
export const LOCUST_TLS =
  'an http: URL: TLS is not supported; start Locust without --tls-cert, or keep locust_exporter';

/** Whether the source is Locust's own page: lastscrape then takes the place of Locust's exporter. */
export function isLocustPage(url: URL | undefined): boolean {
  return url?.protocol === 'locust+http:';
}

/** Whether it has nothing but an address and maybe a base path. */
function isPlainPage(text: string): boolean {
  const url = URL.parse(text.slice('locust+'.length));
  if (url === null || url.protocol !== 'http:' || url.port === '0' || url.pathname.includes('/stats/')) return false;
  return isBare(url);
}

/** Whether it has no user, password, query and fragment. */
function isBare({ username, password, search, hash }: URL): boolean {
  return [username, password, search, hash].join('') === '';
}

const PUSH_URL =
  'a pushgateway: URL with a loopback address and a port, such as "pushgateway://127.0.0.1:9091": lastscrape takes pushes there, from within the pod only';

/** Whether the source is what is pushed to lastscrape, in the place of a Pushgateway. */
export function isPushUrl(url: URL | undefined): boolean {
  return url?.protocol === 'pushgateway:';
}

export function readPushAddress({ hostname, port, host }: URL): FrontAddress {
  return { host: hostname.replace(/^\[(.*)\]$/, '$1'), port: Number(port), text: host };
}

/** Whether it has nothing but a loopback address and a port. */
function isPlainPush(url: URL): boolean {
  return isBare(url) && /^\/?$/.test(url.pathname) && !['', '0'].includes(url.port) && LOOPBACK.test(url.hostname);
}

const FILE_URL =
  'a file: URL with an absolute path and no host, such as "file:///shared/job.prom", or "file:///shared/metrics/" for a folder';

/** Whether it has nothing but a path, and one that a file system can have. */
function isPlainFile(text: string, { pathname, search, hash }: URL): boolean {
  if (!/^file:\/\/(localhost)?\/[^/]/i.test(text) || search !== '' || hash !== '') return false;
  // No file name has an encoded slash or NUL, or invalid UTF-8.
  return !/%(2f|00)/i.test(pathname) && orNull(() => decodeURIComponent(pathname)) !== null;
}

/** Reads the absolute path of a file; `must`: what the text must be. */
export function parseFilePath(text: string, must: string): ParseResult<string> {
  return /^\/.*[^/]$/.test(text) ? { value: text } : { problem: must };
}

/** Reads the absolute path of a folder, with or without a slash at its end. */
export function parseFolderPath(text: string, must: string): ParseResult<string> {
  return parseFilePath(text.replace(/\/$/, ''), must);
}

/** Where each kind of receiver usually listens. */
const RECEIVERS = {
  pushgateway: 'http://pushgateway:9091',
  'remote-write': 'http://prometheus:9090/api/v1/write',
  otlp: 'http://prometheus:9090/api/v1/otlp/v1/metrics',
};

/** Where to push the last exposition, and in which form. */
type PushAddress = { readonly to: keyof typeof RECEIVERS; readonly url: URL };

/** Reads `KIND+URL`. */
export function parsePush(text: string): ParseResult<PushAddress> {
  const [, name, rest = text] = /^([a-z-]+)\+(.*)$/is.exec(text) ?? [];
  const names = Object.keys(RECEIVERS) as readonly PushAddress['to'][];
  const to = names.find((each) => each === name);
  const kinds = `${joinQuoted(names.map((each) => `${each}+`))} and`;
  if (to === undefined) {
    const example = `pushgateway+${RECEIVERS.pushgateway}`;
    return { problem: `${kinds} an http: or https: URL, such as "${example}", or "none"` };
  }
  const parsed = parseWebUrl(rest, 'PUSH', `, such as "${to}+${RECEIVERS[to]}"`);
  if ('problem' in parsed) return { problem: `${kinds} ${parsed.problem}` };
  const hasPushPath = to === 'pushgateway' && /\/metrics(\/|\/job[@/].*)?$/.test(parsed.value.pathname);
  return hasPushPath ? { problem: PUSH_PATH } : { value: { to, url: parsed.value } };
}

const PUSH_PATH = `without /metrics and what follows, such as "pushgateway+${RECEIVERS.pushgateway}"; the labels go in LASTSCRAPE_PUSH_LABELS`;

/** What may replace the hold: the push, or the keeper at that URL. */
type HandOverTarget = { readonly kind: 'push' } | { readonly kind: 'keeper'; readonly url: URL };

/** Reads `push`, or the URL of a keeper. */
export function parseHandOver(text: string): ParseResult<HandOverTarget> {
  if (text === 'push') return { value: { kind: 'push' } };
  const url = /^http:\/\/[^/]/i.test(text) ? URL.parse(text) : null;
  if (url !== null && url.port !== '0' && isBare(url) && url.pathname === '/')
    return { value: { kind: 'keeper', url } };
  const example = 'http://lastscrape-keeper.monitoring.svc:9470';
  return { problem: `"none", "push", or the http: URL of a keeper without a path, such as "${example}"` };
}

/** Reads the name of a container. */
export function parseContainerName(text: string): ParseResult<string> {
  return CONTAINER_NAME.test(text) ? { value: text } : { problem: 'the name of a container such as "istio-proxy"' };
}

/** Reads the name of a container, and of one of its ports. */
export function parsePortName(text: string): ParseResult<{ readonly container: string; readonly portName: string }> {
  const [, container, portName] = /^([a-z0-9-]{1,63})\/([a-z0-9-]{0,15})$/.exec(text) ?? [];
  if (container !== undefined && portName !== undefined) return { value: { container, portName } };
  return { problem: 'CONTAINER/PORT_NAME, such as "lastscrape/lastscrape", or "main/" where the port has no name' };
}

export function parseWebhook(text: string): ParseResult<URL> {
  return parseWebUrl(text, 'WEBHOOK', ', or "none"');
}

/** Reads an http: or https: URL without user and password. `advice` ends the problem of what is not a URL. */
function parseWebUrl(text: string, variable: 'PUSH' | 'WEBHOOK', advice: string): ParseResult<URL> {
  const url = /^https?:\/\/[^/]/i.test(text) ? URL.parse(text) : null;
  if (url === null || url.port === '0') return { problem: `an http: or https: URL${advice}` };
  if (url.username === '' && url.password === '') return { value: url };
  return {
    problem: `an http: or https: URL without user and password; put a line such as "Authorization: Bearer …" into the file of LASTSCRAPE_${variable}_HEADERS_FILE`,
  };
}

/** Reads one label, `NAME=VALUE`. Prometheus reserves names that begin with `__` (its data model). */
export function parsePushLabel(text: string): ParseResult<readonly [name: string, value: string]> {
  const [, name = '', value = ''] = /^([a-zA-Z_][a-zA-Z0-9_]*)\s*=\s*(.+)$/s.exec(text) ?? [];
  if (name === '' || name.startsWith('__')) {
    return {
      problem:
        'NAME=VALUE such as "job=checkout", with a name of letters, digits and "_" that does not begin with "__"',
    };
  }
  if (/^(["']).*\1$/s.test(value)) return { problem: `written without quotes, as ${name}=…` };
  return { value: [name, value] };
}

/** Reads one of a few words. */
export function parseChoice<const Word extends string>(text: string, words: readonly Word[]): ParseResult<Word> {
  const value = words.find((each) => each === text);
  return value === undefined ? { problem: joinQuoted(words) } : { value };
}

/** Reads `true` or `false`, and no synonyms. */
export function parseBoolean(text: string): ParseResult<boolean> {
  const parsed = parseChoice(text, ['true', 'false']);
  return 'value' in parsed ? { value: parsed.value === 'true' } : parsed;
}

export type FrontAddress = {
  /** An IP address, without brackets, or `localhost`; null: all addresses. */
  readonly host: string | null;
  readonly port: number;
  /** As the user wrote it. */
  readonly text: string;
};

/** Reads `[HOST:]PORT`. */
export function parseFrontAddress(text: string): ParseResult<FrontAddress> {
  const [match, hostText = null, digits = ''] = /^(?:(.*):)?(\d+)$/s.exec(text) ?? [];
  const host = hostText === null ? null : readHost(hostText);
  if (match !== undefined && host !== undefined && isPortNumber(digits)) {
    return { value: { host, port: Number(digits), text } };
  }
  const isName = /^[\w.-]+:\d+$/.test(text) && /[a-z]/i.test(text);
  const name = isName ? '; host names are not looked up: use the port alone to listen on all addresses' : '';
  return {
    problem: `"none", or a port from 1 to 65535, with or without an IP address or localhost before it, such as "9469" or "[::1]:9469"${name}`,
  };
}

/** Whether a connection to `hostname`, as in a URL, and the front's port reaches the front; no lookup. */
export function isFrontAt({ host }: FrontAddress, hostname: string): boolean {
  const isAll = host === null || host === '0.0.0.0' || host === '::';
  if (LOOPBACK.test(hostname) || hostname === '0.0.0.0' || hostname === '[::]') return isAll || LOOPBACK.test(host);
  return hostname === host || hostname === `[${host}]`;
}

/** An IP address in its usual spelling, or `localhost`; undefined for anything else. */
function readHost(text: string): string | undefined {
  if (text === 'localhost') return text;
  if (/^\d+(\.\d+){3}$/.test(text)) return URL.parse(`http://${text}`)?.hostname === text ? text : undefined;
  return /^\[.*\]$/.test(text) ? URL.parse(`http://${text}`)?.hostname.slice(1, -1) : undefined;
}
