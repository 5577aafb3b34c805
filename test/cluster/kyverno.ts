// Kyverno's admission controller beside the API server, where LASTSCRAPE_TEST_KYVERNO names its program: then the
// policies of the stories are its MutatingPolicies. It has to run where the API server can reach it.

import { execFileSync } from 'node:child_process';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startChild } from '../support/child.ts';
import { readTestVariable } from '../support/programs.ts';
import { until } from '../support/until.ts';
import { KYVERNO_DEFINITION } from '../tools/definitions.ts';
import { type Cluster, RUN_LABEL } from './cluster.ts';
import { START_MS } from './scenario.ts';

/** The program; `undefined`: the stories are played without it. */
export const KYVERNO = readTestVariable('LASTSCRAPE_TEST_KYVERNO');

const NAME = 'kyverno';
const PORT = 9443;
const ACCOUNT = `system:serviceaccount:${NAME}:${NAME}`;

/** As its chart sets it; the accounts and secrets have no meaning here, and must be named. */
const FLAGS = [
  '--enableTuf=false',
  '--disableMetrics=true',
  // 8000, its own default, is what programs of the stories listen on.
  '--metricsPort=9453',
  '--controllerRuntimeMetricsAddress=0',
  '--caSecretName=kyverno-ca',
  '--tlsSecretName=kyverno-tls',
  `--backgroundServiceAccountName=${ACCOUNT}-background-controller`,
  `--reportsServiceAccountName=${ACCOUNT}-reports-controller`,
];
const ENVIRONMENT = {
  KYVERNO_NAMESPACE: NAME,
  KYVERNO_SERVICEACCOUNT_NAME: NAME,
  KYVERNO_ROLE_NAME: NAME,
  KYVERNO_DEPLOYMENT: NAME,
  KYVERNO_POD_NAME: NAME,
  KYVERNO_SVC: 'kyverno-svc',
  INIT_CONFIG: NAME,
  METRICS_CONFIG: 'kyverno-metrics',
};

/** Starts it; it and what it made are taken away with the cluster's other things. */
export async function startKyverno(cluster: Cluster, program: string): Promise<void> {
  const { kubectl } = cluster;
  const { module, version } = KYVERNO_DEFINITION;
  const options = { encoding: 'utf8', cwd: tmpdir() } as const;
  const { Dir } = JSON.parse(execFileSync('go', ['mod', 'download', '-json', `${module}@v${version}`], options));
  const definitions = ['--recursive', '--filename', join(Dir, 'config/crds')];
  cluster.defer(() => kubectl(['delete', ...definitions, '--ignore-not-found']));
  await kubectl(['apply', '--server-side', ...definitions]);

  cluster.defer(() => kubectl(['delete', 'namespace', NAME, '--ignore-not-found']));
  const head = { apiVersion: 'v1', metadata: { namespace: NAME, name: NAME } } as const;
  await cluster.apply(
    { apiVersion: 'v1', kind: 'Namespace', metadata: { name: NAME, labels: { [RUN_LABEL]: cluster.run } } },
    { ...head, kind: 'ServiceAccount' },
    { ...head, kind: 'ConfigMap' },
    { ...head, kind: 'ConfigMap', metadata: { namespace: NAME, name: ENVIRONMENT.METRICS_CONFIG } },
  );

  // Without it they would refuse whatever they are asked for.
  const webhooks = 'mutatingwebhookconfigurations,validatingwebhookconfigurations';
  const managed = ['--selector', 'webhook.kyverno.io/managed-by=kyverno'];
  cluster.defer(() => kubectl(['delete', webhooks, ...managed]));
  const address = ['get', 'nodes', '--output=jsonpath={.items[0].status.addresses[?(@.type=="InternalIP")].address}'];
  const server = `--serverIP=${await kubectl(address)}:${PORT}`;
  const kubeconfig = `--kubeconfig=${readTestVariable('KUBECONFIG')}`;
  const env = { ...ENVIRONMENT, HOME: tmpdir(), PATH: readTestVariable('PATH') ?? '' };
  const child = startChild({ name: NAME, command: [program, kubeconfig, server, ...FLAGS], env, cwd: tmpdir() });
  cluster.defer(async () => child[Symbol.asyncDispose]());
  await until('the webhooks of Kyverno', START_MS, async () => {
    const found = await kubectl(['get', webhooks, ...managed, '--output=name']);
    return found.includes('kyverno-policy-mutating') ? true : undefined;
  });
  // It refuses policies until it serves.
  const policy = { apiVersion: 'policies.kyverno.io/v1', kind: 'MutatingPolicy', metadata: { name: 'none' } };
  const mutations = [
    { patchType: 'JSONPatch', jsonPatch: { expression: "[JSONPatch{op: 'test', path: '/kind', value: 'Pod'}]" } },
  ];
  const resourceRules = [{ apiGroups: [''], apiVersions: ['v1'], resources: ['pods'], operations: ['CREATE'] }];
  const spec = { matchConstraints: { resourceRules }, mutations };
  await until('an answer of Kyverno', START_MS, () =>
    kubectl(['create', '--dry-run=server', '--filename=-'], JSON.stringify({ ...policy, spec })),
  );
}
