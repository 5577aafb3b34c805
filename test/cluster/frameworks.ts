// `node test/cluster/frameworks.ts [--record] [PATTERN]`: runs tasks by the real frameworks that make batch pods, on the cluster of
// `npm run test:cluster`: without lastscrape, held, and handed over to the chart's keeper. Fails where a final number is not
// stored or a task's state is wrong. test/tools/install-frameworks.ts builds the frameworks. PATTERN: of their names.
// --record: what it prints goes to image/figures/frameworks.md, in the place of the same rows.

import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { until } from '../support/until.ts';
import type { Namespace, Pod } from './cluster.ts';
import { buildTask, METRIC } from './counting-job.ts';
import { openFixture } from './fixture.ts';
import { measureChain } from './frameworks/chain.ts';
import { ENDINGS, type Ending, type Framework, TASK_LABEL, type Task } from './frameworks/framework.ts';
import { FRAMEWORKS } from './frameworks/list.ts';
import { FIGURE, fillFigure, listWrong, type Run, VARIANTS, type Variant } from './frameworks/table.ts';
import { type KeeperChart, openKeeper } from './keeper.ts';
import { FRONT_JOB, INTERVAL_ANNOTATION } from './prometheus.ts';
import { findStatus, START_MS, setFixture } from './scenario.ts';

const ARGS = process.argv.slice(2);
const PATTERN = new RegExp(ARGS.find((arg) => !arg.startsWith('--')) ?? '', 'i');
/** How often a task that succeeds is run in each variant; each other ending is run once. */
const ROUNDS = Number(process.env['ROUNDS'] ?? 5);
const END_MS = 400_000;
const STORED_MS = 45_000;

const SECONDS: Readonly<Partial<Record<Ending, string>>> = { succeeded: '20', 'timed out': '600', deleted: '600' };
const EXITS: Readonly<Partial<Record<Ending, string>>> = { failed: '3', killed: '137' };

function buildVariant(name: string, variant: Variant, ending: Ending): Task {
  const label = variant === 'none' ? {} : { 'lastscrape.dev/inject': 'true' };
  // As the monitors of deploy/ scrape.
  const annotations = { 'prometheus.io/port': '8000', [INTERVAL_ANNOTATION]: '15s' };
  const own = variant === 'none' ? {} : { 'lastscrape.dev/hook': 'python' };
  const held = variant === 'hold' ? { 'lastscrape.dev/hand-over': 'none' } : {};
  const env = { TASK_SECONDS: SECONDS[ending] ?? '6', TASK_EXIT: EXITS[ending] ?? '0' };
  return {
    name,
    ending,
    labels: { [TASK_LABEL]: name, ...label },
    annotations: { ...annotations, ...own, ...held },
    main: { ...buildTask(env), imagePullPolicy: 'IfNotPresent' },
  };
}

const isOf = (task: Task) => (pod: Pod) => pod.metadata.labels?.[TASK_LABEL] === task.name;

/** What main printed, from its start on: its pod may be deleted with it. */
async function readMain(
  namespace: Namespace,
  pod: string,
  container: string,
): Promise<{ final?: number; endedAtMs?: number }> {
  const path = `/api/v1/namespaces/${namespace.name}/pods/${pod}/log?container=${container}&follow=true`;
  const text = await fixture.cluster.read(path).catch(() => '');
  const line = text.split('\n').findLast((each) => each.startsWith('{"final"'));
  return line === undefined ? {} : JSON.parse(line);
}

