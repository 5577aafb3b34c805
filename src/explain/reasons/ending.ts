// A pod that is being deleted, or whose native sidecars are being ended. Pure.

import { at, isObject } from '../../base/json.ts';
import type { Found, Reason } from '../finding.ts';
import { describeTemplate, kubectl, podChange, toLines } from '../lines.ts';
import type { ContainerFacts, PodFacts } from '../pod.ts';
import { formatAge, formatTime, joinNames, quoteShell, quoteText } from '../words.ts';
import { tellPod } from './helpers.ts';

/** Set by the Job controller on its pods, and taken away by it once it has counted them. */
const JOB_FINALIZER = 'batch.kubernetes.io/job-tracking';
/** How much later than its grace a pod may go: the kubelet kills, then tells the API server. */
const LATE_MS = 30_000;
/** Below that a grace is not what one waits for. */
const SHORT_GRACE_SECONDS = 10;

/** The rows of a pod that somebody deletes. */
export const DELETED_REASONS: readonly Reason<PodFacts>[] = [
  {
    id: 'nodeSilent',
    meaning: 'the pod is deleted, its grace is over, and its node does not say that it is gone',
    find: (pod, nowMs) => {
      const running = findRunning(pod);
      if (!isLate(pod, nowMs) || running.length === 0) return [];
      return [
        {
          container: running[0]?.name ?? null,
          isStuck: true,
          summary: `${joinNames(running.map(({ name }) => name))} keeps ${tellPod(pod)} from going: its node ${quoteText(pod.nodeName)} should have killed it, and has not said so`,
          sinceMs: pod.deletedByMs,
          sinceWhat: 'its grace was over',
          why: 'The node may be down or cut off; only its kubelet can tell that a container has ended.',
          change: podChange('Bring the node back, or remove it from the cluster: its pods go then.', null),
          see: { what: 'whether the node is there', line: `kubectl get node ${quoteShell(pod.nodeName)}` },
          now: {
            what: 'to forget the pod where the node is gone for good (its programs may still run there)',
            line: kubectl(pod.namespace, `delete pod ${quoteShell(pod.name)} --grace-period=0 --force`),
          },
        },
      ];
    },
  },
  {
    id: 'terminating',
    meaning: 'the pod is deleted, and a container has not ended since its SIGTERM',
    find: (pod, nowMs) => {
      const running = findRunning(pod);
      const [first] = running;
      if (first === undefined || isLate(pod, nowMs) || pod.deletedByMs === null) return [];
      const names = joinNames(running.map(({ name }) => name));
      const seconds = pod.deletionGraceMs / 1_000;
      const hooked = running.filter(({ spec }) => isObject(at(spec, 'lifecycle')['preStop']));
      const others = pod.finalizers.filter((name) => name !== JOB_FINALIZER);
      return [
        {
          container: first.name,
          isStuck: false,
          summary: `${names} keep${running.length === 1 ? 's' : ''} ${tellPod(pod)} from going: told to end, and still there; killed at ${formatTime(pod.deletedByMs)}`,
          sinceMs: pod.deletedByMs - pod.deletionGraceMs,
          sinceWhat: 'somebody deleted the pod',
          why: [
            `Its grace is ${formatAge(pod.deletionGraceMs)}.`,
            hooked.length === 0
              ? 'A program that does not handle SIGTERM, or a shell that does not pass it on, uses up all of it.'
              : `${joinNames(hooked.map(({ name }) => name))} has a preStop hook, which runs before the SIGTERM and in the same grace.`,
            ...others.map((name) => `After that the finalizer ${quoteText(name)} keeps the object.`),
          ].join(' '),
          change: podChange(
            `Have ${hooked.length === 0 ? '' : 'the hook end soon, and '}the program end at SIGTERM (in a shell: exec). ${describeTemplate(pod)}, for a shorter grace:`,
            graceLines(seconds),
          ),
        },
      ];
    },
  },
  {
    id: 'finalizer',
    meaning: 'the pod is deleted and over, and a finalizer keeps the object',
    find: (pod) => {
      const { finalizers } = pod;
      if (finalizers.length === 0 || findRunning(pod).length > 0) return [];
      const names = joinNames(finalizers.map((name) => quoteText(name)));
      const patch = `patch pod ${quoteShell(pod.name)} --type=merge --patch='{"metadata":{"finalizers":null}}'`;
      const isJobs = finalizers.every((name) => name === JOB_FINALIZER);
      return [
        {
          container: null,
          isStuck: isJobs ? null : true,
          summary: `The finalizer ${names} keeps ${tellPod(pod)}: whoever set it must take it away`,
          sinceMs: pod.deletedByMs,
          sinceWhat: 'its grace was over',
          why: isJobs
            ? 'The controller of Jobs takes it away once it has counted the pod. Where it stays, that controller does not run.'
            : 'No container runs any more; only the object is left, until the program that set the finalizer has done its work.',
          change: {
            what: 'Find out whether that program still runs. Where it is gone for good, remove the finalizer from the pod:',
            in: 'object',
            lines: toLines(['metadata:', '  finalizers: null   # removes all of them']),
          },
          now: { what: 'the same as a command', line: kubectl(pod.namespace, patch) },
        },
      ];
    },
  },
  {
    id: 'deleted',
    meaning: 'the pod is deleted, nothing runs, and no finalizer is there: it goes any moment',
    find: (pod) => {
      if (pod.finalizers.length > 0 || findRunning(pod).length > 0) return [];
      return [
        {
          container: null,
          isStuck: false,
          summary: `Nothing keeps ${tellPod(pod)}: it is deleted, and goes any moment`,
          sinceMs: pod.deletedByMs,
          sinceWhat: 'its grace was over',
          why: 'No container runs, and there is no finalizer.',
          change: podChange('Nothing.', null),
          see: { what: 'whether it is still there', line: kubectl(pod.namespace, `get pod ${quoteShell(pod.name)}`) },
        },
      ];
    },
  },
];

