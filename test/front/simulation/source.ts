// A program with a page of metrics, asked as by undici. It may be slow, hang, fail, cut its answer, lose
// families, end, and come again with its counters at 0.

import type { Exchange, ExchangeResult, Request } from '../../../src/base/net/exchange.ts';
import { TEXT_ACCEPT } from '../../../src/decide/serve/budget.ts';
import { RICH_ACCEPT } from '../../../src/decide/serve/pages.ts';
import type { Format } from '../../../src/exposition/format.ts';
import { ACCEPTS, END_LINE, type Page, showPage, TYPES, writeFamily } from './page.ts';
import { START_SECONDS, type World } from './world.ts';

/**
 * `slow`: each answer takes `ms`; `cut`: an answer breaks off, after a family if it has no length; `endless`:
 * OpenMetrics without its last line.
 */
export type Fault = {
  readonly kind: 'slow' | 'hang' | 'hangOnce' | 'error' | 'cut' | 'drop' | 'endless';
  readonly fromMs: number;
  readonly toMs: number;
  readonly ms: number;
};

export type Family = {
  readonly name: string;
  /** It grows by 1 each. */
  readonly stepMs: number;
  readonly fromMs: number;
  readonly toMs: number;
  /** It does not grow any more from here on. */
  readonly frozenAtMs: number;
};

export type SourcePlan = {
  readonly families: readonly Family[];
  /** How long an answer takes without a fault. */
  readonly tookMs: number;
  readonly faults: readonly Fault[];
  /** When it refuses; what comes afterwards counts from 0. */
  readonly downs: readonly { readonly fromMs: number; readonly toMs: number }[];
  /** What it answers in: always text, as it is asked, or that and text in turn. */
  readonly formats: 'text' | 'asked' | 'alternating';
  readonly hasLength: boolean;
  /** It counts its scrapes, as promhttp does. */
  readonly hasCounters: boolean;
  /** 1 while main lives; null: it has no such metric. */
  readonly upUntilMs: number | null;
  /** Its page says when it began. Default: false. */
  readonly showsStart?: boolean;
};

/** An answer that came whole, and is believed. */
export type Whole = {
  readonly askedAtMs: number;
  readonly endedAtMs: number;
  /** Whose page it is; what polls ask for on their own is answered in text. */
  readonly accept: string;
  readonly isText: boolean;
  readonly page: Page;
  /** Counted from 0; each has its own counters. */
  readonly generation: number;
  /** Its generation is known to be another one than that before it. */
  readonly isKnownAsNew: boolean;
};

/** A request. `isWhole`: it was answered, and to its end; `isRefused`: main was not asked. */
export type SourceRead = {
  readonly beganAtMs: number;
  endedAtMs: number | null;
  isWhole: boolean;
  isRefused: boolean;
};

export function findGeneration({ downs }: SourcePlan, atMs: number): number {
  return downs.filter(({ toMs }) => toMs <= atMs).length;
}

export function readPage(plan: SourcePlan, atMs: number): Page {
  const sinceMs = plan.downs.findLast(({ toMs }) => toMs <= atMs)?.toMs ?? 0;
  return new Map(
    plan.families
      .filter(({ fromMs, toMs }) => fromMs <= atMs && atMs < toMs)
      .map(({ name, stepMs, frozenAtMs }) => {
        const grownMs = Math.max(0, Math.min(atMs, frozenAtMs) - sinceMs);
        return [name, Math.floor(grownMs / stepMs)] as const;
      }),
  );
}

