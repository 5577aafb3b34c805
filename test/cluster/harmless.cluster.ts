// A label never stops a Job: meshes that take the pod's network, wrong settings, pods that nothing may be added to. main starts,
// runs and ends, on a real kubelet.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import { WRONG } from '../config/wrong-values.ts';
import { INJECTED, readGolden, readPod } from '../deploy/injected.ts';
import { until } from '../support/until.ts';
import type { Container, Namespace, Pod } from './cluster.ts';
import { buildCountingJob, type CountingJob, JOB, jobPod, LABELLED } from './counting-job.ts';
import { IMAGES } from './images.ts';
import { KYVERNO } from './kyverno.ts';
import { type PodSpec, withFields } from './locust-test.ts';
import { END_MS, findStatus, readEnd, requirePolicies, runLabelledScenario, runScenarioIn } from './scenario.ts';

const DEPLOY = join(import.meta.dirname, '../../deploy');

/** As the init container of a mesh does: whoever connects to the pod reaches the proxy, if that lets him. */
const REDIRECT: Container = {
  name: 'mesh-init',
  image: IMAGES.iptables,
  args: ['-t', 'nat', '-A', 'PREROUTING', '-p', 'tcp', '-j', 'REDIRECT', '--to-ports', '15006'],
  securityContext: { runAsUser: 0, capabilities: { add: ['NET_ADMIN', 'NET_RAW'] } },
};
/** Takes connections and closes them: a proxy with STRICT mTLS, for a client without. */
const CLOSE_ALL = 'trap exit TERM; while true; do nc -l -p 15006 </dev/null >/dev/null; done';

