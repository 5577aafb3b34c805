// The newest numbers of a program that may be gone, and the families that vanished from it. Never decides.

import type { VanishedFate } from '../decide/serve/serve.ts';
import { BODY_MAX_BYTES } from '../exposition/exposition.ts';
import { END_LINE } from '../exposition/format.ts';
import { type Body, filterFamilies, openBody, readInTurns } from './body.ts';

/** A moment by both clocks, read once, since the wall clock may be set. `seconds`: since 1970. */
export type Moment = { readonly atMs: number; readonly seconds: number };

export type Snapshot = {
  readonly body: Body;
  /** When its newest read began. */
  readonly readAt: Moment;
  /** It has families that the newest answer has no sample of. */
  readonly hasVanished: boolean;
  /** When the oldest of them was read; without any `readAt`. */
  readonly oldestAtMs: number;
};

/** The newest numbers; each call takes its turn. */
export type SnapshotStore = {
  /** Waits for bodies that are being joined; null: none yet. */
  readonly newest: () => Promise<Snapshot | null>;
  /** For a store that begins with what is in this one. */
  readonly read: () => Promise<Stored>;
  /** Whether a body that may be cut lacks families, or lines of its last, unless the one before ended so. */
  readonly isShort: (body: Body, readAt: Moment) => Promise<boolean>;
  /** Keeps a whole, readable body after those before it; null: with what has vanished it is too large. */
  readonly keep: (body: Body, readAt: Moment, how: 'renewed' | 'joined') => Promise<Snapshot | null>;
  /**
   * Takes what a body has that was read earlier and has ended later: it has vanished from the newest since.
   */
  readonly takeOlder: (older: Body, readAtMs: number, now: 'living' | Moment) => Promise<void>;
  /** Joins what has vanished shortly before `atMs` with the newest, or forgets it. */
  readonly takeVanished: (fate: VanishedFate, atMs: number) => Promise<void>;
};

/** Families that a renewed body had no longer, when that was seen, and they alone as they were last read. */
type Vanished = {
  readonly families: ReadonlySet<string>;
  readonly seenAtMs: number;
  readonly body: Body;
  readonly readAtMs: number;
};

/** Where a body ends: its families, and the count of lines of the last. */
type Extent = { readonly families: ReadonlySet<string>; readonly lastCount: number };

/** The snapshot, the body as it was given, where the last short one ended, what vanished newest first. */
type Stored = readonly [Snapshot | null, Body | null, Extent | null, readonly Vanished[]];

/**
 * Opens a store, empty or with what is in another. `vanishedKeptMs`: how long what vanishes may be wanted
 * again.
 */
export function openSnapshotStore(vanishedKeptMs: number, from?: Pick<SnapshotStore, 'read'>): SnapshotStore {
  let [current, given, short, vanished]: Stored = [null, null, null, []];
  let last: Promise<unknown> = Promise.resolve(from?.read()).then((kept = [null, null, null, []]) => {
    [current, given, short, vanished] = kept;
  });

  async function isShort(body: Body, { atMs }: Moment): Promise<boolean> {
    if (atMs < (current?.readAt.atMs ?? atMs)) return false;
    const families = await body.families();
    const last = new Set([...families].slice(-1));
    const lastCount = await countLines(body, last);
    const isSame =
      short?.families.size === families.size &&
      findMissing(short.families, families).size === 0 &&
      short.lastCount === lastCount;
    const lacking = findMissing((await given?.families()) ?? NONE, families);
    const isWhole = lacking.size === 0 && (given === null || (await countLines(given, last)) <= lastCount);
    short = isSame || isWhole ? null : { families, lastCount };
    return short !== null;
  }
  async function keep(body: Body, readAt: Moment, how: 'renewed' | 'joined'): Promise<Snapshot | null> {
    short = null;
    if (how === 'joined') await restore(readAt.atMs);
    // A source without news gives the same body: joining 20 MB takes half a second of a processor.
    if (current !== null && body.page === given?.page && (how === 'joined' || !current.hasVanished)) {
      current = { ...current, readAt, ...(!current.hasVanished && { oldestAtMs: readAt.atMs }) };
      return current;
    }
    if (how === 'renewed') await rememberVanished(body, readAt.atMs);
    const old = how === 'joined' ? current : null;
    const lacking = old === null ? NONE : await findLacking(old.body, body);
    const hasVanished = old !== null && lacking.size > 0;
    const joined = hasVanished ? await joinBodies(body, old.body, lacking) : body;
    if (joined === null) return null;
    given = body;
    current = { body: joined, readAt, hasVanished, oldestAtMs: hasVanished ? old.oldestAtMs : readAt.atMs };
    return current;
  }
  /** Of an older body no more is kept than what the next one lacks: 30 MB must fit into 64 MiB. */
  async function rememberVanished(body: Body, atMs: number): Promise<void> {
    // What was joined for an end that was none vanishes again.
    const before = given !== null && current?.hasVanished ? current.body : given;
    const lacking = before === null ? NONE : await findLacking(before, body);
    const present = await body.families();
    vanished = vanished.filter(
      ({ families, seenAtMs }) =>
        atMs - seenAtMs <= vanishedKeptMs && [...families].some((each) => !present.has(each) && !lacking.has(each)),
    );
    if (before === null || lacking.size === 0) return;
    const rest = await copyFamilies(before, lacking);
    const readAtMs = current?.oldestAtMs ?? atMs;
    vanished = [{ families: lacking, seenAtMs: atMs, body: rest, readAtMs }, ...vanished];
  }
  async function takeOlder(older: Body, readAtMs: number, now: 'living' | Moment): Promise<void> {
    if (current === null) return;
    const lacking = await findLacking(older, current.body);
    if (lacking.size === 0) return;
    const rest = await copyFamilies(older, lacking);
    vanished = [...vanished, { families: lacking, seenAtMs: current.readAt.atMs, body: rest, readAtMs }];
    if (now !== 'living') await restore(now.atMs);
  }
  async function restore(atMs: number): Promise<void> {
    const recent = vanished.filter(({ seenAtMs }) => atMs - seenAtMs <= vanishedKeptMs);
    vanished = [];
    for (const { body: rest, readAtMs } of recent) {
      const { body, readAt, oldestAtMs } = current as Snapshot;
      const lacking = await findLacking(rest, body);
      const joined = lacking.size === 0 ? null : await joinBodies(body, rest, lacking);
      if (joined !== null)
        current = { body: joined, readAt, hasVanished: true, oldestAtMs: Math.min(oldestAtMs, readAtMs) };
    }
  }
  function inTurn<Value>(work: () => Promise<Value>): Promise<Value> {
    const done = last.then(work);
    last = done;
    return done;
  }

  return {
    newest: () => last.then(() => current),
    read: () => last.then(() => [current, given, short, vanished]),
    isShort: (...all: Parameters<typeof isShort>) => inTurn(() => isShort(...all)),
    keep: (...all: Parameters<typeof keep>) => inTurn(() => keep(...all)),
    takeOlder: (...all: Parameters<typeof takeOlder>) => inTurn(() => takeOlder(...all)),
    takeVanished: (fate, atMs) =>
      inTurn(async () => {
        if (fate === 'restored') return restore(atMs);
        vanished = [];
        given = null;
      }),
  };
}