/** Opens it. `isTextAsked`: a scraper asks for text alone. `wholes` gets each answer that came whole. */
export function openSource(world: World, plan: SourcePlan, isTextAsked: boolean) {
  const wholes: Whole[] = [];
  const reads: SourceRead[] = [];
  /** Without a length, by Accept and by format: the families of what is kept, and of what may be cut since. */
  const shown = new Map<string, { readonly kept: readonly string[]; readonly short: readonly string[] | null }>();
  /** A cut answer looked whole. */
  let hasDeceived = false;
  let finishedCount = 0;
  let answersCount = 0;
  let generation = 0;
  const newest = { finishedCount: 0, generation: 0 };
  let wasRefused = false;
  /** Generations that were known to be new. */
  const known = new Set<number>();
  /** Faults of one request, which had it. */
  const hung = new Set<Fault>();

  function findFault(): Fault | undefined {
    const nowMs = world.nowMs();
    const fault = plan.faults.find((each) => each.fromMs <= nowMs && nowMs < each.toMs && !hung.has(each));
    if (fault !== undefined && isOnce(fault)) hung.add(fault);
    return fault;
  }

  /** A page that is cut at the same line again and again looks like one that has lost families. */
  function isOnce({ kind }: Fault): boolean {
    return kind === 'hangOnce' || kind === 'drop' || (kind === 'cut' && !plan.hasLength);
  }

  function chooseFormat(accept: string): Format {
    if (plan.formats === 'text' || (plan.formats === 'alternating' && answersCount++ % 2 === 0)) return 'text';
    return accept === ACCEPTS.protobuf ? 'protobuf' : accept === ACCEPTS.openMetrics ? 'openMetrics' : 'text';
  }

  function send(request: Request): Promise<ExchangeResult> {
    const { promise, resolve } = Promise.withResolvers<ExchangeResult>();
    const askedAtMs = world.nowMs();
    const read: SourceRead = { beganAtMs: askedAtMs, endedAtMs: null, isWhole: false, isRefused: false };
    const cancels: (() => void)[] = [];
    let isOver = false;
    let status: number | null = null;
    const end = (result: ExchangeResult) => {
      if (isOver) return;
      isOver = true;
      for (const cancel of cancels) cancel();
      read.endedAtMs = world.nowMs();
      read.isWhole = result.kind === 'answered' && status === 200;
      read.isRefused = result.kind === 'refused';
      resolve(result);
    };
    const at = (atMs: number, callback: () => void) => {
      cancels.push(world.outside(atMs, () => world.deliver(() => isOver || callback())));
    };
    /** Whose page it goes to: text that no scraper asks for renews that of one who gets text (959531). */
    const findOwner = (): string => {
      if (isTextAsked || accept !== TEXT_ACCEPT) return accept;
      const kept = new Map(wholes.map((each) => [each.accept, each.isText]));
      const texts = [...kept.keys()].filter((each) => kept.get(each));
      return texts.includes(TEXT_ACCEPT) ? accept : (texts[0] ?? accept);
    };
    /** Whether an answer with these families is believed; it may go to the page of another Accept. */
    const isBelieved = (families: readonly string[]): boolean => {
      const beliefs = [findOwner(), format].map((key) => {
        const { kept, short } = shown.get(key) ?? { kept: [], short: null };
        const isKept = kept.every((each) => families.includes(each)) || short?.join() === families.join();
        shown.set(key, isKept ? { kept: families, short: null } : { kept, short: families });
        return isKept;
      });
      return plan.hasLength || beliefs.every((each) => each);
    };
    const passOn = (texts: readonly string[]) => {
      const piece = Buffer.from(texts.join(''), 'latin1');
      request.onBody?.(piece);
      // The next read overwrites it.
      piece.fill('x');
    };
    const fail = (why: string) => end({ kind: 'failed', why, wasSent: true, status });
    const { signal } = request;
    if (signal?.aborted) return Promise.resolve({ kind: 'failed', why: String(signal.reason), wasSent: false, status });
    reads.push(read);
    signal?.addEventListener('abort', () => fail(String(signal.reason)));
    if (plan.downs.some(({ fromMs, toMs }) => fromMs <= askedAtMs && askedAtMs < toMs)) {
      world.tell(() => 'the source refuses');
      at(askedAtMs, () => {
        wasRefused = true;
        end({ kind: 'refused' });
      });
      return promise;
    }
    const asked = String(request.headers?.['accept']);
    const accept = asked === RICH_ACCEPT ? TEXT_ACCEPT : asked;
    const format = chooseFormat(accept);
    const fault = findFault();
    const tookMs = fault?.kind === 'slow' ? fault.ms : plan.tookMs;
    const page = readPage(plan, askedAtMs);
    const now = findGeneration(plan, askedAtMs);
    if (now !== generation) finishedCount = 0;
    generation = now;
    // The messages are not looked into.
    const counted = plan.hasCounters && format !== 'protobuf' ? finishedCount : null;
    const begin = (code: number, headers: Readonly<Record<string, string>>) => {
      status = code;
      request.onAnswer?.(code, headers);
    };
    const downAtMs = plan.downs.find(({ fromMs }) => fromMs > askedAtMs)?.fromMs ?? Number.POSITIVE_INFINITY;
    const isCut = fault?.kind === 'cut';
    const series = new Map(page);
    if (plan.upUntilMs !== null) series.set('job_up', Number(askedAtMs < plan.upUntilMs));
    const startedAtMs = plan.downs.findLast(({ toMs }) => toMs <= askedAtMs)?.toMs ?? 0;
    if (plan.showsStart) series.set('process_start_time_seconds', START_SECONDS + startedAtMs / 1_000);
    if (plan.hasCounters) series.set('promhttp_metric_handler_requests_total{code="200"}', finishedCount);
    if (plan.hasCounters) series.set('promhttp_metric_handler_requests_in_flight', 1);
    const rows = [...series].map(([name, value]) => writeFamily(format, name, value));
    const names = [...series.keys()];
    const isEndless = fault?.kind === 'endless' && format === 'openMetrics';
    if (format === 'openMetrics' && !isEndless) rows.push(END_LINE);
    // Prometheus takes an empty page of any format; without a length the first may be one that was cut.
    const isReadable = rows.length > 0 ? !isEndless : plan.hasLength || shown.has(findOwner());
    const half = Math.ceil(rows.length / 2);
    const breakOff = () => {
      world.tell(() => `the source's answer of ${(askedAtMs / 1000).toFixed(3)}s ends early`);
      if (status === null) end({ kind: 'dropped' });
      else if (plan.hasLength) fail('other side closed');
      else {
        hasDeceived ||= status === 200 && format !== 'openMetrics' && isBelieved(names.slice(0, half));
        end({ kind: 'answered', status, contentType: '' });
      }
    };
    const cutAtMs = Math.min(downAtMs, isCut ? askedAtMs + tookMs : downAtMs);
    if (cutAtMs < Number.POSITIVE_INFINITY) at(cutAtMs, breakOff);
    if (fault?.kind === 'drop') at(askedAtMs, () => end({ kind: 'dropped' }));
    else if (fault?.kind === 'error') {
      at(askedAtMs + tookMs, () => {
        begin(500, {});
        end({ kind: 'answered', status: 500, contentType: '' });
      });
    } else if (fault?.kind !== 'hang' && fault?.kind !== 'hangOnce') {
      at(askedAtMs + Math.floor(tookMs / 2), () => {
        begin(200, { 'content-type': TYPES[format], ...(plan.hasLength && { 'content-length': '1' }) });
        passOn(rows.slice(0, half));
      });
      if (!isCut) {
        at(askedAtMs + tookMs, () => {
          passOn(rows.slice(half));
          finishedCount++;
          const isNew = now !== newest.generation;
          if (isNew && (wasRefused || (counted !== null && counted < newest.finishedCount))) known.add(now);
          const isWhole = isReadable && isBelieved(names);
          // The counter of one that may be cut is not believed (104776).
          if (counted !== null && (isWhole || wasRefused)) newest.finishedCount = counted;
          newest.generation = now;
          wasRefused = false;
          const endedAtMs = world.nowMs();
          if (isWhole)
            wholes.push({
              askedAtMs,
              endedAtMs,
              accept: findOwner(),
              isText: format === 'text',
              page,
              generation: now,
              isKnownAsNew: known.has(now),
            });
          world.tell(
            () =>
              `the source answered ${format} of ${(askedAtMs / 1000).toFixed(3)}s${isEndless ? ' without end' : ''}: ${showPage(page)}`,
          );
          end({ kind: 'answered', status: 200, contentType: '' });
        });
      }
    }
    if (fault !== undefined) world.tell(() => `the source: ${fault.kind}`);
    return promise;
  }

  const exchange: Exchange = { send, close: async () => {} };
  return { exchange, wholes, reads, hasDeceived: () => hasDeceived };
}
