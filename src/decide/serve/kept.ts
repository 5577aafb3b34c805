// The law of what is kept: what becomes of an answer, and what a failure, a refusal and main's end change.
// Pure: from what is known and an event to what is known next, and what to do. Stories of it are in
// fixtures/transcripts/front.

import type { LogEntry } from '../messages.ts';
import { type Call, endCalls, isToPutAside } from './calls.ts';
import { findPage, listKept, type Page, type PageBody, type Pages, takeFailure, takeKept, takePage } from './pages.ts';
import {
  findVanishedFate,
  type MainView,
  type SourceAnswer,
  type SourceState,
  takeAnswer,
  takeOlderAnswer,
  takeRefusal,
  takeView,
  type VanishedFate,
} from './serve.ts';

/** A source, its pages, each in a `Store`, and calls, whose pages are put aside as `Put`. */
export type Known<Store, Put> = {
  readonly source: SourceState;
  readonly pages: Pages<Store>;
  readonly calls: readonly Call<Page<Put>>[];
  /** Why the newest read failed; null: it did not, or textfiles are not there yet. */
  readonly unreadWhy: string | null;
};

/** A whole, readable answer. What is absent was not looked at; it is asked for where it decides something. */
export type WholeAnswer = SourceAnswer & {
  readonly accept: string;
  readonly body: PageBody;
  /** It has every family of the page that is served in its place. */
  readonly hasAll?: boolean;
};

/** Why an answer is not kept. `isShort`: it may be cut, and who waits for it is to get another one. */
export type Dropped = {
  readonly kind: 'dropped';
  readonly result: 'failed' | 'ignored';
  readonly why: string;
  readonly isShort?: true;
};

/** What to do. */
export type Fate<Store> =
  | Dropped
  /** First tell whether the answer has all families of this page, or is short of it. */
  | { readonly kind: 'findAll'; readonly page: Page<Store> }
  | { readonly kind: 'findShort'; readonly page: Page<Store> }
  /**
   * Keep it as the page, `joined`: with what has vanished; `older`: a younger one is the page; what it lacks
   * has vanished, and is served unless main lives. `aside`: these are owed to scrapers, put them aside first.
   */
  | {
      readonly kind: 'renewed' | 'joined' | 'older';
      readonly page: Page<Store>;
      readonly isLiving: boolean;
      readonly aside: readonly Page<Store>[];
    };

/** What is known next, what to do, and what to log. */
export type Step<Store, Put, What> = {
  readonly known: Known<Store, Put>;
  readonly fate: What;
  readonly log?: LogEntry;
};

/** A read failed. `isUnreadable`: its answer came whole. */
export function takeFailed<Store, Put>(
  known: Known<Store, Put>,
  { accept, why, isUnreadable }: { readonly accept: string; readonly why: string; readonly isUnreadable: boolean },
): Step<Store, Put, Dropped> {
  const step = takeFailure(known.pages, accept, isUnreadable ? why : undefined);
  // Without a login, or with the wrong one, nothing is to be had. The newest that was right may be so again.
  const right = listKept(step.pages).find((page) => page.accept === step.pages.uses[0]?.accept)?.accept;
  const uses = step.pages.uses.filter((use) => use.accept !== accept || accept === right);
  const pages = /^HTTP 40[13]$/.test(why) ? { ...step.pages, hasLogin: true, uses } : step.pages;
  return {
    ...step,
    known: { ...known, pages, unreadWhy: why },
    fate: { kind: 'dropped', result: 'failed', why },
  };
}

/** Nothing is there. It may be main, and have ended: what has vanished is served, until it answers again. */
export function takeRefused<Store, Put>(known: Known<Store, Put>): Step<Store, Put, VanishedFate> {
  const { source, calls } = known;
  const unreadWhy = source.kind === 'files' ? known.unreadWhy : 'connection refused';
  return { known: { ...known, source: takeRefusal(source), calls: endCalls(calls), unreadWhy }, fate: 'restored' };
}

/** A program that asks for a snapshot at its end is gone within seconds. */
const CALLED_MS = 10_000;

/** Whether to look, without a read, if a program is gone: reads may rest until the next has begun. */
export function isLookDue({ source, calls }: Known<unknown, unknown>, nowMs: number): boolean {
  const isRecent = nowMs - (source.calledAtMs ?? nowMs) < CALLED_MS;
  return isRecent && source.view.main === 'living' && calls.some(({ isOver }) => !isOver);
}

/** Main is seen like this; null: what has vanished stays so. */
export function takeMain<Store, Put>(known: Known<Store, Put>, view: MainView): Step<Store, Put, VanishedFate | null> {
  const fate = findVanishedFate(known.source.view, view, known.source.kind);
  return { known: { ...known, source: takeView(known.source, view) }, fate };
}

/** A whole, readable answer. `open`: a store with what is in another. */
export function takeWhole<Store, Put>(
  before: Known<Store, Put>,
  answer: WholeAnswer,
  means: { readonly nowMs: number; readonly open: (from?: Store) => Store },
): Step<Store, Put, Fate<Store>> {
  const { accept, readAtMs } = answer;
  const isLiving = before.source.view.main === 'living';
  // After main's end a page begins only if no family is missing that scrapers would get without it.
  const other = isLiving ? null : findPage(before.pages, accept);
  const isOther = other !== null && other.accept !== accept;
  if (isOther && answer.hasAll === undefined) return { known: before, fate: { kind: 'findAll', page: other } };
  const mayOpenPage = isLiving || (isOther && answer.hasAll === true);
  const { page, pages, log } = takePage(before.pages, answer, { ...means, mayOpenPage });
  const opened = { ...before, pages };
  if (page !== null && answer.isShort === undefined) return { known: opened, fate: { kind: 'findShort', page } };
  // Of two reads at a time the younger one has ended first.
  if (page !== null && readAtMs < (page.readAtMs ?? readAtMs)) {
    const source = takeOlderAnswer(before.source, answer);
    return { known: { ...opened, source }, fate: { kind: 'older', page, isLiving, aside: [] } };
  }
  const judged = { ...answer, isShort: page === null || answer.isShort === true };
  const { state: source, becomes, isAnother } = takeAnswer(before.source, judged);
  const calls = isAnother ? endCalls(before.calls) : before.calls;
  const known = { ...opened, source, calls, unreadWhy: null };
  if (page === null) return { known, fate: DROPPED.notUsed, ...(log && { log }) };
  if (becomes === 'ignored' || becomes === 'provisional') return { known, fate: DROPPED[becomes] };
  const fate = { kind: becomes, page, isLiving, aside: calls.some(isToPutAside) ? listKept(pages) : [] };
  return { known: { ...known, pages: takeKept(pages, page, readAtMs, isLiving ? means.nowMs : null) }, fate };
}

const CUT = 'it has no length and is missing metrics that the previous answer had, so it may be cut';
const RESTARTED = 'the source was restarted after main ended, and counts from 0';
const DROPPED = {
  notUsed: { kind: 'dropped', result: 'ignored', why: 'no page of its format is kept' },
  ignored: { kind: 'dropped', result: 'ignored', why: RESTARTED },
  provisional: { kind: 'dropped', result: 'failed', why: CUT, isShort: true },
} as const;
