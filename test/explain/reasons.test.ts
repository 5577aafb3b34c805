// The reasons in states that no fixture has: each is a fixture with something changed, as the API would show it.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parse } from 'yaml';
import { VERSION } from '../../src/base/version.ts';
import { ROWS } from '../../src/config/variables.ts';
import { explainObject } from '../../src/explain/explain.ts';
import type { Explanation } from '../../src/explain/finding.ts';
import { DEFAULTS } from '../../src/explain/settings.ts';
import { EXPLAIN_STATES, readExplainFixture, readMoment, runExplain } from '../support/explain-fixture.ts';
import { putIntoPod } from '../support/put-in.ts';

// biome-ignore lint/suspicious/noExplicitAny: fixtures are JSON, edited in place
type Edit = (object: any) => void;

function momentIn(name: string): number {
  const state = EXPLAIN_STATES.find((each) => each.name === name);
  assert.ok(state, name);
  return readMoment(state);
}

function explain(name: string, edit: Edit, afterSeconds = 0): Explanation {
  const object = JSON.parse(readExplainFixture(name));
  edit(object);
  const explanation = explainObject(object, momentIn(name) + afterSeconds * 1_000);
  assert.ok(explanation);
  return explanation;
}

/** Reason and container of the findings, the summary of the first, and its lines parsed. */
function tell({ state, findings, summary }: Explanation) {
  const [first] = findings;
  return {
    state,
    reasons: findings.map(({ reason, container }) => [reason, container].filter(Boolean).join(' ')),
    summary,
    what: first?.change.what ?? '',
    why: first?.why ?? '',
    lines: first?.change.lines == null ? null : parse(first.change.lines),
    first: first?.first?.line ?? null,
    now: first?.now?.line ?? null,
    see: first?.see?.line ?? null,
  };
}

/** The container and its status under another name, and with another image. */
function rename(from: string, to: string, image = 'registry.example.com/x:1'): Edit {
  return ({ spec, status }) => {
    for (const each of [...spec.containers, ...status.containerStatuses]) {
      if (each.name === from) Object.assign(each, { name: to, image });
    }
  };
}

const both =
  (...edits: readonly Edit[]): Edit =>
  (object) => {
    for (const edit of edits) edit(object);
  };

test('the defaults that explain goes by are those of the variables', () => {
  const defaults = Object.fromEntries(ROWS.map((row) => [row.name, row.default]));
  for (const [name, value] of Object.entries(DEFAULTS)) assert.equal(value, defaults[name], name);
});

test('a pod whose only containers are known helpers has them for its own work', () => {
  const { reasons, state } = tell(explain('main-runs', rename('main', 'prometheus')));
  assert.deepEqual([reasons, state], [['mainRuns prometheus'], 'waiting']);
});

test('the container that kubectl takes for the main one is it', () => {
  const edit = both(rename('cache', 'sidecar'), ({ metadata }) => {
    metadata.annotations = { 'kubectl.kubernetes.io/default-container': 'sidecar' };
  });
  const { reasons } = tell(explain('unknown-beside-an-ended-one', edit));
  assert.deepEqual(reasons, ['mainRuns sidecar']);
});

test('an exporter whose port nobody tells is moved, without lastscrape', () => {
  const { lines } = tell(explain('exporter', ({ spec }) => delete spec.containers[1].ports));
  assert.deepEqual(lines, { spec: { initContainers: [{ name: 'node-exporter', restartPolicy: 'Always' }] } });
});

test('an exporter is read where the annotations of Prometheus say', () => {
  const edit: Edit = ({ metadata }) => {
    metadata.annotations = { 'prometheus.io/port': '9999', 'prometheus.io/path': '/stats/prometheus' };
  };
  const { lines } = tell(explain('exporter', edit));
  assert.equal(lines.spec.initContainers[1].env[1].value, 'http://localhost:9999/stats/prometheus');
});

