// A plain Job, for comparison: what the kubelet and the Job controller take.

import { getFixture } from '../scenario.ts';
import { addTry, DEADLINE_SECONDS, type Framework, type Task } from './framework.ts';

export const JOB_FRAMEWORK: Framework = {
  name: 'Job',
  version: '',
  container: 'main',
  states: {
    succeeded: 'Complete',
    failed: 'Failed',
    killed: 'Failed',
    retried: 'Complete',
    'timed out': 'Failed',
    deleted: 'Failed',
  },
  async install() {},
  start: (namespace, task) => {
    const spec = buildJobSpec(task, {
      fieldPath: "metadata.annotations['batch.kubernetes.io/job-index-failure-count']",
    });
    return namespace.apply({ apiVersion: 'batch/v1', kind: 'Job', metadata: { name: task.name }, spec });
  },
  async readState(namespace, { name }) {
    const path = `/apis/batch/v1/namespaces/${namespace.name}/jobs/${name}`;
    return findCondition(JSON.parse(await getFixture().cluster.read(path)), /^(Complete|Failed)$/);
  },
};

/** The condition of an object that holds, among those of the pattern. */
export function findCondition(object: { readonly status?: Status }, wanted: RegExp): string | undefined {
  const conditions = object.status?.conditions ?? [];
  return conditions.find(({ type, status }) => wanted.test(type) && status === 'True')?.type;
}
type Status = { readonly conditions?: readonly { readonly type: string; readonly status: string }[] };

/** @param fieldRef what tells the number of the try */
export function buildJobSpec(task: Task, fieldRef: object) {
  const main = { name: 'main', ...addTry(task, { valueFrom: { fieldRef } }) };
  return {
    completionMode: 'Indexed',
    backoffLimitPerIndex: task.ending === 'retried' ? 1 : 0,
    ...(task.ending === 'timed out' ? { activeDeadlineSeconds: DEADLINE_SECONDS } : {}),
    completions: 1,
    parallelism: 1,
    template: {
      metadata: { labels: task.labels, annotations: task.annotations },
      spec: { restartPolicy: 'Never', containers: [main] },
    },
  };
}
