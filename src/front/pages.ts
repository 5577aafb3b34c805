// The pages of a kept source: one for each Accept in use, in the order in which they were first kept.

import { type AcceptUse, listAccepts, RICH_ACCEPT, TEXT_ACCEPT, takesFormat, useAccept } from '../decide/accepts.ts';
import type { LogEntry } from '../decide/messages.ts';
import type { VanishedFate } from '../decide/serve.ts';
import type { Format, PageType } from '../exposition/format.ts';
import type { Body } from '../snapshot/body.ts';
import { openSnapshotStore, type Snapshot, type SnapshotStore } from '../snapshot/snapshot.ts';

/** Of all pages together, but for the first: one of 30 MB, read and kept, fits into 64 MiB. */
const PAGES_MAX_BYTES = 32_000_000;
/** Of an Accept, in a warning. */
const ACCEPT_SHOWN_LENGTH = 200;
/** How often in a row a page is unreadable that is given up: one that is cut, or begins empty, is not. */
const UNREADABLE_WARNED_COUNT = 3;

/** The snapshots of one Accept. `readAtMs`: of the newest that was kept; null: none was. */
export type Page = SnapshotStore & { sizeBytes: number; type: PageType; readAtMs: number | null };

/** What pages go by. */
export type PagesParts = {
  /** The numbers of the text are needed, whatever scrapers ask for. */
  readonly isTextWanted: boolean;
  /** The source goes by an Accept; else it is text. */
  readonly hasFormats: boolean;
  readonly log: (entry: LogEntry) => void;
  readonly nowMs: () => number;
};

/** Opens the pages of one source; none is kept yet. */
export function openPages(parts: PagesParts) {
  const { log, nowMs } = parts;
  /** By their Accept, the oldest first. */
  const pages: Pages = new Map();
  const { leftOut, unreadable, listInUse, isUsed, ...wanted } = openWanted(parts, pages);
  const find = (accept: string) => findPage(pages, accept);
  const isKept = (accept: string) => listKept(pages).includes(accept);
  function leaveOut(accept: string): void {
    leftOut.add(accept);
    pages.delete(accept);
  }

  return {
    ...wanted,
    listInUse,
    find,
    /** An answer could not be read: if it was the first rich one, no other is asked for. */
    takeFailure(accept: string): void {
      if (accept === RICH_ACCEPT && !isKept(accept)) leaveOut(accept);
    },
    /** Whether a body lacks no family of the page that is served instead of one of its own. */
    async isComplete(accept: string, body: Body): Promise<boolean> {
      const other = pages.get(find(accept) ?? accept);
      return !isKept(accept) && other !== undefined && lacksNothing(body, other);
    },
    /** The page for a body; null: it gets none, or does not fit with the others. `isLiving`: it may begin. */
    open(asked: string, { sizeBytes, type }: Body, isLiving: boolean): Page | null {
      const isPlain = asked === RICH_ACCEPT && type.format === 'text' && !isKept(asked);
      if (isPlain) leaveOut(asked);
      const accept = isPlain ? TEXT_ACCEPT : asked;
      unreadable.delete(accept);
      const inUse = listInUse(isLiving);
      const kept = listKept(pages);
      if (!kept.includes(accept)) {
        const same = kept.find((each) => pages.get(each)?.type.contentType === type.contentType) ?? '';
        // As good as one of its own.
        if (isLiving ? !inUse.includes(accept) : kept.length > 0) return pages.get(same) ?? null;
        if (isLiving && !isUsed(same)) moveOwn(pages, same, accept);
      }
      if (isTooLarge(pages, accept, sizeBytes, inUse)) {
        const isWarned = accept === RICH_ACCEPT || [...leftOut].some((each) => each !== RICH_ACCEPT);
        if (!isWarned) log({ id: 'formatLeftOut', fields: { accept: show(accept) } });
        leaveOut(accept);
        return null;
      }
      const page = Object.assign(pages.get(accept) ?? { ...openSnapshotStore(), readAtMs: null }, { sizeBytes, type });
      pages.set(accept, page);
      return page;
    },
    /** Something was kept while main lives: pages that are no longer asked for or readable are older. */
    dropUnused(): void {
      const inUse = listInUse(true);
      const isLost = (each: string) => (unreadable.get(each) ?? 0) >= UNREADABLE_WARNED_COUNT;
      for (const each of [...pages.keys()]) if (!inUse.includes(each) || isLost(each)) pages.delete(each);
    },
    takeVanished(fate: VanishedFate): void {
      for (const page of pages.values()) page.takeVanished(fate, nowMs());
    },
    /** The newest of an Accept; without one the newest that a push can read: text, else OpenMetrics. */
    async newest(accept?: string): Promise<Snapshot | null> {
      if (accept !== undefined) return (await pages.get(find(accept) ?? accept)?.newest()) ?? null;
      return findNewest(pages);
    },
  };
}

