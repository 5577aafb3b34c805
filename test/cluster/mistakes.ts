// `node test/cluster/mistakes.ts [--record]`: makes the mistakes that people make, on the cluster of `npm run test:cluster`, and
// prints what is said of each first, unasked, where, and how many seconds after main's start; and what `lastscrape explain`
// says of the pod then. Fails where a mistake that shows before the end is not said within main's first minute, and where
// nothing is. --record puts the table into image/figures/mistakes.md.

import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import { parseObject } from '../../src/base/json.ts';
import { explainObject } from '../../src/explain/explain.ts';
import { KINDS } from '../../src/main.ts';
import { until } from '../support/until.ts';
import { type Container, type Manifest, type Namespace, type Pod, runShell } from './cluster.ts';
import { buildCountingJob, type CountingJob, JOB, jobPod } from './counting-job.ts';
import { applyPolicy, openFixture } from './fixture.ts';
import { IMAGES } from './images.ts';
import type { PodSpec } from './locust-test.ts';
import { INTERVAL_ANNOTATION } from './prometheus.ts';
import { END_MS, findStatus, START_MS, setFixture } from './scenario.ts';

const DEPLOY = join(import.meta.dirname, '../../deploy');
const FIGURE = join(import.meta.dirname, '../../image/figures/mistakes.md');
/** The manifest without a policy. */
const [BY_HAND]: readonly Container[] = parse(readFileSync(join(DEPLOY, 'job/front/job.yaml'), 'utf8')).spec.template
  .spec.initContainers;

/** How soon each mistake must be said that shows before the end. */
const WITHIN_SECONDS = 60;

type Said = { readonly text: string; readonly where: string; readonly seconds: number };

/** How long main works: longer than the time after which an unread page or a missing scraper is said. */
const LONG = { JOB_MS: '150000' };
const SHORT = { JOB_MS: '20000' };

