// What a program pays for being watched: scraped every 15 s by one real Prometheus, alone, with lastscrape as
// the policies put it there, and with the hook; all at the same time, so that a busy machine hurts all alike.

import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { findSidecar, readJobGolden } from '../deploy/injected-jobs.ts';
import { type FrontPod, START_MS, scrapeConfig, withFrontPod } from '../pods/front-pod.ts';
import { frontProgram, listMissingFrontPrograms } from '../pods/front-programs.ts';
import type { Child } from '../support/child.ts';
import { findPrograms } from '../support/programs.ts';
import type { Prometheus } from '../support/prometheus.ts';
import { until } from '../support/until.ts';
import { readCpuSeconds } from './process-cost.ts';
import type { Subject } from './subject.ts';

/** How many scrapes; the short form of the bench has fewer. */
export type MainPlan = { readonly subject: Subject; readonly scrapeCount: number };

/** Who is scraped: the program, or a front; `place`: lastscrape in the place of Locust's exporter. */
export type Way = 'alone' | 'label' | 'hook' | 'place';

/** A program in one of its ways, as shares of one core. */
export type MainCost = {
  readonly program: string;
  readonly way: Way;
  readonly pageBytes: number;
  readonly mainShare: number;
  /** Of lastscrape; `null` where there is none. */
  readonly ownShare: number | null;
};

export const INTERVAL_SECONDS = 15;
/** V8 has compiled what is called often by then, and the pace of reads is as in every minute. */
const WARM_UP_SECONDS = 20;
/** On a starved machine a scrape may come in another window. */
const ATTEMPTS_COUNT = 3;

type Ports = { readonly page: number; readonly web: number; readonly master: number };

type Program = {
  readonly name: string;
  readonly ways: readonly Way[];
  /** @returns the process that pays */
  readonly start: (pod: FrontPod, ports: Ports, env: Readonly<Record<string, string>>, way: Way) => Child;
  /** In its page once that is as large as it gets. */
  readonly sign?: string;
};

const JOBS = join(import.meta.dirname, '../pods/jobs');
const PROGRAMS: readonly Program[] = [
  ...[200, 1000, 5000].map((count) =>
    makeJob('Python', count, ['alone', 'label', 'hook'], () => [frontProgram('python'), join(JOBS, 'series_job.py')]),
  ),
  makeJob('Go', 1000, ['alone', 'label'], () => [frontProgram('goClient')]),
  makeJob('Node.js', 1000, ['alone', 'label'], () => [process.execPath, join(JOBS, 'series-job.ts')]),
  { name: 'Locust, 500 names', ways: ['alone', 'label', 'place'], start: startLocust, sign: 'articles/000499' },
  makePage('50 KB', 50_000),
  makePage('3 MB', 3_000_000),
];

function makeJob(name: string, count: number, ways: readonly Way[], command: () => readonly string[]): Program {
  return {
    name: `${name}, ${count.toLocaleString('en')} series`,
    ways,
    start: (pod, { page }, env) =>
      pod.start(`the ${name} job`, command(), { ...env, JOB_PORT: `${page}`, JOB_SERIES: `${count}` }),
  };
}

/** A page that costs nothing to make: then it is lastscrape's own work that counts. */
function makePage(name: string, bytes: number): Program {
  const file = join(import.meta.dirname, 'exposition-main.ts');
  return {
    name: `a page of ${name}, in memory`,
    ways: ['alone', 'label'],
    start: (pod, { page }) => pod.start('the page', [process.execPath, file, `${bytes}`, '0', `${page}`]),
  };
}

