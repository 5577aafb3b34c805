// Why a Job is not over: what its own status tells. What its pods do is told by the pods. Pure.

import { at, toObjects, toText } from '../../base/json.ts';
import type { Command, Reason } from '../finding.ts';
import type { JobFacts } from '../job.ts';
import { kubectl, toLines } from '../lines.ts';
import { findCondition } from '../pod.ts';
import { formatAge, joinNames, quoteShell, quoteText, quoteYaml, readTime } from '../words.ts';

/** The pauses of a Job between two pods (pkg/controller/job/backoff_utils.go): 10 s, doubled each time, up to 10 minutes. */
const FIRST_PAUSE_MS = 10_000;
const LONGEST_PAUSE_MS = 600_000;
/** Within that time a controller that works has made the first pod. */
const SOON_MS = 10_000;

/** The rows, the first that finds something tells. */
export const JOB_REASONS: readonly Reason<JobFacts>[] = [
  {
    id: 'jobDeleted',
    meaning: 'the Job is deleted, and a finalizer keeps the object',
    find: (job) => {
      const { isDeleted, finalizers } = job;
      if (!isDeleted) return [];
      const isForeground = finalizers.includes('foregroundDeletion');
      const names = joinNames(finalizers.map((name) => quoteText(name))) || 'nothing';
      const patch = `patch job ${quoteShell(job.name)} --type=merge --patch='{"metadata":{"finalizers":null}}'`;
      return [
        {
          container: null,
          isStuck: isForeground ? false : null,
          summary: isForeground
            ? `${tellJob(job)} is deleted, and goes when its pods are gone`
            : `The finalizer ${names} keeps ${tellJob(job)}, which is deleted: whoever set it must take it away`,
          sinceMs: job.deletedAtMs,
          sinceWhat: 'somebody deleted it',
          why: isForeground ? 'It was deleted with its pods first (foreground).' : 'Only the object is left.',
          change: {
            what: isForeground
              ? 'Nothing; where its pods stay, explain them.'
              : 'Where that program is gone for good, remove the finalizer:',
            in: 'object',
            lines: isForeground ? null : toLines(['metadata:', '  finalizers: null   # removes all of them']),
          },
          see: podsCommand(job),
          ...(isForeground ? {} : { now: { what: 'the same as a command', line: kubectl(job.namespace, patch) } }),
        },
      ];
    },
  },
  {
    id: 'jobEnds',
    meaning: 'the Job has failed or succeeded, and waits for its last pods to be gone',
    find: (job) => {
      const condition =
        findCondition(job.conditions, 'FailureTarget', 'True') ??
        findCondition(job.conditions, 'SuccessCriteriaMet', 'True');
      if (condition === undefined) return [];
      const isFailure = condition['type'] === 'FailureTarget';
      const count = Math.max(job.terminatingCount, job.activeCount);
      return [
        {
          container: null,
          isStuck: false,
          summary: `${tellJob(job)} is about to ${isFailure ? 'fail' : 'be complete'}: it waits until ${pods(count)} ended`,
          sinceMs: readTime(condition['lastTransitionTime']),
          sinceWhat: `it was decided (${toText(condition['reason'])})`,
          why: `${quoteText(toText(condition['message'])) || toText(condition['reason'])}. A pod has its terminationGracePeriodSeconds to end.`,
          change: {
            what: 'Nothing; or explain the pod that does not end.',
            in: 'job',
            lines: null,
          },
          see: podsCommand(job),
        },
      ];
    },
  },
  {
    id: 'suspended',
    meaning: 'the Job is suspended: it makes no pods',
    find: (job) => {
      if (job.spec['suspend'] !== true) return [];
      const condition = findCondition(job.conditions, 'Suspended', 'True');
      const patch = `patch job ${quoteShell(job.name)} --type=merge --patch='{"spec":{"suspend":false}}'`;
      return [
        {
          container: null,
          isStuck: true,
          summary: `${tellJob(job)} makes no pods: it is suspended`,
          sinceMs: readTime(condition?.['lastTransitionTime']) ?? job.createdAtMs,
          sinceWhat: 'it was suspended',
          why: 'Somebody set spec.suspend, or a queue such as Kueue holds the Job back until there is room.',
          change: {
            what: 'In the Job, unless a queue decides about it:',
            in: 'job',
            lines: toLines(['spec:', '  suspend: false']),
          },
          now: { what: 'the same as a command', line: kubectl(job.namespace, patch) },
        },
      ];
    },
  },
  {
    id: 'managedByAnother',
    meaning: 'another program runs the Job, and Kubernetes makes no pods for it',
    find: (job) =>
      job.managedBy === null
        ? []
        : [
            {
              container: null,
              isStuck: null,
              summary: `${tellJob(job)} is run by ${quoteText(job.managedBy)}, not by Kubernetes: only that program can tell why it is not over`,
              sinceMs: job.createdAtMs,
              sinceWhat: 'it was made',
              why: 'spec.managedBy names that program, and cannot be changed later.',
              change: { what: 'Look at that program.', in: 'job', lines: null },
              see: eventsOf(job),
            },
          ],
  },
  {
    id: 'noParallelism',
    meaning: 'the Job may run no pods: parallelism is 0',
    find: (job) =>
      job.parallelism !== 0 || job.activeCount > 0
        ? []
        : [
            {
              container: null,
              isStuck: true,
              summary: `${tellJob(job)} makes no pods: its parallelism is 0`,
              sinceMs: job.createdAtMs,
              sinceWhat: 'it was made',
              why: 'So many pods may run at a time: none.',
              change: { what: 'In the Job:', in: 'job', lines: toLines(['spec:', '  parallelism: 1']) },
              now: {
                what: 'the same as a command',
                line: kubectl(
                  job.namespace,
                  `patch job ${quoteShell(job.name)} --type=merge --patch='{"spec":{"parallelism":1}}'`,
                ),
              },
            },
          ],
  },
  {
    id: 'podsRun',
    meaning: 'pods of the Job are there: explain them',
    find: (job) => {
      if (job.activeCount === 0) return [];
      const { completions, succeededCount, failedCount, backoffLimit } = job;
      const done = completions === null || completions === 1 ? '' : ` ${succeededCount} of ${completions} are done.`;
      const failed = failedCount === 0 ? '' : ` ${failedCount} failed before, of ${backoffLimit} that may.`;
      return [
        {
          container: null,
          isStuck: null,
          summary: `${tellJob(job)} is not over: ${pods(job.activeCount, 'is', 'are')} there, and a pod keeps it`,
          sinceMs: job.startedAtMs,
          sinceWhat: 'it was started',
          why: `Why the pod is not over is in the pod's JSON, not in the Job's.${done}${failed}`,
          change: {
            what: 'Ask about the pods, with the command below. In the Job, to end it after an hour, whatever they do:',
            in: 'job',
            lines: toLines(['spec:', '  activeDeadlineSeconds: 3600']),
          },
          see: podsCommand(job),
        },
      ];
    },
  },
  {
    id: 'retries',
    meaning: 'pods of the Job have failed, and it makes the next one after a pause',
    find: (job) => {
      if (job.failedCount === 0) return [];
      const pauseMs = Math.min(FIRST_PAUSE_MS * 2 ** (job.failedCount - 1), LONGEST_PAUSE_MS);
      return [
        {
          container: null,
          isStuck: false,
          summary: `${tellJob(job)} is not over: ${pods(job.failedCount)} failed, and it tries again after a pause of about ${formatAge(pauseMs)}`,
          sinceMs: job.startedAtMs,
          sinceWhat: 'it was started',
          why: `It gives up when more than ${job.backoffLimit} have failed (backoffLimit). Why they fail is in their logs only.`,
          change: {
            what: `Mend the program. In the Job${job.cronJob === null ? '' : `, and in CronJob ${job.cronJob}`}, to fail at the first failure:`,
            in: 'job',
            lines: toLines(['spec:', '  backoffLimit: 0']),
          },
          see: {
            what: 'what the newest one said',
            line: kubectl(job.namespace, `logs job/${quoteShell(job.name)} --all-containers --tail=20`),
          },
        },
      ];
    },
  },
  {
    id: 'ignoredFailures',
    meaning: 'no pod of the Job counts, and its podFailurePolicy ignores some failures: it may try for ever',
    find: (job, nowMs) => {
      const rules = toObjects(at(job.spec, 'podFailurePolicy')['rules']);
      if (isYoung(job, nowMs) || !rules.some(({ action }) => action === 'Ignore')) return [];
      return [
        {
          container: null,
          isStuck: null,
          summary: `${tellJob(job)} has no pod at the moment, and none that counts as failed: its podFailurePolicy may ignore their failures`,
          sinceMs: job.startedAtMs ?? job.createdAtMs,
          sinceWhat: job.startedAtMs === null ? 'it was made' : 'it was started',
          why: 'A failure that a rule ignores does not count for backoffLimit: the Job tries again after a pause, without an end. Where it has made no pods at all something refuses them, and its events tell what.',
          change: {
            what: 'Mend the program. In the Job, to end it after an hour, whatever its pods do:',
            in: 'job',
            lines: toLines(['spec:', '  activeDeadlineSeconds: 3600']),
          },
          see: podsCommand(job),
        },
      ];
    },
  },
  {
    id: 'noPods',
    meaning: 'the Job has no pods, and none have failed: something refuses them',
    find: (job, nowMs) => {
      const isNew = isYoung(job, nowMs);
      const account = toText(at(at(job.spec, 'template'), 'spec')['serviceAccountName']);
      const isNamed = !['', 'default'].includes(account);
      return [
        {
          container: null,
          isStuck: isNew ? false : null,
          summary: isNew
            ? `${tellJob(job)} has just been made, and has no pods yet`
            : `${tellJob(job)} has no pods: something seems to refuse them`,
          sinceMs: job.createdAtMs,
          sinceWhat: 'it was made',
          why: 'The JSON does not tell what: a quota, a policy, a webhook, a service account that is not there; or pods that are not counted yet.',
          change: isNamed
            ? {
                what: `The events name what to change. Where it is the service account ${account} that is not there:`,
                in: 'newObject',
                lines: toLines([
                  'apiVersion: v1',
                  'kind: ServiceAccount',
                  'metadata:',
                  `  name: ${quoteYaml(account)}`,
                  `  namespace: ${quoteYaml(job.namespace)}`,
                ]),
              }
            : { what: 'The events name what to change.', in: 'job', lines: null },
          see: eventsOf(job),
        },
      ];
    },
  },
];

