// The groups of a Pushgateway as a law: groups and a request give groups and a status, as in Pushgateway 1.11
// (handler/push.go, storage/diskmetricstore.go). But what was deleted or replaced stays on the page until
// every active scraper has had it. Pure.

import { orNull } from '../../base/parse.ts';
import { formatGoFloat } from '../../exposition/exposition-text.ts';
import { POINT_SUFFIXES } from '../../exposition/families.ts';
import {
  FAMILY_LENGTH,
  formatSeries,
  type Grouping,
  PUSHED_MAX_LENGTH,
  type PushedBody,
  type PushedFamily,
} from './pushed-families.ts';

/** Of one name in one group; when that was pushed. */
type KeptFamily = PushedFamily & { readonly pushedAtMs: number };

type Group = { readonly grouping: Grouping; readonly families: ReadonlyMap<string, KeptFamily> };

/** What was pushed. */
export type PushStore = {
  /** By `formatSeries` of their labels. */
  readonly groups: ReadonlyMap<string, Group>;
  /** Deleted or replaced, and not taken by every scraper yet; the oldest first. */
  readonly leftovers: readonly KeptFamily[];
};

/** A request whose body could be read. */
export type PushRequest = {
  readonly grouping: Grouping;
  /** Null: the group is deleted. */
  readonly body: Extract<PushedBody, { readonly kind: 'read' }> | null;
  /** The whole group is replaced, not only families of the same names. */
  readonly isReplaced: boolean;
  readonly atMs: number;
  /** Now, in seconds since 1970. */
  readonly seconds: number;
  /** What pages showed that were read before this, every living scraper has taken. */
  readonly takenAtMs: number;
};

export const EMPTY_STORE: PushStore = { groups: new Map(), leftovers: [] };
export const GROUPS_MAX_COUNT = 1_000;

/** As Pushgateway writes them. */
const TIMES = {
  pushed: ['push_time_seconds', 'Last Unix time when changing this group in the Pushgateway succeeded.'],
  failed: ['push_failure_time_seconds', 'Last Unix time when changing this group in the Pushgateway failed.'],
} as const;

/**
 * The store after a request, and how that is answered; `why`: the text of an error. `droppedCount`: leftovers
 * that had no more room, and were not taken by every scraper.
 */
export function takePush(store: PushStore, request: PushRequest) {
  const { grouping, body, isReplaced, atMs, seconds, takenAtMs } = request;
  const key = formatSeries([], grouping);
  const before = store.groups.get(key)?.families ?? new Map<string, KeptFamily>();
  const groups = new Map(store.groups);
  const time = (kind: keyof typeof TIMES, value: number): KeptFamily => {
    const [name, help] = TIMES[kind];
    const series = new Map([[key, formatGoFloat(value)]]);
    return { name, type: 'gauge', help, series, length: FAMILY_LENGTH + key.length, pushedAtMs: atMs };
  };
  const [pushed, failed] = [TIMES.pushed[0], TIMES.failed[0]];
  if (body === null) {
    groups.delete(key);
    return { ...keepLeftovers(store, groups, before, takenAtMs), status: 202 };
  }
  if (groups.size === GROUPS_MAX_COUNT && !groups.has(key)) {
    return { store, status: 400, why: `there are ${GROUPS_MAX_COUNT} groups already`, droppedCount: 0 };
  }
  const own = body.families.filter(({ name }) => name !== pushed && name !== failed);
  const families = new Map([
    ...(isReplaced ? [] : before),
    ...own.map((family) => [family.name, { ...family, pushedAtMs: atMs }] as const),
    [pushed, time('pushed', seconds)],
    [failed, before.get(failed) ?? time('failed', 0)],
  ]);
  groups.set(key, { grouping, families });
  const why = body.fault ?? (findLength(groups) > PUSHED_MAX_LENGTH ? EXCESS : findContradiction(groups, own));
  if (why === null) return { ...keepLeftovers(store, groups, before, takenAtMs), status: 200 };
  const unchanged = new Map([[pushed, time('pushed', 0)], ...before, [failed, time('failed', seconds)]]);
  return {
    store: { ...store, groups: new Map(store.groups).set(key, { grouping, families: unchanged }) },
    status: 400,
    why: `pushed metrics are invalid or inconsistent with existing metrics: ${why}`,
    droppedCount: 0,
  };
}

/** The store without what every living scraper has taken. */
export function dropTaken(store: PushStore, takenAtMs: number): PushStore {
  const leftovers = store.leftovers.filter(({ pushedAtMs }) => pushedAtMs >= takenAtMs);
  return leftovers.length === store.leftovers.length ? store : { ...store, leftovers };
}

/** All families of the page, those of groups before leftovers. */
export function listFamilies({ groups, leftovers }: PushStore): readonly KeptFamily[] {
  return [...[...groups.values()].flatMap(({ families }) => [...families.values()]), ...leftovers];
}

/**
 * Keeps what no group has any more, and does not contradict what one has: the newest that there is room for.
 */
