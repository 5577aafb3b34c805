// `node test/cluster/mistakes.ts`: makes the mistakes that people make, on the cluster of `npm run test:cluster`, and
// prints what is said of each first, where, and how many seconds after main's start.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import { until } from '../support/until.ts';
import { type Container, type Manifest, type Namespace, runShell } from './cluster.ts';
import { buildCountingJob, type CountingJob, JOB, jobPod } from './counting-job.ts';
import { applyPolicy, openFixture } from './fixture.ts';
import { IMAGES } from './images.ts';
import type { PodSpec } from './locust-test.ts';
import { END_MS, findStatus, readEnd, START_MS, setFixture } from './scenario.ts';

const DEPLOY = join(import.meta.dirname, '../../deploy');
/** The manifest without a policy. */
const [BY_HAND]: readonly Container[] = parse(readFileSync(join(DEPLOY, 'job/front/job.yaml'), 'utf8')).spec.template
  .spec.initContainers;

type Said = { readonly text: string; readonly where: string; readonly seconds: number | null };

/** How long main works: longer than the time after which an unread page or a missing scraper is said. */
const LONG = { JOB_MS: '150000' };
const SHORT = { JOB_MS: '20000' };

const annotated = (name: string, value: string): CountingJob => ({
  annotations: { [`lastscrape.dev/${name}`]: value },
  env: SHORT,
});
/** lastscrape by hand, with one more variable. */
const byHand = (name: string, value: string, grace: number | null = 100, fields: object = {}): CountingJob => ({
  labels: {},
  env: SHORT,
  edit: (spec: PodSpec) => ({
    ...spec,
    ...(grace === null ? {} : { terminationGracePeriodSeconds: grace }),
    initContainers: [withVariable({ ...(BY_HAND as Container), image: IMAGES.lastscrape, ...fields }, name, value)],
  }),
});

function withVariable(container: Container, name: string, value: string): Container {
  const others = (container.env ?? []).filter((each) => each.name !== name);
  return { ...container, env: [...others, { name, value }] };
}

/** Each mistake, and whether only the end can show it. */
const MISTAKES: readonly (readonly [what: string, job: CountingJob, isOfTheEnd?: true])[] = [
  [
    'prometheus.io/port names a port where nothing listens',
    { annotations: { 'prometheus.io/port': '8001' }, env: LONG },
  ],
  // Prometheus finds the front by the name of its port.
  ['Prometheus scrapes 8000, not the front', { ...byHand('LASTSCRAPE_TTL', '90s', 100, { ports: [] }), env: LONG }],
  ['the pod has the default grace, 30 s', byHand('LASTSCRAPE_TTL', '90s', null)],
  ['the grace of the pod is 5 s', byHand('LASTSCRAPE_TTL', '90s', 5)],
  ['lastscrape.dev/tll: 2m', annotated('tll', '2m')],
  ['lastscrape.dev/ttl: 2mins', annotated('ttl', '2mins')],
  ['lastscrape.dev/hook: pyhton', annotated('hook', 'pyhton')],
  ['the label lastscrape.dev/injcet', { labels: { 'lastscrape.dev/injcet': 'true' }, env: SHORT }],
  ['LASTSCRAPE_TLL=2m', byHand('LASTSCRAPE_TLL', '2m')],
  ['LASTSCRAPE_FRONT=9469x', byHand('LASTSCRAPE_FRONT', '9469x')],
  ['fail-if: job_worked_total > (no number)', annotated('fail-if', 'job_worked_total >')],
  ['fail-if: job_wroked_total > 1 (no such name)', annotated('fail-if', 'job_wroked_total > 1')],
  ['fail-if: fail_ratio > 1 (can never hold)', annotated('fail-if', 'fail_ratio > 1')],
];

/** Makes one, and waits for the Job's end. @returns what is said, the first first */
async function make(namespace: Namespace, job: CountingJob): Promise<readonly Said[]> {
  const warnings = await apply(namespace.name, buildCountingJob(job));
  const said: Said[] = warnings.map((text) => ({ text, where: 'kubectl apply', seconds: 0 }));
  const { pod: started } = await namespace.untilPod(
    'main',
    START_MS,
    (pod) => findStatus(pod, 'main')?.state.running !== undefined,
  );
  const { name } = started.metadata;
  const mainAtMs = Date.parse(findStatus(started, 'main')?.state.running?.startedAt ?? '');
  await until('the end of the Job', END_MS, async () => namespace.untilJobEnded(JOB, END_MS));
  const pod = jobPod(namespace);
  if (findStatus(pod, 'lastscrape') === undefined) return said;
  const path = `/api/v1/namespaces/${namespace.name}/pods/${name}/log?container=lastscrape&timestamps=true`;
  for (const line of (await fixture.cluster.read(path)).trimEnd().split('\n')) {
    const [time = '', ...words] = line.split(' ');
    const text = readLine(words.join(' '));
    if (text !== null) said.push({ text, where: 'log', seconds: (Date.parse(time) - mainAtMs) / 1_000 });
  }
  const terminated = findStatus(pod, 'lastscrape')?.state.terminated;
  const seconds = (Date.parse(terminated?.finishedAt ?? '') - mainAtMs) / 1_000;
  if (terminated?.message?.startsWith('{')) {
    const { report } = readEnd(pod);
    const { hint } = report as { hint?: string };
    for (const text of [...(report.problems ?? []), ...(hint === undefined ? [] : [hint])])
      said.push({ text, where: 'report', seconds });
  } else said.push({ text: `exit code ${terminated?.exitCode}, no report`, where: 'kubectl get pod', seconds });
  return said;
}

/** What a line of the log says of a mistake: a warning, an error, or what no logger wrote. */
function readLine(line: string): string | null {
  if (!line.startsWith('{')) return line;
  const { level, msg, problem, hint, reason } = JSON.parse(line);
  return /^(warn|error)$/.test(level) ? [msg, problem ?? hint ?? reason].filter(Boolean).join(': ') : null;
}

/** The warnings of kubectl. */
async function apply(namespace: string, manifest: Manifest): Promise<readonly string[]> {
  const command = `kubectl --namespace=${namespace} create --filename=- 2>&1 >/dev/null`;
  const printed = await runShell(`${command} <<'EOF'\n${JSON.stringify(manifest)}\nEOF`, import.meta.dirname);
  return printed.split('\n').flatMap((line) => /^Warning: .* with binding '[^']*': (.*)/.exec(line)?.[1] ?? []);
}

await using fixture = await openFixture();
setFixture(fixture);
await applyPolicy(fixture);
await fixture.cluster.kubectl(['apply', '--filename', join(DEPLOY, 'annotations-policy.yaml')]);
fixture.cluster.defer(() => fixture.cluster.kubectl(['delete', '--filename', join(DEPLOY, 'annotations-policy.yaml')]));
process.stdout.write('| mistake | said first | where | seconds after main began |\n|---|---|---|---|\n');
await Promise.all(
  MISTAKES.map(async ([what, job], index) => {
    const namespace = await fixture.cluster.openNamespace(`mistake-${index}`);
    const [first] = await make(namespace, job);
    const { text, where, seconds } = first ?? { text: 'nothing', where: '', seconds: null };
    process.stdout.write(`| ${what} | ${text.replaceAll('|', '\\|')} | ${where} | ${seconds?.toFixed(0) ?? ''} |\n`);
  }),
);
