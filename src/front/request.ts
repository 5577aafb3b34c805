// What a request asks for: its path, the encoding that it takes, how long it waits. Pure.

/**
 * The normalised path without its query: `/%6Detrics` is `/metrics`, `/a%2fb` is `/a%2Fb`. Never resolves
 * dots or double slashes. Takes the absolute form too (RFC 9112, 3.2.2). Null: no path, such as `*`.
 */
export function readRequestPath(target: string): string | null {
  const [, origin, rest = ''] = /^(https?:\/\/[^/?#]*)?(.*)$/is.exec(target) ?? [];
  const path = rest.replace(/[?#].*$/s, '');
  if (origin !== undefined && path === '') return '/';
  return path.startsWith('/') ? path.split('/').map(writeSegment).join('/') : null;
}

function writeSegment(segment: string): string {
  try {
    return encodeURIComponent(decodeURIComponent(segment));
  } catch {
    return segment;
  }
}

/** A weight, as RFC 9110 writes it (12.5.3): 0 to 1 with at most three digits. */
const WEIGHT = /^(?:0(?:\.\d{0,3})?|1(?:\.0{0,3})?)$/;

/** What weighs most, zstd before gzip, and no less than identity; null: neither. Unreadable weights are 0. */
export function chooseEncoding(acceptEncoding: string, hasZstd: boolean): 'zstd' | 'gzip' | null {
  const weights = new Map<string, number>();
  for (const entry of acceptEncoding.split(',')) {
    const [coding = '', ...parameters] = entry.split(';').map((part) => part.trim().toLowerCase());
    const weight = parameters.find((parameter) => parameter.startsWith('q='))?.slice(2);
    weights.set(coding, weight === undefined ? 1 : WEIGHT.test(weight) ? Number(weight) : 0);
  }
  // Of "any other" (*) every client knows gzip.
  const gzip = weights.get('gzip') ?? weights.get('x-gzip') ?? weights.get('*') ?? 0;
  const zstd = hasZstd ? (weights.get('zstd') ?? 0) : 0;
  const most = Math.max(gzip, zstd);
  if (most === 0 || most < (weights.get('identity') ?? 0)) return null;
  return zstd === most ? 'zstd' : 'gzip';
}

/** Reserved for the network and for our families. */
const RESERVE_MS = 500;
/** Reads are one at a time: a patient scraper must not keep the others from theirs. */
const MAX_SECONDS = 120;

/** When a scraper with this header hangs up, counted from its request; infinite if unknown. Above 0. */
export function readScrapeDeadline(header: string | undefined): number {
  const seconds = readSeconds(header);
  return seconds > 0 ? seconds * 1000 : Number.POSITIVE_INFINITY;
}

/** How long a read may take with this X-Prometheus-Scrape-Timeout-Seconds. Above 0; null: unknown. */
export function readScrapeTimeout(header: string | undefined): number | null {
  const seconds = Math.min(readSeconds(header), MAX_SECONDS);
  if (seconds <= 0) return null;
  return seconds < 1 ? seconds * 500 : seconds * 1000 - RESERVE_MS;
}

/** 0 where it cannot be read. */
function readSeconds(header = ''): number {
  return /^\d+(?:\.\d+)?$/.test(header) ? Number(header) : 0;
}
