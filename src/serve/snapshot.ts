// The snapshot: the newest numbers of a program that may be gone. Renewed while main lives; from its end on a new answer takes with
// it what has vanished, so that no number goes back.

import { type Body, openBody } from './body.ts';
import { filterFamilies } from './filter-families.ts';

export type Snapshot = {
  readonly body: Body;
  /** When the newest read began that is in it. */
  readonly readAtMs: number;
  /** Families are in it that the newest answer had no sample of any more. */
  readonly hasVanished: boolean;
};

export type SnapshotStore = {
  /** null before the first. */
  readonly current: () => Snapshot | null;
  /** Keeps a whole, readable body; resolves when it is the snapshot. One after the other, in the order of the calls. */
  readonly keep: (body: Body, readAtMs: number, how: 'renewed' | 'joined') => Promise<Snapshot>;
};

export function openSnapshotStore(): SnapshotStore {
  let current: Snapshot | null = null;
  let last: Promise<unknown> = Promise.resolve();
  return {
    current: () => current,
    keep(body, readAtMs, how) {
      const kept = last.then(async () => {
        const vanished = how === 'joined' && current !== null ? await findVanished(current.body, body) : NONE;
        current =
          current === null || vanished.size === 0
            ? { body, readAtMs, hasVanished: false }
            : { body: await joinBodies(body, current.body, vanished), readAtMs, hasVanished: true };
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

/** The newer body, without the headers of the families that have vanished from it, and these as they last were. */
async function joinBodies(newer: Body, older: Body, vanished: ReadonlySet<string>): Promise<Body> {
  const { body, push, end } = openBody();
  for await (const piece of filterFamilies(newer.read(), (family) => !vanished.has(family))) push(piece);
  if (!newer.endsWithLineFeed) push(LINE_FEED);
  const kept = filterFamilies(older.read(), (family) => vanished.has(family), { keepsOther: false });
  for await (const piece of kept) push(piece);
  end();
  return body;
}

/** Ends a last line that has no end. */
export const LINE_FEED: Uint8Array = new Uint8Array([0x0a]);