/** A master and its worker, with the exporter where lastscrape is not in its place. */
function startLocust(pod: FrontPod, { page, web, master }: Ports, _: unknown, way: Way): Child {
  const file = join(JOBS, '../locustfiles/names.py');
  const start = (name: string, ...args: readonly string[]) =>
    pod.start(name, [...(findPrograms().locust ?? []), '--locustfile', file, ...args], {
      PYTHONDONTWRITEBYTECODE: '1',
    });
  const main = start(
    'the master',
    ...['--master', '--master-bind-host=127.0.0.1', `--master-bind-port=${master}`],
    ...['--web-host=127.0.0.1', `--web-port=${web}`, '--expect-workers=1', '--autostart', '--run-time=1h'],
    ...['--users=10', '--spawn-rate=10', '--enable-rebalancing'],
  );
  start('the worker', '--worker', '--master-host=127.0.0.1', `--master-port=${master}`);
  if (way !== 'place') {
    pod.start('the exporter', findPrograms().exporters[0]?.command ?? [], {
      LOCUST_EXPORTER_URI: `http://127.0.0.1:${web}`,
      LOCUST_EXPORTER_WEB_LISTEN_ADDRESS: `127.0.0.1:${page}`,
    });
  }
  return main;
}

/** What to install, without Locust. */
export function listMissingMainPrograms(): readonly string[] {
  return listMissingFrontPrograms(['prometheus', 'python', 'goClient']);
}

type Cell = {
  readonly program: Program;
  readonly way: Way;
  readonly main: Child;
  readonly watcher: Child | null;
  readonly pageBytes: number;
  readonly scrapedPort: number;
};

/** Measures all programs in all their ways, side by side. @throws where the machine starves them */
export function measureMainCost({ subject, scrapeCount }: MainPlan): Promise<readonly MainCost[]> {
  return withFrontPod(async (pod) => {
    say('starts');
    const cells: Cell[] = [];
    // One after the other: all at once would starve each other on a small machine.
    for (const program of PROGRAMS) {
      for (const way of program.ways) cells.push(await openCell(pod, subject, program, way));
    }
    const ports = cells.map(({ scrapedPort }) => scrapedPort);
    const prometheus = await pod.startPrometheus({ config: scrapeConfig(`${INTERVAL_SECONDS}s`, ports) });
    const phaseSeconds = await findQuietPhase(prometheus, ports.length);
    await delay(WARM_UP_SECONDS * 1000);
    for (let attempt = 1; attempt <= ATTEMPTS_COUNT; attempt += 1) {
      say(`${scrapeCount} scrapes of each`);
      await waitForPhase(phaseSeconds);
      const costs = await watch(cells, scrapeCount);
      const disturbed = await listDisturbed(prometheus, cells, scrapeCount);
      if (disturbed.length === 0) return costs;
      say(`Prometheus had not ${scrapeCount} scrapes of ${disturbed.join('; ')}`);
    }
    throw new Error('Cannot measure what main pays: the machine is too busy');
  });
}

async function openCell(pod: FrontPod, subject: Subject, program: Program, way: Way): Promise<Cell> {
  const { network } = pod;
  const ports = { page: await network.newPort(), web: await network.newPort(), master: await network.newPort() };
  const front = way === 'label' || way === 'hook' ? await openFront(pod, subject, ports.page, way) : null;
  const main = program.start(pod, ports, front?.mainEnv ?? {}, way);
  const watcher =
    way === 'place'
      ? startWatcher(pod, subject, {
          LOCUST_EXPORTER_URI: `http://localhost:${ports.web}`,
          LOCUST_EXPORTER_WEB_LISTEN_ADDRESS: `127.0.0.1:${ports.page}`,
          LASTSCRAPE_DONE_WHEN: `metric:locust_up,port:${ports.master}`,
        })
      : (front?.watcher ?? null);
  const page = await waitForPage(pod, ports.page, '/metrics', program.sign);
  const pageBytes = Buffer.byteLength(page);
  return { program, way, main, watcher, pageBytes, scrapedPort: front?.port ?? ports.page };
}

/** lastscrape as a recorded pod has it; `mainEnv`: what that pod's program gets. */
async function openFront(pod: FrontPod, subject: Subject, pagePort: number, way: 'label' | 'hook') {
  const port = await pod.network.newPort();
  const recorded = readJobGolden(way === 'hook' ? 'hooked' : 'named-port');
  const hooks = join(pod.directory, `hooks-${port}`);
  const readEnv = (env: ReturnType<typeof findSidecar>['env'] = []): Readonly<Record<string, string>> =>
    Object.fromEntries(
      env.map(({ name, value = '' }) => [name, value.replace('9469', `${port}`).replace('/lastscrape-hooks', hooks)]),
    );
  const watcher = startWatcher(pod, subject, {
    ...readEnv(findSidecar(recorded).env),
    LASTSCRAPE_METRICS_URL: `http://localhost:${pagePort}/metrics`,
  });
  // The kubelet starts main when this passes; the hook is written by then.
  await waitForPage(pod, port, '/-/ready');
  const main = recorded.spec.containers.find(({ name }) => name === 'plain');
  return { port, watcher, mainEnv: readEnv(main?.env) };
}