test("in a LocustTest's pod lastscrape takes the exporter's place, by the chart: a LocustTest takes no container", () => {
  const edit: Edit = ({ metadata }) => {
    metadata.labels['managed-by'] = 'locust-k8s-operator';
  };
  const { what, lines } = tell(explain('exporter-of-locust', edit));
  assert.match(what, /^In the values of the operator's chart /);
  assert.deepEqual(lines, { locustPods: { metricsExporter: { image: `registry.example.com/lastscrape:${VERSION}` } } });
});

test('a helper that somebody injects is not to be moved: an annotation, or lastscrape with the right to see the pod', () => {
  const vault = tell(explain('dapr', rename('daprd', 'vault-agent')));
  assert.deepEqual(vault.lines.metadata.annotations, { 'vault.hashicorp.com/agent-pre-populate-only': 'true' });
  assert.equal(vault.first, null);
  const consul = tell(explain('dapr', rename('daprd', 'consul-dataplane')));
  assert.equal(consul.lines.spec.containers[0].env[2].value, 'consul-dataplane');
  assert.match(consul.what, /it also needs the annotation consul.hashicorp.com/);
  assert.match(consul.first ?? '', /create role lastscrape .* && .*--serviceaccount=default:default$/);
});

test('lines name a container so that YAML reads a string', () => {
  const { lines, reasons } = tell(explain('unknown-beside-an-ended-one', rename('cache', 'on')));
  assert.deepEqual(reasons, ['otherRuns on']);
  assert.equal(lines.spec.initContainers[0].name, 'on');
  assert.match(
    explain('unknown-beside-an-ended-one', rename('cache', 'on')).findings[0]?.change.lines ?? '',
    /name: "on"/,
  );
});

/** The message that lastscrape left. */
function message(change: (report: Record<string, unknown>) => void): Edit {
  return ({ status }) => {
    const { terminated } = status.containerStatuses.find(({ name }: { name: string }) => name === 'lastscrape').state;
    const report = JSON.parse(terminated.message);
    change(report);
    terminated.message = JSON.stringify(report);
  };
}

test('lastscrape that was killed is told of, with what starts it again', () => {
  const edit: Edit = ({ status }) => {
    const own = status.containerStatuses.find(({ name }: { name: string }) => name === 'lastscrape');
    own.state = { terminated: { exitCode: 137, reason: 'Error', finishedAt: own.state.terminated.finishedAt } };
  };
  const { reasons, lines, summary } = tell(explain('lastscrape-was-not-asked-to', edit));
  assert.deepEqual(reasons, ['lastscrapeKilled cloud-sql-proxy']);
  assert.match(summary, /lastscrape, which was to stop it, ended with 137 before it could/);
  assert.deepEqual(lines.spec.containers[0].restartPolicyRules[0].exitCodes.values, [134, 137, 139]);
});

test('lastscrape that ran out of memory gets more', () => {
  const edit: Edit = ({ status }) => {
    const own = status.containerStatuses.find(({ name }: { name: string }) => name === 'lastscrape');
    own.state = { terminated: { exitCode: 137, reason: 'OOMKilled', finishedAt: own.state.terminated.finishedAt } };
  };
  const { lines } = tell(explain('lastscrape-was-not-asked-to', edit));
  assert.deepEqual(lines.spec.containers[0].resources, { limits: { memory: '64Mi' } });
});

test('a target that lastscrape took for gone, and that runs, is told of as such', () => {
  const edit = message((report) => {
    report['targets'] = [{ target: 'linkerd', result: 'alreadyGone', seconds: 0 }];
  });
  const { reasons, why } = tell(explain('lastscrape-could-not-stop-it', edit));
  assert.deepEqual(
    [reasons, why],
    [['quitFailed linkerd-proxy'], 'lastscrape tells: nothing listened on its quit port then.'],
  );
});

test('an argument that is missing is added to those that are there', () => {
  const edit = both(
    rename('linkerd-proxy', 'cloud-sql-proxy'),
    ({ spec }) => {
      spec.containers.find(({ name }: { name: string }) => name === 'cloud-sql-proxy').args = ['--port=5432', 'a:b:c'];
    },
    message((report) => {
      report['targets'] = [
        { target: 'cloud-sql-proxy', result: 'failed', seconds: 3, hint: 'it needs --quitquitquit' },
      ];
    }),
  );
  const { lines } = tell(explain('lastscrape-could-not-stop-it', edit));
  assert.deepEqual(lines.spec.containers, [
    { name: 'cloud-sql-proxy', args: ['--port=5432', 'a:b:c', '--quitquitquit'] },
  ]);
});

test("a variable that a policy takes from an annotation is set by that annotation, a mesh's proxy last", () => {
  const edit = both(rename('cloud-sql-proxy', 'istio-proxy'), ({ metadata, spec }) => {
    const own = spec.containers.find(({ name }: { name: string }) => name === 'lastscrape');
    const fieldPath = "metadata.annotations['lastscrape.dev/quit']";
    own.env = [
      ...own.env.filter(({ name }: { name: string }) => name !== 'LASTSCRAPE_QUIT'),
      { name: 'LASTSCRAPE_QUIT', valueFrom: { fieldRef: { fieldPath } } },
    ];
    metadata.annotations = { 'lastscrape.dev/quit': 'locust-exporter' };
  });
  const { reasons, lines, why } = tell(explain('lastscrape-was-not-asked-to', edit));
  assert.deepEqual(reasons, ['notInQuit istio-proxy']);
  assert.match(why, /LASTSCRAPE_QUIT is locust-exporter\.$/);
  assert.deepEqual(lines, { metadata: { annotations: { 'lastscrape.dev/quit': 'locust-exporter, istio' } } });
});

test('what comes from a ConfigMap is not guessed', () => {
  const edit: Edit = ({ spec }) => {
    const own = spec.containers.find(({ name }: { name: string }) => name === 'lastscrape');
    own.env = [];
    own.envFrom = [{ configMapRef: { name: 'settings' } }];
  };
  const { summary, state } = tell(explain('lastscrape-holds', edit, 86_400));
  assert.match(summary, /how long is not in the JSON$/);
  assert.equal(state, 'waiting');
});

test('lastscrape holds until its time limit and a slack, then it is overdue', () => {
  const object = JSON.parse(readExplainFixture('lastscrape-holds'));
  const [main] = object.status.containerStatuses.filter(({ name }: { name: string }) => name === 'main');
  const endMs = Date.parse(main.state.terminated.finishedAt);
  const limitMs = 600_000 + 30_000;
  const reasonAt = (ms: number) => explainObject(object, endMs + ms)?.findings[0]?.reason;
  assert.equal(reasonAt(limitMs + 80_000), 'lastscrapeHolds');
  assert.equal(reasonAt(limitMs + 80_001), 'lastscrapeOverdue');
});

test('a native sidecar that outlives the grace of its pod is not told of as if all were well', () => {
  const holds = explain('lastscrape-holds-as-a-native-sidecar', () => {}, 600);
  assert.deepEqual(tell(holds).reasons, ['nativeEnds lastscrape']);
  assert.equal(holds.state, 'unknown');
  assert.match(holds.summary, /should have been killed at about/);
});

test("lastscrape as a native sidecar holds until the pod's grace is over, whatever its own limits are", () => {
  const object = JSON.parse(readExplainFixture('lastscrape-holds-as-a-native-sidecar'));
  const main = object.status.containerStatuses.find(({ name }: { name: string }) => name === 'main');
  const graceOverMs = Date.parse(main.state.terminated.finishedAt) + 120_000;
  const reasonsAt = (nowMs: number) => explainObject(object, nowMs)?.findings.map(({ reason }) => reason);
  assert.deepEqual(reasonsAt(graceOverMs), ['lastscrapeHolds']);
  assert.deepEqual(reasonsAt(graceOverMs + 1), ['nativeEnds']);
});

test('a pod whose grace is over is a matter of its node', () => {
  const { reasons, state, see, now } = tell(explain('terminating', () => {}, 120));
  assert.deepEqual([reasons, state], [['nodeSilent main'], 'stuck']);
  assert.equal(see, 'kubectl get node lab');
  assert.match(now ?? '', /--grace-period=0 --force$/);
});

test('a deleted pod without anything that keeps it goes any moment, and a Job takes its finalizer away itself', () => {
  const gone = tell(explain('finalizer', ({ metadata }) => delete metadata.finalizers));
  assert.deepEqual([gone.reasons, gone.state], [['deleted'], 'waiting']);
  const jobs = explain('finalizer', ({ metadata }) => {
    metadata.finalizers = ['batch.kubernetes.io/job-tracking'];
  });
  assert.equal(jobs.state, 'unknown');
});

test('what the scheduler says becomes one change', () => {
  const says = (text: string) =>
    tell(
      explain('unschedulable', ({ status }) => {
        status.conditions[0].message = text;
      }),
    );
  const taint = says('0/3 nodes are available: 3 node(s) had untolerated taint {dedicated: gpu}.');
  assert.deepEqual(taint.lines, { spec: { tolerations: [{ key: 'dedicated', operator: 'Exists' }] } });
  assert.match(taint.summary, /they have the taint dedicated$/);
  const claim = says('persistentvolumeclaim "cache" not found. not found');
  assert.deepEqual([claim.lines.kind, claim.lines.metadata.name], ['PersistentVolumeClaim', 'cache']);
  assert.equal(says('something new').lines, null);
  assert.equal(says('0/1 nodes are available: 1 Insufficient nvidia.com/gpu.').lines, null, 'nobody asks for it');
});

test('a volume claim without a volume is made anew with another class, in the pod where that has its template', () => {
  const claims = (...volumes: readonly object[]) =>
    tell(
      explain('unschedulable', ({ spec, status }) => {
        status.conditions[0].message =
          '0/1 nodes are available: pod has unbound immediate PersistentVolumeClaims. not found';
        spec.volumes = volumes;
      }),
    );
  const one = claims({ name: 'a', emptyDir: {} }, { name: 'b', persistentVolumeClaim: { claimName: 'cache' } });
  assert.match(one.summary, /no node takes it, its volume claim cache has no volume yet$/);
  assert.deepEqual([one.lines.metadata.name, one.lines.spec.storageClassName], ['cache', 'standard']);
  const own = claims({ name: 'scratch', ephemeral: { volumeClaimTemplate: {} } });
  assert.match(own.summary, /its volume claim huge-\S+-scratch has no volume yet$/);
  assert.deepEqual(own.lines.spec.volumes, [
    { name: 'scratch', ephemeral: { volumeClaimTemplate: { spec: { storageClassName: 'standard' } } } },
  ]);
  const two = claims(...['a', 'b'].map((name) => ({ name, persistentVolumeClaim: { claimName: name } })));
  assert.match(two.summary, /one of its volume claims a and b has no volume yet$/);
  assert.equal(claims().lines, null);
});

test('a finalizer that comes after the end of the containers is told of with them', () => {
  const edit: Edit = ({ metadata }) => {
    metadata.finalizers = ['batch.kubernetes.io/job-tracking', 'example.com/guard'];
  };
  const [finding] = explain('terminating', edit).findings;
  assert.match(finding?.why ?? '', / After that the finalizer example\.com\/guard keeps the object\.$/);
  assert.doesNotMatch(finding?.why ?? '', /job-tracking/);
});

test('a Job whose name ends in a minute is looked for in its CronJob, whose template can be changed', () => {
  const edit: Edit = ({ metadata }) => {
    metadata.ownerReferences[0].name = 'nightly-29922416';
  };
  assert.match(
    tell(explain('mesh-istio', edit)).what,
    /^In the pod template of CronJob nightly, if that made Job nightly-29922416, add this annotation\./,
  );
});

test('lastscrape without a target only waits for the scrape', () => {
  const edit: Edit = ({ spec }) => {
    spec.containers.at(-1).env.push({ name: 'LASTSCRAPE_QUIT', value: 'none' });
  };
  const { summary } = tell(explain('lastscrape-holds', edit));
  assert.match(summary, /: it waits for Prometheus's last scrape, until /);
});

test('several that have ended have ended, and a question stays one', () => {
  const edit: Edit = ({ spec, status }) => {
    for (const list of [spec.containers, status.containerStatuses]) {
      list.push({ ...list.find(({ name }: { name: string }) => name === 'main'), name: 'third' });
    }
  };
  const { summary } = tell(explain('unknown-beside-an-ended-one', both(rename('main', 'main'), edit)));
  assert.match(summary, /although main and third have ended$/);
  const [finding] = explain(
    'lastscrape-is-misconfigured',
    message((report) => {
      report['problems'] = ['did you mean A?', 'B'];
    }),
  ).findings;
  assert.equal(finding?.why, 'did you mean A? B.');
});

test('a postStart hook is told of once the pod has its volumes and network', () => {
  const edit: Edit = ({ status }) => {
    for (const condition of status.conditions)
      if (condition.type === 'PodReadyToStartContainers') condition.status = 'False';
  };
  assert.match(tell(explain('post-start', edit)).summary, /its node prepares volumes, the network or the image$/);
});

test('the container that asks for most asks for less', () => {
  const { lines, summary } = tell(
    explain('unschedulable', ({ spec, status }) => {
      spec.containers.push({ name: 'small', resources: { requests: { memory: '900Mi' } } });
      spec.containers.push({ name: 'large', resources: { requests: { memory: '1Gi' } } });
      status.conditions[0].message = '0/1 nodes are available: 1 Insufficient memory.';
    }),
  );
  assert.match(summary, /large asks for 1Gi$/);
  assert.deepEqual(lines.spec.containers, [{ name: 'large', resources: { requests: { memory: '64Mi' } } }]);
});

test('a pod that no scheduler has looked at is told of as such', () => {
  const { summary, state } = tell(explain('unschedulable', ({ status }) => delete status.conditions));
  assert.match(summary, /no scheduler has looked at it yet$/);
  assert.equal(state, 'unknown');
});

test("what the registry says becomes one change: a login, a node's own image", () => {
  const says = (reason: string, text: string) =>
    tell(
      explain('image', ({ status }) => {
        const main = status.containerStatuses.find(({ name }: { name: string }) => name === 'main');
        main.state.waiting = { reason, message: text };
      }),
    );
  const login = says('ErrImagePull', 'pull access denied, repository does not exist or may require authorization');
  assert.deepEqual(login.lines, { spec: { imagePullSecrets: [{ name: 'registry-login' }] } });
  assert.match(login.first ?? '', /create secret docker-registry registry-login /);
  assert.deepEqual(says('ErrImageNeverPull', 'not present').lines.spec.containers, [
    { name: 'main', imagePullPolicy: 'IfNotPresent' },
  ]);
});

test('what a container lacks is made: a key, a Secret, a user', () => {
  const says = (text: string) =>
    tell(
      explain('config', ({ status }) => {
        status.containerStatuses[0].state.waiting.message = text;
      }),
    ).lines;
  assert.deepEqual(says(`couldn't find key URL in ConfigMap default/settings`).data, { URL: 'value' });
  assert.deepEqual(says('secret "keys" not found').stringData, { KEY: 'value' });
  const root = says('container has runAsNonRoot and image will run as root');
  assert.deepEqual(root.spec.containers, [{ name: 'main', securityContext: { runAsUser: 65532 } }]);
  assert.equal(says('something new'), null);
});

test('a container between two restarts has not ended', () => {
  const edit: Edit = ({ status }) => {
    const [main] = status.containerStatuses;
    main.state = { terminated: { exitCode: 3, reason: 'Error', finishedAt: '2026-11-22T06:52:21Z' } };
    main.lastState = {};
    main.restartCount = 0;
  };
  const { reasons, summary } = tell(explain('back-off', edit));
  assert.deepEqual(reasons, ['backOff main']);
  assert.match(summary, /: it ends with 3, and is started again$/);
});

test('memory is doubled whatever its unit', () => {
  for (const [limit, wanted] of [
    ['32Mi', '64Mi'],
    ['1Gi', '2Gi'],
    ['1.5G', '3G'],
    ['128974848', '257949696'],
  ]) {
    const { lines } = tell(
      explain('back-off-out-of-memory', ({ spec }) => {
        spec.containers[0].resources.limits.memory = limit;
      }),
    );
    assert.equal(String(lines.spec.containers[0].resources.limits.memory), wanted);
  }
});

test('a replica that ends again and again is told of, and not as one that may end', () => {
  const edit: Edit = ({ metadata }) => {
    metadata.ownerReferences = [{ kind: 'ReplicaSet', name: 'web-1', controller: true }];
  };
  const { reasons, lines } = tell(explain('restart-policy-always', edit));
  assert.deepEqual([reasons, lines], [['backOff main'], null]);
});

test('a pod of its own that runs under Always is told that it never ends', () => {
  const { lines, reasons } = tell(
    explain('main-runs', ({ metadata, spec }) => {
      delete metadata.ownerReferences;
      spec.restartPolicy = 'Always';
    }),
  );
  assert.deepEqual([reasons, lines], [['mainRuns main'], { spec: { restartPolicy: 'Never' } }]);
});

test('a pod of which nothing is known says so, and what can tell', () => {
  const { reasons, state, see } = tell(
    explain('succeeded', ({ status }) => {
      status.phase = 'Unknown';
    }),
  );
  assert.deepEqual([reasons, state], [['unknown'], 'unknown']);
  assert.match(see ?? '', / events --for=pod\/done-/);
});

test('Jobs: deleted in the foreground, by a finalizer, run by another program, made by a CronJob, young', () => {
  const deleted: Edit = ({ metadata }) => {
    Object.assign(metadata, { deletionTimestamp: '2026-11-22T07:00:00Z', finalizers: ['foregroundDeletion'] });
  };
  assert.deepEqual(
    [tell(explain('job-runs', deleted)).reasons, explain('job-runs', deleted).state],
    [['jobDeleted'], 'waiting'],
  );
  const held: Edit = ({ metadata }) => {
    Object.assign(metadata, { deletionTimestamp: '2026-11-22T07:00:00Z', finalizers: ['example.com/x'] });
  };
  assert.match(tell(explain('job-complete', held)).summary, /^The finalizer example.com\/x keeps Job /);
  const managed = tell(
    explain('job-runs', ({ spec }) => Object.assign(spec, { managedBy: 'kueue.x-k8s.io/multikueue' })),
  );
  assert.deepEqual(managed.reasons, ['managedByAnother']);
  const cron: Edit = ({ metadata }) => {
    metadata.ownerReferences = [{ kind: 'CronJob', name: 'nightly', controller: true }];
  };
  assert.match(tell(explain('job-retries', cron)).what, /and in CronJob nightly, to fail at the first failure:$/);
  assert.equal(explain('job-cannot-make-pods', () => {}, -55).state, 'waiting');
});

test('a list is told of the worst first, alike pods once, ended ones in a line each, and others by their kind', async () => {
  const pod = JSON.parse(readExplainFixture('mesh-istio'));
  const twin = { ...pod, metadata: { ...pod.metadata, name: 'report-twin' } };
  const done = JSON.parse(readExplainFixture('succeeded'));
  const items = [done, pod, { kind: 'Service', apiVersion: 'v1' }, twin, JSON.parse(readExplainFixture('job-failed'))];
  const nowMs = momentIn('job-failed');
  const { code, stdout } = await runExplain(JSON.stringify({ kind: 'List', items }), { nowMs });
  assert.equal(code, 0);
  const lines = stdout.split('\n');
  assert.match(lines[0] ?? '', /^istio-proxy keeps pod default\/report-/);
  assert.equal(lines.filter((line) => line.startsWith('istio-proxy keeps ')).length, 1);
  assert.ok(lines.includes('Also     the same keeps report-twin'), stdout);
  assert.equal(lines.filter((line) => line.startsWith('Nothing keeps ')).length, 2);
  assert.equal(lines.at(-2), 'Not explained: 1 of another kind (Service).');
  const json = JSON.parse(
    (await runExplain(JSON.stringify({ kind: 'List', items }), { nowMs, argv: ['explain', '--json'] })).stdout,
  );
  assert.deepEqual(
    json.objects.map(({ state }: { state: string }) => state),
    ['ended', 'stuck', 'stuck', 'ended'],
  );
  assert.deepEqual(json.notExplained, ['Service']);
});

test('the lines of a moved lastscrape put it last', () => {
  const object = JSON.parse(readExplainFixture('lastscrape-waits-for-sigterm'));
  const [finding] = explain('lastscrape-waits-for-sigterm', () => {}).findings;
  const { spec } = putIntoPod(object, finding?.change.lines ?? '') as { spec: { initContainers: { name: string }[] } };
  assert.equal(spec.initContainers.at(-1)?.name, 'lastscrape');
});

test('a grace of 2^63 s, which the API takes, is a time as any other', async () => {
  const name = 'native-sidecar-deaf-to-term';
  const object = JSON.parse(readExplainFixture(name));
  object.spec.terminationGracePeriodSeconds = 2 ** 63;
  const { code, stdout } = await runExplain(JSON.stringify(object), { nowMs: momentIn(name), argv: ['explain'] });
  assert.equal(code, 0);
  assert.match(stdout, /\+275760-09-13T00:00:00Z/);
});

test('what is no number where one belongs counts as if it were not there', async () => {
  for (const [name, edit] of [
    ['back-off', ({ status }) => Object.assign(status.containerStatuses[0], { restartCount: 'x' })],
    ['failed', ({ status }) => Object.assign(status.containerStatuses[0].state.terminated, { exitCode: {} })],
    [
      'job-retries',
      ({ spec, status }) => [Object.assign(spec, { backoffLimit: [] }), Object.assign(status, { failed: '?' })],
    ],
  ] as const satisfies readonly (readonly [string, Edit])[]) {
    const object = JSON.parse(readExplainFixture(name));
    edit(object);
    const { code, stdout } = await runExplain(JSON.stringify(object), { nowMs: momentIn(name), argv: ['explain'] });
    assert.equal(code, 0);
    assert.doesNotMatch(stdout, /NaN/);
  }
});
