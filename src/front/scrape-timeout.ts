// How long a scraper waits for its answer, by the header that it sends. Pure.

/** Where the header is missing or cannot be read: an own poll's longest wait (src/observe/exporter.ts). */
const UNKNOWN_MS = 15_000;
/** Kept back of the scraper's time, for the way and for what is appended. */
const RESERVE_MS = 500;
/** Reads are one at a time: whoever says that it waits for longer must not keep all others from theirs. */
const MAX_SECONDS = 120;

/** When a scraper that sends this hangs up, from its request on; infinite where nobody can say. Above 0. */
export function readScrapeDeadline(header: string | undefined): number {
  const seconds = readSeconds(header);
  return seconds > 0 ? seconds * 1000 : Number.POSITIVE_INFINITY;
}

/** The time that a read may take for a scraper that sends this as X-Prometheus-Scrape-Timeout-Seconds. Above 0. */
export function readScrapeTimeout(header: string | undefined): number {
  const seconds = Math.min(readSeconds(header), MAX_SECONDS);
  if (seconds <= 0) return UNKNOWN_MS;
  return seconds < 1 ? seconds * 500 : seconds * 1000 - RESERVE_MS;
}

/** 0 where it cannot be read. */
function readSeconds(header = ''): number {
  return /^\d+(?:\.\d+)?$/.test(header) ? Number(header) : 0;
}
