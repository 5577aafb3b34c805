// Which read of the source begins next, and which one gives way to it. Pure.

/** How long a read that no scrape shares may go on while one waits. */
export const OWN_READ_MS = 1_000;
/** A read that has shown no header for this long may hang: a second one begins. */
export const SILENT_READ_MS = 3_000;
const READS_MAX_COUNT = 2;

/** A read that is under way. */
export type OngoingRead = {
  readonly begunAtMs: number;
  /** Its header has come. */
  readonly hasBegun: boolean;
  /** No scrape shares it, or none any more: what it shows is kept. */
  readonly isOwn: boolean;
  /** It reads main's last numbers. */
  readonly isLast: boolean;
  /** One that asked for the same formats gave way, and none of these has shown anything since. */
  readonly hasGivenWay: boolean;
};

/** What waits for a read: a scrape, an own poll, or main's last numbers, which nothing may keep away. */
export type ReadNeed = 'scrape' | 'poll' | 'last';

/** What to do at `atMs`, unless something happens before. */
export type ReadMove<Read extends OngoingRead> =
  | { readonly kind: 'begin'; readonly atMs: number }
  | { readonly kind: 'giveWay'; readonly atMs: number; readonly read: Read };

/**
 * The next move for what is needed most; null: none until a read ends. An own read gives way to a scrape
 * once, then it has its time, or impatient scrapers would never let it end. One that was under way before
 * the last numbers were wanted may hang in main's end: it gives way to theirs.
 */
export function findReadMove<Read extends OngoingRead>(
  oldestFirst: readonly Read[],
  need: ReadNeed,
): ReadMove<Read> | null {
  const [oldest] = oldestFirst;
  if (oldest === undefined) return { kind: 'begin', atMs: Number.NEGATIVE_INFINITY };
  const own = oldestFirst.filter(({ isOwn }) => isOwn);
  const kept = own.find(({ isLast, hasGivenWay }) => (need === 'last' ? isLast : hasGivenWay));
  const read = need === 'poll' ? undefined : own.findLast((each) => each !== kept);
  if (read !== undefined) return { kind: 'giveWay', atMs: read.begunAtMs + OWN_READ_MS, read };
  if (oldestFirst.length === READS_MAX_COUNT || (oldest.hasBegun && need !== 'last')) return null;
  return { kind: 'begin', atMs: oldest.begunAtMs + SILENT_READ_MS };
}
