import assert from 'node:assert/strict';
import { test } from 'node:test';
import { findIdentity, findIdentitySources, findJob } from '../../src/pod/identity.ts';

type Known = Awaited<ReturnType<typeof findIdentity>>;

const IN_POD = { KUBERNETES_SERVICE_HOST: '10.0.0.1' };
const NAMED = { ...IN_POD, POD_NAME: 'other', POD_NAMESPACE: 'mine' };
const MASTER = 'demo-master-x7k2p';
const KNOWN = { pod: MASTER, job: 'demo-master' };

type Row = readonly [
  name: string,
  hostname: string,
  env: Readonly<Record<string, string>>,
  file: string | null,
  known: Known,
];
const TABLE: readonly Row[] = [
  ['a laptop', 'thinkpad-x7k2p', {}, null, {}],
  ['a pod with a token', MASTER, IN_POD, 'load', { namespace: 'load', ...KNOWN }],
  ['a pod without a token', MASTER, IN_POD, null, KNOWN],
  ['a pod with the downward API', MASTER, NAMED, 'load', { namespace: 'mine', pod: 'other' }],
  [
    'an Indexed Job, whose host name is no pod',
    'render-3',
    IN_POD,
    'load',
    { namespace: 'load', hostname: 'render-3' },
  ],
  [
    'an Indexed Job with the downward API',
    'render-3',
    { ...IN_POD, POD_NAME: 'render-3-x7k2p' },
    null,
    { pod: 'render-3-x7k2p', job: 'render' },
  ],
];
for (const [name, hostname, env, file, known] of TABLE) {
  test(`findIdentity() knows of ${name} what it can`, async () => {
    const sources = { env, hostname: () => hostname, readNamespace: async () => file };
    assert.deepEqual(await findIdentity(sources), known);
  });
}

test('findIdentity() knows nothing outside of Kubernetes, from this very process', async () => {
  assert.deepEqual(await findIdentity(findIdentitySources({})), {});
});

const PODS: readonly (readonly [pod: string, job: string | null])[] = [
  ['checkout-x7k2p', 'checkout'],
  ['nightly-29380040-bcdfg', 'nightly-29380040'],
  ['render-3-x7k2p', 'render-3'],
  ['checkout-apple', null],
  ['x7k2p', null],
  ['-x7k2p', null],
  ['web-0', null],
];
for (const [pod, job] of PODS) {
  test(`findJob() takes ${pod} for a pod of ${job ?? 'no Job'}`, () => assert.equal(findJob(pod), job));
}
