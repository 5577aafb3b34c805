// Push and webhook on a real Kubernetes: a Pushgateway of the cluster gets what is not scraped, and a webhook
// gets the report, each by a Job that is written by hand as in deploy/job/front.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import { until } from '../support/until.ts';
import type { Container, Manifest, Namespace } from './cluster.ts';
import { buildCountingJob, JOB, jobPod, METRIC, readFinal, SNAPSHOT } from './counting-job.ts';
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
  runScenarioIn('telling: unscraped, and a Pushgateway has the final number', {}, async (namespace) => {
    const address = await startServer(namespace, {
      name: 'pushgateway',
      image: IMAGES.pushgateway,
      readinessProbe: { httpGet: { path: '/-/ready', port: 9091 }, periodSeconds: 1 },
    });
    await namespace.apply(
      buildTellingJob({
        LASTSCRAPE_TTL: '5s',
        LASTSCRAPE_PUSH: `pushgateway+http://${address}:9091`,
        LASTSCRAPE_PUSH_LABELS: 'team=checkout',
      }),
    );
    assert.equal(await namespace.untilJobEnded(JOB, END_MS), 'Complete');
    const pod = jobPod(namespace);
    const { report, exitCode } = readEnd(pod);
    assert.deepEqual([report.outcome, exitCode], ['expired', 0], report.summary);
    assert.equal(report.push?.result, 'accepted', JSON.stringify(report.push));
    const { final } = await readFinal(namespace, pod);
    const api = `/api/v1/namespaces/${namespace.name}/pods/pushgateway:9091/proxy/metrics`;
    const line = (await getFixture().cluster.read(api)).split('\n').find((each) => each.startsWith(`${METRIC}{`));
    for (const label of [
      `job="${JOB}"`,
      `namespace="${namespace.name}"`,
      `pod="${pod.metadata.name}"`,
      'team="checkout"',
    ]) {
      assert.ok(line?.includes(label), `${label} in ${line}`);
    }
    assert.equal(Number(line?.split(' ').at(-1)), final, line);
  });

  runScenarioIn('telling: a webhook has the report, with the header of a Secret', {}, async (namespace) => {
    const address = await startServer(namespace, {
      name: 'receiver',
      image: IMAGES.job,
      command: ['/node', '-e', RECEIVER],
      readinessProbe: { tcpSocket: { port: 8080 }, periodSeconds: 1 },
    });
    await namespace.apply({
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name: 'webhook' },
      stringData: { headers: 'Authorization: Bearer s3cret-token\n' },
    });
    const job = buildTellingJob(
      {
        LASTSCRAPE_TTL: '5s',
        LASTSCRAPE_WEBHOOK: `http://${address}:8080/hook`,
        LASTSCRAPE_WEBHOOK_HEADERS_FILE: '/etc/webhook/headers',
      },
      { name: 'webhook', secret: { secretName: 'webhook' } },
    );
    await namespace.apply(job);
    assert.equal(await namespace.untilJobEnded(JOB, END_MS), 'Complete');
    const pod = jobPod(namespace);
    const { report } = readEnd(pod);
    const told = await until('the request', START_MS, async () => {
      const [line = ''] = (await namespace.readLog('receiver', 'receiver')).trim().split('\n');
      return line === '' ? undefined : JSON.parse(line);
    });
    assert.deepEqual([told.url, told.authorization], ['/hook', 'Bearer s3cret-token']);
    const { text, namespace: name, pod: podName, job: jobName, ...rest } = told.body;
    assert.deepEqual([name, podName, jobName], [namespace.name, pod.metadata.name, JOB]);
    assert.deepEqual(rest, report);
    assert.match(text, /^Job report, namespace \S+, pod report-\w{5}: Not scraped within 5 s after main ended\n/);
    assert.doesNotMatch(await namespace.readLog(pod.metadata.name, 'lastscrape'), /s3cret/);
  });
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

/** The Job with its front, on a port that no Prometheus finds. */
function buildTellingJob(
  env: Readonly<Record<string, string>>,
  volume?: { readonly name: string; readonly [kind: string]: unknown },
): Manifest {
  const path = join(import.meta.dirname, '../../deploy/job/front/job.yaml');
  const { spec } = parse(readFileSync(path, 'utf8')).spec.template;
  const [lastscrape] = spec.initContainers;
  const { ports: _, startupProbe, ...rest } = lastscrape;
  const told = {
    ...rest,
    image: IMAGES.lastscrape,
    startupProbe: { ...startupProbe, httpGet: { path: '/-/ready', port: 9469 } },
    env: [...rest.env, ...Object.entries(env).map(([name, value]) => ({ name, value }))],
    ...(volume === undefined ? {} : { volumeMounts: [{ name: volume.name, mountPath: `/etc/${volume.name}` }] }),
  };
  const edit = (own: PodSpec) => ({
    ...own,
    terminationGracePeriodSeconds: spec.terminationGracePeriodSeconds,
    initContainers: [told],
    ...(volume === undefined ? {} : { volumes: [volume] }),
  });
  return buildCountingJob({ labels: {}, portName: 'unscraped', env: SNAPSHOT, edit });
}
