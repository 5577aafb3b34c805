// Push and webhook on a real Kubernetes: a Pushgateway gets what is not scraped, a webhook the report, by
// Jobs written by hand as in deploy/job/front.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import { until } from '../support/until.ts';
import type { Container, Manifest, Namespace } from './cluster.ts';
import {
  buildCountingJob,
  buildRestartedJob,
  type CountingJob,
  JOB,
  jobPod,
  METRIC,
  readFinal,
  SNAPSHOT,
  untilStored,
} from './counting-job.ts';
import { IMAGES } from './images.ts';
import type { PodSpec } from './locust-test.ts';
import { buildNameserver } from './names.ts';
import { END_MS, findStatus, getFixture, readEnd, runScenarioIn, START_MS } from './scenario.ts';

/** Prints each request that it takes, a line of JSON each. */
const RECEIVER = `require('node:http').createServer((request, response) => {
  let body = '';
  request.setEncoding('utf8').on('data', (text) => (body += text)).on('end', () => {
    console.log(JSON.stringify({ url: request.url, authorization: request.headers.authorization, body: JSON.parse(body) }));
    response.end('ok');
  });
}).listen(8080)`;

/** A program that pushes, and knows nothing of lastscrape; $0 is the name of its job. */
const PUSHER = `
push() { wget -qO- --post-data="# TYPE ${METRIC} counter
${METRIC} $1
" "http://pushgateway.monitoring.svc:9091/metrics/job/$0" || exit 1; }
for value in 1 2 3; do push $value; sleep 1; done
push 1000003`;

export function runTellingScenarios(): void {
  runScenarioIn(
    'telling: unscraped, a Pushgateway has the final number, and a webhook the report',
    async (namespace) => {
      const gateway = await startGateway(namespace);
      const receiver = await startReceiver(namespace);
      await namespace.apply(
        {
          apiVersion: 'v1',
          kind: 'Secret',
          metadata: { name: 'webhook' },
          stringData: { headers: 'Authorization: Bearer s3cret-token\n' },
        },
        buildTellingJob({
          LASTSCRAPE_TTL: '5s',
          LASTSCRAPE_PUSH: `pushgateway+http://${gateway}:9091`,
          LASTSCRAPE_PUSH_LABELS: 'team=checkout',
          LASTSCRAPE_WEBHOOK: `http://${receiver}:8080/hook`,
          LASTSCRAPE_WEBHOOK_HEADERS_FILE: '/etc/webhook/headers',
        }),
      );
      assert.equal(await namespace.untilJobEnded(JOB, END_MS), 'Complete');
      const pod = jobPod(namespace);
      const { report, exitCode } = readEnd(pod);
      assert.deepEqual([report.outcome, exitCode], ['expired', 0], report.summary);
      assert.equal(report.push?.result, 'accepted', JSON.stringify(report.push));
      const { final } = await readFinal(namespace, pod);
      const line = await readPushed(namespace);
      const name = pod.metadata.name;
      for (const label of [`job="${JOB}"`, `namespace="${namespace.name}"`, `pod="${name}"`, 'team="checkout"']) {
        assert.ok(line?.includes(label), `${label} in ${line}`);
      }
      assert.equal(Number(line?.split(' ').at(-1)), final, line);

      const told = await readTold(namespace);
      assert.deepEqual([told.url, told.authorization], ['/hook', 'Bearer s3cret-token']);
      const { text, ...body } = told.body;
      assert.deepEqual(body, { ...report, namespace: namespace.name, pod: name, job: JOB });
      assert.match(text, /^Job report, namespace \S+, pod report-\w{5}: Not scraped within 5 s after main ended; /);
      assert.doesNotMatch(await namespace.readLog(name, 'lastscrape'), /s3cret/);
    },
  );

  runScenarioIn(
    'telling: all containers are restarted in place, and the hand-over of the run before was in time',
    async (namespace) => {
      const gateway = await startGateway(namespace);
      const annotations = {
        'lastscrape.dev/hand-over': 'push',
        'lastscrape.dev/push': `pushgateway+http://${gateway}:9091`,
        // More than come: no scrape is faster than the push.
        'lastscrape.dev/scrapes': '50',
      };
      await namespace.apply(buildRestartedJob('RestartAllContainers', { annotations, env: { JOB_MS: '15000' } }));
      const { pod } = await namespace.untilPod('lastscrape again', END_MS, (each) => {
        const { restartCount = 0, state } = findStatus(each, 'lastscrape') ?? {};
        return restartCount > 0 && state?.running !== undefined;
      });
      const line = await readPushed(namespace);
      assert.equal(findStatus(pod, 'main')?.state.terminated, undefined, 'the next run has not ended');
      assert.ok(Number(line?.split(' ').at(-1)) > 1_000_000, line);
      assert.equal(await namespace.untilJobEnded(JOB, END_MS), 'Complete');
      assert.equal(readEnd(jobPod(namespace)).report.outcome, 'handedOver');
    },
  );

  runScenarioIn(
    "telling: by policy, a Pushgateway whose name becomes the pod's own gets nothing",
    async (namespace) => {
      const gateway = await startGateway(namespace);
      const nameserver = await startServer(namespace, buildNameserver(gateway));
      const annotations = { 'lastscrape.dev/pushgateway': 'pushgateway.monitoring.svc:9091' };
      const build = (name: string, own: CountingJob): Manifest => {
        const job = buildCountingJob({
          ...own,
          edit: (spec) => ({
            ...spec,
            dnsPolicy: 'None',
            dnsConfig: { nameservers: [nameserver] },
            containers: [{ name: 'main', image: IMAGES.busybox, args: ['-c', PUSHER, name] }],
          }),
        });
        return { ...job, metadata: { name } };
      };
      // The same program twice: what the name leads to without the annotation.
      await namespace.apply(build('plain', { labels: { app: 'plain' } }));
      assert.equal(await namespace.untilJobEnded('plain', END_MS), 'Complete');
      assert.match((await readPushed(namespace)) ?? '', /job="plain".* 1\.000003e\+06$/);
      await namespace.apply(build(JOB, { annotations }));
      assert.equal(await namespace.untilJobEnded(JOB, END_MS), 'Complete');
      const pod = jobPod(namespace);
      assert.equal(readEnd(pod).report.outcome, 'scraped');
      await untilStored(namespace, pod, 1_000_003);
      const text = await readGateway(namespace);
      assert.doesNotMatch(text, new RegExp(`job="${JOB}"`));
    },
  );
}

