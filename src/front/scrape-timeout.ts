// How long a scraper waits for its answer, by the header that it sends. Pure.

/** Without a readable header: as an own poll. */
const UNKNOWN_MS = 15_000;
/** Reserved for the network and for our families. */
const RESERVE_MS = 500;
/** Reads are one at a time: a patient scraper must not keep the others from theirs. */
const MAX_SECONDS = 120;

/** When a scraper with this header hangs up, counted from its request; infinite if unknown. Above 0. */
export function readScrapeDeadline(header: string | undefined): number {
  const seconds = readSeconds(header);
  return seconds > 0 ? seconds * 1000 : Number.POSITIVE_INFINITY;
}

/** How long a read may take for a scraper with this X-Prometheus-Scrape-Timeout-Seconds. Above 0. */
export function readScrapeTimeout(header: string | undefined): number {
  const seconds = Math.min(readSeconds(header), MAX_SECONDS);
  if (seconds <= 0) return UNKNOWN_MS;
  return seconds < 1 ? seconds * 500 : seconds * 1000 - RESERVE_MS;
}

/** 0 where it cannot be read. */
function readSeconds(header = ''): number {
  return /^\d+(?:\.\d+)?$/.test(header) ? Number(header) : 0;
}
