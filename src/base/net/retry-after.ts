// How long a server asks to wait: its Retry-After. Pure.

import type { Headers } from './exchange.ts';

/** A day, well within the 24.8 days of a timer. */
const RETRY_AFTER_MAX_MS = 24 * 60 * 60 * 1000;

/**
 * How long Retry-After asks to wait (RFC 9110, 10.2.3), in ms, a day at most; 0 if absent, odd or past.
 * A date is compared with the server's own (`Date`), since its clock may differ; else with `nowMs` (epoch).
 */
export function readRetryAfter(headers: Headers, nowMs: number): number {
  const text = readFirst(headers['retry-after']);
  if (/^\d+$/.test(text)) return Math.min(Number(text) * 1_000, RETRY_AFTER_MAX_MS);
  const atMs = readDate(text);
  if (atMs === null) return 0;
  return Math.min(Math.max(0, atMs - (readDate(readFirst(headers['date'])) ?? nowMs)), RETRY_AFTER_MAX_MS);
}

function readFirst(header: string | string[] | undefined): string {
  return ((Array.isArray(header) ? header[0] : header) ?? '').trim();
}

/** A date in one of the three forms of RFC 9110, 5.6.7, all UTC; other forms of Date.parse are rejected. */
function readDate(text: string): number | null {
  if (!/^(Mon|Tue|Wed|Thu|Fri|Sat|Sun)/.test(text)) return null;
  const atMs = Date.parse(text.endsWith('GMT') ? text : `${text} GMT`);
  return Number.isNaN(atMs) ? null : atMs;
}