function startGateway(namespace: Namespace): Promise<string> {
  return startServer(namespace, {
    name: 'pushgateway',
    image: IMAGES.pushgateway,
    // A hand-over waits 2 s for it, on a busy node too.
    resources: { requests: { cpu: '200m' } },
    readinessProbe: { httpGet: { path: '/-/ready', port: 9091 }, periodSeconds: 1 },
  });
}

function readGateway({ name }: Namespace): Promise<string> {
  return getFixture().cluster.read(`/api/v1/namespaces/${name}/pods/pushgateway:9091/proxy/metrics`);
}

/** The line of the Job's metric in the Pushgateway. */
async function readPushed(namespace: Namespace): Promise<string | undefined> {
  const text = await readGateway(namespace);
  return text.split('\n').find((each) => each.startsWith(`${METRIC}{`));
}

function startReceiver(namespace: Namespace): Promise<string> {
  return startServer(namespace, {
    name: 'receiver',
    image: IMAGES.job,
    command: ['/node', '-e', RECEIVER],
    readinessProbe: { tcpSocket: { port: 8080 }, periodSeconds: 1 },
  });
}

function readTold(namespace: Namespace) {
  return until('the request', START_MS, async () => {
    const [request = ''] = (await namespace.readLog('receiver', 'receiver')).trim().split('\n');
    return request === '' ? undefined : JSON.parse(request);
  });
}

async function startServer(namespace: Namespace, container: Container): Promise<string> {
  const { name } = container;
  await namespace.apply({ apiVersion: 'v1', kind: 'Pod', metadata: { name }, spec: { containers: [container] } });
  const { pod } = await namespace.untilPod(`${name} ready`, START_MS, ({ metadata, status }) =>
    Boolean(
      metadata.name === name &&
        (status.conditions ?? []).some(({ type, status: is }) => type === 'Ready' && is === 'True'),
    ),
  );
  assert.ok(pod.status.podIP);
  return pod.status.podIP;
}

/** The Job with its front, on a port that no Prometheus finds, and the Secret of the webhook. */
function buildTellingJob(env: Readonly<Record<string, string>>): Manifest {
  const path = join(import.meta.dirname, '../../deploy/job/front/job.yaml');
  const { spec } = parse(readFileSync(path, 'utf8')).spec.template;
  const [lastscrape] = spec.initContainers;
  const { ports: _, startupProbe, ...rest } = lastscrape;
  const told = {
    ...rest,
    image: IMAGES.lastscrape,
    startupProbe: { ...startupProbe, httpGet: { path: '/-/ready', port: 9469 } },
    env: [...rest.env, ...Object.entries(env).map(([name, value]) => ({ name, value }))],
    volumeMounts: [{ name: 'webhook', mountPath: '/etc/webhook' }],
  };
  const edit = (own: PodSpec) => ({
    ...own,
    terminationGracePeriodSeconds: spec.terminationGracePeriodSeconds,
    initContainers: [told],
    volumes: [{ name: 'webhook', secret: { secretName: 'webhook', optional: true } }],
  });
  return buildCountingJob({ labels: {}, portName: 'unscraped', env: SNAPSHOT, edit });
}