export function runHarmlessScenarios(): void {
  // Where no port is redirected to listens anything, and where the proxy refuses what is not its own TLS.
  const regular: Container = { name: 'mesh-proxy', image: IMAGES.busybox, args: ['-c', 'sleep 20'] };
  const native: Container = {
    ...regular,
    args: ['-c', `${CLOSE_ALL} & wait`],
    restartPolicy: 'Always',
  };
  for (const [what, addMesh] of [
    ['a regular proxy', (spec: PodSpec) => ({ ...spec, ...init(REDIRECT), containers: [...spec.containers, regular] })],
    ['a native proxy with STRICT mTLS', (spec: PodSpec) => ({ ...spec, ...init(REDIRECT, native) })],
  ] as const) {
    for (const [how, annotations] of [
      ['the label', {}],
      ['the hook', { 'lastscrape.dev/hook': 'python' }],
    ] as const) {
      runScenarioIn(`harmless: a mesh with ${what}, and ${how}`, async (namespace) => {
        // Nothing can be scraped.
        const all = { ...annotations, 'lastscrape.dev/ttl': '5s' };
        const pod = await proveComplete(namespace, { annotations: all, env: SHORT, edit: addMesh });
        assert.equal(pod.spec.initContainers?.at(-1)?.name, 'lastscrape');
        assert.equal(readEnd(pod).report.scrapesSeen, 0);
      });
    }
  }

  for (const [file, name, value] of [
    ['migrate/sleep', 'LASTSCRAPE_POLLS', '1s'],
    ['migrate/sleep', 'LASTSCRAPE_FRONT', '9469x'],
    ['migrate/pushgateway', 'LASTSCRAPE_FRNT', '9469'],
    ['migrate/pushgateway', 'LASTSCRAPE_DONE_WHEN', 'sigtrem'],
    ['job/front/job', 'LASTSCRAPE_METRICS_URL', 'http://localhost:9469/metrics'],
    ['job/front/job', 'LASTSCRAPE_EXIT_ZERO', 'yes'],
  ] as const) {
    runScenarioIn(`harmless: ${file}.yaml with ${name}=${value}`, async (namespace) => {
      const { spec } = parse(readFileSync(join(DEPLOY, `${file}.yaml`), 'utf8')).spec.template;
      const [lastscrape] = spec.initContainers as [Container];
      const { env = [] } = lastscrape;
      const wrong = [...env.filter((each) => each.name !== name), { name, value }];
      const edit = (own: PodSpec) => ({
        ...own,
        terminationGracePeriodSeconds: spec.terminationGracePeriodSeconds,
        ...init({ ...lastscrape, image: IMAGES.lastscrape, env: wrong }),
      });
      const pod = await proveComplete(namespace, { labels: {}, env: SHORT, edit });
      const { report } = readEnd(pod);
      assert.equal(report.outcome, 'misconfigured');
      assert.match(report.problems?.join('\n') ?? '', new RegExp(name));
      assert.equal(findStatus(pod, 'lastscrape')?.restartCount, 0);
    });
  }

  for (const [hook, ttl, problem] of [
    ['python', '2mins', /^Cannot read LASTSCRAPE_TTL: /],
    ['pyhton', '2m', /^Cannot read LASTSCRAPE_HOOKS: it is "pyhton"; .* must be "python"\)$/],
  ] as const) {
    runScenarioIn(`harmless: a wrong annotation, of hook ${hook} and ttl ${ttl}`, async (namespace) => {
      const annotations = { 'lastscrape.dev/hook': hook, 'lastscrape.dev/ttl': ttl };
      const pod = await proveComplete(namespace, { annotations, env: SHORT });
      assert.match(readEnd(pod).report.problems?.join('\n') ?? '', problem);
    });
  }

  runScenarioIn('harmless: any annotation with any wrong value, and the pod is accepted', proveAccepted);

  for (const [what, isAdded, own, main, fields] of SPECIAL) {
    runScenarioIn(
      `harmless: a pod with ${what} ${isAdded ? 'gets it' : 'is left alone'}, and runs`,
      async (namespace) => {
        const annotations = { 'lastscrape.dev/hook': 'python', 'lastscrape.dev/ttl': '1s', ...own };
        const edit = (spec: PodSpec): PodSpec => ({ ...withFields(spec, 'main', main), ...fields });
        const pod = await proveComplete(namespace, { annotations, env: SHORT, edit });
        const native = pod.spec.initContainers?.filter((each) => each['restartPolicy'] === 'Always') ?? [];
        // A podFailurePolicy sees how it ends.
        const ends = native.map(({ name }) => findStatus(pod, name)?.state.terminated?.exitCode);
        assert.deepEqual([...new Set(ends)], isAdded ? [0] : []);
      },
    );
  }

  runScenarioIn('harmless: the ratio of a LimitRange refuses no pod for its lastscrape', async (namespace) => {
    requirePolicies();
    await namespace.apply(limit({ maxLimitRequestRatio: { cpu: 4 } }));
    // As a chart adds it whose values have no limits.
    const resources = { requests: { cpu: '10m', memory: '64Mi' } };
    const unlimited = { name: 'lastscrape', image: 'none', env: [{ name: 'LASTSCRAPE_EXIT_ZERO' }], resources };
    const pods = [...INJECTED.map(readPod), { metadata: { name: 'unlimited' }, spec: { containers: [unlimited] } }];
    await until('all are accepted', END_MS, () => Promise.all(pods.map((pod) => namespace.tryPod(pod))));
  });

  runScenarioIn('harmless: what a LimitRange lets a pod have, it has with lastscrape', async (namespace) => {
    requirePolicies();
    const disk = { 'ephemeral-storage': '1Gi' };
    await namespace.apply(limit({ max: disk }, { type: 'Pod', min: { memory: '1Gi' }, max: { cpu: 1, ...disk } }));
    const annotations = { 'lastscrape.dev/pushgateway': 'gateway:9091' };
    const metadata = { name: 'pod', labels: LABELLED, annotations };
    for (const asked of [1, '500m']) {
      const cpu = asked === 1 ? '500m' : 1;
      const main = { name: 'main', image: 'none', resources: { requests: { cpu: asked, memory: '1Gi' } } };
      const spec = { containers: [main], ...init({ ...main, name: 'first', resources: { limits: { cpu } } }) };
      const { pod } = await until('it is accepted', END_MS, () => namespace.tryPod({ metadata, spec }));
      assert.equal(pod.spec.initContainers?.[0]?.name, 'lastscrape');
    }
  });

  runScenarioIn('harmless: a proxy behind lastscrape in the place of an exporter goes first', async (namespace) => {
    const golden = readGolden('otel');
    const metadata = { ...golden.metadata, name: 'pod' };
    const proxy = { name: 'proxy', image: 'none', restartPolicy: 'Always' };
    const spec = { ...golden.spec, initContainers: [...(golden.spec.initContainers ?? []), proxy] };
    const { pod } = await namespace.tryPod({ metadata, spec });
    assert.equal(pod.spec.initContainers?.[0]?.name, 'proxy');
  });

  const max = { cpu: '200m', memory: '128Mi' };
  for (const [qosClass, resources, limits] of [
    ['Guaranteed', { limits: max }, {}],
    ['BestEffort', {}, {}],
    ['Burstable', { requests: { cpu: '100m' }, limits: max }, { min: { cpu: '50m' }, max }],
    // Of the pod as a whole, where main has all of it already.
    ['Burstable', { requests: { cpu: '100m' }, limits: max }, { type: 'Pod', max, maxLimitRequestRatio: { cpu: 2 } }],
  ] as const) {
    const range = 'type' in limits ? 'a LimitRange of pods' : 'a LimitRange';
    const title = `harmless: a ${qosClass} pod stays one, where Pod Security is restricted, and within ${range}`;
    runLabelledScenario(title, RESTRICTED, async (namespace) => {
      await namespace.apply(limit(limits));
      const securityContext = {
        runAsNonRoot: true,
        allowPrivilegeEscalation: false,
        capabilities: { drop: ['ALL'] },
        seccompProfile: { type: 'RuntimeDefault' },
      };
      const edit = (spec: PodSpec): PodSpec => withFields(spec, 'main', { resources, securityContext });
      const pod = await proveComplete(namespace, { env: SHORT, edit });
      assert.equal((pod.status as { qosClass?: string }).qosClass, qosClass);
      assert.equal(pod.spec.initContainers?.[0]?.name, 'lastscrape');
    });
  }
}

