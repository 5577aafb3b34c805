// What a scrape and a call of /-/snapshot get: carries out what decide/serve/serve.ts chooses.

import { READ_TIMEOUT_MS } from '../decide/serve/reads.ts';
import type { ScraperRequest, ServedScrape } from '../decide/serve/scrapers.ts';
import { type AnswerKind, chooseAnswer, type SourceResult } from '../decide/serve/serve.ts';
import { END_LINE } from '../exposition/format.ts';
import { formatOwnFamilies, OWN_PREFIX, type OwnValues, openPageEnd } from '../exposition/own-families.ts';
import type { Reads } from '../observe/reads.ts';
import type { Body } from '../snapshot/body.ts';
import { LINE_FEED, type Moment, type Snapshot } from '../snapshot/snapshot.ts';
import type { Kept, KeptAnswer, KeptSource } from './kept-source.ts';
import type { AnswerBody } from './send-answer.ts';
import type { ScrapeAnswer, ScrapeRequest, ServerParts, Unavailable } from './server.ts';
import type { Beginning } from './sources/source.ts';

/** A 200, and what the rules need to know of it. */
export type FrontAnswer = ScrapeAnswer &
  Pick<ServedScrape, 'served' | 'isByRefusal' | 'readAtMs' | 'oldestAtMs' | 'called'>;

/** How long a scraper without a time-out waits where the snapshot will do: Telegraf hangs up after 5 s. */
const UNTOLD_TIMEOUT_MS = 4_000;

/** The last page in one format, as scrapers that sent this Accept get it. */
export type LastPage = AnswerBody & {
  readonly accept: string;
  readonly sizeBytes: number;
  readonly contentType: string;
};

type Answers = Pick<ServerParts<FrontAnswer>, 'answer' | 'snapshot'> & {
  readonly keptCount: () => number;
  /** Every page that is kept, as it would be served from now on without the source. */
  readonly lastPages: () => Promise<readonly LastPage[]>;
};

/** Answers from a source, which is read by `reads`. `keptCount`: snapshots that were asked for, and kept. */
export function openAnswers(
  source: KeptSource,
  reads: Reads<KeptAnswer>,
  /** Of a page whose oldest part was read at that moment: what does not depend on the answer. */
  readValues: (oldestAtMs: number) => Omit<OwnValues, 'isSourceUp' | 'snapshotSeconds'>,
  scrapers: {
    /** The number of who sends it. */
    readonly find: (request: ScraperRequest) => number;
    /** The numbers of those that live. */
    readonly listLiving: () => readonly number[];
  },
): Answers {
  const values = (isSourceUp: boolean, { atMs, seconds }: Moment, oldestAtMs = atMs): OwnValues => ({
    ...readValues(oldestAtMs),
    isSourceUp,
    snapshotSeconds: seconds,
  });

  async function answer({ signal, ...scrape }: ScrapeRequest): Promise<FrontAnswer | Unavailable> {
    if (scrape.scraper !== null) source.use(scrape.accept);
    const accept = source.choose(scrape.accept);
    const scraperId = scrape.scraper && scrapers.find(scrape.scraper);
    const canWait = chooseAnswer(source.state(), 'failed') === 'unavailable';
    const timeoutMs = scrape.timeoutMs ?? (canWait ? READ_TIMEOUT_MS : UNTOLD_TIMEOUT_MS);
    const { begun, ended, limit } = reads.read({ timeoutMs, signal, accept });
    const beginning = await begun;
    const mayBeLive = () => beginning.kind === 'answered' && chooseAnswer(source.state(), 'answered') === 'live';
    // Only all of a page shows whose it is; main may have ended by then.
    const isOwed = mayBeLive() && scraperId !== null && source.isOwed(scraperId);
    if (isOwed && beginning.kind === 'answered') await waitForKept(ended);
    const isLive = mayBeLive();
    const called = scraperId && (await serveCalled(scraperId, accept, !isLive || isOwed));
    if (called) return called;
    if (beginning.kind !== 'answered') return serveLast(accept, beginning.kind, describeBeginning(beginning));
    const { body, readAt, isSourceUp = true } = beginning;
    if (isLive) {
      const live = serveGrowing(body, values(isSourceUp, readAt), limit);
      const { kind, view } = source.state();
      const mustArrive = kind === 'pushes' || view.main !== 'living';
      return { kind: 'body', body: { ...live, mustArrive }, served: 'live', isByRefusal: false, readAtMs: readAt.atMs };
    }
    const kept = await waitForKept(ended);
    if (kept.kind === 'dropped') {
      return serveLast(accept, kept.result, `the answer of the source cannot be kept: ${kept.why}`);
    }
    const { snapshot } = kept;
    return serveSnapshot(snapshot, snapshot.vanishedAtMs.size > 0 ? 'joined' : 'live', false, isSourceUp);
  }

  /** A page that was asked for, and that this scraper has not had: another program may answer by now. */
  async function serveCalled(scraperId: number, accept: string, isReplaced: boolean): Promise<FrontAnswer | null> {
    const called = await source.findCalled(scraperId, accept, isReplaced);
    if (called === null) return null;
    const answer = await serveSnapshot(called.snapshot, 'snapshot', false, !isReplaced);
    return { ...answer, called: called.number };
  }

  async function serveLast(accept: string, result: SourceResult, why: string): Promise<FrontAnswer | Unavailable> {
    const last = await source.newest(accept);
    if (last === null || chooseAnswer(source.state(), result) === 'unavailable') return { kind: 'unavailable', why };
    return serveSnapshot(last, 'snapshot', result === 'refused', false);
  }

  async function serveSnapshot(
    snapshot: Snapshot,
    served: Exclude<AnswerKind, 'unavailable'>,
    isByRefusal: boolean,
    isSourceUp: boolean,
  ): Promise<FrontAnswer> {
    const { readAt, oldestAtMs } = snapshot;
    const body = await serveWhole(snapshot.body, values(isSourceUp, readAt, oldestAtMs));
    const facts = { served, isByRefusal, readAtMs: readAt.atMs, oldestAtMs };
    return { kind: 'body', body: { ...body, mustArrive: true }, ...facts };
  }

  return {
    answer,
    ...openSnapshotCalls(source, reads, scrapers.listLiving),
    async lastPages() {
      const pages: LastPage[] = [];
      for (const accept of source.kept()) {
        const last = await source.newest(accept);
        if (last !== null)
          pages.push({ accept, ...(await serveWhole(last.body, values(false, last.readAt, last.oldestAtMs))) });
      }
      return pages;
    },
  };
}

