// A pod that is being deleted, or whose native sidecars are being ended. Pure.

import { joinNames } from '../../base/text.ts';
import type { Reasons } from '../finding.ts';
import { changePod, describeCommand } from '../lines.ts';
import { describeDisruption, describePod, keepsPod, type PodFacts } from '../pod.ts';
import { addOthers, formatAge, formatTime, quoteText } from '../words.ts';

/** Set by the Job controller on its pods, and removed by it once it has counted them. */
const JOB_FINALIZER = 'batch.kubernetes.io/job-tracking';
/** How much later than its grace a pod may go: the kubelet kills, then updates the API server. */
const LATE_MS = 30_000;

/** The rows of a pod that is being deleted. */
export const DELETED_REASONS: Reasons<PodFacts> = {
  terminating: (pod, nowMs) => {
    const [first, ...more] = pod.containers.filter(({ running }) => running !== null);
    if (first === undefined || pod.deletedByMs === null) return null;
    const disruption = describeDisruption(pod).replace(/\.$/, '');
    const others = pod.finalizers.filter((name) => name !== JOB_FINALIZER);
    const isLate = nowMs > pod.deletedByMs + LATE_MS;
    const until = formatTime(pod.deletedByMs);
    const because = isLate
      ? `: its node should have killed it at ${until}, and has not confirmed that`
      : `: it was asked to end and still runs; killed at ${until}`;
    return keepsPod(first, pod, ` from going${addOthers(more)}${because}`, {
      isStuck: isLate,
      since: { atMs: pod.deletedByMs - pod.deletionGraceMs, what: 'the pod was deleted' },
      why: [
        ...(disruption === '' ? [] : [`It was not deleted by a person: ${disruption}.`]),
        `Its grace is ${formatAge(pod.deletionGraceMs)}. A preStop hook runs in it; a program that ignores SIGTERM, or a shell that does not pass it on, uses all of it.`,
        ...others.map((name) => `After that the finalizer ${quoteText(name)} keeps the object.`),
      ].join(' '),
      ...endSooner(pod),
    });
  },
  deleted: (pod) => {
    if (pod.containers.some(({ running }) => running !== null)) return null;
    const { finalizers, deletedByMs } = pod;
    const names = joinNames(finalizers.map((each) => quoteText(each)));
    const isJobs = finalizers.every((name) => name === JOB_FINALIZER);
    const program = isJobs ? 'the Job controller' : 'the program that set it';
    return {
      isStuck: names === '' ? false : isJobs ? null : true,
      summary:
        names === ''
          ? `Nothing keeps ${describePod(pod)}: it is deleted and goes any moment`
          : `The finalizer ${names} keeps ${describePod(pod)}, which is deleted: ${program} must remove it`,
      since: { atMs: deletedByMs, what: 'its grace was over' },
      why: 'No container of it runs.',
      see: describeCommand(pod),
    };
  },
};

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
      ...endSooner(pod),
    });
  },
};

function endSooner(pod: PodFacts) {
  const what = 'Handle SIGTERM in the program (in a shell: exec), or set a shorter terminationGracePeriodSeconds';
  return { change: changePod(pod, what, null), see: describeCommand(pod) };
}
