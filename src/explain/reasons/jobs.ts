// A Job as kubectl prints it → its facts, and why it is not over by its own status. What keeps its pods is
// explained of the pods. Pure.

import { at, type Json, toNumber, toObjects, toText } from '../../base/json.ts';
import type { Change, Command, Explanation, Found, Reasons } from '../finding.ts';
import { eventsCommand, kubectl, specLines } from '../lines.ts';
import { findCondition, readMetadata } from '../pod.ts';
import { formatAge, quoteShell, quoteText, readName, readTime } from '../words.ts';
import { removeFinalizers } from './ending.ts';

/** A Job's pauses (pkg/controller/job/backoff_utils.go): 10 s, doubled each time, up to 10 minutes. */
const FIRST_PAUSE_MS = 10_000;
const LONGEST_PAUSE_MS = 600_000;
/** Within that time a controller that works has made the first pod. */
const SOON_MS = 10_000;

/** The rows, the first that finds something counts. */
export const JOB_REASONS: Reasons<JobFacts> = {
  jobDeleted: (job) => {
    if (job.deletedAtMs === null) return null;
    const since = { atMs: job.deletedAtMs, what: 'it was deleted' };
    const see = podsCommand(job);
    if (!job.finalizers.includes('foregroundDeletion')) {
      return { isStuck: null, since, see, ...removeFinalizers(job, 'Job', 'the program that set it') };
    }
    const summary = `${describeJob(job)} is deleted, and goes when its pods are gone`;
    return { isStuck: false, summary, since, why: 'It was deleted with its pods first (foreground).', see };
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
      ...setField(job, 'Unless a queue decides, set', 'suspend', false),
    };
  },
  managedByAnother: (job) => {
    if (job.managedBy === null) return null;
    const summary = `${describeJob(job)} is run by ${job.managedBy}, not by Kubernetes: only that program knows why it is not over`;
    const why = 'spec.managedBy names that program, and cannot be changed later.';
    return { isStuck: null, summary, since: job.created, why, see: eventsCommand(job, 'job') };
  },
  noParallelism: (job) => {
    if (job.parallelism !== 0 || job.activeCount > 0) return null;
    const summary = `${describeJob(job)} makes no pods: its parallelism is 0`;
    const why = 'parallelism is how many pods may run at a time.';
    return { isStuck: true, summary, since: job.created, why, ...setField(job, 'Set', 'parallelism', 1) };
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
      change: setDeadline(job, 'Explain the pods, as below. To end it after an hour, whatever they do, set'),
      see: podsCommand(job),
    };
  },
  retries: (job) => {
    if (job.failedCount === 0) return null;
    const pauseMs = Math.min(FIRST_PAUSE_MS * 2 ** (job.failedCount - 1), LONGEST_PAUSE_MS);
    const cronJob = job.cronJob === null ? '' : `, also in CronJob ${job.cronJob}`;
    return {
      isStuck: false,
      summary: `${describeJob(job)} is not over: ${countPods(job.failedCount)} failed, and it tries again after a pause of about ${formatAge(pauseMs)}`,
      since: job.started,
      why: `It gives up when more than ${job.backoffLimit} have failed (backoffLimit). Their logs say why they fail.`,
      change:
        job.backoffLimit === 0
          ? null
          : changeJob(`Fix the program. To fail at the first failure${cronJob}, set`, 'backoffLimit', 0),
      see: {
        what: 'the log of the newest one',
        line: kubectl(job, `logs job/${quoteShell(job.name)} --all-containers --tail=20`),
      },
    };
  },
  ignoredFailures: (job, nowMs) => {
    const rules = toObjects(at(job.spec, 'podFailurePolicy')['rules']);
    if (isYoung(job, nowMs) || !rules.some(({ action }) => action === 'Ignore')) return null;
    return {
      isStuck: null,
      summary: `${describeJob(job)} has no pod now, and none that counts as failed: its podFailurePolicy may ignore their failures`,
      since: job.started,
      why: 'An ignored failure does not count for backoffLimit: the Job tries again after a pause, without end. If it has made no pods at all, something refuses them, and its events say what.',
      change: setDeadline(job, 'Fix the program. To end it after an hour, whatever its pods do, set'),
      see: podsCommand(job),
    };
  },
  noPods: (job, nowMs) => {
    const isNew = isYoung(job, nowMs);
    return {
      isStuck: isNew ? false : null,
      summary: `${describeJob(job)} ${isNew ? 'has just been created, and has no pods yet' : 'has no pods: something seems to refuse them'}`,
      since: job.created,
      why: 'The JSON does not show what: a quota, a policy, a webhook, a missing service account; or pods that are not counted yet.',
      see: eventsCommand(job, 'job'),
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

/** Whether its controller may not have come to it yet. */
function isYoung({ started }: JobFacts, nowMs: number): boolean {
  return nowMs - (started.atMs ?? nowMs) < SOON_MS;
}

function describeJob({ namespace, name }: JobFacts): string {
  return `Job ${namespace}/${name}`;
}

function podsCommand(job: JobFacts): Command {
  const get = `get pods --selector=batch.kubernetes.io/job-name=${quoteShell(job.name)} --output=json`;
  return { what: 'what keeps its pods', line: `${kubectl(job, get)} | lastscrape explain` };
}

function changeJob(what: string, field: string, value: number | boolean): Change {
  return { what: `${what} in the Job:`, in: 'job', lines: specLines(`${field}: ${value}`) };
}

/** A deadline; null: it has one. */
function setDeadline({ spec }: JobFacts, what: string): Change | null {
  return spec['activeDeadlineSeconds'] === undefined ? changeJob(what, 'activeDeadlineSeconds', 3600) : null;
}

/** A field of the Job's spec, as lines and as a command. */
function setField(job: JobFacts, what: string, field: string, value: number | boolean): Pick<Found, 'change' | 'now'> {
  const patch = JSON.stringify({ spec: { [field]: value } });
  const line = kubectl(job, `patch job ${quoteShell(job.name)} --type=merge --patch='${patch}'`);
  return { change: changeJob(what, field, value), now: { what: 'the same as a command', line } };
}

function countPods(count: number, one = 'has', more = 'have'): string {
  return `${count} ${count === 1 ? `pod ${one}` : `pods ${more}`}`;
}

/** The facts of a Job. */
type JobFacts = ReturnType<typeof readJobFacts>;

const OWN_CONTROLLER = 'kubernetes.io/job-controller';

/** The facts of an object of kind Job. */
export function readJobFacts(root: Json) {
  const metadata = at(root, 'metadata');
  const spec = at(root, 'spec');
  const status = at(root, 'status');
  const owner = toObjects(metadata['ownerReferences']).find(({ kind }) => kind === 'CronJob');
  const managedBy = readName(spec['managedBy']);
  const startedAtMs = readTime(status['startTime']);
  const common = readMetadata(metadata);
  return {
    ...common,
    /** The CronJob that makes it again and again; null: none. */
    cronJob: owner === undefined ? null : readName(owner['name']),
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
    parallelism: toNumber(spec['parallelism'], 1),
    /** null: as many as succeed. */
    completions: typeof spec['completions'] === 'number' ? spec['completions'] : null,
    /** Another program runs it (spec.managedBy); null: Kubernetes does. */
    managedBy: ['', OWN_CONTROLLER].includes(managedBy) ? null : managedBy,
  };
}
