// Which formats scrapers ask for, by the Accept of their requests, byte for byte; and which pages of a source
// are kept: one for each Accept in use. Pure: from what is known of them and an event to the next, and a log.

import type { LogEntry } from '../messages.ts';
import { splitAccept, TEXT_ACCEPT, type Wanted } from './budget.ts';

/** What the media types begin with that a newcomer may take instead of text. */
export const RICH_TYPES = {
  protobuf: 'application/vnd.google.protobuf',
  openMetrics: 'application/openmetrics-text',
} as const;
/** For who comes only after the end: start times, native histograms, and names that all can read. */
export const RICH_ACCEPT = `${RICH_TYPES.protobuf};proto=io.prometheus.client.MetricFamily;encoding=delimited,${RICH_TYPES.openMetrics};version=1.0.0;q=0.8,${TEXT_ACCEPT};q=0.5`;
/** Each Accept in use costs main reads and us a page: two pairs of replicas with two formats have four. */
export const ACCEPTS_MAX_COUNT = 4;
/** An Accept counts as in use for this many times the longest gap between its requests, as a scraper does. */
const LIVING_GAPS = 2.5;
/** The least such time: after one request an interval is unknown, and may be many minutes. */
const LIVING_MIN_MS = 1_800_000;
/** Of all pages but the first together: with more, a read of 30 MB would not fit into 64 MiB beside them. */
const PAGES_MAX_BYTES = 32_000_000;
/** How many Accepts without a page are remembered: a client could send any number of different ones. */
const LEFT_OUT_MAX_COUNT = 4;
/** How much of an Accept a warning shows: a header may have 8 KB. */
const ACCEPT_SHOWN_LENGTH = 200;
/** A page is dropped when it was unreadable this often in a row: one cut answer must not drop it. */
const UNREADABLE_WARNED_COUNT = 3;

/** An Accept that a scraper sent. `unreadableCount`: how often in a row the answer could not be read. */
export type AcceptUse = {
  readonly accept: string;
  readonly lastAtMs: number;
  readonly longestGapMs: number;
  readonly unreadableCount: number;
};

/** An answer, as a page has it. */
export type PageBody = {
  readonly sizeBytes: number;
  readonly type: { readonly format: 'text' | 'openMetrics' | 'protobuf'; readonly contentType: string };
};

/** The page of an Accept, in its `store`. `readAtMs`: of its newest answer; null: none was kept. */
export type Page<Store> = PageBody & {
  readonly accept: string;
  readonly store: Store;
  readonly readAtMs: number | null;
};

/** What is known of the pages of one source. */
export type Pages<Store> = {
  /** The numbers of the text are needed, whatever scrapers ask for. */
  readonly isTextWanted: boolean;
  /** In the order in which they were opened. */
  readonly list: readonly Page<Store>[];
  readonly uses: readonly AcceptUse[];
  /** Accepts without a page: it is too large beside the others, or the answer is text anyway. */
  readonly leftOut: readonly string[];
  /** The program asks for a login: a page is for who could have had it. */
  readonly hasLogin: boolean;
  /** No rich format could be read at first: text is read instead, the rich ones a tenth as often. */
  readonly hasRichFailed: boolean;
};

/** What is known next, and what to log. */
export type PagesStep<Store> = { readonly pages: Pages<Store>; readonly log?: LogEntry };

/** From 2.0 on pages of OpenMetrics cannot be joined. Prometheus 3.16 asks for it with `openmetrics2`. */
const NEWER_OPEN_METRICS = /^\s*application\/openmetrics-text\s*;.*\bversion\s*=\s*"?(?![01]\.)/is;

/**
 * The Accept of a request, without formats that cannot be served; that of the text where there is none, or
 * one that takes anything. `login`: its Authorization.
 */
export function readAccept(header = '', login?: string): string {
  const accepted = header.split(',').filter((entry) => !NEWER_OPEN_METRICS.test(entry));
  const formats = accepted.join().replace(/^\s*(?:\*\/\*\s*)?$/, TEXT_ACCEPT);
  return login === undefined ? formats : `${formats}\n${login}`;
}

/** The Accepts in use, the newest first. */
export function listLiving(uses: readonly AcceptUse[], nowMs: number): readonly string[] {
  const livingMs = ({ longestGapMs }: AcceptUse) => Math.max(LIVING_MIN_MS, LIVING_GAPS * longestGapMs);
  return uses.filter((use) => nowMs - use.lastAtMs <= livingMs(use)).map(({ accept }) => accept);
}

/** Whether an Accept names a format, and with a weight. */
export function takesFormat(accept: string, format: keyof typeof RICH_TYPES): boolean {
  const entries = accept.toLowerCase().split(',');
  const named = entries.filter((entry) => entry.trimStart().startsWith(RICH_TYPES[format]));
  return named.some((entry) => !/;\s*q=0(?:\.0*)?\s*(?:;|$)/.test(entry));
}

/** Nothing is kept yet. `hasFormats`: the source goes by an Accept; else it is text. */
export function beginPages<Store>(isTextWanted: boolean, hasFormats: boolean): Pages<Store> {
  const leftOut = hasFormats ? [] : [RICH_ACCEPT];
  return { isTextWanted, list: [], uses: [], leftOut, hasLogin: false, hasRichFailed: false };
}

