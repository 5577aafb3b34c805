// How the text of a variable becomes a value, and back: durations, counts, switches, URLs, paths. Pure.
// A problem is the end of the sentence "must be …"; a value is never repaired.

import { describeHighPort, isPortNumber, type ParseResult } from '../base/parse.ts';
import type { LogLevel } from '../decide/messages.ts';
import { findMeantDuration } from './advice.ts';

/** Longest duration: a year. */
const DURATION_MAX_MS = 365 * 24 * 3_600_000;
const SCRAPES_MAX = 1_000;

/** `500ms`, `90s`, `1m30s`, `2h`, each unit at most once and the largest first; a bare integer is seconds. */
export function parseDuration(text: string, minMs = 0): ParseResult<number> {
  const [match, h = 0, m = 0, s = 0, ms = 0] = /^(?:(\d+)h)?(?:(\d+)m(?!s))?(?:(\d+)s)?(?:(\d+)ms)?$/.exec(text) ?? [];
  const isBare = /^\d+$/.test(text);
  if (!isBare && (match === undefined || match === '')) return describeDuration(text, minMs);
  const valueMs = isBare
    ? Number(text) * 1_000
    : Number(h) * 3_600_000 + Number(m) * 60_000 + Number(s) * 1_000 + Number(ms);
  if (valueMs < minMs) return { problem: `at least ${formatDuration(minMs)}` };
  if (valueMs > DURATION_MAX_MS) return { problem: `at most ${formatDuration(DURATION_MAX_MS)}` };
  return { value: valueMs };
}

