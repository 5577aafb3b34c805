// A pod that is being deleted, or whose native sidecars are being ended. Pure.

import { at, isObject } from '../../base/json.ts';
import { joinNames } from '../../base/text.ts';
import type { ContainerFacts } from '../container.ts';
import type { Change, Command, Found, Reasons, Since } from '../finding.ts';
import { changePod, kubectl, specLines, toLines } from '../lines.ts';
import { describeDisruption, describePod, keepsPod, type PodFacts } from '../pod.ts';
import { addOthers, formatAge, formatTime, quoteShell, quoteText } from '../words.ts';

/** Set by the Job controller on its pods, and removed by it once it has counted them. */
const JOB_FINALIZER = 'batch.kubernetes.io/job-tracking';
/** How much later than its grace a pod may go: the kubelet kills, then updates the API server. */
const LATE_MS = 30_000;
/** A shorter grace is not what a person waits for. */
const SHORT_GRACE_SECONDS = 10;

/** The rows of a pod that is being deleted. */
export const DELETED_REASONS: Reasons<PodFacts> = {
  nodeSilent: (pod, nowMs) => {
    const [first] = findRunning(pod);
    if (first === undefined || !isLate(pod, nowMs)) return null;
    const node = quoteText(pod.nodeName);
    const what = 'Bring the node back, or remove it from the cluster: its pods go then.';
    return keepsPod(first, pod, ` from going: its node ${node} should have killed it and has not confirmed that`, {
      isStuck: true,
      since: graceOver(pod),
      why: 'The node may be down or cut off; only its kubelet knows that a container has ended.',
      change: { what, in: 'object', lines: null },
      see: nodeCommand(pod),
      now: {
        what: 'forget the pod, if the node is gone for good (its programs may still run there)',
        line: kubectl(pod, `delete pod ${quoteShell(pod.name)} --grace-period=0 --force`),
      },
    });
  },
  terminating: (pod, nowMs) => {
    const [first, ...more] = findRunning(pod);
    if (first === undefined || pod.deletedByMs === null || isLate(pod, nowMs)) return null;
    const hooked = [first, ...more].filter(({ spec }) => isObject(at(spec, 'lifecycle')['preStop']));
    const hooks = joinNames(hooked.map(({ name }) => name));
    const others = pod.finalizers.filter((name) => name !== JOB_FINALIZER);
    const disruption = describeDisruption(pod).replace(/\.$/, '');
    const asked = hooked.includes(first) ? 'was asked to end' : 'got SIGTERM';
    const because = `: it ${asked} and still runs; killed at ${formatTime(pod.deletedByMs)}`;
    return keepsPod(first, pod, ` from going${addOthers(more)}${because}`, {
      isStuck: false,
      since: { atMs: pod.deletedByMs - pod.deletionGraceMs, what: 'the pod was deleted' },
      why: [
        ...(disruption === '' ? [] : [`It was not deleted by a person: ${disruption}.`]),
        `Its grace is ${formatAge(pod.deletionGraceMs)}.`,
        hooks === ''
          ? 'A program that ignores SIGTERM, or a shell that does not pass it on, uses all of it.'
          : `The preStop hook of ${hooks} runs before the SIGTERM, in the same grace.`,
        ...others.map((name) => `After that the finalizer ${quoteText(name)} keeps the object.`),
      ].join(' '),
      change: shortenGrace(pod, pod.deletionGraceMs, hooks === '' ? 'Handle' : 'End the hook soon and handle'),
    });
  },
  finalizer: (pod) => {
    const { finalizers } = pod;
    if (finalizers.length === 0 || findRunning(pod).length > 0) return null;
    const isJobs = finalizers.every((name) => name === JOB_FINALIZER);
    const program = isJobs ? 'the Job controller' : 'the program that set it';
    return { isStuck: isJobs ? null : true, since: graceOver(pod), ...removeFinalizers(pod, 'pod', program) };
  },
  deleted: (pod) => {
    if (pod.finalizers.length > 0 || findRunning(pod).length > 0) return null;
    const see = { what: 'whether it is still there', line: kubectl(pod, `get pod ${quoteShell(pod.name)}`) };
    const summary = `Nothing keeps ${describePod(pod)}: it is deleted and goes any moment`;
    const why = 'No container runs, and it has no finalizer.';
    return { isStuck: false, summary, since: graceOver(pod), why, see };
  },
};

