// The newest numbers of a program that may be gone, and the families that vanished from it. Never decides.

import type { VanishedFate } from '../decide/serve/serve.ts';
import { BODY_MAX_BYTES } from '../exposition/exposition.ts';
import { joinLines } from '../exposition/exposition-text.ts';
import { END_LINE, type Format } from '../exposition/format.ts';
import { listFamilyLines } from '../exposition/samples.ts';
import { type Body, filterFamilies, openBody, readFamilies, readInTurns } from './body.ts';

/** A moment by both clocks, read once, since the wall clock may be set. `seconds`: since 1970. */
export type Moment = { readonly atMs: number; readonly seconds: number };

export type Snapshot = {
  readonly body: Body;
  /** When its newest read began. */
  readonly readAt: Moment;
  /** When each family was read that the newest answer has no sample of. */
  readonly vanishedAtMs: ReadonlyMap<string, number>;
  /** When the oldest of them was read; without any `readAt`. */
  readonly oldestAtMs: number;
};

/** The newest numbers; each call takes its turn. */
export type SnapshotStore = {
  /** Waits for bodies that are being joined; null: none yet. */
  readonly newest: () => Promise<Snapshot | null>;
  /** For a store that begins with what is in this one. */
  readonly read: () => Promise<Stored>;
  /** Whether a body that may be cut lacks families, or lines of its last, unless one like it came before. */
  readonly isShort: (body: Body, readAt: Moment) => Promise<boolean>;
  /** Keeps a whole, readable body after those before it; null: with what has vanished it is too large. */
  readonly keep: (body: Body, readAt: Moment, how: 'renewed' | 'joined') => Promise<Snapshot | null>;
  /**
   * Takes what a body has that was read earlier and has ended later: it has vanished from the newest since.
   */
  readonly takeOlder: (older: Body, readAt: Moment, now: 'living' | Moment) => Promise<void>;
  /** Joins what has vanished shortly before `atMs` with the newest, or forgets it. */
  readonly takeVanished: (fate: VanishedFate, atMs: number) => Promise<void>;
};

/** Families that a renewed body had no longer, when that was seen, and they alone as they were last read. */
type Vanished = { readonly families: ReadonlySet<string>; readonly seenAtMs: number; readonly last: Snapshot };

