// A Job as kubectl prints it → how far it is. What keeps its pods is explained of the pods, and `kubectl
// describe` says the rest. Pure.

import { at, type Json, toNumber, toObjects, toText } from '../../base/json.ts';
import { joinNames } from '../../base/text.ts';
import type { Command, Explanation, Reasons } from '../finding.ts';
import { describeCommand, kubectl } from '../lines.ts';
import { findCondition, readMetadata } from '../pod.ts';
import { formatAge, quoteShell, quoteText, readTime } from '../words.ts';

/** The row of a Job that is not over. */
export const JOB_REASONS: Reasons<JobFacts> = {
  jobRuns: (job) => {
    const { isSuspended, activeCount, terminatingCount, failedCount, conditions, finalizers } = job;
    const running = countPods(activeCount, 'runs', 'run');
    const ending = countPods(terminatingCount, 'is being ended', 'are being ended');
    const pods = [running, ending].filter(Boolean).join(', ') || `no pod of it runs${isSuspended ? '' : ' now'}`;
    const names = joinNames(finalizers.map((each) => quoteText(each))) || 'no finalizer';
    const says = conditions
      .filter(({ status }) => status === 'True')
      .map(({ type, reason, message }) => quoteText(`${toText(type)}: ${toText(message) || toText(reason)}.`));
    return {
      isStuck: isSuspended ? true : null,
      summary: `${describeJob(job)} is not over: ${isSuspended ? 'it is suspended, and ' : ''}${pods}`,
      since: job.started,
      why: [
        ...says,
        ...(job.isDeleted ? [`It is deleted, and has ${names}.`] : []),
        ...(failedCount === 0 ? [] : [`${failedCount} failed; it gives up when more than ${job.backoffLimit} have.`]),
        activeCount + terminatingCount > 0 ? "What keeps a pod is in the pod's JSON." : 'Its events may say why.',
      ].join(' '),
      see: activeCount + terminatingCount > 0 ? podsCommand(job) : describeCommand(job, 'job'),
    };
  },
};

/** How a Job ended; null: it has not. */
export function describeJobEnd(job: JobFacts, nowMs: number): Pick<Explanation, 'summary' | 'more'> | null {
  const failed = findCondition(job.conditions, 'Failed', 'True');
  const condition = findCondition(job.conditions, 'Complete', 'True') ?? failed;
  if (condition === undefined || job.isDeleted) return null;
  const atMs = readTime(condition['lastTransitionTime']);
  const ago = atMs === null ? '' : ` ${formatAge(nowMs - atMs)} ago`;
  const because = failed === undefined ? '' : `: ${quoteText(toText(failed['message']) || toText(failed['reason']))}`;
  return {
    summary: `Nothing keeps ${describeJob(job)}: it ${failed === undefined ? 'completed' : 'failed'}${ago}${because}`,
    more: failed === undefined ? '' : `How its pods ended: "${podsCommand(job).line}".`,
  };
}

function describeJob({ namespace, name }: JobFacts): string {
  return `Job ${namespace}/${name}`;
}

function podsCommand(job: JobFacts): Command {
  const get = `get pods --selector=batch.kubernetes.io/job-name=${quoteShell(job.name)} --output=json`;
  return { what: 'what keeps its pods', line: `${kubectl(job, get)} | lastscrape explain` };
}

function countPods(count: number, one: string, more: string): string {
  if (count === 0) return '';
  return count === 1 ? `1 pod ${one}` : `${count} pods ${more}`;
}

/** The facts of a Job. */
type JobFacts = ReturnType<typeof readJobFacts>;

/** The facts of an object of kind Job. */
export function readJobFacts(root: Json) {
  const spec = at(root, 'spec');
  const status = at(root, 'status');
  const metadata = readMetadata(at(root, 'metadata'));
  const startedAtMs = readTime(status['startTime']);
  return {
    ...metadata,
    started: startedAtMs === null ? metadata.created : { atMs: startedAtMs, what: 'it was started' },
    isDeleted: readTime(at(root, 'metadata')['deletionTimestamp']) !== null,
    isSuspended: spec['suspend'] === true,
    conditions: toObjects(status['conditions']),
    activeCount: toNumber(status['active'], 0),
    terminatingCount: toNumber(status['terminating'], 0),
    failedCount: toNumber(status['failed'], 0),
    backoffLimit: toNumber(spec['backoffLimit'], 6),
  };
}
