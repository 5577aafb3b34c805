// A pod as kubectl prints it → the facts that the reasons use. Pure. pod/pod-status.ts says what is
// restarted.

import { at, type Json, toNumber, toObjects, toText, toTexts } from '../base/json.ts';
import { joinNames } from '../base/text.ts';
import type { Kinds } from '../config/config.ts';
import { readPodObject } from '../pod/pod-status.ts';
import { type ContainerFacts, readContainer, readLastscrape } from './container.ts';
import type { Found, Since } from './finding.ts';
import { quoteText, readName, readTime } from './words.ts';

/** The facts of a pod. */
export type PodFacts = ReturnType<typeof readPodFacts>;

/** Kubernetes' default where a pod says nothing. */
const GRACE_SECONDS = 30;

/** The facts of an object of kind Pod. */
export function readPodFacts(root: Json, kinds: Kinds) {
  const read = readPodObject(root);
  const metadata = at(root, 'metadata');
  const spec = at(root, 'spec');
  const status = at(root, 'status');
  const done = 'pod' in read ? read.pod.containers.filter(({ state }) => state.kind === 'done') : [];
  const doneNames = new Set(done.map(({ name }) => name));
  const readAll = (specs: unknown, statuses: unknown, isInit: boolean) =>
    toObjects(specs).map((container) => {
      const own = toObjects(statuses).find(({ name }) => name === container['name']) ?? {};
      return readContainer(container, own, isInit, doneNames);
    });
  const inits = readAll(spec['initContainers'], status['initContainerStatuses'], true);
  const regulars = readAll(spec['containers'], status['containerStatuses'], false);
  const annotations = at(metadata, 'annotations');
  const { mains, helpers } = findMains(regulars, toText(annotations['kubectl.kubernetes.io/default-container']));
  const scrapers = [...regulars, ...inits].filter(({ program }) => program?.kind === 'lastscrape');
  const lastscrape = scrapers.find(({ isDone }) => !isDone) ?? scrapers[0];
  const owner = toObjects(metadata['ownerReferences']).find((each) => each['controller'] === true);
  const graceSeconds = toNumber(spec['terminationGracePeriodSeconds'], GRACE_SECONDS);
  return {
    ...readMetadata(metadata),
    labels: at(metadata, 'labels'),
    annotations,
    /** Its controller, which replaces it; null: none. */
    owner: owner === undefined ? null : { kind: readName(owner['kind']), name: readName(owner['name']) },
    spec,
    phase: readName(status['phase']),
    /** Of the pod's status: `Evicted`, `DeadlineExceeded`. */
    reason: readName(status['reason']),
    message: toText(status['message']),
    /** When its grace is over; null: it is not being deleted. */
    deletedByMs: readTime(metadata['deletionTimestamp']),
    deletionGraceMs: toNumber(metadata['deletionGracePeriodSeconds'], graceSeconds) * 1_000,
    graceMs: graceSeconds * 1_000,
    conditions: toObjects(status['conditions']),
    /** In the order in which they are started. */
    containers: [...inits, ...regulars],
    /** Regular containers that do the pod's work, as far as the JSON shows. */
    mains,
    /** Their names, as a part of a sentence. */
    mainNames: joinNames(mains.map(({ name }) => name)),
    /** The other regular containers, without lastscrape. */
    helpers,
    runningHelpers: helpers.filter(({ isDone, running }) => !isDone && running !== null),
    /** The newest that runs or waits, wherever it stands; else one that has ended. */
    lastscrape: lastscrape === undefined ? null : readLastscrape(lastscrape, metadata, kinds),
    /** Every main has ended for good: when, and how. null: not so. */
    mainsEnded: findEnd(mains),
  };
}

/** An object by its name. */
export type Named = Pick<PodFacts, 'namespace' | 'name'>;

/** What pods and Jobs have in common. */
export function readMetadata(metadata: Json) {
  return {
    namespace: readName(metadata['namespace']) || 'default',
    name: readName(metadata['name']) || '(no name)',
    created: { atMs: readTime(metadata['creationTimestamp']), what: 'it was created' },
    finalizers: toTexts(metadata['finalizers']),
  };
}

/** A finding of a container: `NAME keeps pod NAMESPACE/POD` and the rest of that sentence. */
export function keepsPod(
  { name }: ContainerFacts,
  pod: PodFacts,
  because: string,
  more: Omit<Found, 'container' | 'summary'>,
): Found {
  return { container: name, summary: `${name} keeps ${describePod(pod)}${because}`, ...more };
}

/** `pod NAMESPACE/NAME`. */
export function describePod({ namespace, name }: PodFacts): string {
  return `pod ${namespace}/${name}`;
}

/**
 * Who ended the pod from outside, in its words: the scheduler, a drain, the kubelet; blank: nobody that
 * shows.
 */
export function describeDisruption({ conditions }: PodFacts): string {
  const found = findCondition(conditions, 'DisruptionTarget', 'True');
  if (found === undefined) return '';
  return [found['reason'], found['message']]
    .map((each) => quoteText(toText(each)))
    .filter(Boolean)
    .join(': ');
}

/** A condition of a pod or a Job that has this status; undefined: none. */
export function findCondition(conditions: readonly Json[], type: string, status: string): Json | undefined {
  return conditions.find((each) => each['type'] === type && each['status'] === status);
}

/** The containers that do the pod's work: kubectl's annotation, else all but known helpers, else all. */
function findMains(
  regulars: readonly ContainerFacts[],
  named: string,
): { readonly mains: readonly ContainerFacts[]; readonly helpers: readonly ContainerFacts[] } {
  const others = regulars.filter(({ program }) => program?.kind !== 'lastscrape');
  const mains = others.filter(({ name, program }) => name === named || program === null);
  if (mains.length === 0) return { mains: others, helpers: [] };
  // If one of several has ended, it did the work; an unknown one that still runs may be either.
  const done = mains.filter(({ isDone }) => isDone);
  const isSplit =
    done.length > 0 && done.length < mains.length && !mains.some(({ name, isDone }) => name === named && !isDone);
  const working = isSplit ? done : mains;
  return { mains: working, helpers: others.filter((each) => !working.includes(each)) };
}

function findEnd(mains: readonly ContainerFacts[]): Since | null {
  if (mains.length === 0 || mains.some(({ isDone }) => !isDone)) return null;
  const newest = mains.reduce((one, other) => ((other.ended?.atMs ?? 0) > (one.ended?.atMs ?? 0) ? other : one));
  const what = `${newest.name} ended with ${newest.ended?.exitCode ?? 'nothing'}`;
  return { atMs: newest.ended?.atMs ?? null, what };
}