/** What the kernel takes into no variable: the container would not start, nor would main. */
const UNHOLDABLE = Object.entries({ 'a NUL': 'a\0b', '140 KB': 'x'.repeat(140_000) });

const shell = (script: string, more = {}) => ({ image: IMAGES.busybox, args: ['-c', script], env: [], ...more });

/** Where lastscrape could keep main from its work: annotations, main, the pod. What else is left alone has goldens. */
const SPECIAL: readonly (readonly [what: string, isAdded: boolean, Record<string, string>, object, object])[] = [
  // The API server keeps its sources as null.
  ['a volume of nothing', true, { 'prometheus.io/port': '8000' }, {}, { volumes: [{ name: 'none', projected: {} }] }],
  ['an empty scheme, which Prometheus takes for http', true, { 'prometheus.io/scheme': '' }, {}, {}],
  ...UNHOLDABLE.map(
    ([what, value]) => [`${what} in an annotation`, false, { 'lastscrape.dev/ttl': value }, {}, {}] as const,
  ),
  // Mounted over lastscrape itself, and where nothing more can be mounted.
  ...['/lastscrape', '/var/run'].map((mountPath) => {
    const own = { 'lastscrape.dev/metrics-url': `file://${mountPath}/job.prom` };
    const main = { volumeMounts: [{ name: 'work', mountPath }] };
    return [`a textfile in ${mountPath}`, false, own, main, { volumes: [{ name: 'work', emptyDir: {} }] }] as const;
  }),
  // Its start takes longer than main's whole life.
  ['a main that ends at once', true, { 'lastscrape.dev/ttl': '90s' }, shell('true'), {}],
  [
    'an init container that pushes, and a native sidecar behind it that takes its time to end',
    true,
    { 'lastscrape.dev/metrics-url': 'pushgateway://127.0.0.1:9091' },
    {},
    init(
      { name: 'load', ...shell('wget -O - --post-data "a 1\n" http://127.0.0.1:9091/metrics/job/a') },
      { name: 'shipper', ...shell('trap "sleep 15; exit 0" TERM; sleep 99 & wait', { restartPolicy: 'Always' }) },
    ),
  ],
  [
    'a port that its sysctl opens',
    true,
    { 'lastscrape.dev/pushgateway': 'gateway:80' },
    shell('wget -O - --post-data "a 1\n" http://gateway:80/metrics/job/a'),
    { securityContext: { sysctls: [{ name: 'net.ipv4.ip_unprivileged_port_start', value: '80' }] } },
  ],
  [
    'a token that is for its user alone',
    true,
    {},
    shell('cat /token/token', { volumeMounts: [{ name: 'token', mountPath: '/token' }] }),
    {
      securityContext: { runAsUser: 1000 },
      volumes: [
        { name: 'token', projected: { defaultMode: 0o400, sources: [{ serviceAccountToken: { path: 'token' } }] } },
      ],
    },
  ],
];