/** An Accept's own page, else the richest that it takes, else the plainest. Without one: what is pushed. */
export function findPage<Store>(pages: Pages<Store>, accept?: string): Page<Store> | null {
  return pickPage(listKept(pages), accept);
}

/** The same of pages that are kept. */
export function pickPage<Store>(list: readonly Page<Store>[], accept?: string): Page<Store> | null {
  const pickPlain = (of: typeof list) => of.find(isText) ?? of.find(({ type }) => type.format === 'openMetrics');
  if (accept === undefined) return pickPlain(list.toSorted((a, b) => Number(b.readAtMs) - Number(a.readAtMs))) ?? null;
  const kept = listShown({ list }, accept);
  const find = (wanted: string) => kept.find((each) => each.accept === wanted);
  const rich = find(RICH_ACCEPT);
  const format = rich?.type.format ?? 'text';
  const richest = format !== 'text' && takesFormat(accept, format) ? rich : undefined;
  const own = find(accept) ?? find(splitAccept(accept).formats);
  return own ?? richest ?? find(TEXT_ACCEPT) ?? pickPlain(kept) ?? kept[0] ?? null;
}

/** Those that came without a login, or with the same one. */
export function listShown<Store>(pages: Pick<Pages<Store>, 'list'>, accept = ''): readonly Page<Store>[] {
  const logins = [undefined, splitAccept(accept).login];
  return listKept(pages).filter((each) => logins.includes(splitAccept(each.accept).login));
}

/** What to ask the source for, and whose page to serve: after main's end only what is kept. */
export function chooseAccept(pages: Pages<unknown>, accept: string, isLiving: boolean): string {
  const asked = pages.hasLogin ? accept : splitAccept(accept).formats;
  return isLiving ? asked : (findPage(pages, asked)?.accept ?? asked);
}

/** What own reads ask for, in turn. After main's end no page begins: it would lack what has vanished. */
export function listPolled(pages: Pages<unknown>, nowMs: number, isLiving: boolean): readonly string[] {
  const { uses, leftOut, isTextWanted } = pages;
  const kept = listKept(pages);
  if (!isLiving && kept.length > 0) return kept.map(({ accept }) => accept);
  const living = listLiving(uses, nowMs);
  const isOut = (accept: string) => leftOut.includes(accept);
  // Many programs answer in text whatever they are asked for.
  const hasText = uses.some((use) => kept.some((page) => isText(page) && page.accept === use.accept));
  const needsText = (isTextWanted || uses.some(({ unreadableCount }) => unreadableCount > 0)) && !hasText;
  // Before a scraper asks: first text, which all take, then the rich one.
  const accepts = living.length > 0 ? living : [TEXT_ACCEPT, ...(isOut(RICH_ACCEPT) ? [] : [RICH_ACCEPT])];
  const text = living.slice(0, Number(needsText)).map((accept) => accept.replace(/^.*/, TEXT_ACCEPT));
  // There is room again where those that fit are no longer asked for.
  return [...new Set([...accepts, ...text])].filter((accept, _, all) => !isOut(accept) || all.every(isOut));
}

/** The same, with a mark on the spare one: nobody has asked for it, and another is kept. */
export function listWanted(pages: Pages<unknown>, nowMs: number, isLiving: boolean): readonly Wanted[] {
  const polled = listPolled(pages, nowMs, isLiving);
  const isAsked = !isLiving || polled.length < 2 || listLiving(pages.uses, nowMs).length > 0;
  const isTextSpare = !pages.isTextWanted && isKept(pages, RICH_ACCEPT);
  const spare = isAsked ? null : pages.hasRichFailed ? RICH_ACCEPT : isTextSpare ? TEXT_ACCEPT : null;
  return polled.map((accept) => ({ accept, ...(accept === spare && { isSpare: true }) }));
}

/** A scraper asks for these formats: of the newest four it is known when. */
export function takeUse<Store>(pages: Pages<Store>, accept: string, nowMs: number): Pages<Store> {
  const known = pages.uses.find((use) => use.accept === accept);
  const longestGapMs = known === undefined ? 0 : Math.max(known.longestGapMs, nowMs - known.lastAtMs);
  const use = { accept, lastAtMs: nowMs, longestGapMs, unreadableCount: known?.unreadableCount ?? 0 };
  return { ...pages, uses: [use, ...pages.uses.filter((each) => each !== known)].slice(0, ACCEPTS_MAX_COUNT) };
}

/** A read failed. `why`: its page came whole and is unreadable; absent: it did not come. */
export function takeFailure<Store>(before: Pages<Store>, accept: string, why?: string): PagesStep<Store> {
  const isFirstRich = accept === RICH_ACCEPT && !isKept(before, accept);
  const pages = isFirstRich ? { ...before, hasRichFailed: true } : before;
  const use = pages.uses.find((each) => each.accept === accept);
  if (why === undefined || use === undefined) return { pages };
  const count = use.unreadableCount + 1;
  const log = { id: 'pageUnreadable', fields: { accept: showAccept(accept), why } } as const;
  return { pages: countUnreadable(pages, accept, count), ...(count === UNREADABLE_WARNED_COUNT && { log }) };
}