/**
 * Calls of /-/snapshot, each of which reads every page that is wanted. `listLiving`: the scrapers that are to
 * have it.
 */
function openSnapshotCalls(source: KeptSource, reads: Reads<KeptAnswer>, listLiving: () => readonly number[]) {
  let keptCount = 0;
  return {
    keptCount: () => keptCount,
    async snapshot(signal: AbortSignal): ReturnType<Answers['snapshot']> {
      source.expectEnd?.();
      const asked = new Set<string>();
      for (let calledAtMs = Number.POSITIVE_INFINITY; ; ) {
        const all = source.wanted().map(({ accept }) => accept);
        const accepts = all.filter((accept) => !asked.has(accept));
        // The first answer of all may show that another format is wanted as well.
        if (accepts.length === 0 || (Number.isFinite(calledAtMs) && !all.some((accept) => asked.has(accept)))) {
          keptCount++;
          source.addCall(listLiving(), calledAtMs);
          // Main ends now, and its server may wait for it.
          await source.rest?.();
          return { kind: 'kept' };
        }
        const ends = await Promise.all(
          accepts.map(async (accept) => {
            const { ended } = reads.read({ timeoutMs: READ_TIMEOUT_MS, signal, accept });
            return { accept, kept: await waitForKept(ended) };
          }),
        );
        // Left out beside a large page of another format, or asked for by nobody, it has not failed.
        const needed = source.wanted().filter(({ isSpare }) => isSpare !== true);
        for (const { accept, kept } of ends) {
          if (kept.kind === 'kept') calledAtMs = Math.min(calledAtMs, kept.snapshot.readAt.atMs);
          else if (needed.some((each) => each.accept === accept)) return { kind: 'failed', why: kept.why };
          asked.add(accept);
        }
      }
    },
  };
}

/** What becomes of an answer, or of the one that was to confirm it. */
async function waitForKept(ended: Promise<Beginning<KeptAnswer>>): Promise<Kept> {
  const beginning = await ended;
  if (beginning.kind === 'answered') return beginning.kept;
  return { kind: 'dropped', result: 'failed', why: describeBeginning(beginning) };
}

function describeBeginning(beginning: Exclude<Beginning, { readonly kind: 'answered' }>): string {
  return beginning.kind === 'refused' ? 'the source is not there' : `the source cannot be read: ${beginning.why}`;
}

/** The body while it grows, until `limit`; at its end those of our families that the source does not have. */
export function serveGrowing(body: Body, values: OwnValues, limit?: AbortSignal): AnswerBody {
  const { format, contentType } = body.type;
  let last = { isWhole: true, rest: NOTHING };
  async function* read(): AsyncGenerator<Uint8Array> {
    const own = openOwnPrefixSearch();
    const end = openPageEnd(format);
    for await (const piece of body.read(limit)) {
      own.write(piece);
      yield* end.write(piece);
    }
    last = end.end();
    // A page that is cut must not look whole.
    if (!last.isWhole) return yield last.rest;
    if (format === 'text' && !body.endsWithLineFeed) yield LINE_FEED;
    yield formatOwnFamilies(values, own.isFound() ? await body.families() : new Set(), format);
    if (last.rest.length > 0) yield last.rest;
  }
  return { read, sizeBytes: null, contentType, isCut: () => !last.isWhole };
}

/** A body that is whole: the length of the answer is known. */
export async function serveWhole(body: Body, values: OwnValues): Promise<Omit<LastPage, 'accept'>> {
  const { format, contentType } = body.type;
  const ownBytes = formatOwnFamilies(values, await body.families(), format).length;
  const lineFeedBytes = format === 'text' && !body.endsWithLineFeed ? LINE_FEED.length : 0;
  // The end of an empty page is not in it.
  const endBytes = format === 'openMetrics' && body.sizeBytes === 0 ? END_LINE.length : 0;
  const { read } = serveGrowing(body, values);
  return { read, sizeBytes: body.sizeBytes + lineFeedBytes + ownBytes + endBytes, contentType };
}

const NOTHING: Uint8Array = new Uint8Array(0);

/** Hardly any source has our families, and listing all families takes as long as passing them on. */
function openOwnPrefixSearch() {
  let isFound = false;
  let tail: Uint8Array = NOTHING;
  return {
    isFound: () => isFound,
    write(piece: Uint8Array): void {
      const bytes = Buffer.from(piece.buffer, piece.byteOffset, piece.byteLength);
      const seam = Buffer.concat([tail, piece.subarray(0, OWN_PREFIX.length)]);
      isFound ||= bytes.includes(OWN_PREFIX) || seam.includes(OWN_PREFIX);
      tail = Buffer.concat([tail, piece.subarray(-OWN_PREFIX.length)]).subarray(-OWN_PREFIX.length);
    },
  };
}
