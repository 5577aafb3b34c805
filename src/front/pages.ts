// The pages of a kept source: one for each Accept in use, in the order in which they were first kept.

import { type AcceptUse, listAccepts, TEXT_ACCEPT, useAccept } from '../decide/accepts.ts';
import type { LogEntry } from '../decide/messages.ts';
import type { VanishedFate } from '../decide/serve.ts';
import type { Format } from '../exposition/format.ts';
import type { Body } from '../snapshot/body.ts';
import { openSnapshotStore, type Snapshot, type SnapshotStore } from '../snapshot/snapshot.ts';

/** Of all pages together, but for the first: one of 30 MB, read and kept, fits into 64 MiB. */
const PAGES_MAX_BYTES = 32_000_000;
/** Of an Accept, in a warning. */
const ACCEPT_SHOWN_LENGTH = 200;

/** The snapshots of one Accept. `readAtMs`: of the newest that was kept; null: none was. */
export type Page = SnapshotStore & { sizeBytes: number; format: Format; readAtMs: number | null };

/** What pages go by. */
export type PagesParts = {
  /** The numbers of the text are needed, whatever scrapers ask for. */
  readonly isTextWanted: boolean;
  readonly log: (entry: LogEntry) => void;
  readonly nowMs: () => number;
};

/** Opens the pages of one source; none is kept yet. */
export function openPages({ isTextWanted, log, nowMs }: PagesParts) {
  let uses: readonly AcceptUse[] = [];
  /** By their Accept, the oldest first. */
  const pages = new Map<string, Page>();
  /** Whose pages are too large beside the others. */
  const leftOut = new Set<string>();

  /** What polls ask for, one after the other. */
  function listInUse(): readonly string[] {
    // Many programs answer in text whatever they are asked for.
    const hasText = uses.some(({ accept }) => pages.get(accept)?.format === 'text');
    const accepts = listAccepts(uses, nowMs(), isTextWanted && !hasText);
    return accepts.filter((accept) => !leftOut.has(accept));
  }
  /** Its own page, else the one that every scraper takes, else the newest; null: nothing was kept. */
  function find(accept: string): string | null {
    const kept = [...pages].filter(([, { readAtMs }]) => readAtMs !== null).map(([each]) => each);
    return [accept, TEXT_ACCEPT].find((each) => kept.includes(each)) ?? kept.at(-1) ?? null;
  }
  function isTooLarge(accept: string, sizeBytes: number): boolean {
    const others = [...pages].filter(([each]) => each !== accept);
    const isFirst = others.length === 0 || [...pages.keys()][0] === accept;
    return !isFirst && others.reduce((sum, [, page]) => sum + page.sizeBytes, sizeBytes) > PAGES_MAX_BYTES;
  }

  return {
    listInUse,
    find,
    /** A scraper asks for these formats. */
    use(accept: string): void {
      uses = useAccept(uses, accept, nowMs());
    },
    /** The page of a body; null: it is not in use, or too large beside the others. */
    open(accept: string, { sizeBytes, type: { format } }: Body, isLiving: boolean): Page | null {
      const inUse = listInUse();
      if (!inUse.includes(accept) && (isLiving || pages.size > 0) && !pages.has(accept)) return null;
      if (isLiving) for (const each of [...pages.keys()]) if (!inUse.includes(each)) pages.delete(each);
      if (isTooLarge(accept, sizeBytes)) {
        if (leftOut.size === 0) log({ id: 'formatLeftOut', fields: { accept: accept.slice(0, ACCEPT_SHOWN_LENGTH) } });
        leftOut.add(accept);
        pages.delete(accept);
        return null;
      }
      const page = Object.assign(pages.get(accept) ?? { ...openSnapshotStore(), readAtMs: null }, {
        sizeBytes,
        format,
      });
      pages.set(accept, page);
      return page;
    },
    takeVanished(fate: VanishedFate): void {
      for (const page of pages.values()) page.takeVanished(fate, nowMs());
    },
    /** The newest of an Accept; without one the newest that a push can read: text, else OpenMetrics. */
    async newest(accept?: string): Promise<Snapshot | null> {
      if (accept !== undefined) return (await pages.get(find(accept) ?? accept)?.newest()) ?? null;
      const all = await Promise.all([...pages.values()].map((page) => page.newest()));
      const of = (format: Format) => all.find((each) => each?.body.type.format === format);
      return of('text') ?? of('openMetrics') ?? null;
    },
  };
}