/**
 * The page that an answer belongs to; null: it gets none, or does not fit with others. `open`: the store of
 * a new page with what is in that of another. `mayOpenPage`: main lives, or no family is missing.
 */
export function takePage<Store>(
  before: Pages<Store>,
  { accept: asked, body: { sizeBytes, type } }: { readonly accept: string; readonly body: PageBody },
  { nowMs, open, mayOpenPage }: { nowMs: number; open: (from?: Store) => Store; mayOpenPage: boolean },
): PagesStep<Store> & { readonly page: Page<Store> | null } {
  const isPlain = asked === RICH_ACCEPT && isText({ type }) && !isKept(before, asked);
  const accept = isPlain ? TEXT_ACCEPT : asked;
  const pages = countUnreadable(isPlain ? leaveOut(before, asked) : before, accept, 0);
  const polled = listPolled(pages, nowMs, mayOpenPage);
  const shown = listShown(pages, accept);
  const same = shown.find((each) => each.type.contentType === type.contentType) ?? null;
  const hasNoRoom = shown.length > 0 || listKept(pages).length >= ACCEPTS_MAX_COUNT;
  const getsNoPage = mayOpenPage ? !polled.includes(accept) : hasNoRoom;
  // A page of the same type serves this Accept too.
  if (getsNoPage && !isKept(pages, accept)) return { pages, page: same };
  if (isTooLarge(pages, accept, sizeBytes, polled)) {
    const isWarned = accept === RICH_ACCEPT || pages.leftOut.some((each) => each !== RICH_ACCEPT);
    const log = { id: 'formatLeftOut', fields: { accept: showAccept(accept) } } as const;
    return { pages: leaveOut(pages, accept), page: null, ...(!isWarned && { log }) };
  }
  const known = pages.list.find((each) => each.accept === accept);
  const page = { ...(known ?? { accept, store: open(same?.store), readAtMs: null }), sizeBytes, type };
  const list = pages.list.map((each) => (each === known ? page : each));
  return { pages: { ...pages, list: known === undefined ? [...list, page] : list }, page };
}

/** An answer was kept. `nowMs`: main lives, so pages that are no longer asked for or readable are dropped. */
export function takeKept<Store>(
  before: Pages<Store>,
  { store, accept: kept }: Page<Store>,
  readAtMs: number,
  nowMs: number | null,
): Pages<Store> {
  const hasLogin = before.hasLogin && splitAccept(kept).login !== undefined;
  const hasRichFailed = before.hasRichFailed && kept !== RICH_ACCEPT;
  const pages = { ...before, hasLogin, hasRichFailed };
  const list = pages.list.map((each) => (each.store === store ? { ...each, readAtMs } : each));
  if (nowMs === null) return { ...pages, list };
  const lost = pages.uses.filter(({ unreadableCount }) => unreadableCount >= UNREADABLE_WARNED_COUNT);
  const polled = listPolled({ ...pages, list }, nowMs, true);
  const isLost = (accept: string) => !polled.includes(accept) || lost.some((use) => use.accept === accept);
  return { ...pages, list: list.filter(({ accept }) => !isLost(accept)) };
}

function showAccept(accept: string): string {
  return splitAccept(accept).formats.slice(0, ACCEPT_SHOWN_LENGTH);
}

function isText({ type }: Pick<PageBody, 'type'>): boolean {
  return type.format === 'text';
}

export function listKept<Store>({ list }: Pick<Pages<Store>, 'list'>): readonly Page<Store>[] {
  return list.filter(({ readAtMs }) => readAtMs !== null);
}

function isKept(pages: Pages<unknown>, accept: string): boolean {
  return listKept(pages).some((each) => each.accept === accept);
}

function countUnreadable<Store>(pages: Pages<Store>, accept: string, unreadableCount: number): Pages<Store> {
  return { ...pages, uses: pages.uses.map((use) => (use.accept === accept ? { ...use, unreadableCount } : use)) };
}

function leaveOut<Store>({ list, leftOut, ...rest }: Pages<Store>, accept: string): Pages<Store> {
  const newest = [...new Set([...leftOut, accept])].slice(-LEFT_OUT_MAX_COUNT);
  return { ...rest, list: list.filter((each) => each.accept !== accept), leftOut: newest };
}

function isTooLarge({ list }: Pages<unknown>, accept: string, sizeBytes: number, polled: readonly string[]): boolean {
  // No scraper has asked for the rich page. It may take half of the memory for pages, since the text, which
  // a scraper that comes after the end may need, takes the other half.
  if (accept === RICH_ACCEPT && sizeBytes > PAGES_MAX_BYTES / 2) return true;
  const used = list.filter((each) => polled.includes(each.accept));
  if ((used[0]?.accept ?? accept) === accept) return false;
  return used.reduce((sum, each) => sum + (each.accept === accept ? 0 : each.sizeBytes), sizeBytes) > PAGES_MAX_BYTES;
}
