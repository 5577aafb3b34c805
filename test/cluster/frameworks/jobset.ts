// JobSet, by its own chart, its manager and webhook in the cluster.

import { join } from 'node:path';
import { getFixture } from '../scenario.ts';
import { frameworkPath, JOBSET, programPath } from './builds.ts';
import type { Framework } from './framework.ts';
import { installChart } from './install.ts';
import { buildJobSpec, findCondition } from './job.ts';

const IMAGE = { repository: 'localhost/lastscrape-test/jobset', tag: JOBSET.version };

export const JOBSET_FRAMEWORK: Framework = {
  name: 'JobSet',
  version: JOBSET.version,
  container: 'main',
  states: {
    succeeded: 'Completed',
    failed: 'Failed',
    killed: 'Failed',
    retried: 'Completed',
    'timed out': 'Failed',
    deleted: 'Failed',
  },
  async install({ images }) {
    await images.loadProgramAs(
      `${IMAGE.repository}:${IMAGE.tag}`,
      programPath(JOBSET, 'manager'),
      '65532:65532',
      '/manager',
    );
    const image = `image.repository=${IMAGE.repository},image.tag=${IMAGE.tag},image.pullPolicy=IfNotPresent`;
    await installChart('jobset', join(frameworkPath(JOBSET), 'charts/jobset'), `${image},controller.resources=null`);
  },
  start: (namespace, task) =>
    namespace.apply({
      apiVersion: 'jobset.x-k8s.io/v1alpha2',
      kind: 'JobSet',
      metadata: { name: task.name },
      spec: {
        failurePolicy: { maxRestarts: task.ending === 'retried' ? 1 : 0 },
        replicatedJobs: [
          {
            name: 'w',
            template: {
              spec: {
                ...buildJobSpec(task, { fieldPath: "metadata.labels['jobset.sigs.k8s.io/restart-attempt']" }),
                // A pod that fails is a Job that fails, and that is the JobSet's affair.
                backoffLimitPerIndex: null,
                backoffLimit: 0,
              },
            },
          },
        ],
      },
    }),
  async readState(namespace, { name }) {
    const path = `/apis/jobset.x-k8s.io/v1alpha2/namespaces/${namespace.name}/jobsets/${name}`;
    return findCondition(JSON.parse(await getFixture().cluster.read(path)), /^(Completed|Failed)$/);
  },
};