/** What a duration must be that cannot be read: the same one, in our units, where it is another program's. */
function describeDuration(text: string, minMs: number): { readonly problem: string } {
  const plain = text.toLowerCase().replaceAll(/["'\s]/g, '');
  const meantMs = findMeantDuration(text);
  if (meantMs === null) return { problem: 'a duration such as "90s", "1m30s" or "500ms"' };
  if (plain !== text && 'value' in parseDuration(plain, minMs)) {
    return { problem: `written "${plain}"` };
  }
  const checked = parseDuration(formatDuration(meantMs), minMs);
  return 'value' in checked ? { problem: `written "${formatDuration(meantMs)}"` } : checked;
}

/** A duration as `parseDuration` reads it: `500ms`, `90s` as `1m30s`. */
export function formatDuration(ms: number): string {
  if (ms === 0) return '0';
  const units = [
    ['h', 3_600_000],
    ['m', 60_000],
    ['s', 1_000],
    ['ms', 1],
  ] as const;
  let leftMs = ms;
  return units
    .map(([unit, unitMs]) => {
      const count = Math.floor(leftMs / unitMs);
      leftMs -= count * unitMs;
      return count === 0 ? '' : `${count}${unit}`;
    })
    .join('');
}

/** How many scrapes to wait for; `auto`: one by every scraper. */
export function parseScrapes(text: string, hasFront: boolean): ParseResult<number | 'auto'> {
  if (text === 'auto') return { value: 'auto' };
  const count = Number(text);
  if (/^\d+$/.test(text) && count <= SCRAPES_MAX) return { value: count };
  return { problem: `a whole number from 0 to ${SCRAPES_MAX}${hasFront ? ', or "auto"' : ''}` };
}

/** The exporter's URL, or the file or folder that a front serves. */
export function parseMetricsUrl(text: string): ParseResult<URL> {
  const url = URL.parse(text);
  if (/^locust\+/i.test(text)) return url !== null && isPlainPage(text) ? { value: url } : { problem: LOCUST_URL };
  if (/^file:/i.test(text)) return url !== null && isPlainFile(text, url) ? { value: url } : { problem: FILE_URL };
  if (url === null || url.protocol !== 'http:' || url.username !== '' || url.password !== '' || url.port === '0') {
    const advice = /^locust:/i.test(text)
      ? '; for the page of Locust "locust+http://localhost:8089"'
      : describeHighPort(text);
    return { problem: `an http: URL without user and password, such as "http://localhost:9646/metrics"${advice}` };
  }
  return { value: url };
}

const LOCUST_URL =
  'a locust+http: URL without user, password and query, such as "locust+http://localhost:8089"; a path is that of --web-base-path, without /stats/requests';

/** Locust's own page is the source: lastscrape is in the place of its exporter. */
export function isLocustPage(url: URL | undefined): boolean {
  return url?.protocol === 'locust+http:';
}

/** It has an address, and a base path at most. */
function isPlainPage(text: string): boolean {
  const url = URL.parse(text.slice('locust+'.length));
  if (url === null || url.protocol !== 'http:' || url.port === '0' || url.pathname.includes('/stats/')) return false;
  return url.username === '' && url.password === '' && url.search === '' && url.hash === '';
}

const FILE_URL =
  'a file: URL with an absolute path and no host, such as "file:///shared/job.prom", or "file:///shared/metrics/" for a folder';

/** It has nothing but a path, which can be one of a file system. */
function isPlainFile(text: string, { pathname, search, hash }: URL): boolean {
  if (!/^file:\/\/(localhost)?\/[^/]/i.test(text) || search !== '' || hash !== '') return false;
  // A slash or NUL that is encoded, or what is no UTF-8, names no file.
  if (/%(2f|00)/i.test(pathname)) return false;
  try {
    decodeURIComponent(pathname);
    return true;
  } catch {
    return false;
  }
}

/** Where the front listens. */
export type Front = {
  /** An IP address, without brackets, or `localhost`; null: all addresses. */
  readonly host: string | null;
  readonly port: number;
  /** As the user wrote it. */
  readonly text: string;
};

/** `[HOST:]PORT`; null for `none`. */
export function parseFront(text: string): ParseResult<Front | null> {
  if (text === 'none') return { value: null };
  const [match, hostText = null, digits = ''] = /^(?:(.*):)?(\d+)$/s.exec(text) ?? [];
  const host = hostText === null ? null : readHost(hostText);
  if (match !== undefined && host !== undefined && isPortNumber(digits)) {
    return { value: { host, port: Number(digits), text } };
  }
  const meant = findMeantFront(text);
  const isName = meant === null && /^[\w.-]+:\d+$/.test(text) && /[a-z]/i.test(text);
  const advice =
    meant !== null
      ? `; did you mean "${meant}"?`
      : isName
        ? '; a name is no address: all of them are meant by the port alone'
        : describeHighPort(text);
  return {
    problem: `"none", or a port from 1 to 65535, with or without an IP address or localhost before it, such as "9469" or "[::1]:9469"${advice}`,
  };
}

const LOOPBACK = /^(localhost|127\..*|\[?::1\]?)$/;

/** Whether a connection to its port at a host, as a URL has it, comes to the front; without a lookup. */
export function isFrontAt({ host }: Front, hostname: string): boolean {
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

/** What somebody meant who wrote `:9469`, `*:9469`, a URL, or an IPv6 address without brackets; null where nothing is near. */
function findMeantFront(text: string): string | null {
  const [, digits = ''] = /^(?:[a-z]+:\/\/)?\*?:(\d+)\/?$/.exec(text) ?? [];
  if (isPortNumber(digits)) return digits;
  const [, host = '', port = ''] = /^(?:(?:http|tcp):\/\/)?([^/@]+):(\d+)(?:\/.*)?$/.exec(text) ?? [];
  if (!isPortNumber(port)) return null;
  if (readHost(host) !== undefined) return `${host}:${port}`;
  return host.includes(':') && readHost(`[${host}]`) !== undefined ? `[${host}]:${port}` : null;
}

/** An absolute path of a file; null for `none`. */
export function parseTombstonePath(text: string): ParseResult<string | null> {
  if (text === 'none') return { value: null };
  if (!/^\/.*[^/]$/.test(text)) return { problem: '"none" or an absolute path such as "/graveyard/lastscrape"' };
  return { value: text };
}

/** An absolute path of a file that is read, such as `example`; null for `none`. */
export function parseFilePath(text: string, example: string): ParseResult<string | null> {
  if (text === 'none') return { value: null };
  if (!/^\/.*[^/]$/.test(text)) return { problem: `"none" or an absolute path such as "${example}"` };
  return { value: text };
}

/** What receives the last exposition. */
export const RECEIVERS = ['pushgateway', 'remote-write', 'otlp'] as const;

/** Where the last exposition goes, and in which form. */
export type PushAddress = { readonly to: (typeof RECEIVERS)[number]; readonly url: URL };

/** `KIND+URL`; null for `none`. */
export function parsePush(text: string): ParseResult<PushAddress | null> {
  if (text === 'none') return { value: null };
  const [, name, rest = text] = /^([a-z-]+)\+(.*)$/is.exec(text) ?? [];
  const to = RECEIVERS.find((each) => each === name);
  const url = readWebUrl(rest);
  if (to !== undefined && typeof url !== 'string') return { value: { to, url } };
  const kinds = '"pushgateway+", "remote-write+" or "otlp+" and an http: or https: URL';
  if (to === undefined) return { problem: `${kinds}, such as "pushgateway+http://pushgateway:9091", or "none"` };
  return {
    problem: `${kinds}${url === 'credentials' ? describeCredentials('PUSH') : `, such as "${to}+${RECEIVER_EXAMPLES[to]}"`}`,
  };
}

const RECEIVER_EXAMPLES: Readonly<Record<PushAddress['to'], string>> = {
  pushgateway: 'http://pushgateway:9091',
  'remote-write': 'http://prometheus:9090/api/v1/write',
  otlp: 'http://prometheus:9090/api/v1/otlp/v1/metrics',
};

/** Who is told by POST; null for `none`. */
export function parseWebhook(text: string): ParseResult<URL | null> {
  if (text === 'none') return { value: null };
  const url = readWebUrl(text);
  if (typeof url !== 'string') return { value: url };
  const must = 'an http: or https: URL';
  return { problem: url === 'credentials' ? `${must}${describeCredentials('WEBHOOK')}` : `${must}, or "none"` };
}

/** A URL of the web without user and password, or what it is instead. */
function readWebUrl(text: string): URL | 'credentials' | 'none' {
  const url = /^https?:\/\/[^/]/i.test(text) ? URL.parse(text) : null;
  if (url === null || url.port === '0') return 'none';
  return url.username === '' && url.password === '' ? url : 'credentials';
}

function describeCredentials(variable: 'PUSH' | 'WEBHOOK'): string {
  return ` without user and password; put a line such as "Authorization: Bearer …" into the file of LASTSCRAPE_${variable}_HEADERS_FILE`;
}

/** When the last exposition is pushed: where the wanted scrapes did not come, or always. */
export function parsePushWhen(text: string): ParseResult<'expired' | 'always'> {
  if (text === 'expired' || text === 'always') return { value: text };
  return { problem: '"expired" or "always"' };
}

/** One label, `name=value`. Names that begin with two underscores are Prometheus's own (its data model). */
export function parsePushLabel(text: string): ParseResult<readonly [name: string, value: string]> {
  const [, name = '', value = ''] = /^([a-zA-Z_][a-zA-Z0-9_]*)\s*=\s*(.+)$/s.exec(text) ?? [];
  if (name === '' || name.startsWith('__')) {
    return { problem: 'NAME=VALUE such as "job=checkout", its name of letters, digits and "_", and not "__" at first' };
  }
  if (/^(["']).*\1$/s.test(value)) return { problem: `written without quotes, as "${name}=${value.slice(1, -1)}"` };
  return { value: [name, value] };
}

/** `true` or `false`, and nothing that means the same. */
export function parseBoolean(text: string): ParseResult<boolean> {
  if (text !== 'true' && text !== 'false') return { problem: '"true" or "false"' };
  return { value: text === 'true' };
}

/** The least level that is logged. */
export function parseLogLevel(text: string): ParseResult<LogLevel> {
  if (text === 'debug' || text === 'info' || text === 'warn' || text === 'error') return { value: text };
  return { problem: '"debug", "info", "warn" or "error"' };
}
