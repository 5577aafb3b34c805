import assert from 'node:assert/strict';
import { test } from 'node:test';
import { findIdentity, findIdentitySources, findJob } from '../../src/pod/identity.ts';

type Known = Awaited<ReturnType<typeof findIdentity>>;

const TABLE: readonly (readonly [
  name: string,
  env: Readonly<Record<string, string>>,
  file: string | null,
  known: Known,
])[] = [
  ['a laptop', {}, null, {}],
  [
    'a pod with a token',
    { KUBERNETES_SERVICE_HOST: '10.0.0.1' },
    'load',
    { namespace: 'load', pod: 'demo-master-x7k2p', job: 'demo-master' },
  ],
  [
    'a pod without a token',
    { KUBERNETES_SERVICE_HOST: '10.0.0.1' },
    null,
    { pod: 'demo-master-x7k2p', job: 'demo-master' },
  ],
  [
    'a pod with the downward API',
    { KUBERNETES_SERVICE_HOST: '10.0.0.1', POD_NAME: 'other', POD_NAMESPACE: 'mine' },
    'load',
    { namespace: 'mine', pod: 'other' },
  ],
];
for (const [name, env, file, known] of TABLE) {
  test(`findIdentity() knows of ${name} what it can`, async () => {
    const sources = { env, hostname: () => 'demo-master-x7k2p', readNamespace: async () => file };
    assert.deepEqual(await findIdentity(sources), known);
  });
}

test('findIdentity() knows nothing outside of Kubernetes, from this very process', async () => {
  assert.deepEqual(await findIdentity(findIdentitySources({})), {});
});

const PODS: readonly (readonly [pod: string, job: string | null])[] = [
  ['checkout-x7k2p', 'checkout'],
  ['nightly-29380040-bcdfg', 'nightly-29380040'],
  // An indexed Job: its index is part of the name, and cannot be told from a name that ends so.
  ['render-3-x7k2p', 'render-3'],
  ['checkout-apple', null],
  ['x7k2p', null],
  ['-x7k2p', null],
  ['web-0', null],
];
for (const [pod, job] of PODS) {
  test(`findJob() takes ${pod} for a pod of ${job ?? 'no Job'}`, () => assert.equal(findJob(pod), job));
}