/** The row of native sidecars that outlive main. */
export const NATIVE_REASONS: readonly Reason<PodFacts>[] = [
  {
    id: 'nativeEnds',
    meaning: 'all regular containers have ended, and a native sidecar has not ended since its SIGTERM',
    find: (pod, nowMs) => {
      const isOver = pod.containers.every(({ role, isDone }) => role !== 'regular' || isDone);
      const natives = pod.containers.filter(({ role, running }) => role === 'native' && running !== null);
      const first = natives.at(-1);
      if (!isOver || first === undefined || pod.mainsEnded === null) return [];
      // lastscrape has a row of its own while it holds.
      const isHeld = first.program?.kind === 'lastscrape' && nowMs <= (pod.mainsEnded.atMs ?? nowMs) + pod.graceMs;
      if (isHeld) return [];
      return [tellNative(first, pod, pod.mainsEnded, nowMs)];
    },
  },
];

function tellNative(
  first: ContainerFacts,
  pod: PodFacts,
  end: NonNullable<PodFacts['mainsEnded']>,
  nowMs: number,
): Found {
  const killedAtMs = end.atMs === null ? null : end.atMs + pod.graceMs;
  const isLateNow = killedAtMs !== null && nowMs > killedAtMs + LATE_MS;
  const when = killedAtMs === null ? 'when the grace is over' : `at about ${formatTime(killedAtMs)}`;
  return {
    container: first.name,
    isStuck: isLateNow ? null : false,
    summary: isLateNow
      ? `${first.name} keeps ${tellPod(pod)}: a native sidecar, which should have been killed ${when}`
      : `${first.name} keeps ${tellPod(pod)}: a native sidecar, told to end and still there; killed ${when}`,
    sinceMs: end.atMs,
    sinceWhat: end.what,
    why: `Native sidecars get SIGTERM when the regular containers have ended, the last of the list first. The pod's grace is ${formatAge(pod.graceMs)}.`,
    change: podChange(
      `Have the program end at SIGTERM (in a shell: exec). ${describeTemplate(pod)}, for a shorter grace:`,
      graceLines(pod.graceMs / 1_000),
    ),
    see: { what: 'what its node says', line: `kubectl get node ${quoteShell(pod.nodeName)}` },
  };
}

function graceLines(seconds: number): string | null {
  if (seconds <= SHORT_GRACE_SECONDS) return null;
  return toLines(['spec:', `  terminationGracePeriodSeconds: ${seconds > 30 ? 30 : SHORT_GRACE_SECONDS}`]);
}

function findRunning({ containers }: PodFacts): readonly ContainerFacts[] {
  return containers.filter(({ running }) => running !== null);
}

function isLate({ deletedByMs }: PodFacts, nowMs: number): boolean {
  return deletedByMs !== null && nowMs > deletedByMs + LATE_MS;
}
