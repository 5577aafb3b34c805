// Push and webhook on a real Kubernetes: a Pushgateway of the cluster gets what is not scraped, and a webhook
// gets the report, each by a Job that is written by hand as in deploy/job/front.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import { until } from '../support/until.ts';
import type { Container, Manifest, Namespace } from './cluster.ts';
import { buildCountingJob, type CountingJob, JOB, jobPod, METRIC, readFinal, SNAPSHOT } from './counting-job.ts';
import { IMAGES } from './images.ts';
import type { PodSpec } from './locust-test.ts';
import { END_MS, getFixture, readEnd, runScenarioIn, START_MS } from './scenario.ts';

/** Prints each request that it takes, a line of JSON each. */
const RECEIVER = `require('node:http').createServer((request, response) => {
  let body = '';
  request.setEncoding('utf8').on('data', (text) => (body += text)).on('end', () => {
    console.log(JSON.stringify({ url: request.url, authorization: request.headers.authorization, body: JSON.parse(body) }));
    response.end('ok');
  });
}).listen(8080)`;

/** Registers the scenarios. */
export function runTellingScenarios(): void {
  runScenarioIn(
    'telling: unscraped, a Pushgateway has the final number, and a webhook the report',
    {},
    async (namespace) => {
      const gateway = await startGateway(namespace);
      const receiver = await startServer(namespace, {
        name: 'receiver',
        image: IMAGES.job,
        command: ['/node', '-e', RECEIVER],
        readinessProbe: { tcpSocket: { port: 8080 }, periodSeconds: 1 },
      });
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

      const told = await until('the request', START_MS, async () => {
        const [request = ''] = (await namespace.readLog('receiver', 'receiver')).trim().split('\n');
        return request === '' ? undefined : JSON.parse(request);
      });
      assert.deepEqual([told.url, told.authorization], ['/hook', 'Bearer s3cret-token']);
      const { text, ...body } = told.body;
      assert.deepEqual(body, { ...report, namespace: namespace.name, pod: name, job: JOB });
      assert.match(text, /^Job report, namespace \S+, pod report-\w{5}: Not scraped within 5 s after main ended; /);
      assert.doesNotMatch(await namespace.readLog(name, 'lastscrape'), /s3cret/);
    },
  );

  // The host name of its pod is report-0, its name report-0-x7k2p.
  const indexed = { backoffLimit: 0, completionMode: 'Indexed', completions: 1 };
  runScenarioIn('telling: an Indexed Job with the label is pushed by the name of its pod', {}, async (namespace) => {
    const annotations = {
      'lastscrape.dev/push': `pushgateway+http://${await startGateway(namespace)}:9091`,
      'lastscrape.dev/push-when': 'always',
    };
    await namespace.apply(buildCountingJob({ annotations, env: SNAPSHOT, job: indexed }));
    assert.equal(await namespace.untilJobEnded(JOB, END_MS), 'Complete');
    const line = await readPushed(namespace);
    assert.match(line ?? '', /[{,]job="report"[,}]/);
    assert.ok(line?.includes(`pod="${jobPod(namespace).metadata.name}"`), line);
  });

  runScenarioIn('telling: an Indexed Job without POD_NAME is pushed by its host name', {}, async (namespace) => {
    const url = `pushgateway+http://${await startGateway(namespace)}:9091`;
    await namespace.apply(buildTellingJob({ LASTSCRAPE_TTL: '5s', LASTSCRAPE_PUSH: url }, indexed));
    assert.equal(await namespace.untilJobEnded(JOB, END_MS), 'Complete');
    const line = await readPushed(namespace);
    assert.match(line ?? '', /[{,]hostname="report-0"[,}]/);
    assert.doesNotMatch(line ?? '', /[{,]pod=/);
  });
}

function startGateway(namespace: Namespace): Promise<string> {
  return startServer(namespace, {
    name: 'pushgateway',
    image: IMAGES.pushgateway,
    readinessProbe: { httpGet: { path: '/-/ready', port: 9091 }, periodSeconds: 1 },
  });
}

/** The line of the Job's metric in the Pushgateway. */
async function readPushed({ name }: Namespace): Promise<string | undefined> {
  const text = await getFixture().cluster.read(`/api/v1/namespaces/${name}/pods/pushgateway:9091/proxy/metrics`);
  return text.split('\n').find((each) => each.startsWith(`${METRIC}{`));
}

/** A pod of one server, as soon as it is ready; its address. */
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
function buildTellingJob(env: Readonly<Record<string, string>>, job: CountingJob['job'] = {}): Manifest {
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
  return buildCountingJob({ labels: {}, portName: 'unscraped', env: SNAPSHOT, job: { backoffLimit: 0, ...job }, edit });
}
