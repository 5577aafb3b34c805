// Tekton Pipelines: its controller and webhook by its own manifests, whose images are made here. One TaskRun of one step for each task.

import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { until } from '../../support/until.ts';
import { getFixture, START_MS } from '../scenario.ts';
import { frameworkPath, programPath, TEKTON } from './builds.ts';
import { addTry, DEADLINE_SECONDS, type Framework } from './framework.ts';

const OWN = 'tekton-pipelines';
const image = (program: string) => `localhost/lastscrape-test/tekton-${program}:${TEKTON.version}`;

function readManifests(): string {
  const folder = join(frameworkPath(TEKTON), 'config');
  const files = ['100-namespace', '300-crds', '.'].flatMap((each) =>
    readdirSync(join(folder, each))
      .filter((name) => name.endsWith('.yaml') && !/^(events|webhook-hpa)\.yaml$/.test(name))
      .map((name) => join(folder, each, name)),
  );
  return files
    .map((file) => readFileSync(file, 'utf8'))
    .join('\n---\n')
    .replaceAll(/ko:\/\/github\.com\/tektoncd\/pipeline\/cmd\/(\w+)/g, (_, program: string) => image(program));
}

/** @param hasNativeSidecars the feature flag enable-kubernetes-sidecar */
export function makeTekton(name: string, hasNativeSidecars: boolean): Framework {
  return {
    name,
    version: TEKTON.version,
    container: 'step-main',
    states: {
      succeeded: 'Succeeded',
      failed: 'Failed',
      killed: 'Failed',
      retried: 'Succeeded',
      'timed out': 'TaskRunTimeout',
      deleted: 'Failed',
    },
    async install({ cluster, images }) {
      const isThere = await cluster.kubectl(['get', 'namespace', OWN, '--ignore-not-found', '--output=name']);
      if (isThere === '') {
        for (const program of Object.keys(TEKTON.programs))
          await images.loadProgramAs(image(program), programPath(TEKTON, program), '65532:65532', `/ko-app/${program}`);
        const manifests = readManifests();
        cluster.defer(() =>
          cluster.kubectl(['delete', '--filename', '-', '--ignore-not-found', '--wait=false'], manifests),
        );
        await cluster.kubectl(['apply', '--server-side', '--filename', '-'], manifests);
      }
      const data = { 'enable-kubernetes-sidecar': String(hasNativeSidecars) };
      const flags = ['patch', 'configmap', 'feature-flags', '--namespace', OWN, '--type=merge'];
      await cluster.kubectl([...flags, '--patch', JSON.stringify({ data })]);
      // It reads this flag when it starts.
      await cluster.kubectl(['rollout', 'restart', 'deployment/tekton-pipelines-controller', '--namespace', OWN]);
      for (const deployment of ['tekton-pipelines-webhook', 'tekton-pipelines-controller'])
        await cluster.kubectl(['rollout', 'status', `deployment/${deployment}`, '--namespace', OWN, '--timeout=180s']);
      // The webhook has to have its certificate.
      const run = build('try', {}, { steps: [{ name: 'main', image: 'none', command: ['none'] }] });
      await until('the webhook of Tekton', START_MS, () =>
        cluster.kubectl(['create', '--dry-run=server', '--filename=-'], JSON.stringify(run)),
      );
    },
    start: (namespace, task) => {
      const step = { name: 'main', ...addTry(task, { value: '$(context.task.retry-count)' }) };
      const { labels, annotations } = task;
      return namespace.apply(
        build(
          task.name,
          { labels, annotations },
          { steps: [step] },
          {
            ...(task.ending === 'timed out' ? { timeout: `${DEADLINE_SECONDS}s` } : {}),
            ...(task.ending === 'retried' ? { retries: 1 } : {}),
          },
        ),
      );
    },
    async readState(namespace, { name: own }) {
      const path = `/apis/tekton.dev/v1/namespaces/${namespace.name}/taskruns/${own}`;
      const { status } = JSON.parse(await getFixture().cluster.read(path));
      const condition = status?.conditions?.find(({ type }: { type: string }) => type === 'Succeeded');
      return condition === undefined || condition.status === 'Unknown' ? undefined : condition.reason;
    },
  };
}

function build(name: string, metadata: object, taskSpec: object, spec: object = {}) {
  return { apiVersion: 'tekton.dev/v1', kind: 'TaskRun', metadata: { name, ...metadata }, spec: { ...spec, taskSpec } };
}
