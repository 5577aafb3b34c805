// deploy/ci/verdict.sh: its rules before a kubectl that answers as a cluster would at each end; what it asks for by the real
// kubectl, of a server that has such objects; and the cluster's stories run it on a real one.

import assert from 'node:assert/strict';
import { execFile, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { parse } from 'yaml';
import { makeFolder } from '../support/folder.ts';

const FOLDER = join(import.meta.dirname, '../../deploy/ci');
const SCRIPT = join(FOLDER, 'verdict.sh');

const PASSED = '{"outcome":"scraped","verdict":"passed","exitCode":0}';
const FAILED =
  '{"outcome":"scraped","verdict":"failed","failed":{"entry":"a{b=\\"\\"verdict\\":\\"passed\\"\\\\t\\"} > 1"},"exitCode":1}';

const CUT_SHORT =
  '{"summary":"Not judged: cut short by a signal","outcome":"terminated","verdict":"notJudged","exitCode":75}';

/** What kubectl prints: the conditions of the Job (none: no Job), reports of lastscrape, and in the exporter's place. */
type Answers = {
  readonly job?: string;
  /** Of the Job's status; as many as there are reports. */
  readonly succeeded?: number;
  readonly lastscrape?: string;
  readonly exporter?: string;
  readonly code?: number;
  /** What of each pod is said with its name: when it is deleted, and whether it is a target of a disruption. */
  readonly pods?: string;
  /** How many calls the first of all is followed by that fail, for the Job and for its pods. */
  readonly failing?: number;
  /** No kubeconfig, as in a pod. */
  readonly isInPod?: boolean;
};

function run(args: readonly string[], answers: Answers = {}) {
  const { job = '', pods = '', lastscrape = '', exporter = '', code = 0, failing = 0, isInPod = false } = answers;
  const name = (reports: string) => reports.replace(/^/gm, 'a-x1 ');
  const { succeeded = `${lastscrape}${exporter}`.split('\n').length } = answers;
  const folder = makeFolder();
  writeFileSync(
    join(folder, 'kubectl'),
    `#!/bin/sh
printf '%s\\n' "$*" >>"$CALLS"
count=$(grep -c "^get $2" "$CALLS")
case "$*" in
*'config view'*) [ -z "$IN_POD" ] || exit 1; printf shop ;;
*'get job '*) [ "$count" -gt 1 ] && [ "$count" -le $((FAILING + 1)) ] && exit 1
  [ "$count" -gt "$FAILING" ] || JOB='J////Running'
  printf '%s' "$JOB"; exit "$CODE" ;;
*'get pods '*) [ "$count" -gt "$FAILING" ] || exit 1 ;;
esac
case "$*" in
*DisruptionTarget*) printf '%s\\n' "$PODS" ;;
*"name=='lastscrape'"*) printf '%s' "$LASTSCRAPE" ;;
*"name=='locust-metrics-exporter'"*) printf '%s' "$EXPORTER" ;;
esac
`,
  );
  chmodSync(join(folder, 'kubectl'), 0o755);
  // The pauses pass at once, by a clock of their own.
  const clock = join(folder, 'clock');
  writeFileSync(clock, '1000');
  for (const [name, text] of [
    ['sleep', `echo $(($(cat "${clock}") + $1)) >"${clock}"`],
    ['date', `cat "${clock}"`],
  ] as const) {
    writeFileSync(join(folder, name), `#!/bin/sh\n${text}\n`);
    chmodSync(join(folder, name), 0o755);
  }
  const calls = join(folder, 'calls');
  const env = {
    PATH: `${folder}:${process.env['PATH']}`,
    CALLS: calls,
    JOB: job === '' ? '' : `J///${succeeded}/${job}`,
    PODS: pods,
    LASTSCRAPE: name(lastscrape),
    EXPORTER: exporter === 'log lines' ? exporter : name(exporter),
    CODE: String(code),
    FAILING: String(failing),
    IN_POD: isInPod ? 'yes' : '',
  };
  const { status, stdout, stderr } = spawnSync(SCRIPT, args, { env, encoding: 'utf8' });
  return { status, stdout, stderr, calls: status === null ? '' : tryRead(calls) };
}

const tryRead = (path: string): string => {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
};

for (const [what, answers, status, stdout, stderr] of [
  ['passed', { job: 'Complete', lastscrape: PASSED }, 0, `${PASSED}\n`, /^$/],
  ["passed, in the exporter's place", { job: 'Complete', exporter: PASSED }, 0, `${PASSED}\n`, /^$/],
  ['an exporter that is no lastscrape', { job: 'Complete', exporter: 'log lines' }, 2, '', /no pod of it has a report/],
  ['failed by a threshold', { job: 'Failed', lastscrape: FAILED }, 1, `${FAILED}\n`, /^$/],
  ['failed in a native sidecar', { job: 'SuccessCriteriaMet Complete', lastscrape: FAILED }, 1, `${FAILED}\n`, /^$/],
  ['Locust failed', { job: 'FailureTarget Failed', lastscrape: PASSED }, 1, `${PASSED}\n`, /failed by itself/],
  ['no report', { job: 'Complete' }, 2, '', /Complete, and no pod of it has a report/],
  ['evicted without a report', { job: 'Failed', pods: 'a-x1 True' }, 2, '', /not judged: a-x1 was evicted, preempted/],
  [
    'evicted with a report',
    { job: 'Failed', lastscrape: FAILED, pods: 'a-x1 True' },
    2,
    `${FAILED}\n`,
    /not judged: a-x1/,
  ],
  [
    'another was evicted',
    { job: 'Failed', lastscrape: FAILED, pods: 'a-x1 \na-x2 2026-11-22T07:00:00Z' },
    1,
    `${FAILED}\n`,
    /^$/,
  ],
  ['failed without a report', { job: 'Failed' }, 1, '', /failed, and no pod of it has a report/],
  [
    'no verdict',
    { job: 'Complete', lastscrape: '{"outcome":"scraped"}' },
    2,
    '{"outcome":"scraped"}\n',
    /no verdict: is LASTSCRAPE_FAIL_IF set/,
  ],
  [
    'failed without a verdict',
    { job: 'Failed', lastscrape: '{"outcome":"scraped"}' },
    1,
    '{"outcome":"scraped"}\n',
    /the Job a failed/,
  ],
  [
    'one of several pods failed',
    { job: 'Complete', lastscrape: `${PASSED}\n${FAILED}\n${PASSED}` },
    1,
    `${PASSED}\n${FAILED}\n${PASSED}\n`,
    /^$/,
  ],
  [
    'one of several pods has no verdict',
    { job: 'Complete', lastscrape: `${PASSED}\n{"outcome":"terminated"}` },
    2,
    `${PASSED}\n{"outcome":"terminated"}\n`,
    /a report has no verdict/,
  ],
  [
    'one of two pods has no report',
    { job: 'Complete', lastscrape: PASSED, succeeded: 2 },
    2,
    `${PASSED}\n`,
    /2 pods of the Job a succeeded, and 1 of them have a report/,
  ],
  ['cut short', { job: 'Failed', lastscrape: CUT_SHORT }, 2, `${CUT_SHORT}\n`, /cut short, and so not judged/],
  [
    'one of two pods was cut short',
    { job: 'Complete', lastscrape: `${PASSED}\n${CUT_SHORT}` },
    2,
    `${PASSED}\n${CUT_SHORT}\n`,
    /cut short, and so not judged/,
  ],
  ['several pods passed', { job: 'Complete', lastscrape: `${PASSED}\n${PASSED}` }, 0, `${PASSED}\n${PASSED}\n`, /^$/],
  ['a cluster that is away for a moment', { job: 'Complete', lastscrape: PASSED, failing: 20 }, 0, `${PASSED}\n`, /^$/],
  ['a cluster that is away', { job: 'Complete', failing: 40 }, 2, '', /cannot ask for the Job a in shop/],
  ['no kubeconfig, in a pod', { job: 'Complete', lastscrape: PASSED, isInPod: true }, 0, `${PASSED}\n`, /^$/],
  ['no Job', {}, 2, '', /^verdict.sh: no Job a in shop$/m],
  ['no cluster', { code: 1 }, 2, '', /cannot ask for the Job a in shop/],
  ['a Job that does not end', { job: 'Running' }, 2, '', /the Job a in shop has not ended within 6 s/],
] as const) {
  test(`verdict.sh: ${what}`, () => {
    const ended = run(['--timeout', 'failing' in answers ? '600' : '6', 'job/a'], answers);
    assert.deepEqual([ended.status, ended.stdout], [status, stdout], ended.stderr);
    assert.match(ended.stderr.replace(/^\|.*\n/gm, ''), stderr);
  });
}

test('verdict.sh asks for all pods that succeeded of a Complete Job, for all of a failed one, and never without a time limit', () => {
  for (const [job, items] of [
    ['Complete', '?(@.status.phase=="Succeeded")'],
    ['Failed', '*'],
  ] as const) {
    const { calls } = run(['job/a'], { job, lastscrape: PASSED });
    assert.ok(calls.includes(`{range .items[${items}]}`), calls);
    assert.doesNotMatch(calls, /^get (?!.*--request-timeout=30s$)/m);
  }
});

for (const args of [
  [],
  ['a'],
  ['job/'],
  ['pod/a'],
  ['job/a', 'job/b'],
  ['--timeout', '1m', 'job/a'],
  ['--timeout'],
  ['-x', 'job/a'],
]) {
  test(`verdict.sh ${args.join(' ')}: its usage`, () => {
    const { status, stderr, calls } = run(args);
    assert.deepEqual([status, calls], [2, '']);
    assert.match(stderr, /usage: verdict.sh/);
  });
}

/** A pod of the Job `job`, whose lastscrape ended with this message. */
const pod = (name: string, job: string, message?: string, status: object = {}) => ({
  metadata: { name, creationTimestamp: '2026-11-23T10:00:00Z', labels: { 'batch.kubernetes.io/controller-uid': job } },
  status: {
    phase: 'Succeeded',
    initContainerStatuses: [{ name: 'lastscrape', state: { terminated: { exitCode: 0, message } } }],
    containerStatuses: [{ name: 'main', state: { terminated: { exitCode: 0 } } }],
    ...status,
  },
});
const jobOf = (uid: string, owner: string | null, status: object) => ({
  metadata: { name: 'my-cart-master', uid, ...(owner === null ? {} : { ownerReferences: [{ uid: owner }] }) },
  status,
});
const complete = (succeeded: number) => ({ succeeded, conditions: [{ type: 'Complete', status: 'True' }] });

/** Plays an API server that has these objects: of the LocustTest and the Job what is true at each call, then the last. */
async function playCluster(objects: { tests?: readonly object[]; jobs: readonly object[]; pods: readonly object[] }) {
  const next = (list: readonly object[], index: number) => list[Math.min(index, list.length - 1)];
  const asked = { tests: 0, jobs: 0 };
  const resources = (groupVersion: string, name: string, kind: string, extra: readonly object[] = []) => ({
    kind: 'APIResourceList',
    groupVersion,
    resources: [{ name, singularName: kind.toLowerCase(), namespaced: true, kind, verbs: ['get', 'list'] }, ...extra],
  });
  const group = (name: string, version: string) => {
    const preferredVersion = { groupVersion: `${name}/${version}`, version };
    return { name, versions: [preferredVersion], preferredVersion };
  };
  const answer = (url: URL): object | undefined => {
    switch (url.pathname) {
      case '/api':
        return { kind: 'APIVersions', versions: ['v1'] };
      case '/apis':
        return { kind: 'APIGroupList', apiVersion: 'v1', groups: [group('batch', 'v1'), group('locust.io', 'v2')] };
      case '/api/v1':
        return resources('v1', 'pods', 'Pod');
      case '/apis/batch/v1':
        return resources('batch/v1', 'jobs', 'Job');
      case '/apis/locust.io/v2':
        return resources('locust.io/v2', 'locusttests', 'LocustTest');
      case '/apis/locust.io/v2/namespaces/shop/locusttests/my.cart':
        return { apiVersion: 'locust.io/v2', kind: 'LocustTest', ...next(objects.tests ?? [], asked.tests++) };
      case '/apis/batch/v1/namespaces/shop/jobs/my-cart-master':
        return { apiVersion: 'batch/v1', kind: 'Job', ...next(objects.jobs, asked.jobs++) };
      case '/api/v1/namespaces/shop/pods': {
        const uid = url.searchParams.get('labelSelector')?.split('=')[1];
        const items = objects.pods.filter((each) => JSON.stringify(each).includes(`controller-uid":"${uid}"`));
        return { apiVersion: 'v1', kind: 'PodList', items };
      }
      default:
        return undefined;
    }
  };
  const server = createServer((request, response) => {
    const found = answer(new URL(request.url ?? '/', 'http://localhost'));
    response.writeHead(found === undefined ? 404 : 200, { 'content-type': 'application/json' });
    response.end(JSON.stringify(found ?? { kind: 'Status', apiVersion: 'v1', status: 'Failure', code: 404 }));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return { url: `http://127.0.0.1:${port}`, [Symbol.dispose]: () => void server.close() };
}

const locustTest = (uid: string, deletionTimestamp?: string) => ({
  metadata: { name: 'my.cart', uid, deletionTimestamp },
});
const OLD_FAILED = pod('my-cart-master-old', 'J1', FAILED);

for (const [what, target, objects, status, stdout, stderr] of [
  [
    'two pods, of which one has no report',
    'job/my-cart-master',
    { jobs: [jobOf('J1', null, complete(2))], pods: [pod('a-1', 'J1', PASSED), pod('a-2', 'J1')] },
    2,
    `${PASSED}\n`,
    /2 pods of the Job my-cart-master succeeded, and 1 of them have a report/,
  ],
  [
    'a pod that was evicted, and one that was deleted',
    'job/my-cart-master',
    {
      jobs: [jobOf('J1', null, { conditions: [{ type: 'Failed', status: 'True' }] })],
      pods: [
        pod('a-1', 'J1', FAILED, { conditions: [{ type: 'DisruptionTarget', status: 'True' }] }),
        { ...pod('a-2', 'J1'), metadata: { ...pod('a-2', 'J1').metadata, deletionTimestamp: '2026-11-23T10:00:00Z' } },
        pod('a-3', 'J1', PASSED),
      ],
    },
    2,
    `${FAILED}\n${PASSED}\n`,
    /not judged: a-1 a-2 was evicted, preempted or deleted/,
  ],
  [
    "a LocustTest made anew while the old one's Job is still there",
    'locusttest/my.cart',
    {
      tests: [locustTest('T1', '2026-11-23T10:00:00Z'), locustTest('T2')],
      jobs: [jobOf('J1', 'T1', complete(1)), jobOf('J1', 'T1', complete(1)), jobOf('J2', 'T2', complete(1))],
      pods: [OLD_FAILED, pod('my-cart-master-new', 'J2', PASSED)],
    },
    0,
    `${PASSED}\n`,
    /^\| my-cart-master-new \| passed \|/m,
  ],
  [
    'a Job that is deleted and made anew meanwhile',
    'job/my-cart-master',
    { jobs: [jobOf('J1', null, {}), jobOf('J2', null, complete(1))], pods: [pod('b', 'J2', PASSED)] },
    2,
    '',
    /the Job my-cart-master in shop was deleted while this waited/,
  ],
  [
    'a LocustTest that is deleted meanwhile',
    'locusttest/my.cart',
    { tests: [locustTest('T1'), locustTest('T2')], jobs: [jobOf('J1', 'T1', {})], pods: [] },
    2,
    '',
    /the LocustTest my.cart in shop was deleted while this waited/,
  ],
] as const) {
  test(`verdict.sh by the real kubectl: ${what}`, async () => {
    using cluster = await playCluster(objects);
    const folder = makeFolder();
    const entry = { name: 'c', cluster: { server: cluster.url } };
    const context = { name: 'c', context: { cluster: 'c', namespace: 'shop', user: 'c' } };
    const users = [{ name: 'c', user: {} }];
    writeFileSync(
      join(folder, 'config'),
      JSON.stringify({ clusters: [entry], contexts: [context], users, 'current-context': 'c' }),
    );
    const env = { PATH: process.env['PATH'], HOME: folder, KUBECONFIG: join(folder, 'config') };
    const ran = await promisify(execFile)(SCRIPT, ['--junit', join(folder, 'junit.xml'), target], { env }).catch(
      (error) => error,
    );
    assert.deepEqual([ran.code ?? 0, ran.stdout], [status, stdout], ran.stderr);
    assert.match(ran.stderr, stderr);
    assert.equal(readFileSync(join(folder, 'junit.xml'), 'utf8').includes('<error'), status === 2);
  });
}

test('verdict.sh --junit: a case for each pod, with the sentence of its report', () => {
  const folder = makeFolder();
  const summary = String.raw`Failed by a{b=\"<&\\>\"} > 1 (2)`;
  const failed = `{"summary":"${summary}","outcome":"scraped","verdict":"failed"}`;
  const file = join(folder, 'junit.xml');
  const { stderr } = run(['--junit', file, 'job/a'], {
    job: 'Failed',
    lastscrape: `${PASSED}\n${failed}\n${CUT_SHORT}`,
  });
  assert.match(stderr, /^\| a-x1 \| failed \| Failed by a\{b="<&\\>"\} > 1 \(2\) \|$/m);
  const cases = readFileSync(file, 'utf8')
    .split('\n')
    .filter((line) => /<(error|failure)/.test(line));
  assert.deepEqual(cases, [
    '<failure message="Failed by a{b=&quot;&lt;&amp;\\&gt;&quot;} &gt; 1 (2)"/>',
    '<error message="Not judged: cut short by a signal"/>',
  ]);
});

test('the action runs the script, prints its report, and ends with its code', () => {
  const { runs } = parse(readFileSync(join(FOLDER, 'action.yml'), 'utf8'));
  const folder = makeFolder();
  writeFileSync(join(folder, 'verdict.sh'), `#!/bin/sh\nprintf '%s\\n' '${FAILED}'; echo why >&2; exit 1\n`);
  chmodSync(join(folder, 'verdict.sh'), 0o755);
  const summary = join(folder, 'summary');
  writeFileSync(join(folder, 'reason'), 'mine');
  const env = {
    PATH: process.env['PATH'],
    ACTION: folder,
    TARGET: 'job/a',
    NAMESPACE: '',
    TIMEOUT: '9',
    JUNIT: '',
    GITHUB_STEP_SUMMARY: summary,
  };
  const { status, stdout, stderr } = spawnSync('sh', ['-ec', runs.steps[0].run], {
    cwd: folder,
    env,
    encoding: 'utf8',
  });
  assert.deepEqual([status, stdout, stderr], [1, `${FAILED}\n`, 'why\n']);
  assert.match(readFileSync(summary, 'utf8'), /^### lastscrape: job\/a\n\nwhy\n\n```json\n\{"outcome".*\n```\n$/);
  assert.deepEqual(readdirSync(folder).toSorted(), ['reason', 'summary', 'verdict.sh']);
});
