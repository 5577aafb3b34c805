// The header Retry-After: how long a server wants to be left alone (RFC 9110, 10.2.3: seconds, or a date).

type Headers = Readonly<Record<string, string | string[] | undefined>>;

/** A timer takes no more than 24.8 days, and nobody waits so long. */
const MAX_MS = 24 * 60 * 60 * 1000;

/**
 * The time in milliseconds, at most a day; 0 where there is none, where it cannot be read, and where it is over. A date is compared
 * with the server's own (`Date`), whose clock may be another than ours; `nowMs`, since the epoch, where it says none.
 */
export function readRetryAfter(headers: Headers, nowMs: number): number {
  const text = readFirst(headers['retry-after']);
  if (/^\d+$/.test(text)) return Math.min(Number(text) * 1_000, MAX_MS);
  const atMs = readDate(text);
  if (atMs === null) return 0;
  return Math.min(Math.max(0, atMs - (readDate(readFirst(headers['date'])) ?? nowMs)), MAX_MS);
}

function readFirst(header: string | string[] | undefined): string {
  return ((Array.isArray(header) ? header[0] : header) ?? '').trim();
}

/** In any of the three forms of RFC 9110, 5.6.7, all of which are UTC; what else Date.parse takes is none. */
function readDate(text: string): number | null {
  if (!/^(Mon|Tue|Wed|Thu|Fri|Sat|Sun)/.test(text)) return null;
  const atMs = Date.parse(text.endsWith('GMT') ? text : `${text} GMT`);
  return Number.isNaN(atMs) ? null : atMs;
}
