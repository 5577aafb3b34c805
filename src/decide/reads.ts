// Which read of the source begins next, and which one gives way to it. Pure.

/** How long a read that no scrape shares may go on while one waits. */
export const OWN_READ_MS = 1_000;
/** A read that has shown no header for this long may hang: another one begins beside it. */
export const SILENT_READ_MS = 3_000;
const READS_MAX_COUNT = 2;

/** A read that is under way. */
export type OngoingRead = {
  readonly begunAtMs: number;
  /** Its header has come. */
  readonly hasBegun: boolean;
  /** No scrape shares it, or none any more: what it shows is kept. */
  readonly isOwn: boolean;
};

/** What to do at `atMs`, unless something happens before. */
export type ReadMove<Read extends OngoingRead> =
  | { readonly kind: 'begin'; readonly atMs: number }
  | { readonly kind: 'giveWay'; readonly atMs: number; readonly read: Read };

/**
 * The next move for a request that waits; null: none until a read ends. An own read gives way to a scrape
 * once (`hasGivenWay`), then the oldest one has its time, or impatient scrapers would never let it end.
 */
export function findReadMove<Read extends OngoingRead>(
  oldestFirst: readonly Read[],
  { isForScrape, hasGivenWay }: { readonly isForScrape: boolean; readonly hasGivenWay: boolean },
): ReadMove<Read> | null {
  const [oldest] = oldestFirst;
  if (oldest === undefined) return { kind: 'begin', atMs: Number.NEGATIVE_INFINITY };
  const own = oldestFirst.filter(({ isOwn }) => isOwn);
  const read = isForScrape ? own[hasGivenWay ? 1 : own.length - 1] : undefined;
  if (read !== undefined) return { kind: 'giveWay', atMs: read.begunAtMs + OWN_READ_MS, read };
  if (oldestFirst.length === READS_MAX_COUNT || oldest.hasBegun) return null;
  return { kind: 'begin', atMs: oldest.begunAtMs + SILENT_READ_MS };
}