function keepLeftovers(store: PushStore, groups: PushStore['groups'], before: Group['families'], takenAtMs: number) {
  const present = indexFamilies(groups);
  const removed = [...before.values()].filter((family) => !present.get(family.name)?.includes(family));
  const leftovers = [...store.leftovers, ...removed].flatMap((family): readonly KeptFamily[] => {
    if (family.pushedAtMs < takenAtMs || findCollision(family, present) !== null) return [];
    const others = present.get(family.name) ?? [];
    const series = [...family.series].filter(([key]) => !others.some((each) => each.series.has(key)));
    return series.length === 0 ? [] : [{ ...family, series: new Map(series) }];
  });
  let leftLength = PUSHED_MAX_LENGTH - findLength(groups);
  const kept = leftovers.toReversed().filter(({ length }) => {
    leftLength -= length;
    return leftLength >= 0;
  });
  return { store: { groups, leftovers: kept.toReversed() }, droppedCount: leftovers.length - kept.length };
}

function findLength(groups: PushStore['groups']): number {
  return listFamilies({ groups, leftovers: [] }).reduce((sum, { length }) => sum + length, 0);
}

const EXCESS = `more than ${PUSHED_MAX_LENGTH} letters of series in all groups`;

type Index = ReadonlyMap<string, readonly KeptFamily[]>;

function indexFamilies(groups: PushStore['groups']): Index {
  return Map.groupBy(listFamilies({ groups, leftovers: [] }), ({ name }) => name);
}

/** Why these families cannot be on one page with the others; null: they can. */
function findContradiction(groups: PushStore['groups'], families: readonly PushedFamily[]): string | null {
  const present = indexFamilies(groups);
  for (const family of families) {
    const collision = findCollision(family, present);
    if (collision !== null) return collision;
    const all = present.get(family.name) as readonly KeptFamily[];
    for (const key of all.length === 1 ? [] : family.series.keys()) {
      if (all.filter(({ series }) => series.has(key)).length > 1)
        return `${family.name}{${key}} was collected before with the same name and label values`;
    }
  }
  return null;
}

/** As `checkSuffixCollisions` and `checkMetricConsistency` of client_golang have it (registry.go). */
function findCollision({ name, type }: PushedFamily, present: Index): string | null {
  const other = present.get(name)?.find((each) => each.type !== type);
  if (other !== undefined) return `${name} is a ${other.type} already, and not a ${type}`;
  const own = (POINT_SUFFIXES[type] ?? []).map((suffix) => name + suffix).find((each) => present.has(each));
  if (own !== undefined) return `${name} is a ${type}, and there is a family ${own}`;
  const [, base = '', suffix = ''] = /^(.+)(_(?:bucket|sum|count))$/.exec(name) ?? [];
  const parent = present.get(base)?.[0]?.type;
  const isOf = parent !== undefined && POINT_SUFFIXES[parent]?.includes(suffix) === true;
  return isOf ? `${name} is what the ${parent} ${base} has` : null;
}

/** Pushgateway sends a client whose URL ends with a slash on from `//metrics`. */
const PATH = /^\/+metrics\/job(@base64)?\/([^/]*)(?:\/(.*))?$/s;

/** The group that a path names, or why it names no group; null: the path is not for pushes. */
export function readGrouping(target: string): Grouping | string | null {
  // Percent-decoded before it is split, as in Go: a slash in a value needs base64.
  const path = orNull(() => decodeURIComponent(target.replace(/\?.*$/s, '')));
  const [match, encoding, job = '', rest = ''] = PATH.exec(path ?? '') ?? [];
  if (path === null) return 'the path is not percent-encoded UTF-8';
  if (match === undefined) return null;
  const parts = rest === '' ? [] : rest.split('/');
  if (parts.length % 2 === 1) return `odd number of components in label string ${JSON.stringify(`/${rest}`)}`;
  const grouping = new Map<string, string>();
  for (let index = 0; index < parts.length; index += 2) {
    const [, name = '', isEncoded] = /^(.*?)(@base64)?$/s.exec(parts[index] as string) as RegExpExecArray;
    if (!/^(?!__)[a-zA-Z_]\w*$/.test(name)) return `improper label name ${JSON.stringify(name)}`;
    const value = readValue(parts[index + 1] as string, isEncoded);
    if (value === null) return `invalid base64 encoding for label ${name}`;
    grouping.set(name, value);
  }
  const name = readValue(job, encoding);
  if (name === null) return 'invalid base64 encoding in job name';
  return name === '' ? 'job name is required' : grouping.set('job', name);
}

/** Base64 for URLs, padded or not (RFC 4648, 5). Null: not Base64, or not of UTF-8. */
function readValue(text: string, encoding: string | undefined): string | null {
  if (encoding === undefined) return text;
  const digits = text.replace(/[\r\n]|=+$/g, '');
  if (!/^[\w-]*$/.test(digits) || digits.length % 4 === 1) return null;
  const value = Buffer.from(digits, 'base64url');
  return Buffer.from(value.toString()).equals(value) ? value.toString() : null;
}