/** How a Job ended; null: it has not. */
export function tellEnd(job: JobFacts, nowMs: number): { readonly summary: string; readonly more: string } | null {
  const complete = findCondition(job.conditions, 'Complete', 'True');
  const failed = findCondition(job.conditions, 'Failed', 'True');
  const condition = complete ?? failed;
  if (condition === undefined || job.isDeleted) return null;
  const atMs = readTime(condition['lastTransitionTime']);
  const ago = atMs === null ? '' : ` ${formatAge(nowMs - atMs)} ago`;
  const because = failed === undefined ? '' : `: ${quoteText(toText(failed['message'])) || toText(failed['reason'])}`;
  const ttl = job.spec['ttlSecondsAfterFinished'];
  const pods = failed === undefined ? '' : ` What its pods ended with: "${podsCommand(job).line}".`;
  return {
    summary: `Nothing keeps ${tellJob(job)}: it ${failed === undefined ? 'completed' : 'failed'}${ago}${because}`,
    more: `${
      ttl === undefined
        ? 'The object and its pods stay until somebody deletes them; "ttlSecondsAfterFinished: 3600" in its spec would do that after an hour.'
        : `The object and its pods are deleted ${ttl} s after the end (ttlSecondsAfterFinished).`
    }${pods}`,
  };
}

/** Its controller may not have come to it yet. */
function isYoung({ startedAtMs, createdAtMs }: JobFacts, nowMs: number): boolean {
  return nowMs - (startedAtMs ?? createdAtMs ?? nowMs) < SOON_MS;
}

function tellJob({ namespace, name }: JobFacts): string {
  return `Job ${namespace}/${name}`;
}

function podsCommand({ namespace, name }: JobFacts): Command {
  const get = kubectl(namespace, `get pods --selector=batch.kubernetes.io/job-name=${quoteShell(name)} --output=json`);
  return { what: 'what keeps its pods', line: `${get} | lastscrape explain` };
}

function eventsOf({ namespace, name }: JobFacts): Command {
  return {
    what: 'what happened to it (the JSON has no events)',
    line: kubectl(namespace, `events --for=job/${quoteShell(name)}`),
  };
}

function pods(count: number, is = 'has', are = 'have'): string {
  return `${count} ${count === 1 ? `pod ${is}` : `pods ${are}`}`;
}
