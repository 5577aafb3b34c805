// A Job as kubectl prints it → its facts, and why it is not over by its own status. What keeps its pods is
// explained of the pods. Pure.

import { at, type Json, toNumber, toObjects, toText } from '../../base/json.ts';
import type { Change, Command, Explanation, Reasons } from '../finding.ts';
import { describeCommand, kubectl, specLines } from '../lines.ts';
import { findCondition, readMetadata } from '../pod.ts';
import { formatAge, quoteShell, quoteText, readTime } from '../words.ts';

/** The rows, the first that finds something counts. */
export const JOB_REASONS: Reasons<JobFacts> = {
  jobDeleted: (job) => {
    if (job.deletedAtMs === null) return null;
    const isForeground = job.finalizers.includes('foregroundDeletion');
    const names = job.finalizers.map((each) => quoteText(each)).join(', ') || 'nothing';
    return {
      isStuck: isForeground ? false : null,
      summary: `${describeJob(job)} is deleted, and goes when ${isForeground ? 'its pods are gone' : 'its finalizer is removed'}`,
      since: { atMs: job.deletedAtMs, what: 'it was deleted' },
      why: `Its finalizers: ${names}.`,
      see: podsCommand(job),
    };
  },
  jobEnds: (job) => {
    const condition =
      findCondition(job.conditions, 'FailureTarget', 'True') ??
      findCondition(job.conditions, 'SuccessCriteriaMet', 'True');
    if (condition === undefined) return null;
    const end = condition['type'] === 'FailureTarget' ? 'fail' : 'be complete';
    const reason = quoteText(toText(condition['reason']));
    return {
      isStuck: false,
      summary: `${describeJob(job)} is about to ${end}: it waits until ${countPods(Math.max(job.terminatingCount, job.activeCount))} ended`,
      since: { atMs: readTime(condition['lastTransitionTime']), what: `it was decided (${reason})` },
      why: `${quoteText(toText(condition['message'])) || reason}. A pod has its terminationGracePeriodSeconds to end.`,
      see: podsCommand(job),
    };
  },
  suspended: (job) => {
    if (job.spec['suspend'] !== true) return null;
    const condition = findCondition(job.conditions, 'Suspended', 'True');
    return {
      isStuck: true,
      summary: `${describeJob(job)} makes no pods: it is suspended`,
      since: { atMs: readTime(condition?.['lastTransitionTime']) ?? job.created.atMs, what: 'it was suspended' },
      why: 'spec.suspend is true; a queue such as Kueue sets it until there is room.',
      change: changeJob('Unless a queue decides, set', 'suspend: false'),
    };
  },
  podsRun: (job) => {
    const { activeCount, terminatingCount, completions, succeededCount, failedCount, backoffLimit, started } = job;
    if (activeCount + terminatingCount === 0) return null;
    const running = countPods(activeCount, 'runs', 'run');
    const ending = countPods(terminatingCount, 'is being ended', 'are being ended');
    const pods = activeCount === 0 ? ending : terminatingCount === 0 ? running : `${running}, ${ending}`;
    const done = completions === null || completions === 1 ? '' : ` ${succeededCount} of ${completions} are done.`;
    const failed = failedCount === 0 ? '' : ` ${failedCount} failed before; ${backoffLimit} may.`;
    return {
      isStuck: null,
      summary: `${describeJob(job)} is not over: ${pods}, and a pod keeps it`,
      since: started,
      why: `Why the pod is not over is in the pod's JSON, not in the Job's.${done}${failed}`,
      change:
        job.spec['activeDeadlineSeconds'] === undefined
          ? changeJob(
              'Explain the pods, as below. To end it after an hour, whatever they do, set',
              'activeDeadlineSeconds: 3600',
            )
          : null,
      see: podsCommand(job),
    };
  },
  noPods: (job) => {
    const { failedCount, backoffLimit, started } = job;
    const failed = failedCount === 0 ? '' : ` ${failedCount} failed; it gives up when more than ${backoffLimit} have.`;
    return {
      isStuck: null,
      summary: `${describeJob(job)} is not over, and no pod of it runs now`,
      since: started,
      why: `The JSON does not show what it waits for: a pause before it tries again, or what refuses its pods.${failed}`,
      see: describeCommand(job, 'job'),
    };
  },
};

/** How a Job ended; null: it has not. */
export function describeJobEnd(job: JobFacts, nowMs: number): Pick<Explanation, 'summary' | 'more'> | null {
  const failed = findCondition(job.conditions, 'Failed', 'True');
  const condition = findCondition(job.conditions, 'Complete', 'True') ?? failed;
  if (condition === undefined || job.deletedAtMs !== null) return null;
  const atMs = readTime(condition['lastTransitionTime']);
  const ago = atMs === null ? '' : ` ${formatAge(nowMs - atMs)} ago`;
  const because = failed === undefined ? '' : `: ${quoteText(toText(failed['message']) || toText(failed['reason']))}`;
  const ttl = job.spec['ttlSecondsAfterFinished'];
  const kept =
    ttl === undefined
      ? 'The object and its pods stay until they are deleted; "ttlSecondsAfterFinished: 3600" in its spec does that after an hour.'
      : `The object and its pods are deleted ${quoteText(String(ttl))} s after the end (ttlSecondsAfterFinished).`;
  return {
    summary: `Nothing keeps ${describeJob(job)}: it ${failed === undefined ? 'completed' : 'failed'}${ago}${because}`,
    more: failed === undefined ? kept : `${kept} How its pods ended: "${podsCommand(job).line}".`,
  };
}

function describeJob({ namespace, name }: JobFacts): string {
  return `Job ${namespace}/${name}`;
}

function podsCommand(job: JobFacts): Command {
  const get = `get pods --selector=batch.kubernetes.io/job-name=${quoteShell(job.name)} --output=json`;
  return { what: 'what keeps its pods', line: `${kubectl(job, get)} | lastscrape explain` };
}

function changeJob(what: string, line: string): Change {
  return { what: `${what} in the Job:`, in: 'job', lines: specLines(line) };
}

function countPods(count: number, one = 'has', more = 'have'): string {
  return `${count} ${count === 1 ? `pod ${one}` : `pods ${more}`}`;
}

/** The facts of a Job. */
type JobFacts = ReturnType<typeof readJobFacts>;

/** The facts of an object of kind Job. */
export function readJobFacts(root: Json) {
  const metadata = at(root, 'metadata');
  const spec = at(root, 'spec');
  const status = at(root, 'status');
  const startedAtMs = readTime(status['startTime']);
  const common = readMetadata(metadata);
  return {
    ...common,
    spec,
    started: startedAtMs === null ? common.created : { atMs: startedAtMs, what: 'it was started' },
    /** null: it is not being deleted. */
    deletedAtMs: readTime(metadata['deletionTimestamp']),
    conditions: toObjects(status['conditions']),
    activeCount: toNumber(status['active'], 0),
    terminatingCount: toNumber(status['terminating'], 0),
    failedCount: toNumber(status['failed'], 0),
    succeededCount: toNumber(status['succeeded'], 0),
    backoffLimit: toNumber(spec['backoffLimit'], 6),
    /** null: as many as succeed. */
    completions: typeof spec['completions'] === 'number' ? spec['completions'] : null,
  };
}
