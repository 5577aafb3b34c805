// A pod as kubectl prints it → the facts that the reasons go by. Whether a container is started again follows wire/pod-status.ts. Pure.

import { at, isObject, type Json, toNumber, toObjects, toText, toTexts } from '../base/json.ts';
import { readPodObject } from '../pod/pod-status.ts';
import { findProgram, type Program } from '../quit/programs.ts';

import { quoteText, readTime } from './words.ts';

/** How a container ended. */
export type Ended = {
  readonly exitCode: number;
  readonly reason: string;
  readonly message: string;
  readonly atMs: number | null;
};

/** One container of a pod. */
export type ContainerFacts = {
  readonly name: string;
  /** `native`: an init container with restartPolicy Always. */
  readonly role: 'regular' | 'native' | 'init';
  readonly spec: Json;
  readonly program: Program | null;
  /** It ended, and will not be started again. */
  readonly isDone: boolean;
  /** null: it does not run. */
  readonly running: { readonly sinceMs: number | null; readonly hasStarted: boolean } | null;
  readonly waiting: { readonly reason: string; readonly message: string } | null;
  readonly ended: Ended | null;
  /** The end before this state. */
  readonly lastEnded: Ended | null;
  readonly restartCount: number;
};

/** The facts of a pod. */
export type PodFacts = {
  readonly namespace: string;
  readonly name: string;
  readonly labels: Json;
  readonly annotations: Json;
  /** Who made it, and makes another one; null: nobody. */
  readonly owner: { readonly kind: string; readonly name: string } | null;
  readonly spec: Json;
  readonly phase: string;
  /** Of the pod's status: `Evicted`, `DeadlineExceeded`. */
  readonly reason: string;
  readonly message: string;
  readonly createdAtMs: number | null;
  /** When its grace is over; null: nobody deletes it. */
  readonly deletedByMs: number | null;
  readonly deletionGraceMs: number;
  readonly finalizers: readonly string[];
  readonly restartPolicy: string;
  readonly graceMs: number;
  /** Blank: none yet. */
  readonly nodeName: string;
  readonly conditions: readonly Json[];
  /** In the order in which they are started. */
  readonly containers: readonly ContainerFacts[];
  /** Regular containers that do the pod's work, as far as can be told. */
  readonly mains: readonly ContainerFacts[];
  /** Regular containers beside them, without lastscrape. */
  readonly helpers: readonly ContainerFacts[];
  /** The newest that runs or waits, wherever it stands; else one that has ended. */
  readonly lastscrape: ContainerFacts | null;
  /** Every main has ended for good: when, and how. null: not so. */
  readonly mainsEnded: { readonly atMs: number | null; readonly what: string } | null;
};

/** kubectl's default where a pod says nothing. */
const GRACE_SECONDS = 30;

/** The facts of an object of kind Pod; null: it has no containers, as no pod of an API server is. */
export function readPodFacts(root: Json): PodFacts | null {
  const read = readPodObject(root);
  if (!('pod' in read)) return null;
  const metadata = at(root, 'metadata');
  const spec = at(root, 'spec');
  const status = at(root, 'status');
  const doneNames = new Set(read.pod.containers.filter(({ state }) => state.kind === 'done').map(({ name }) => name));
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
  const owner = toObjects(metadata['ownerReferences']).find((each) => each['controller'] === true);
  const graceSeconds = toNumber(spec['terminationGracePeriodSeconds'], GRACE_SECONDS);
  return {
    namespace: readName(metadata['namespace']) || 'default',
    name: readName(metadata['name']) || '(no name)',
    labels: at(metadata, 'labels'),
    annotations,
    owner: owner === undefined ? null : { kind: readName(owner['kind']), name: readName(owner['name']) },
    spec,
    phase: toText(status['phase']),
    reason: toText(status['reason']),
    message: toText(status['message']),
    createdAtMs: readTime(metadata['creationTimestamp']),
    deletedByMs: readTime(metadata['deletionTimestamp']),
    deletionGraceMs: toNumber(metadata['deletionGracePeriodSeconds'], graceSeconds) * 1_000,
    finalizers: toTexts(metadata['finalizers']),
    restartPolicy: readName(spec['restartPolicy']) || 'Always',
    graceMs: graceSeconds * 1_000,
    nodeName: toText(spec['nodeName']),
    conditions: toObjects(status['conditions']),
    containers: [...inits, ...regulars],
    mains,
    helpers,
    lastscrape: scrapers.find(({ isDone }) => !isDone) ?? scrapers[0] ?? null,
    mainsEnded: findEnd(mains),
  };
}

