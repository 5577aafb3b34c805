// The newest numbers of a program that may be gone, and the families that vanished from it. Never decides.

import { BODY_MAX_BYTES, type Reading } from '../exposition/exposition.ts';
import { type Body, filterFamilies, openBody, readInTurns } from './body.ts';

/** A moment by both clocks, read once, since the wall clock may be set. `seconds`: since 1970. */
export type Moment = { readonly atMs: number; readonly seconds: number };

export type Snapshot = {
  readonly body: Body;
  /** When its newest read began. */
  readonly readAt: Moment;
  /** It has families that the newest answer has no sample of. */
  readonly hasVanished: boolean;
};

export type SnapshotStore = {
  /** Waits for bodies that are being joined; null: none yet. */
  readonly newest: () => Promise<Snapshot | null>;
  /** Keeps a whole, readable body after those before it; null: with what has vanished it is too large. */
  readonly keep: (body: Body, readAt: Moment, how: 'renewed' | 'joined') => Promise<Snapshot | null>;
};

/** Opens an empty store. */
export function openSnapshotStore(): SnapshotStore {
  let current: Snapshot | null = null;
  // The newest one that was kept, as it was given.
  let given: Body | null = null;
  let last: Promise<unknown> = Promise.resolve();

  async function join(body: Body, readAt: Moment, how: 'renewed' | 'joined'): Promise<Snapshot | null> {
    // A source without news gives the same body: joining 20 MB takes half a second of a processor.
    if (current !== null && body === given && (how === 'joined' || !current.hasVanished)) {
      current = { ...current, readAt };
      return current;
    }
    const old = how === 'joined' ? current : null;
    const vanished = old === null ? new Set<string>() : await findVanished(old.body, body);
    const hasVanished = old !== null && vanished.size > 0;
    const joined = hasVanished ? await joinBodies(body, old.body, vanished) : body;
    if (joined === null) return null;
    given = body;
    current = { body: joined, readAt, hasVanished };
    return current;
  }

  return {
    newest: () => last.then(() => current),
    keep(body, readAt, how) {
      const kept = last.then(() => join(body, readAt, how));
      last = kept;
      return kept;
    },
  };
}

async function findVanished(before: Body, now: Body): Promise<ReadonlySet<string>> {
  const [old, present] = await Promise.all([before.families(), now.families()]);
  return new Set([...old].filter((family) => !present.has(family)));
}

/** The newer body without the headers of vanished families, then these as they last were; null: too large. */
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
