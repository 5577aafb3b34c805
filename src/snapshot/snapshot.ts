// The snapshot: the newest numbers of a program that may be gone, and the families that vanished from it.
// Decides nothing.

import { BODY_MAX_BYTES, type Reading } from '../exposition/exposition.ts';
import { type Body, openBody } from './body.ts';
import { filterFamilies } from './filter-families.ts';
import { readInTurns } from './in-turns.ts';

/** A moment by both clocks, read once: the wall clock may be set later, and what was shown must not move. */
export type Moment = {
  readonly atMs: number;
  /** Since 1970. */
  readonly seconds: number;
};

export type Snapshot = {
  readonly body: Body;
  /** When its newest read began. */
  readonly readAt: Moment;
  /** It has families that the newest answer has no sample of. */
  readonly hasVanished: boolean;
};

export type SnapshotStore = {
  /** Waits for bodies that are being joined, lest an older number be served after them; null: none yet. */
  readonly newest: () => Promise<Snapshot | null>;
  /**
   * Keeps a whole, readable body after those before it, and resolves with the snapshot that has it. null: with
   * what has vanished it is too large, and the snapshot stays as it was.
   */
  readonly keep: (body: Body, readAt: Moment, how: 'renewed' | 'joined') => Promise<Snapshot | null>;
};

export function openSnapshotStore(): SnapshotStore {
  let current: Snapshot | null = null;
  // The newest one that was kept, as it was given.
  let given: Body | null = null;
  let last: Promise<unknown> = Promise.resolve();
  return {
    newest: () => last.then(() => current),
    keep(body, readAt, how) {
      const kept = last.then(async () => {
        // A source without news gives the same body: joining 20 MB takes half a second of a processor.
        if (current !== null && body === given && (how === 'joined' || !current.hasVanished)) {
          current = { ...current, readAt };
          return current;
        }
        const vanished = how === 'joined' && current !== null ? await findVanished(current.body, body) : NONE;
        if (current === null || vanished.size === 0) {
          given = body;
          current = { body, readAt, hasVanished: false };
          return current;
        }
        const joined = await joinBodies(body, current.body, vanished);
        if (joined === null) return null;
        given = body;
        current = { body: joined, readAt, hasVanished: true };
        return current;
      });
      last = kept;
      return kept;
    },
  };
}

const NONE: ReadonlySet<string> = new Set();

async function findVanished(before: Body, now: Body): Promise<ReadonlySet<string>> {
  const [old, present] = await Promise.all([before.families(), now.families()]);
  return new Set([...old].filter((family) => !present.has(family)));
}

/**
 * The newer body without the headers of vanished families, then these as they last were. null: too large, as
 * with a source that has new names in each answer.
 */
async function joinBodies(newer: Body, older: Body, vanished: ReadonlySet<string>): Promise<Body | null> {
  const { body, push, end } = openBody();
  for await (const piece of filterFamilies(readInTurns(newer.read()), (family) => !vanished.has(family))) push(piece);
  if (!newer.endsWithLineFeed) push(LINE_FEED);
  const kept = filterFamilies(readInTurns(older.read()), (family) => vanished.has(family), { keepsOther: false });
  for await (const piece of kept) {
    if (body.sizeBytes + piece.length > BODY_MAX_BYTES) return null;
    push(piece);
  }
  end();
  return body;
}

/** The values of metrics in an answer; null where one cannot be read. */
export function readMetrics(names: readonly string[], metric: (name: string) => Reading): readonly (number | null)[] {
  return names.map((name) => {
    const reading = metric(name);
    return reading.kind === 'value' ? reading.value : null;
  });
}

/** Ends an unterminated last line. */
export const LINE_FEED: Uint8Array = new Uint8Array([0x0a]);