/** A condition of a pod or a Job that has this status; undefined: none. */
export function findCondition(conditions: readonly Json[], type: string, status: string): Json | undefined {
  return conditions.find((each) => each['type'] === type && each['status'] === status);
}

function readContainer(spec: Json, status: Json, isInit: boolean, doneNames: ReadonlySet<string>): ContainerFacts {
  const name = readName(spec['name']);
  const state = at(status, 'state');
  const ended = readEnded(state['terminated']);
  const role = !isInit ? 'regular' : spec['restartPolicy'] === 'Always' ? 'native' : 'init';
  const { reason, message } = at(state, 'waiting');
  return {
    name,
    role,
    spec,
    program: findProgram({
      name,
      image: toText(spec['image']),
      variables: toObjects(spec['env']).map((each) => toText(each['name'])),
    }),
    isDone: role === 'regular' ? doneNames.has(name) : ended !== null && (role === 'native' || ended.exitCode === 0),
    running: isObject(state['running'])
      ? { sinceMs: readTime(state['running']['startedAt']), hasStarted: status['started'] !== false }
      : null,
    waiting: isObject(state['waiting']) ? { reason: toText(reason), message: toText(message) } : null,
    ended,
    lastEnded: readEnded(at(status, 'lastState')['terminated']),
    restartCount: toNumber(status['restartCount'], 0),
  };
}

/** A name, of which no API server takes what quoteText takes out; but this may be no server's JSON. */
function readName(value: unknown): string {
  return quoteText(toText(value));
}

function readEnded(value: unknown): Ended | null {
  if (!isObject(value)) return null;
  return {
    exitCode: toNumber(value['exitCode'], 0),
    reason: toText(value['reason']),
    message: toText(value['message']),
    atMs: readTime(value['finishedAt']),
  };
}

/** Who does the pod's work: what kubectl's annotation names; else every regular container that is no known helper; else all of them. */
function findMains(
  regulars: readonly ContainerFacts[],
  named: string,
): { readonly mains: readonly ContainerFacts[]; readonly helpers: readonly ContainerFacts[] } {
  const others = regulars.filter(({ program }) => program?.kind !== 'lastscrape');
  const isMain = others.some(({ name }) => name === named)
    ? ({ name, program }: ContainerFacts) => name === named || program === null
    : ({ program }: ContainerFacts) => program === null;
  const mains = others.filter(isMain);
  if (mains.length === 0) return { mains: others, helpers: [] };
  // One of several that ended did the work; what is unknown and runs on beside it may be either.
  const done = mains.filter(({ isDone }) => isDone);
  const isSplit =
    done.length > 0 && done.length < mains.length && !mains.some(({ name, isDone }) => name === named && !isDone);
  const working = isSplit ? done : mains;
  return { mains: working, helpers: others.filter((each) => !working.includes(each)) };
}

/** Its command cannot be run: the reasons of the kubelet and of CRI-O (pkg/kubelet/kuberuntime, 1.36). */
export function isNeverStarted(ended: Ended | null): boolean {
  return ended !== null && ['StartError', 'ContainerCannotRun'].includes(ended.reason);
}

function findEnd(mains: readonly ContainerFacts[]): PodFacts['mainsEnded'] {
  if (mains.length === 0 || mains.some(({ isDone }) => !isDone)) return null;
  const newest = mains.reduce((one, other) => ((other.ended?.atMs ?? 0) > (one.ended?.atMs ?? 0) ? other : one));
  const what = isNeverStarted(newest.ended)
    ? `${newest.name} could not be started`
    : `${newest.name} ended with ${newest.ended?.exitCode ?? 'nothing'}`;
  return { atMs: newest.ended?.atMs ?? null, what };
}