/** What keeps a deleted object, and how its finalizers are removed. @param program that removes them */
export function removeFinalizers(
  object: Pick<PodFacts, 'namespace' | 'name' | 'finalizers'>,
  kind: 'pod' | 'Job',
  program: string,
): Pick<Found, 'summary' | 'why' | 'change' | 'now'> {
  const { namespace, name, finalizers } = object;
  const names = joinNames(finalizers.map((each) => quoteText(each))) || 'nothing';
  const patch = `patch ${kind.toLowerCase()} ${quoteShell(name)} --type=merge --patch='{"metadata":{"finalizers":null}}'`;
  return {
    summary: `The finalizer ${names} keeps ${kind} ${namespace}/${name}, which is deleted: ${program} must remove it`,
    why: `Only the object is left, until ${program} has done its work.`,
    change: {
      what: 'Find out whether that program still runs. If it is gone for good, remove the finalizer:',
      in: 'object',
      lines: toLines('metadata:', '  finalizers: null   # removes all of them'),
    },
    now: { what: 'the same as a command', line: kubectl(object, patch) },
  };
}

/** The row of native sidecars that outlive main. */
export const NATIVE_REASONS: Reasons<PodFacts> = {
  nativeEnds: (pod, nowMs) => {
    const isOver = pod.containers.every(({ role, isDone }) => role !== 'regular' || isDone);
    const last = pod.containers.findLast(({ role, running }) => role === 'native' && running !== null);
    const end = pod.mainsEnded;
    if (!isOver || last === undefined || end === null) return null;
    const killedAtMs = end.atMs === null ? null : end.atMs + pod.graceMs;
    // lastscrape has another row while it holds.
    if (last.program?.kind === 'lastscrape' && nowMs <= (killedAtMs ?? nowMs)) return null;
    const isOverdue = killedAtMs !== null && nowMs > killedAtMs + LATE_MS;
    const when = killedAtMs === null ? 'when the grace is over' : `at about ${formatTime(killedAtMs)}`;
    const because = isOverdue ? `should have been killed ${when}` : `got SIGTERM and still runs; killed ${when}`;
    return keepsPod(last, pod, `: this native sidecar ${because}`, {
      isStuck: isOverdue ? null : false,
      since: end,
      why: `When the regular containers have ended, native sidecars get SIGTERM, the last of the list first. The pod's grace is ${formatAge(pod.graceMs)}.`,
      change: shortenGrace(pod, pod.graceMs, 'Handle'),
      see: nodeCommand(pod),
    });
  },
};

function shortenGrace(pod: PodFacts, graceMs: number, verb: string): Change {
  const what = `${verb} SIGTERM in the program (in a shell: exec)`;
  if (graceMs <= SHORT_GRACE_SECONDS * 1_000) return { what: `${what}.`, in: 'podTemplate', lines: null };
  const seconds = graceMs > 30_000 ? 30 : SHORT_GRACE_SECONDS;
  return changePod(pod, `${what}, or set a shorter grace`, specLines(`terminationGracePeriodSeconds: ${seconds}`));
}

function nodeCommand({ nodeName }: PodFacts): Command {
  return { what: 'what its node says', line: `kubectl get node ${quoteShell(nodeName)}` };
}

function graceOver({ deletedByMs }: PodFacts): Since {
  return { atMs: deletedByMs, what: 'its grace was over' };
}

function findRunning({ containers }: PodFacts): readonly ContainerFacts[] {
  return containers.filter(({ running }) => running !== null);
}

function isLate({ deletedByMs }: PodFacts, nowMs: number): boolean {
  return deletedByMs !== null && nowMs > deletedByMs + LATE_MS;
}
