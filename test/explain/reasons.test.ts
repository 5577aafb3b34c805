// The reasons in states that no fixture has: each is a fixture with something changed.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parse } from 'yaml';
import { VERSION } from '../../src/base/version.ts';
import { explainObject } from '../../src/explain/explain.ts';
import type { Explanation } from '../../src/explain/finding.ts';
import { KINDS } from '../../src/main.ts';
import { readExplainFixture, readMoment, runExplain } from './fixture.ts';

// biome-ignore lint/suspicious/noExplicitAny: fixtures are JSON, edited in place
type Edit = (object: any) => void;

function explain(name: string, edits: readonly Edit[], afterSeconds = 0): Explanation {
  const object = JSON.parse(readExplainFixture(name));
  for (const edit of edits) edit(object);
  return explainObject(object, readMoment(name) + afterSeconds * 1_000, KINDS);
}

/** What the first finding comes to, its lines parsed. */
function show({ state, findings, summary, more }: Explanation) {
  const [first] = findings;
  return {
    state,
    reasons: findings.map(({ reason, container }) => [reason, container].filter(Boolean).join(' ')).join(', '),
    summary,
    more,
    what: first?.change?.what ?? '',
    why: first?.why ?? '',
    whys: findings.map(({ why }) => why).join('\n'),
    lines: first?.change?.lines == null ? null : parse(first.change.lines),
    first: first?.first?.line ?? '',
    now: first?.now?.line ?? '',
    see: first?.see?.line ?? '',
  };
}

type Shown = ReturnType<typeof show>;
/** What is compared: texts by a pattern, the rest as it is. */
type Wanted = { readonly [Field in keyof Shown]?: Shown[Field] | RegExp };

/** The container and its status under another name, and with another image. */
function rename(from: string, to: string, image = 'registry.example.com/x:1'): Edit {
  return ({ spec, status }) => {
    for (const each of [...spec.containers, ...status.containerStatuses]) {
      if (each.name === from) Object.assign(each, { name: to, image });
    }
  };
}

/** Changes one container of the spec. */
function inSpec(name: string, edit: Edit): Edit {
  return ({ spec }) => edit([...spec.containers, ...(spec.initContainers ?? [])].find((each) => each.name === name));
}

/** Changes the status of one container. */
function inStatus(name: string, edit: Edit): Edit {
  return ({ status }) => edit(status.containerStatuses.find((each: { name: string }) => each.name === name));
}

/** Sets variables of lastscrape. */
function setEnv(...entries: readonly object[]): Edit {
  return inSpec('lastscrape', (own) => {
    const names = entries.map((each) => (each as { name: string }).name);
    own.env = [...(own.env ?? []).filter(({ name }: { name: string }) => !names.includes(name)), ...entries];
  });
}

/** The report that lastscrape left, changed. */
function report(fields: Readonly<Record<string, unknown>>): Edit {
  return inStatus('lastscrape', ({ state: { terminated } }) => {
    terminated.message = JSON.stringify({ ...JSON.parse(terminated.message), ...fields });
  });
}

/** lastscrape ended without a report. */
function killed(reason: string): Edit {
  return inStatus('lastscrape', (own) => {
    own.state = { terminated: { exitCode: 137, reason, finishedAt: own.state.terminated.finishedAt } };
  });
}

const metadata =
  (fields: object): Edit =>
  (object) =>
    Object.assign(object.metadata, fields);
const deletedAt = '2026-11-22T07:00:00Z';

const POD_NAME = { name: 'POD_NAME', valueFrom: { fieldRef: { fieldPath: 'metadata.name' } } };
const inContainer = (fields: object) => ({ spec: { containers: [fields] } });
const inNative = (fields: object) => ({ spec: { initContainers: [fields] } });
/** Main runs still. */
const RUNS_STILL = inStatus('main', (own) => {
  own.state = { running: { startedAt: own.state.terminated.startedAt } };
});
const FRONT = setEnv(
  { name: 'LASTSCRAPE_FRONT', value: '9469' },
  { name: 'LASTSCRAPE_METRICS_URL', value: 'http://localhost:8000/metrics' },
);