const annotated = (name: string, value: string): CountingJob => ({
  annotations: { [`lastscrape.dev/${name}`]: value },
  env: SHORT,
});
const byHand = (name: string, value: string, grace: number | null = 100, fields: object = {}): CountingJob => ({
  labels: {},
  // So rarely that the hold gets no scrape.
  annotations: grace === 100 ? {} : { [INTERVAL_ANNOTATION]: '1h' },
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
  [
    'Prometheus is sent to 8000, not to the front',
    {
      ...byHand('LASTSCRAPE_TTL', '90s', 100, { ports: [] }),
      annotations: { 'prometheus.io/scrape': 'true', 'prometheus.io/port': '8000' },
      env: LONG,
    },
  ],
  ['the pod has the default grace, 30 s', byHand('LASTSCRAPE_TTL', '90s', null), true],
  ['the grace of the pod is 5 s', byHand('LASTSCRAPE_TTL', '90s', 5), true],
  ['lastscrape.dev/tll: 2m', annotated('tll', '2m')],
  ['lastscrape.dev/ttl: 2mins', annotated('ttl', '2mins')],
  ['lastscrape.dev/hook: pyhton', annotated('hook', 'pyhton')],
  ['the label lastscrape.dev/injcet', { labels: { 'lastscrape.dev/injcet': 'true' }, env: SHORT }],
  ['LASTSCRAPE_TLL=2m', byHand('LASTSCRAPE_TLL', '2m')],
  ['LASTSCRAPE_FRONT=9469x', byHand('LASTSCRAPE_FRONT', '9469x')],
  ['fail-if: job_worked_total > (no number)', annotated('fail-if', 'job_worked_total >')],
  // Said once main has sent its first page.
  ['fail-if: job_wroked_total > 1 (no such name)', { ...annotated('fail-if', 'job_wroked_total > 1'), env: LONG }],
  ['fail-if: fail_ratio > 1 (can never hold)', annotated('fail-if', 'fail_ratio > 1')],
];

/** Makes one, and waits for the Job's end. @returns what is said, the first first, and what explain says */
async function make(namespace: Namespace, job: CountingJob): Promise<{ said: readonly Said[]; explained: string }> {
  const warnings = await apply(namespace.name, buildCountingJob(job));
  const said: Said[] = warnings.map((text) => ({ text, where: '`kubectl apply`', seconds: 0 }));
  const { pod: started } = await namespace.untilPod(
    'main',
    START_MS,
    (pod) => findStatus(pod, 'main')?.state.running !== undefined,
  );
  const explained = explain(started);
  const mainAtMs = Date.parse(findStatus(started, 'main')?.state.running?.startedAt ?? '');
  await namespace.untilJobEnded(JOB, END_MS);
  const pod = jobPod(namespace);
  const later = [...(await readEvents(namespace, pod)), ...(await readLog(namespace, pod)), ...readEnd(pod)];
  const dated = later.map(({ atMs, ...each }) => ({ ...each, seconds: Math.max(0, (atMs - mainAtMs) / 1_000) }));
  return { said: [...said, ...dated].toSorted((one, other) => one.seconds - other.seconds), explained };
}

type Dated = Omit<Said, 'seconds'> & { readonly atMs: number };

async function readEvents(namespace: Namespace, { metadata }: Pod): Promise<readonly Dated[]> {
  const selector = encodeURIComponent(`involvedObject.name=${metadata.name},type=Warning`);
  const { items } = JSON.parse(
    await fixture.cluster.read(`/api/v1/namespaces/${namespace.name}/events?fieldSelector=${selector}`),
  );
  return items
    .filter((each: ClusterEvent) => each.involvedObject.fieldPath?.includes('{lastscrape}'))
    .map(({ reason, message, firstTimestamp, eventTime }: ClusterEvent) => ({
      text: `${reason}: ${message}`,
      where: 'event',
      atMs: Date.parse(firstTimestamp ?? eventTime),
    }));
}

type ClusterEvent = {
  readonly involvedObject: { readonly fieldPath?: string };
  readonly reason: string;
  readonly message: string;
  readonly firstTimestamp: string | null;
  readonly eventTime: string;
};

async function readLog(namespace: Namespace, pod: Pod): Promise<readonly Dated[]> {
  if (findStatus(pod, 'lastscrape') === undefined) return [];
  const path = `/api/v1/namespaces/${namespace.name}/pods/${pod.metadata.name}/log?container=lastscrape&timestamps=true`;
  const lines = (await fixture.cluster.read(path)).trimEnd().split('\n');
  return lines.flatMap((line) => {
    const [time = '', ...words] = line.split(' ');
    const text = readLine(words.join(' '));
    return text === null ? [] : { text, where: 'log', atMs: Date.parse(time) };
  });
}

/** What the report says of an end that is not wanted, also where it was the last before a kill; else the exit code. */
function readEnd(pod: Pod): readonly Dated[] {
  const terminated = findStatus(pod, 'lastscrape')?.state.terminated;
  if (terminated === undefined) return [];
  const atMs = Date.parse(terminated.finishedAt);
  const report = parseObject(terminated.message ?? '');
  const texts = [report?.['problems'], report?.['hint']].flat().filter((each) => typeof each === 'string');
  if (texts.length > 0) return texts.map((text) => ({ text, where: 'report', atMs }));
  if (report?.['outcome'] === 'unfinished') return [{ text: String(report['summary']), where: 'report', atMs }];
  if (terminated.exitCode === 0) return [];
  return [{ text: `exit code ${terminated.exitCode}`, where: '`kubectl get pod`', atMs }];
}

/** What `lastscrape explain` says of a mistake in the pod that runs; blank: nothing. */
function explain(pod: Pod): string {
  const reasons = ['settingsUnreadable', 'graceTooShort', 'scrapedElsewhere'];
  const { findings } = explainObject({ kind: 'Pod', ...pod }, Date.now(), KINDS);
  return findings.find(({ reason }) => reasons.includes(reason))?.summary ?? '';
}

/** What a line of the log says of a mistake: a warning, an error, or what no logger wrote. */
function readLine(line: string): string | null {
  if (!line.startsWith('{')) return line === '' ? null : line;
  const { level, msg, problem, hint, reason, why, because } = JSON.parse(line);
  return /^(warn|error)$/.test(level)
    ? [msg, problem ?? hint ?? reason ?? why ?? because].filter(Boolean).join(': ')
    : null;
}

async function apply(namespace: string, manifest: Manifest, more = ''): Promise<readonly string[]> {
  const command = `kubectl --namespace=${namespace} create ${more} --filename=- 2>&1 >/dev/null`;
  const printed = await runShell(`${command} <<'EOF'\n${JSON.stringify(manifest)}\nEOF`, import.meta.dirname);
  return printed.split('\n').flatMap((line) => /^Warning: .* with binding '[^']*': (.*)/.exec(line)?.[1] ?? []);
}

/** A cell of the table: one line, without the names of this run. */
function toCell(text: string, { name }: Namespace): string {
  const short = text.replaceAll(new RegExp(`pod ${name}/\\S+?(?=[:; ]|$)`, 'g'), 'the pod');
  return (short.length > 200 ? `${short.slice(0, 199)}…` : short).replaceAll('|', '\\|');
}

await using fixture = await openFixture();
setFixture(fixture);
assert.equal(fixture.engine, 'policy', 'the mistakes want MutatingAdmissionPolicy v1');
await applyPolicy(fixture);
const policy = join(DEPLOY, 'annotations-policy.yaml');
await fixture.cluster.kubectl(['apply', '--filename', policy]);
fixture.cluster.defer(() => fixture.cluster.kubectl(['delete', '--filename', policy]));
const probe = await fixture.cluster.openNamespace('mistake-probe');
await until('the warnings at work', START_MS, async () => {
  const wrong = buildCountingJob(annotated('tll', '2m'));
  return (await apply(probe.name, wrong, '--dry-run=server')).length > 0 || undefined;
});
const failures: string[] = [];
const rows = await Promise.all(
  MISTAKES.map(async ([what, job, isOfTheEnd = false], index) => {
    const namespace = await fixture.cluster.openNamespace(`mistake-${index}`);
    const { said, explained } = await make(namespace, job);
    const [first] = said;
    const { text, where, seconds } = first ?? { text: 'nothing', where: '', seconds: Number.POSITIVE_INFINITY };
    if (first === undefined) failures.push(`${what}: nothing is said`);
    else if (!isOfTheEnd && seconds > WITHIN_SECONDS) failures.push(`${what}: said after ${seconds} s`);
    else if (isOfTheEnd && explained === '') failures.push(`${what}: explain says nothing of the pod that runs`);
    const when = first === undefined ? '' : `${seconds.toFixed(0)} s`;
    return `| ${what} | ${toCell(text, namespace)} | ${where} | ${when} | ${toCell(explained, namespace) || '–'} |\n`;
  }),
);
const table = `| mistake | what is said first | where | after main's start | \`lastscrape explain\`, while main runs |\n|---|---|---|---|---|\n${rows.join('')}`;
process.stdout.write(table);
if (process.argv.includes('--record')) writeFileSync(FIGURE, `### Mistakes\n\n${table}`);
assert.deepEqual(failures, []);