function startWatcher(pod: FrontPod, subject: Subject, env: Readonly<Record<string, string>>): Child {
  const message = join(pod.directory, `message-${Object.values(env).join().length}`);
  return pod.start('lastscrape', subject.command, { ...env, LASTSCRAPE_TERMINATION_LOG: message });
}

function waitForPage({ network }: FrontPod, port: number, path: string, sign = ''): Promise<string> {
  return until(`${path} of port ${port}`, START_MS, async () => {
    const { status, body } = await network.get(port, path);
    return status === 200 && body.includes(sign) ? body : undefined;
  });
}

/** The second of the interval that is farthest from every scrape: a window from there to there has all of each. */
async function findQuietPhase(prometheus: Prometheus, targetCount: number): Promise<number> {
  type Target = { readonly health: string; readonly lastScrape: string };
  const targets = await until('a good scrape of every target', START_MS, async () => {
    const { activeTargets } = await prometheus.ask<{ readonly activeTargets: readonly Target[] }>('targets');
    const good = activeTargets.filter(({ health }) => health === 'up');
    return good.length === targetCount ? good : undefined;
  });
  const phases = targets
    .map(({ lastScrape }) => (Date.parse(lastScrape) / 1000) % INTERVAL_SECONDS)
    .toSorted((a, b) => a - b);
  const gaps = phases.map((phase, index) => {
    const next = phases[index + 1] ?? (phases[0] ?? 0) + INTERVAL_SECONDS;
    return { middle: (phase + next) / 2, seconds: next - phase };
  });
  const [widest] = gaps.toSorted((a, b) => b.seconds - a.seconds);
  return (widest?.middle ?? 0) % INTERVAL_SECONDS;
}

async function waitForPhase(phaseSeconds: number): Promise<void> {
  const nowSeconds = (Date.now() / 1000) % INTERVAL_SECONDS;
  await delay(((phaseSeconds - nowSeconds + INTERVAL_SECONDS) % INTERVAL_SECONDS) * 1000);
}

async function watch(cells: readonly Cell[], scrapeCount: number): Promise<readonly MainCost[]> {
  const read = () =>
    cells.map(({ main, watcher }) => ({
      main: readCpuSeconds(main.pid),
      own: watcher === null ? null : readCpuSeconds(watcher.pid),
    }));
  const startedAtMs = performance.now();
  const before = read();
  await delay(scrapeCount * INTERVAL_SECONDS * 1000);
  const after = read();
  const seconds = (performance.now() - startedAtMs) / 1000;
  return cells.map(({ program, way, pageBytes }, index) => {
    const [from, to] = [before[index], after[index]];
    if (from === undefined || to === undefined) throw new Error('Bug: a cell was not read');
    return {
      program: program.name,
      way,
      pageBytes,
      mainShare: (to.main - from.main) / seconds,
      ownShare: to.own === null || from.own === null ? null : (to.own - from.own) / seconds,
    };
  });
}

/** The programs that were not scraped, well, exactly so often in the window that ended now. */
async function listDisturbed(prometheus: Prometheus, cells: readonly Cell[], scrapeCount: number) {
  const endSeconds = Date.now() / 1000;
  const series = await prometheus.readSeries('up');
  return cells
    .filter(({ scrapedPort }) => {
      const own = series.find(({ labels }) => labels['instance'] === `127.0.0.1:${scrapedPort}`);
      const values = (own?.samples ?? [])
        .filter(({ atSeconds }) => atSeconds > endSeconds - scrapeCount * INTERVAL_SECONDS)
        .map(({ value }) => value);
      return values.length !== scrapeCount || values.includes(0);
    })
    .map(({ program, way }) => `${program.name} (${way})`);
}

function say(part: string): void {
  process.stderr.write(`what main pays: ${part}\n`);
}