const gatewayLines = (port: number) => ({
  spec: {
    initContainers: [
      {
        name: 'lastscrape',
        image: `registry.example.com/lastscrape:${VERSION}`,
        restartPolicy: 'Always',
        env: [
          { name: 'LASTSCRAPE_DONE_WHEN', value: 'sigterm' },
          { name: 'LASTSCRAPE_METRICS_URL', value: `pushgateway://127.0.0.1:${port}` },
          { name: 'LASTSCRAPE_FRONT', value: '9469' },
          { name: 'LASTSCRAPE_EXIT_ZERO', value: 'true' },
        ],
        lifecycle: { postStart: { exec: { command: ['/lastscrape', '--ready'] } } },
      },
    ],
  },
});

type Case = readonly [what: string, edit: Edit | readonly Edit[], wanted: Wanted, afterSeconds?: number];

/** By the fixture that is changed. */

const CASES: Readonly<Record<string, readonly Case[]>> = {
  'main-runs': [
    [
      'a pod whose only containers are known helpers has them for its own work',
      rename('main', 'prometheus'),
      { reasons: 'mainRuns prometheus', state: 'waiting' },
    ],
    ...(
      [
        ['with hostNetwork', { hostNetwork: true }, /^With hostNetwork/m],
        ['of Windows', { os: { name: 'windows' } }, /^The image is for Linux/m],
        ['of another architecture', { nodeSelector: { 'kubernetes.io/arch': 's390x' } }, /^The image is for Linux/m],
        ['with resources of its own', { resources: {} }, /^It sets resources as a whole/m],
        [
          'that nothing in it keeps out',
          { nodeSelector: { 'kubernetes.io/os': 'linux' } },
          /^A policy is not at work/m,
        ],
      ] as const
    ).map(
      ([what, spec, why]): Case => [
        `a labelled pod ${what} has no lastscrape, and is told why`,
        (pod) => {
          Object.assign(pod.metadata, { labels: { 'lastscrape.dev/inject': 'true' } });
          Object.assign(pod.spec, spec);
        },
        { reasons: 'mainRuns main, notInjected', whys: why },
      ],
    ),
    [
      'another main that runs is named as well',
      rename('cloud-sql-proxy', 'second'),
      { reasons: 'mainRuns main', summary: /: it still runs, as second does$/ },
    ],
  ],
  'unknown-beside-an-ended-one': [
    [
      'the container that kubectl takes for the main one is it',
      [rename('cache', 'sidecar'), metadata({ annotations: { 'kubectl.kubernetes.io/default-container': 'sidecar' } })],
      { reasons: 'mainRuns sidecar' },
    ],
    [
      'several mains that have ended have ended',
      ({ spec, status }) => {
        for (const list of [spec.containers, status.containerStatuses]) {
          list.push({ ...list.find(({ name }: { name: string }) => name === 'main'), name: 'third' });
        }
      },
      { summary: /although main and third have ended$/ },
    ],
  ],
  exporter: [
    [
      'an exporter whose port is not in the pod is moved, without lastscrape',
      ({ spec }) => delete spec.containers[1].ports,
      { lines: { spec: { initContainers: [{ name: 'node-exporter', restartPolicy: 'Always' }] } } },
    ],
    ...([9100, 9091] as const).map(
      (port): Case => [
        `lastscrape takes the place of a Pushgateway, on port ${port}`,
        [
          rename('node-exporter', 'pushgateway', 'prom/pushgateway:v1.11.3'),
          inSpec('pushgateway', (own) => port === 9091 && delete own.ports),
        ],
        {
          reasons: 'helperRuns pushgateway',
          what: /^Put lastscrape in its place .*takes the pushes, and keeps the pod until Prometheus has scraped port 9469 once more:$/,
          lines: gatewayLines(port),
        },
      ],
    ),
  ],
  'exporter-of-locust': [
    [
      "in a LocustTest's pod lastscrape takes the exporter's place, by the chart: a LocustTest takes no container",
      ({ metadata: { labels } }) => Object.assign(labels, { 'managed-by': 'locust-k8s-operator' }),
      {
        what: /^Put lastscrape in the exporter's place in the values of the operator's chart /,
        lines: { locustPods: { metricsExporter: { image: `registry.example.com/lastscrape:${VERSION}` } } },
      },
    ],
  ],
  dapr: [
    [
      'an injected helper without one is asked by lastscrape, which needs the right to see the pod',
      [rename('daprd', 'consul-dataplane'), ({ spec }) => Object.assign(spec, { serviceAccountName: 'x;y' })],
      {
        what: /it also needs the annotation consul.hashicorp.com/,
        first: /create role lastscrape .* && .*--serviceaccount='default:x;y'$/,
      },
    ],
  ],
  'lastscrape-was-not-asked-to': [
    [
      'a helper that lastscrape did not stop because it was killed is ended without it',
      killed('Error'),
      {
        reasons: 'lastscrapeKilled cloud-sql-proxy',
        summary: /: lastscrape ended with 137 before it could stop it$/,
        lines: inNative({ name: 'cloud-sql-proxy', restartPolicy: 'Always' }),
      },
    ],
    [
      "a variable that a policy takes from an annotation is set by that annotation, a mesh's proxy last",
      [
        rename('cloud-sql-proxy', 'istio-proxy'),
        setEnv({
          name: 'LASTSCRAPE_QUIT',
          valueFrom: { fieldRef: { fieldPath: "metadata.annotations['lastscrape.dev/quit']" } },
        }),
        metadata({ annotations: { 'lastscrape.dev/quit': 'locust-exporter' } }),
      ],
      {
        reasons: 'notInQuit istio-proxy',
        why: /LASTSCRAPE_QUIT is locust-exporter\.$/,
        lines: { metadata: { annotations: { 'lastscrape.dev/quit': 'locust-exporter, istio' } } },
      },
    ],
    [
      'lastscrape that ran out of memory gets more',
      killed('OOMKilled'),
      { lines: inContainer({ name: 'lastscrape', resources: { limits: { memory: '64Mi' } } }) },
    ],
  ],
  'lastscrape-could-not-stop-it': [
    [
      'a target that lastscrape took for gone, and that runs, is shown as such',
      report({ targets: [{ target: 'linkerd', result: 'alreadyGone', seconds: 0 }] }),
      { reasons: 'quitFailed linkerd-proxy', why: 'lastscrape reports: nothing listened on its quit port then.' },
    ],
    [
      'a target with a port, or a signal, is the helper too',
      report({ targets: [{ target: 'signal:TERM:linkerd2-proxy', result: 'failed', hint: 'it is deaf' }] }),
      { reasons: 'quitFailed linkerd-proxy', why: 'lastscrape reports: it is deaf.' },
    ],
    [
      'an argument that is missing is added to those that are there',
      [
        rename('linkerd-proxy', 'cloud-sql-proxy'),
        inSpec('cloud-sql-proxy', (own) => Object.assign(own, { args: ['--port=5432', 'a:b:c'] })),
        report({ targets: [{ target: 'cloud-sql-proxy:9092', result: 'failed', hint: 'it needs --quitquitquit' }] }),
      ],
      {
        reasons: 'quitFailed cloud-sql-proxy',
        lines: inContainer({ name: 'cloud-sql-proxy', args: ['--port=5432', 'a:b:c', '--quitquitquit'] }),
      },
    ],
  ],
  'lastscrape-holds': [
    [
      'what a ConfigMap sets is not guessed',
      inSpec('lastscrape', (own) => Object.assign(own, { env: [], envFrom: [{ configMapRef: { name: 'settings' } }] })),
      { summary: /waits for .*, or stops the helpers, how long is not in the JSON$/, state: 'waiting' },
      86_400,
    ],
    ...[{ valueFrom: { secretKeyRef: { name: 'a', key: 'b' } } }, { value: '$(TTL)' }].map(
      (value): Case => [
        `what is ${JSON.stringify(value)} is not guessed`,
        setEnv({ name: 'LASTSCRAPE_TTL', ...value }),
        { summary: /how long is not in the JSON$/, why: /LASTSCRAPE_TTL is not in the JSON/ },
      ],
    ),
    [
      'lastscrape that cannot read its settings watches main as it does then: it holds and stops nothing',
      setEnv({ name: 'LASTSCRAPE_SCRAPES', value: 'many' }, { name: 'LASTSCRAPE_EXIT_ZERO', value: 'true' }),
      { reasons: 'lastscrapeHolds lastscrape, settingsUnreadable lastscrape', summary: /: it is about to end$/ },
    ],
  ],
  'lastscrape-holds-as-a-native-sidecar': [
    [
      'lastscrape that cannot read its settings is named while main still runs, with the variable to correct',
      [RUNS_STILL, setEnv({ name: 'LASTSCRAPE_TTL', value: '2mins' })],
      {
        reasons: 'settingsUnreadable lastscrape, mainRuns main',
        summary: /^lastscrape cannot read its settings in pod \S+: it will hold and stop nothing$/,
        why: /^Cannot read LASTSCRAPE_TTL: it is "2mins"; must be /,
        lines: inNative({ name: 'lastscrape', env: [{ name: 'LASTSCRAPE_TTL', value: '90s' }] }),
      },
    ],
    [
      'settings that the JSON does not show whole are not called wrong',
      [
        RUNS_STILL,
        setEnv({ name: 'LASTSCRAPE_TTL', value: '2mins' }),
        inSpec('lastscrape', (own) => Object.assign(own, { envFrom: [{ configMapRef: { name: 'x' } }] })),
      ],
      { reasons: 'mainRuns main' },
    ],
    [
      'a pod whose grace is shorter than that of lastscrape is told so while main runs',
      [RUNS_STILL, ({ spec }) => delete spec.terminationGracePeriodSeconds],
      {
        reasons: 'graceTooShort lastscrape, mainRuns main',
        why: 'terminationGracePeriodSeconds is 30, and LASTSCRAPE_TERMINATION_GRACE 1m50s: it must be at least 115.',
        lines: { spec: { terminationGracePeriodSeconds: 115 } },
      },
    ],
    [
      'an annotation that sends Prometheus to another port is named while main runs',
      [RUNS_STILL, FRONT, metadata({ annotations: { 'prometheus.io/port': '8000' } })],
      {
        reasons: 'scrapedElsewhere lastscrape, mainRuns main',
        summary: /^Prometheus is told to scrape 8000 of pod \S+; the front is 9469$/,
        lines: { metadata: { annotations: { 'prometheus.io/port': '9469' } } },
      },
    ],
    [
      'a front that no container declares, and no annotation names, is named in the hold as well',
      FRONT,
      {
        reasons: 'lastscrapeHolds lastscrape, scrapedElsewhere lastscrape',
        summary: /^lastscrape keeps /,
      },
    ],
    [
      'a native sidecar that outlives the grace of its pod is not taken for one that is ending',
      [],
      { reasons: 'nativeEnds lastscrape', state: 'unknown', summary: /should have been killed at about/ },
      600,
    ],
    [
      'a pod that is deleted in the hold waits for the scrape, and does not ignore its signal',
      metadata({ deletionTimestamp: deletedAt }),
      { what: '', summary: /^lastscrape keeps \S+ \S+ from going: it waits for Prometheus's last scrape; killed at / },
    ],
    [
      'native sidecars of a deleted pod are asked when its main has ended',
      [RUNS_STILL, metadata({ deletionTimestamp: deletedAt })],
      { reasons: 'terminating main', summary: /^main keeps \S+ \S+ from going: it was asked to end and still runs; / },
    ],
    ...[
      inSpec('lastscrape', (own) => Object.assign(own, { ports: [{ containerPort: 9469 }] })),
      metadata({ annotations: { 'prometheus.io/port': '9469' } }),
      metadata({ annotations: { 'prometheus.io/port': '15020', 'prometheus.io/path': '/stats/prometheus' } }),
    ].map(
      (edit, index): Case => [
        `a front that ${['is declared', 'the annotation names', "Istio's agent reads"][index]} is no reason`,
        [FRONT, edit],
        { reasons: 'lastscrapeHolds lastscrape' },
      ],
    ),
  ],
  'lastscrape-is-misconfigured': [
    [
      'a host name that is not the name of the pod is shown as such, as in an Indexed Job',
      [
        setEnv({ name: 'LASTSCRAPE_DONE_WHEN', value: 'container:main' }, { name: 'LASTSCRAPE_TTL', value: '90s' }),
        report({ problems: ['Cannot use "container:main" of LASTSCRAPE_DONE_WHEN: pod default/wrong-0 is not there'] }),
        ({ spec }) => Object.assign(spec, { hostname: 'wrong-0' }),
      ],
      {
        why: /wrong-0 is not there\. Without POD_NAME it takes the host name wrong-0 for the name of this pod, also in its commands\.$/,
        lines: inContainer({ name: 'lastscrape', env: [POD_NAME] }),
      },
    ],
    [
      'a problem that no variable of the JSON has is left to the log, and a question stays one',
      [setEnv({ name: 'LASTSCRAPE_TTL', value: '90s' }), report({ problems: ['did you mean A?', 'B'] })],
      {
        why: 'did you mean A? B.',
        what: /^Correct what it names \("kubectl .* --container=lastscrape" has all of it\) in /,
        lines: null,
      },
    ],
    [
      'of a lastscrape that crashes again and again by a wrong setting its own report says why',
      inStatus('lastscrape', (own) => {
        Object.assign(own, {
          lastState: own.state,
          state: { waiting: { reason: 'CrashLoopBackOff', message: 'back-off' } },
        });
      }),
      { reasons: /notStarted lastscrape/, whys: /lastscrape reports: Cannot read LASTSCRAPE_TTL: it is / },
    ],
  ],
  terminating: [
    [
      'a finalizer that comes after the end of the containers is named with them, but for the own one of Jobs',
      metadata({ finalizers: ['batch.kubernetes.io/job-tracking', 'example.com/guard'] }),
      { why: /uses all of it\. After that the finalizer example\.com\/guard keeps the object\.$/ },
    ],
    [
      'a preempted pod was not deleted by a person',
      ({ status }) => {
        const message = 'default-scheduler: preempting to accommodate a higher priority pod';
        status.conditions.push({ type: 'DisruptionTarget', status: 'True', reason: 'PreemptionByScheduler', message });
      },
      {
        why: /^It was not deleted by a person: PreemptionByScheduler: default-scheduler: preempting .* pod\. Its grace /,
      },
    ],
    [
      'a pod whose grace is over is a matter of its node',
      [],
      { state: 'stuck', summary: /: its node should have killed it at \S+, and has not confirmed that$/ },
      120,
    ],
  ],
  'mesh-istio': [
    [
      'a Job whose name ends in a minute is looked for in its CronJob, whose template can be changed',
      (object) => Object.assign(object.metadata.ownerReferences[0], { name: 'nightly-29922416' }),
      { what: /^Add this annotation in the pod template of CronJob nightly, if that made Job nightly-29922416\. / },
    ],
  ],
  'native-sidecar-not-started': [
    [
      'a native sidecar that crashes does not keep a pod whose main runs',
      ({ status }) => {
        status.initContainerStatuses[0].state = { waiting: { reason: 'CrashLoopBackOff' } };
        status.containerStatuses[0].state = { running: { startedAt: '2026-11-22T07:00:00Z' } };
      },
      { reasons: 'mainRuns main' },
    ],
    [
      'a native sidecar that crashes keeps a pod whose main has not started',
      ({ status }) =>
        Object.assign(status.initContainerStatuses[0], { state: { waiting: { reason: 'CrashLoopBackOff' } } }),
      { reasons: 'notStarted proxy', summary: /^proxy keeps \S+ \S+ from starting: it does not run / },
    ],
    [
      'an init container that runs has the others wait',
      ({ spec }) => delete spec.initContainers[0].restartPolicy,
      { reasons: 'notStarted proxy', state: 'unknown', summary: /: it still runs, and the others wait for that$/ },
    ],
  ],
  succeeded: [
    [
      'a pod of which nothing is known says so, and what can tell',
      ({ status }) => Object.assign(status, { phase: 'Unknown' }),
      { reasons: 'unknown', state: 'unknown', see: / describe pod done-/ },
    ],
  ],
  'lastscrape-is-done': [
    [
      'of a pod that FAIL_IF failed nothing says that an exit code need not count',
      [
        ({ status }) => Object.assign(status, { phase: 'Failed' }),
        inStatus('lastscrape', ({ state: { terminated } }) => Object.assign(terminated, { exitCode: 1 })),
        report({ verdict: 'failed', failed: { entry: 'a > 1', seen: 2 } }),
      ],
      {
        summary: /: lastscrape ended with 1$/,
        more: /^lastscrape reports: /,
      },
    ],
    [
      'a lastscrape that was killed in a pod with a short grace: how long that must be',
      [
        ({ spec }) => Object.assign(spec, { terminationGracePeriodSeconds: 5 }),
        inStatus('lastscrape', ({ state: { terminated } }) => Object.assign(terminated, { exitCode: 137 })),
      ],
      { more: /terminationGracePeriodSeconds is 5, and LASTSCRAPE_TERMINATION_GRACE 25s: it must be at least 30\.$/ },
    ],
    [
      "a pod that lastscrape's own trouble failed gets the variable that hides it",
      [
        ({ status }) => Object.assign(status, { phase: 'Failed' }),
        inStatus('lastscrape', ({ state: { terminated } }) => Object.assign(terminated, { exitCode: 69 })),
      ],
      { more: /^Its own work succeeded \(main ended with 0\)\. With LASTSCRAPE_EXIT_ZERO=true only a verdict / },
    ],
    [
      'of a pod that has ended the report comes with its hint, each problem, and whether its last page is exact',
      report({ summary: 'Wrong', hint: 'mend it', problems: ['Cannot A', 'Cannot B'], mayMissSeconds: 0 }),
      { more: /^lastscrape reports: "Wrong; mend it; Cannot A; Cannot B"\. The last page is exact\.$/ },
    ],
    [
      'or what that may miss',
      report({ lastPageBy: 'read', mayMissSeconds: 0.7 }),
      { more: /stopped"\. The last page may miss changes of main's last 0\.7 s\.$/ },
    ],
  ],
  unschedulable: [
    [
      'what has no network yet is not kept by its first container',
      ({ status }) => Object.assign(status, { conditions: [{ type: 'PodReadyToStartContainers', status: 'False' }] }),
      { reasons: 'notStarted', state: 'unknown', summary: /its volumes or its network are not ready$/ },
    ],
    [
      'a pod that no scheduler has looked at may be on its way',
      ({ status }) => delete status.conditions,
      { summary: /: it does not run \(no reason given\)$/, state: 'unknown', why: 'The JSON does not show why.' },
    ],
  ],
  finalizer: [
    ...(
      [
        [[], 'waiting'],
        [['batch.kubernetes.io/job-tracking'], 'unknown'],
      ] as const
    ).map(
      ([finalizers, state]): Case => [
        `a deleted pod with ${finalizers[0] ?? 'no finalizer'} goes without a person`,
        metadata({ finalizers }),
        { reasons: 'deleted', state },
      ],
    ),
  ],
  image: [
    [
      'a container between two restarts has not ended, and comes with what the kubelet says',
      inStatus('main', (own) => {
        const terminated = { exitCode: 3, reason: 'Error', finishedAt: '2026-11-22T06:52:21Z' };
        Object.assign(own, {
          state: { waiting: { reason: 'CrashLoopBackOff', message: 'no' } },
          lastState: { terminated },
        });
      }),
      {
        reasons: 'notStarted main',
        state: 'stuck',
        why: 'The kubelet says: no',
        see: / logs \S+ --container=main --previous /,
      },
    ],
  ],
  'job-runs': [
    [
      'a Job whose only pod is being ended is not said to try again, nor one that is deleted to run',
      [
        metadata({ deletionTimestamp: deletedAt, finalizers: ['foregroundDeletion'] }),
        ({ status }) => Object.assign(status, { active: undefined, terminating: 1, failed: 1 }),
      ],
      {
        reasons: 'jobRuns',
        summary: /: 1 pod is being ended$/,
        why: /It is deleted, and has foregroundDeletion\. 1 failed; /,
      },
    ],
    [
      'a Job that is suspended has no pods',
      ({ spec, status }) => [Object.assign(spec, { suspend: true }), delete status.active],
      { state: 'stuck', summary: /: it is suspended, and no pod of it runs$/, see: / describe job busy$/ },
    ],
  ],
};

for (const [fixture, cases] of Object.entries(CASES)) {
  for (const [what, edit, wanted, afterSeconds] of cases) {
    test(what, () => {
      const shown = show(explain(fixture, [edit].flat(), afterSeconds));
      for (const [field, value] of Object.entries(wanted)) {
        const seen = shown[field as keyof Shown];
        if (value instanceof RegExp) assert.match(seen, value);
        else assert.deepEqual(seen, value, field);
      }
    });
  }
}

test('the report of a pod that has ended is a field for programs, as it was written', () => {
  const fields = { outcome: 'scraped', lastPageBy: 'read', mayMissSeconds: 0.7 };
  assert.partialDeepStrictEqual(explain('lastscrape-is-done', [report(fields)]).report, fields);
  assert.equal(explain('succeeded', []).report, undefined);
});

test('an exporter is read where the annotations of Prometheus say', () => {
  const annotations = { 'prometheus.io/port': '9999', 'prometheus.io/path': '/stats/prometheus' };
  const { lines } = show(explain('exporter', [metadata({ annotations })]));
  assert.equal(lines.spec.initContainers[1].env[1].value, 'http://localhost:9999/stats/prometheus');
});

test('lastscrape holds until its time limit and a slack, then it is overdue', () => {
  const limitMs = Date.parse('2026-11-22T06:58:38Z') + 600_000 + 30_000 + 80_000;
  assert.deepEqual(listReasons('lastscrape-holds', limitMs), ['lastscrapeHolds']);
  assert.deepEqual(listReasons('lastscrape-holds', limitMs + 1), ['lastscrapeOverdue']);
});

test("lastscrape as a native sidecar holds until the pod's grace is over, whatever its own limits are", () => {
  const graceOverMs = Date.parse('2026-11-22T06:54:43Z') + 120_000;
  assert.deepEqual(listReasons('lastscrape-holds-as-a-native-sidecar', graceOverMs), ['lastscrapeHolds']);
  assert.deepEqual(listReasons('lastscrape-holds-as-a-native-sidecar', graceOverMs + 1), ['nativeEnds']);
});

function listReasons(name: string, nowMs: number): readonly string[] {
  return explainObject(JSON.parse(readExplainFixture(name)), nowMs, KINDS).findings.map(({ reason }) => reason);
}

test('a list has the worst first, alike pods once, ended ones in a line each, and others by their kind', async () => {
  const pod = JSON.parse(readExplainFixture('mesh-istio'));
  const twin = { ...pod, metadata: { ...pod.metadata, name: 'report-twin' } };
  const done = JSON.parse(readExplainFixture('succeeded'));
  const items = [done, pod, { kind: 'Service', apiVersion: 'v1' }, twin, JSON.parse(readExplainFixture('job-failed'))];
  const text = JSON.stringify({ kind: 'List', items });
  const nowMs = readMoment('job-failed');
  const { code, stdout } = await runExplain(text, { nowMs });
  assert.equal(code, 0);
  const lines = stdout.split('\n');
  assert.match(lines[0] ?? '', /^istio-proxy keeps pod default\/report-/);
  assert.equal(lines.filter((line) => line.startsWith('istio-proxy keeps ')).length, 1);
  assert.ok(lines.includes('Also     the same keeps report-twin'), stdout);
  assert.equal(lines.filter((line) => line.startsWith('Nothing keeps ')).length, 2);
  assert.equal(lines.at(-2), 'Not explained: 1 of another kind (Service).');
  const json = JSON.parse((await runExplain(text, { nowMs, argv: ['explain', '--json'] })).stdout);
  const states = json.objects.map(({ state }: { state: string }) => state);
  assert.deepEqual([states, json.notExplained], [['ended', 'stuck', 'stuck', 'ended'], ['Service']]);
});

test('wrong numbers, or too large for a date, are printed as a time or as nothing', async () => {
  const setGrace: Edit = ({ spec }) => Object.assign(spec, { terminationGracePeriodSeconds: 2 ** 63 });
  for (const [name, edit, expected] of [
    ['native-sidecar-deaf-to-term', setGrace, /\+275760-09-13T00:00:00Z/],
    ['failed', inStatus('main', (own) => Object.assign(own.state.terminated, { exitCode: {} })), /failed/],
    ['job-runs', ({ status }) => Object.assign(status, { active: '?', failed: '?' }), /no pod of it runs now/],
  ] as const satisfies readonly (readonly [string, Edit, RegExp])[]) {
    const object = JSON.parse(readExplainFixture(name));
    edit(object);
    const { code, stdout } = await runExplain(JSON.stringify(object), { nowMs: readMoment(name) });
    assert.equal(code, 0);
    assert.match(stdout, expected);
    assert.doesNotMatch(stdout, /NaN/);
  }
});
