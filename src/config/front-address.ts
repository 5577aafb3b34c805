// Where the front listens: how LASTSCRAPE_FRONT is read, and which addresses reach it. Pure.

import { describeHighPort, isPortNumber, type ParseResult } from '../base/parse.ts';

/** Where the front listens. */
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
  const meant = suggestFrontAddress(text);
  const isName = /^[\w.-]+:\d+$/.test(text) && /[a-z]/i.test(text);
  const advice =
    meant !== null
      ? `; did you mean "${meant}"?`
      : isName
        ? '; host names are not looked up: use the port alone to listen on all addresses'
        : describeHighPort(text);
  return {
    problem: `"none", or a port from 1 to 65535, with or without an IP address or localhost before it, such as "9469" or "[::1]:9469"${advice}`,
  };
}

const LOOPBACK = /^(localhost|127\..*|\[?::1\]?)$/;

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

/** The address meant by `:9469`, `*:9469`, a URL, or an IPv6 address without brackets; null if unclear. */
function suggestFrontAddress(text: string): string | null {
  const [, digits = ''] = /^(?:[a-z]+:\/\/)?\*?:(\d+)\/?$/.exec(text) ?? [];
  if (isPortNumber(digits)) return digits;
  const [, host = '', port = ''] = /^(?:(?:http|tcp):\/\/)?([^/@]+):(\d+)(?:\/.*)?$/.exec(text) ?? [];
  if (!isPortNumber(port)) return null;
  if (readHost(host) !== undefined) return `${host}:${port}`;
  return host.includes(':') && readHost(`[${host}]`) !== undefined ? `[${host}]:${port}` : null;
}
