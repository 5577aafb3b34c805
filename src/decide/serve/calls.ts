// Pages that a program asked to keep (POST /-/snapshot) and another program on its port has replaced since:
// each stays until every scraper that lived then has had it. Pure.

/** A call. `Page`: what was kept. */
export type Call<Page> = {
  readonly number: number;
  /** The program that called has ended: what answers now is another one. */
  readonly isOver: boolean;
  /** The scrapers that have not had its page. */
  readonly pendingIds: readonly number[];
  /** The pages put aside, by Accept; empty while the call's page is still the newest. */
  readonly replaced: ReadonlyMap<string, Page>;
};

/**
 * Each call has a page or more in memory; more programs than this within one interval of a scraper are rare.
 */
const CALLS_MAX_COUNT = 4;

/**
 * The calls, oldest first, with one that was kept while these scrapers lived. It replaces earlier ones of the
 * same program.
 */
export function addCall<Page>(calls: readonly Call<Page>[], livingIds: readonly number[]): readonly Call<Page>[] {
  if (livingIds.length === 0) return calls;
  const number = (calls.at(-1)?.number ?? 0) + 1;
  const call = { number, isOver: false, pendingIds: livingIds, replaced: new Map<string, Page>() };
  return [...calls.filter(({ isOver }) => isOver), call].slice(-CALLS_MAX_COUNT);
}

/** The source refused, or another program answers there. */
export function endCalls<Page>(calls: readonly Call<Page>[]): readonly Call<Page>[] {
  return calls.map((call) => ({ ...call, isOver: true }));
}

/**
 * A page is about to be replaced by a newer answer; where the program that called has ended, it is another
 * one's.
 */
export function replacePage<Page>(calls: readonly Call<Page>[], accept: string, page: Page): readonly Call<Page>[] {
  return calls.map((call) =>
    !call.isOver || call.replaced.has(accept)
      ? call
      : { ...call, replaced: new Map([...call.replaced, [accept, page]]) },
  );
}

/** The oldest call whose page this scraper is still owed. `isReplaced`: only one that was put aside. */
export function findCall<Page>(
  calls: readonly Call<Page>[],
  id: number,
  accept: string,
  isReplaced: boolean,
): Call<Page> | null {
  const isDue = ({ isOver, pendingIds, replaced }: Call<Page>) =>
    isOver && pendingIds.includes(id) && (!isReplaced || replaced.has(accept));
  return calls.find(isDue) ?? null;
}

/**
 * Whether this scraper is owed the page of a program that may have ended: what answers now may be another.
 */
export function isOwed<Page>(calls: readonly Call<Page>[], id: number): boolean {
  return calls.some(({ isOver, pendingIds }) => !isOver && pendingIds.includes(id));
}

/** Whether a scraper is still owed a page that was put aside: it is not among the last pages. */
export function hasPutAside(calls: readonly Call<unknown>[]): boolean {
  return calls.some(({ replaced }) => replaced.size > 0);
}

/** The scraper has had the page of this call. */
export function takeCall<Page>(calls: readonly Call<Page>[], number: number, id: number): readonly Call<Page>[] {
  return keepPending(calls, (call, each) => call.number !== number || each !== id);
}

/** The scraper has had the newest page, and with it that of every call whose page was not put aside. */
export function takeNewest<Page>(calls: readonly Call<Page>[], id: number): readonly Call<Page>[] {
  return keepPending(calls, ({ replaced }, each) => replaced.size > 0 || each !== id);
}

/** Only these scrapers still live. */
export function keepLiving<Page>(calls: readonly Call<Page>[], livingIds: readonly number[]): readonly Call<Page>[] {
  return keepPending(calls, (_, id) => livingIds.includes(id));
}

function keepPending<Page>(
  calls: readonly Call<Page>[],
  isPending: (call: Call<Page>, id: number) => boolean,
): readonly Call<Page>[] {
  return calls
    .map((call) => ({ ...call, pendingIds: call.pendingIds.filter((id) => isPending(call, id)) }))
    .filter(({ pendingIds }) => pendingIds.length > 0);
}