const NONE: ReadonlySet<string> = new Set();

/** Whether a body has every family of a snapshot, which may be of another format. */
export async function hasFamiliesOf(body: Body, snapshot: Snapshot | null = null): Promise<boolean> {
  const families = new Set([...(await body.families())].map(nameSamples));
  const wanted = await snapshot?.body.families();
  return wanted !== undefined && [...wanted].every((family) => families.has(nameSamples(family)));
}

/** OpenMetrics has the family of a counter or an info without the suffix of its samples. */
function nameSamples(family: string): string {
  return family.replace(/_(?:created|info|total)$/, '');
}

/** None where the types differ: such bodies cannot be joined. */
async function findLacking(before: Body, now: Body): Promise<ReadonlySet<string>> {
  if (before.type.contentType !== now.type.contentType) return NONE;
  // One after the other: each unpacks its body.
  return findMissing(await before.families(), await now.families());
}

function findMissing(before: ReadonlySet<string>, now: ReadonlySet<string>): ReadonlySet<string> {
  return new Set([...before].filter((family) => !now.has(family)));
}

async function copyFamilies(from: Body, families: ReadonlySet<string>): Promise<Body> {
  if (families.size === (await from.families()).size) return from;
  const { body, push, end } = openBody(from.type);
  for await (const piece of readFamilies(from, families)) push(piece);
  end();
  return body;
}

async function countLines(body: Body, families: ReadonlySet<string>): Promise<number> {
  let count = 0;
  for await (const piece of readFamilies(body, families)) {
    for (let at = piece.indexOf(LINE_FEED_BYTE); at >= 0; at = piece.indexOf(LINE_FEED_BYTE, at + 1)) count++;
  }
  return count;
}

/** These families of a body, and nothing else. */
function readFamilies(body: Body, families: ReadonlySet<string>): AsyncGenerator<Uint8Array> {
  const { format } = body.type;
  return filterFamilies(readInTurns(body.read()), (family) => families.has(family), { keepsOther: false, format });
}

/** The newer body without the headers of vanished families, then these as they last were; null: too large. */
async function joinBodies(newer: Body, older: Body, vanished: ReadonlySet<string>): Promise<Body | null> {
  const { type } = newer;
  const { body, push, end } = openBody(type);
  const present = filterFamilies(readInTurns(newer.read()), (family) => !vanished.has(family), type);
  for await (const piece of present) push(piece);
  if (type.format === 'text' && !newer.endsWithLineFeed) push(LINE_FEED);
  for await (const piece of readFamilies(older, vanished)) {
    if (body.sizeBytes + piece.length > BODY_MAX_BYTES) return null;
    push(piece);
  }
  if (type.format === 'openMetrics') push(END_LINE);
  end();
  return body;
}

/** Ends an unterminated last line. */
export const LINE_FEED: Uint8Array = new Uint8Array([0x0a]);
const LINE_FEED_BYTE = 0x0a;