/** Every annotation that a policy reads, of pods with the label and of masters. */
const ANNOTATIONS = [
  ...['ttl', 'front', 'poll', 'hand-over', 'hook', 'pushgateway', 'metrics-url', 'scrapes', 'quit', 'quit-timeout'],
  ...['dry-run', 'log-level', 'fail-if', 'push', 'push-when', 'push-labels', 'webhook', 'termination-grace'],
].map((name) => `lastscrape.dev/${name}`);

/** One wrong value of each kind, and what is wrong for all. */
const WRONG_VALUES = [
  ...new Set(WRONG.map(([, , values]) => Object.values(values)[0]?.[0] ?? '')),
  ...['', ' ', 'x'.repeat(10_000), '9'.repeat(40), '-0', '65536', '9469', '8000', 'true', 'a:9469', 'a:8000,b:8000'],
  ...['http://localhost:9469/metrics', '99999999h', '\u0001\u001b[31m\r\n\u202e', '\');[]("\\{{}}', 'é\u{1f600}'],
  ...UNHOLDABLE.map(([, value]) => value),
];

/** Tries a pod for each, with its port by a name or by annotation: it gets lastscrape, or a warning says why not. */
async function proveAccepted(namespace: Namespace): Promise<void> {
  const template = buildCountingJob({}).spec.template as unknown as { metadata: Pod['metadata']; spec: PodSpec };
  const rows = [...ANNOTATIONS, 'prometheus.io/port', 'prometheus.io/path', 'prometheus.io/scrape'].flatMap((name) =>
    WRONG_VALUES.map((value) => [name, value] as const),
  );
  const wrong: string[] = [];
  const tryNext = async () => {
    for (let row = rows.pop(); row !== undefined; row = rows.pop()) {
      const [name, value] = row;
      const metadata = { ...template.metadata, name: 'pod', annotations: { [name]: value } };
      const { pod, warnings } = await namespace.tryPod({ apiVersion: 'v1', kind: 'Pod', ...template, metadata });
      const isThere = pod.spec.initContainers?.some((each) => each.name === 'lastscrape') === true;
      const isExplained = warnings.includes('lastscrape is not added: ');
      if (isThere === isExplained) wrong.push(`${name}=${JSON.stringify(value).slice(0, 60)}: ${isThere} ${warnings}`);
    }
  };
  await Promise.all(Array.from({ length: 8 }, tryNext));
  assert.deepEqual(wrong, []);
}

const SHORT = { JOB_MS: '3000' };
const RESTRICTED = { 'pod-security.kubernetes.io/enforce': 'restricted' };

function init(...initContainers: readonly Container[]): { readonly initContainers: readonly Container[] } {
  return { initContainers };
}

/** A LimitRange that refuses what lastscrape has elsewhere. Kyverno's policies have none to go by. */
function limit(...all: readonly object[]) {
  const limits = KYVERNO === undefined ? all.map((each) => ({ type: 'Container', ...each })) : [];
  return { apiVersion: 'v1', kind: 'LimitRange', metadata: { name: 'range' }, spec: { limits } };
}

/** Runs a Job, whose main has to end well. @returns its pod */
async function proveComplete(namespace: Namespace, job: CountingJob): Promise<Pod> {
  await namespace.apply(buildCountingJob(job));
  assert.equal(await namespace.untilJobEnded(JOB, END_MS), 'Complete');
  const pod = jobPod(namespace);
  assert.equal(findStatus(pod, 'main')?.state.terminated?.exitCode, 0);
  return pod;
}