/** The snapshot, the body as it was given, the families of the last short one, what vanished newest first. */
type Stored = readonly [Snapshot | null, Body | null, ReadonlySet<string> | null, readonly Vanished[]];

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
    // Of the last family each may have fewer lines than the one before: items that are worked off.
    const isConfirmed = short?.symmetricDifference(families).size === 0;
    const last = new Set([...families].slice(-1));
    const hasLast = async () => given === null || (await countLines(given, last)) <= (await countLines(body, last));
    const lacking = ((await given?.families()) ?? NONE).difference(families);
    short = isConfirmed || (lacking.size === 0 && (await hasLast())) ? null : families;
    return short !== null;
  }
  async function keep(body: Body, readAt: Moment, how: 'renewed' | 'joined'): Promise<Snapshot | null> {
    short = null;
    if (how === 'joined') await restore(readAt.atMs);
    // A source without news gives the same body: joining 20 MB takes half a second of a processor.
    if (current !== null && body.page === given?.page && (how === 'joined' || current.vanishedAtMs.size === 0)) {
      current = buildSnapshot(current.body, readAt, current.vanishedAtMs);
      return current;
    }
    const next = buildSnapshot(body, readAt);
    if (how === 'renewed') await rememberVanished(next);
    const joined = how === 'joined' && current !== null ? await join(next, current) : next;
    if (joined !== null) [current, given] = [joined, body];
    return joined;
  }
  /** Of an older body no more is kept than what the next one lacks: 30 MB must fit into 64 MiB. */
  async function rememberVanished(next: Snapshot): Promise<void> {
    const { atMs } = next.readAt;
    // What was joined for an end that was none vanishes again.
    const before = given === null || current === null ? null : await translate(current, next.body.type.format);
    const lacking = before === null ? NONE : await findNewer(next, before);
    const present = await next.body.families();
    const isLacking = ({ families }: Vanished) => !families.isSubsetOf(present);
    vanished = vanished.filter((each) => atMs - each.seenAtMs <= vanishedKeptMs && isLacking(each));
    if (before !== null) await remember(before, lacking, atMs);
  }
  async function remember(last: Snapshot, families: ReadonlySet<string>, seenAtMs: number): Promise<void> {
    if (families.size === 0) return;
    const body = await copyFamilies(last.body, families);
    vanished = [{ families, seenAtMs, last: { ...last, body } }, ...vanished];
  }
  async function takeOlder(body: Body, readAt: Moment, now: 'living' | Moment): Promise<void> {
    if (current === null) return;
    const older = await translate(buildSnapshot(body, readAt), current.body.type.format);
    await remember(older, await findNewer(current, older), current.readAt.atMs);
    if (now !== 'living') await restore(now.atMs);
  }
  async function restore(atMs: number): Promise<void> {
    const recent = vanished.filter(({ seenAtMs }) => atMs - seenAtMs <= vanishedKeptMs);
    vanished = [];
    for (const { last } of recent) if (current !== null) current = (await join(current, last)) ?? current;
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
        [vanished, given] = [[], null];
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

function buildSnapshot(body: Body, readAt: Moment, vanishedAtMs: Snapshot['vanishedAtMs'] = new Map()): Snapshot {
  const oldestAtMs = [...vanishedAtMs.values()].reduce((oldest, atMs) => Math.min(oldest, atMs), readAt.atMs);
  return { body, readAt, vanishedAtMs, oldestAtMs };
}

function findReadMs({ vanishedAtMs, readAt }: Snapshot, family: string): number {
  return vanishedAtMs.get(family) ?? readAt.atMs;
}

/** What the other one has that a snapshot lacks, or has of an earlier read. */
async function findNewer(to: Snapshot, other: Snapshot): Promise<ReadonlySet<string>> {
  // Bodies of different formats cannot be joined; parameters such as a charset do not matter.
  if (other.body.type.format !== to.body.type.format) return NONE;
  // One after the other: each unpacks its body.
  const families = await other.body.families();
  const present = await to.body.families();
  const isNewer = (family: string) => !present.has(family) || findReadMs(other, family) > findReadMs(to, family);
  return new Set([...families].filter(isNewer));
}

/** The snapshot with what the other one has that it lacks, or has of an earlier read; null: too large. */
async function join(to: Snapshot, from: Snapshot): Promise<Snapshot | null> {
  const other = await translate(from, to.body.type.format);
  const newer = await findNewer(to, other);
  const body = newer.size === 0 ? to.body : await joinBodies(to.body, other.body, newer);
  const readMs = [...newer].map((family) => [family, findReadMs(other, family)] as const);
  return body && buildSnapshot(body, to.readAt, new Map([...to.vanishedAtMs, ...readMs]));
}

/** OpenMetrics as text where it is joined with text: Istio's merged page, once its program is gone. */
async function translate(from: Snapshot, format: Format): Promise<Snapshot> {
  if (format !== 'text' || from.body.type.format !== 'openMetrics') return from;
  const { body, push, end } = openBody();
  for await (const family of readFamilies(readInTurns(from.body.read()), 'openMetrics')) {
    for (const text of joinLines([listFamilyLines(family)])) push(Buffer.from(text));
  }
  end();
  return { ...from, body };
}

async function copyFamilies(from: Body, families: ReadonlySet<string>): Promise<Body> {
  if (families.size === (await from.families()).size) return from;
  const { body, push, end } = openBody(from.type);
  for await (const piece of listLinesOf(from, families)) push(piece);
  end();
  return body;
}

async function countLines(body: Body, families: ReadonlySet<string>): Promise<number> {
  let count = 0;
  for await (const piece of listLinesOf(body, families)) {
    for (let at = piece.indexOf(LINE_FEED_BYTE); at >= 0; at = piece.indexOf(LINE_FEED_BYTE, at + 1)) count++;
  }
  return count;
}

function listLinesOf(body: Body, families: ReadonlySet<string>): AsyncGenerator<Uint8Array> {
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
  for await (const piece of listLinesOf(older, vanished)) {
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