/** Runs one task to its end, and sees what is stored of it. */
async function play(
  framework: Framework,
  namespace: Namespace,
  keeper: KeeperChart,
  task: Task,
): Promise<Omit<Run, 'variant'>> {
  const mains = new Map<string, ReturnType<typeof readMain>>();
  // On a busy machine a webhook answers too late now and then.
  await until(`${framework.name} takes ${task.name}`, START_MS, () =>
    framework.start(namespace, task).then(() => true),
  );
  let state: string | undefined;
  let deletedAtMs = 0;
  await until(`the end of ${framework.name} ${task.name}`, END_MS, async () => {
    for (const { pod } of namespace.events.filter((event) => isOf(task)(event.pod))) {
      const { name } = pod.metadata;
      const startedAt = findStatus(pod, framework.container)?.state.running?.startedAt;
      if (startedAt === undefined) continue;
      if (!mains.has(name)) mains.set(name, readMain(namespace, name, framework.container));
      if (task.ending !== 'deleted' || deletedAtMs > 0 || Date.now() - Date.parse(startedAt) < 20_000) continue;
      deletedAtMs = Date.now();
      await fixture.cluster.kubectl(['delete', 'pod', name, '--namespace', namespace.name, '--wait=false']);
    }
    state = await framework.readState(namespace, task);
    return state === undefined ? undefined : true;
  });
  const endedAtMs = Date.now();
  const [pod = '', main] = [...mains].at(-1) ?? [];
  const { final, endedAtMs: mainEndedAtMs = Number.NaN } = (await main) ?? {};
  const selector = `${framework.metric ?? METRIC}{job="${FRONT_JOB}",pod="${pod}"}`;
  const isStored = await until(`${final} of ${pod}`, STORED_MS, async () => {
    const samples = await keeper.prometheus.readSamples(selector, namespace.name);
    return (final !== undefined && samples.at(-1)?.value === final) || undefined;
  }).catch(() => false);
  const gone =
    deletedAtMs === 0
      ? undefined
      : await namespace.untilPod(
          `${pod} gone`,
          END_MS,
          (each, { type }) => type === 'DELETED' && each.metadata.name === pod,
        );
  return {
    ending: task.ending,
    state: state ?? '',
    seconds: (endedAtMs - mainEndedAtMs) / 1_000,
    isStored,
    ...(gone === undefined ? {} : { goneSeconds: (gone.atMs - deletedAtMs) / 1_000 }),
  };
}

async function measure(framework: Framework, index: number): Promise<readonly Run[]> {
  const namespace = namespaces[index] as Namespace;
  await framework.install(fixture);
  await framework.prepare?.(namespace);
  const plan = [
    ...Array.from({ length: ROUNDS }, () => 'succeeded' as const),
    ...ENDINGS.filter((ending) => ending !== 'succeeded' && framework.states[ending] !== undefined),
  ].flatMap((ending) => VARIANTS.map((variant) => ({ ending, variant })));
  return Promise.all(
    plan.map(async ({ ending, variant }, place) => {
      await delay(place * (framework.staggerSeconds ?? 4) * 1_000);
      const run = await play(framework, namespace, keeper, buildVariant(`t${place}`, variant, ending));
      process.stderr.write(`${framework.name}: ${JSON.stringify({ variant, ...run })}\n`);
      return { variant, ...run };
    }),
  );
}

await using fixture = await openFixture();
setFixture(fixture);
const wanted = FRAMEWORKS.filter(({ name }) => PATTERN.test(name));
const own = await fixture.cluster.openNamespace('lastscrape');
const namespaces = await Promise.all(wanted.map((_, index) => fixture.cluster.openNamespace(`tasks-${index}`)));
const chain = await fixture.cluster.openNamespace('chain');
const keeper = await openKeeper(
  own,
  [...namespaces, chain].map(({ name }) => name),
);
const path = join(import.meta.dirname, '../..', FIGURE);
const { gitVersion: kubernetes } = JSON.parse(await fixture.cluster.read('/version'));
let page = readFileSync(path, 'utf8');
for (const [index, framework] of wanted.entries()) {
  try {
    const runs = await measure(framework, index);
    // A plain Job's is the cluster's.
    page = fillFigure(page, { ...framework, version: framework.version || kubernetes.slice(1) }, runs);
    for (const run of listWrong(framework, runs)) {
      process.exitCode = 1;
      process.stderr.write(`${framework.name}: not as it must be: ${JSON.stringify(run)}\n`);
    }
  } catch (error) {
    process.exitCode = 1;
    process.stderr.write(`${framework.name}: ${error instanceof Error ? error.stack : error}\n`);
    process.stderr.write(`${await namespaces[index]?.describe()}\n`);
  }
  if (ARGS.includes('--record')) writeFileSync(path, page);
}
if (PATTERN.test('chain')) page = await measureChain(chain, page, buildVariant);
if (ARGS.includes('--record')) writeFileSync(path, page);
process.stdout.write(page);
