// Argo Workflows: its controller beside the API server, its executor as an image. One workflow of one template for each task.

import { join } from 'node:path';
import { getFixture, START_MS } from '../scenario.ts';
import { ARGO, frameworkPath, programPath } from './builds.ts';
import { addTry, DEADLINE_SECONDS, type Framework } from './framework.ts';
import { startController } from './install.ts';

const EXECUTOR = `localhost/lastscrape-test/argoexec:${ARGO.version}`;
const RBAC = 'rbac.authorization.k8s.io';

export const ARGO_FRAMEWORK: Framework = {
  name: 'Argo Workflows',
  version: ARGO.version,
  container: 'main',
  states: {
    succeeded: 'Succeeded',
    failed: 'Failed',
    killed: 'Failed',
    retried: 'Succeeded',
    'timed out': 'Failed',
    deleted: 'Error',
  },
  async install({ cluster, images }) {
    await images.loadProgramAs(EXECUTOR, programPath(ARGO, 'argoexec'), '8737:8737', '/bin/argoexec');
    const definitions = ['--kustomize', join(frameworkPath(ARGO), 'manifests/base/crds/minimal')];
    cluster.defer(() => cluster.kubectl(['delete', ...definitions, '--ignore-not-found']));
    await cluster.kubectl(['apply', '--server-side', ...definitions]);
    const own = await cluster.openNamespace('argo');
    await own.apply({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'workflow-controller-configmap' } });
    const executor = ['--executor-image', EXECUTOR, '--executor-image-pull-policy', 'IfNotPresent'];
    const command = [programPath(ARGO, 'workflow-controller'), '--namespace', own.name, ...executor];
    const child = startController('argo', command, { LEADER_ELECTION_DISABLE: 'true' });
    await child.waitForLine(/Starting workflow workers|Workflow Controller|starting leading/i, START_MS);
  },
  prepare: (namespace) =>
    namespace.apply(
      {
        apiVersion: `${RBAC}/v1`,
        kind: 'Role',
        metadata: { name: 'executor' },
        rules: [{ apiGroups: ['argoproj.io'], resources: ['workflowtaskresults'], verbs: ['create', 'patch'] }],
      },
      {
        apiVersion: `${RBAC}/v1`,
        kind: 'RoleBinding',
        metadata: { name: 'executor' },
        roleRef: { apiGroup: RBAC, kind: 'Role', name: 'executor' },
        subjects: [{ kind: 'ServiceAccount', name: 'default' }],
      },
    ),
  start: (namespace, task) => {
    const template = {
      name: 'task',
      container: { name: '', ...addTry(task, { value: '{{retries}}' }) },
      ...(task.ending === 'timed out' ? { activeDeadlineSeconds: DEADLINE_SECONDS } : {}),
      ...(task.ending === 'retried' ? { retryStrategy: { limit: 1 } } : {}),
    };
    return namespace.apply({
      apiVersion: 'argoproj.io/v1alpha1',
      kind: 'Workflow',
      metadata: { name: task.name },
      spec: {
        entrypoint: 'task',
        podMetadata: { labels: task.labels, annotations: task.annotations },
        templates: [template],
      },
    });
  },
  async readState(namespace, { name }) {
    const path = `/apis/argoproj.io/v1alpha1/namespaces/${namespace.name}/workflows/${name}`;
    const { status } = JSON.parse(await getFixture().cluster.read(path));
    return /^(Succeeded|Failed|Error)$/.test(status?.phase) ? status.phase : undefined;
  },
};