/** OpenMetrics has the family of a counter or an info without the suffix of its samples. */
function nameSamples(family: string): string {
  return family.replace(/_(?:created|info|total)$/, '');
}

function show(accept: string): string {
  return accept.slice(0, ACCEPT_SHOWN_LENGTH);
}

type Pages = Map<string, Page>;

/** Which pages are asked for. */
function openWanted({ isTextWanted, hasFormats, log, nowMs }: PagesParts, pages: Pages) {
  let uses: readonly AcceptUse[] = [];
  /** Whose pages do not fit with the others, or are of no use. */
  const leftOut = new Set<string>(hasFormats ? [] : [RICH_ACCEPT]);
  /** Of those that scrapers ask for: how often in a row they could not be read. */
  const unreadable = new Map<string, number>();
  const isUsed = (accept: string) => uses.some((use) => use.accept === accept);

  return {
    leftOut,
    unreadable,
    isUsed,
    /** What polls ask for, in turn. After main's end no page begins: it would lack what has vanished. */
    listInUse(isLiving: boolean): readonly string[] {
      const kept = listKept(pages);
      if (!isLiving && kept.length > 0) return kept;
      // Many programs answer in text whatever they are asked for.
      const hasText = kept.some((accept) => isUsed(accept) && pages.get(accept)?.type.format === 'text');
      const rich = leftOut.has(RICH_ACCEPT) ? 'useless' : kept.includes(RICH_ACCEPT) ? 'kept' : 'unknown';
      const accepts = listAccepts(uses, nowMs(), (isTextWanted || unreadable.size > 0) && !hasText, rich);
      return accepts.filter((accept) => !leftOut.has(accept));
    },
    /** A scraper asks for these formats. */
    use(accept: string): void {
      uses = useAccept(uses, accept, nowMs());
      for (const each of unreadable.keys()) if (!isUsed(each)) unreadable.delete(each);
    },
    /** A whole page cannot be read: the text is asked for as well. */
    takeUnreadable(accept: string, why: string): void {
      if (!isUsed(accept)) return;
      const count = (unreadable.get(accept) ?? 0) + 1;
      unreadable.set(accept, count);
      if (count === UNREADABLE_WARNED_COUNT) log({ id: 'pageUnreadable', fields: { accept: show(accept), why } });
    },
  };
}

function listKept(pages: Pages): readonly string[] {
  return [...pages].filter(([, { readAtMs }]) => readAtMs !== null).map(([accept]) => accept);
}

/** Its own page, else the richest that it takes, else the newest; null: nothing was kept. */
function findPage(pages: Pages, accept: string): string | null {
  const kept = listKept(pages);
  const text = kept.find((each) => pages.get(each)?.type.format === 'text');
  const rich = pages.get(RICH_ACCEPT)?.type.format ?? 'text';
  const richest = rich !== 'text' && takesFormat(accept, rich) ? [RICH_ACCEPT] : [];
  return [accept, ...richest, TEXT_ACCEPT].find((each) => kept.includes(each)) ?? text ?? kept.at(-1) ?? null;
}

/** A page that polls kept becomes a scraper's page of the same type, with what vanished from it. */
function moveOwn(pages: Pages, from: string, to: string): void {
  const page = pages.get(from);
  if (page !== undefined) pages.set(to, page);
  pages.delete(from);
}

function isTooLarge(pages: Pages, accept: string, sizeBytes: number, inUse: readonly string[]): boolean {
  // Nobody asked for it: half of the room is for the text.
  if (accept === RICH_ACCEPT) return sizeBytes > PAGES_MAX_BYTES / 2;
  const used = [...pages].filter(([each]) => inUse.includes(each));
  const others = used.filter(([each]) => each !== accept);
  const isFirst = others.length === 0 || used[0]?.[0] === accept;
  return !isFirst && others.reduce((sum, [, page]) => sum + page.sizeBytes, sizeBytes) > PAGES_MAX_BYTES;
}

async function lacksNothing(body: Body, other: Page): Promise<boolean> {
  const before = (await other.newest())?.body.families();
  if (before === undefined) return false;
  const families = new Set([...(await body.families())].map(nameSamples));
  return [...(await before)].every((family) => families.has(nameSamples(family)));
}

/** The newest that a push can read: text, else OpenMetrics. */
async function findNewest(pages: Pages): Promise<Snapshot | null> {
  const all = await Promise.all([...pages.values()].map((page) => page.newest()));
  const newestFirst = all.flatMap((each) => each ?? []).toSorted((a, b) => b.readAt.atMs - a.readAt.atMs);
  const of = (format: Format) => newestFirst.find(({ body }) => body.type.format === format);
  return of('text') ?? of('openMetrics') ?? null;
}
