// Pages that a program asked to keep (POST /-/snapshot) and another program on its port has replaced since:
// each stays until every scraper that lived then has had it. Pure.

/** A call. `Page`: what was kept, in one format. */
export type Call<Page> = {
  readonly number: number;
  /** The program that called has ended: what answers now is another one. */
  readonly isOver: boolean;
  /** The scrapers that have not had its page; null: none lived, and the first that comes has not had it. */
  readonly pendingIds: readonly number[] | null;
  /** The pages put aside, in every format; empty while the call's page is still the newest. */
  readonly replaced: readonly Page[];
};

/**
 * Each call has a page or more in memory; more programs than this within one interval of a scraper are rare.
 */
const CALLS_MAX_COUNT = 4;

/**
 * The calls, oldest first, with one that was kept while these scrapers lived. It replaces earlier ones of the
 * same program; `isFull`: the page of the oldest is lost for it.
 */
export function addCall<Page>(calls: readonly Call<Page>[], livingIds: readonly number[]) {
  const number = (calls.at(-1)?.number ?? 0) + 1;
  const pendingIds = livingIds.length === 0 ? null : livingIds;
  const call = { number, isOver: false, pendingIds, replaced: [] };
  const all = [...calls.filter(({ isOver }) => isOver), call];
  return { calls: all.slice(-CALLS_MAX_COUNT), isFull: all.length > CALLS_MAX_COUNT };
}

/** The source refused, or another program answers there. */
export function endCalls<Page>(calls: readonly Call<Page>[]): readonly Call<Page>[] {
  return calls.map((call) => ({ ...call, isOver: true }));
}

/**
 * Whether the page of a call is owed once one is replaced by a newer answer, which is another program's where
 * the one that called has ended: then those of other formats will follow, or are dropped.
 */
export function isToPutAside({ isOver, replaced }: Call<unknown>): boolean {
  return isOver && replaced.length === 0;
}

/** The calls with these pages put aside. */
export function replacePages<Page>(calls: readonly Call<Page>[], pages: readonly Page[]): readonly Call<Page>[] {
  return calls.map((call) => (isToPutAside(call) ? { ...call, replaced: pages } : call));
}

/** The oldest call whose page this scraper is still owed. `isReplaced`: only one that was put aside. */
export function findCall<Page>(calls: readonly Call<Page>[], id: number, isReplaced: boolean): Call<Page> | null {
  const isDue = (call: Call<Page>) =>
    call.isOver && isPendingFor(call, id) && (!isReplaced || call.replaced.length > 0);
  return calls.find(isDue) ?? null;
}

/**
 * Whether this scraper is owed the page of a program that may have ended: what answers now may be another.
 */
export function isOwed<Page>(calls: readonly Call<Page>[], id: number): boolean {
  return calls.some((call) => !call.isOver && isPendingFor(call, id));
}

function isPendingFor({ pendingIds }: Call<unknown>, id: number): boolean {
  return pendingIds === null || pendingIds.includes(id);
}

/** Whether a scraper is still owed a page that was put aside: it is not among the last pages. */
export function hasPutAside(calls: readonly Call<unknown>[]): boolean {
  return calls.some(({ replaced }) => replaced.length > 0);
}

/**
 * The scraper has had the page of this call; null: the newest page, and with it that of every call whose page
 * was not put aside.
 */
export function takeCalled<Page>(calls: readonly Call<Page>[], number: number | null, id: number) {
  const isTaken = (call: Call<Page>) => (number === null ? call.replaced.length === 0 : call.number === number);
  const drop = (pendingIds: Call<Page>['pendingIds']) => (pendingIds ?? []).filter((each) => each !== id);
  return calls.map((call) => (isTaken(call) ? { ...call, pendingIds: drop(call.pendingIds) } : call)).filter(isPending);
}

/** Only these scrapers still live. */
export function keepLiving<Page>(calls: readonly Call<Page>[], livingIds: readonly number[]): readonly Call<Page>[] {
  const keep = (pendingIds: Call<Page>['pendingIds']) => pendingIds?.filter((id) => livingIds.includes(id)) ?? null;
  return calls.map((call) => ({ ...call, pendingIds: keep(call.pendingIds) })).filter(isPending);
}

function isPending({ pendingIds }: Call<unknown>): boolean {
  return pendingIds === null || pendingIds.length > 0;
}
