// What lastscrape costs next to an empty Node program, the floor, and a shell loop with curl, which people
// write: at the same time or in turn, so that a busy machine hurts all alike.

import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { findMedian } from './median.ts';
import { openMemoryGroup } from './memory-limit.ts';
import { type Cost, readCost, readCpuSeconds, readTreeCost } from './process-cost.ts';
import {
  discard,
  type Exposition,
  INSTANCE_COUNT,
  openRunner,
  openStarter,
  type Runner,
  type Running,
  SMALL_BYTES,
  stop,
  WARM_UP_SECONDS,
  watchEnv,
} from './runner.ts';
import type { Subject } from './subject.ts';

/** What is compared, in the order of the table. */
export const PROGRAMS = ['lastscrape', 'empty', 'shell'] as const;

/** One of them. */
export type Program = (typeof PROGRAMS)[number];

/** How long and how often; the short form of the bench has less of all. */
export type FootprintPlan = {
  readonly subject: Subject;
  readonly watchSeconds: number;
  readonly warmStartCount: number;
  /** Searches the smallest memory limit; otherwise only lastscrape in 64 MiB is tried. */
  readonly isLimitSearched: boolean;
};

/** What one program costs. `undefined`: not measurable here, or it does not apply. */
export type Footprint = {
  readonly residentBytes: number;
  readonly anonymousBytes: number;
  readonly cpuSecondsAt1s: number;
  readonly cpuSecondsAt5s: number | undefined;
  readonly warmStartSeconds: number;
  readonly smallestLimitMebibytes: number | undefined;
};

/** All of it. */
export type Footprints = {
  readonly programs: Readonly<Record<Program, Footprint>>;
  /** `undefined` where no memory limit can be set. */
  readonly worksIn64Mebibytes: boolean | undefined;
};

/** The simplest form of the job: no settle, no count of scrapes, no proof that anything is gone. */
const SHELL_LOOP = `
until curl -sf "$URL/metrics" | grep -q '^locust_up 1'; do sleep "$POLL"; done
while curl -sf "$URL/metrics" | grep -q '^locust_up 1'; do sleep "$POLL"; done
sleep "$WAIT"
curl -s -X POST "$URL/quitquitquit"
exit 0
`;

const HOLD_MS = 300;
const LIMITS_MEBIBYTES = { fewest: 2, most: 128, step: 2 };
const BUDGET_MEBIBYTES = 64;
/** A limit works when the whole scenario takes no longer than without a limit, and this much. */
const SLACK_SECONDS = 1.5;
/** When main ends in a scenario: a cold start and some looks were before. */
const END_MS = 2_500;
const SCENARIO_SECONDS = 30;

/** Measures everything, one part after the other. */
export async function measureFootprints(plan: FootprintPlan): Promise<Footprints> {
  await using runner = openRunner();
  const bench = openBench(runner, plan.subject);
  say('memory and CPU time');
  const watched = await watchAll(bench, plan.watchSeconds);
  say('starts');
  const starts = await timeStarts(bench, plan.warmStartCount);
  say('memory limits');
  const limits = await findLimits(bench, plan.isLimitSearched);
  const buildFootprint = (program: Program): Footprint => ({
    ...watched[program],
    warmStartSeconds: findMedian(starts[program]),
    smallestLimitMebibytes: limits.smallest[program],
  });
  return {
    programs: {
      lastscrape: buildFootprint('lastscrape'),
      empty: buildFootprint('empty'),
      shell: buildFootprint('shell'),
    },
    worksIn64Mebibytes: limits.worksIn64Mebibytes,
  };
}

type Bench = Pick<Runner, 'start' | 'openExposition'> & {
  readonly lastscrape: readonly string[];
  readonly node: string;
};

function openBench({ copy, start, openExposition }: Runner, { command, binary }: Subject): Bench {
  const lastscrape = binary === undefined ? command : [copy(binary, 'lastscrape')];
  return { lastscrape, node: copy(process.execPath, 'node'), start, openExposition };
}

type Place = Pick<Exposition, 'url' | 'mainPort'>;

type Wrap = (command: readonly string[]) => readonly string[];

/** Starts one that runs on; with `wrap`, which changes its command, one of a scenario, soon over. */
function startProgram(bench: Bench, program: Program, exposition: Place, pollSeconds: number, wrap?: Wrap): Running {
  const start = (command: readonly string[], env = {}) => discard(bench.start(wrap?.(command) ?? command, env));
  switch (program) {
    case 'lastscrape':
      return start(bench.lastscrape, {
        ...{ ...watchEnv(exposition), LASTSCRAPE_POLL: `${pollSeconds * 1000}ms` },
        ...(wrap && { LASTSCRAPE_SETTLE: '500ms', LASTSCRAPE_TTL: '1s' }),
      });
    case 'empty':
      return start([bench.node, '-e', wrap ? 'setTimeout(() => {}, 3000)' : 'setInterval(() => {}, 1e9)']);
    case 'shell':
      return start(['sh', '-c', SHELL_LOOP], { URL: exposition.url, POLL: `${pollSeconds}`, WAIT: wrap ? '1' : '15' });
  }
}

type Watched = Omit<Footprint, 'warmStartSeconds' | 'smallestLimitMebibytes'>;

async function watchAll(bench: Bench, seconds: number): Promise<Readonly<Record<Program, Watched>>> {
  const exposition = await bench.openExposition(SMALL_BYTES);
  // The programs of a shell's look live for milliseconds: here each look takes 0.3 s, so that they are seen.
  const slow = await bench.openExposition(SMALL_BYTES, { holdMs: HOLD_MS });
  const several = (program: Program, pollSeconds: number) =>
    Array.from({ length: INSTANCE_COUNT }, () => startProgram(bench, program, exposition, pollSeconds));
  const at1s = { lastscrape: several('lastscrape', 1), empty: several('empty', 1), shell: several('shell', 1) };
  const at5s = { lastscrape: several('lastscrape', 5), empty: [], shell: several('shell', 5) };
  const slowShell = startProgram(bench, 'shell', slow, 1);
  await delay(WARM_UP_SECONDS * 1000);

  const all = [...Object.values(at1s), ...Object.values(at5s)].flat();
  const before = new Map(all.map(({ pid }) => [pid, readCpuSeconds(pid)]));
  const startedAtMs = performance.now();
  const costs = new Map<number, Cost[]>();
  let shellPeak: Cost = { residentBytes: 0, anonymousBytes: 0 };
  while (performance.now() - startedAtMs < seconds * 1000) {
    await delay(200);
    for (const { pid } of [...at1s.lastscrape, ...at1s.empty]) {
      costs.set(pid, [...(costs.get(pid) ?? []), readCost(pid)]);
    }
    const tree = readTreeCost(slowShell.pid);
    if (tree.anonymousBytes > shellPeak.anonymousBytes) shellPeak = tree;
  }
  const minutes = (performance.now() - startedAtMs) / 60_000;
  const cpu = (group: readonly Running[]): number | undefined => {
    const spent = group.map(({ pid }) => readCpuSeconds(pid) - (before.get(pid) ?? 0));
    return group.length === 0 ? undefined : spent.reduce((sum, one) => sum + one, 0) / group.length / minutes;
  };
  const middle = (group: readonly Running[], field: keyof Cost): number =>
    findMedian(group.flatMap(({ pid }) => costs.get(pid) ?? []).map((cost) => cost[field]));
  const buildWatched = (program: Program): Watched => ({
    residentBytes: program === 'shell' ? shellPeak.residentBytes : middle(at1s[program], 'residentBytes'),
    anonymousBytes: program === 'shell' ? shellPeak.anonymousBytes : middle(at1s[program], 'anonymousBytes'),
    cpuSecondsAt1s: cpu(at1s[program]) ?? 0,
    cpuSecondsAt5s: cpu(at5s[program]),
  });
  const watched = {
    lastscrape: buildWatched('lastscrape'),
    empty: buildWatched('empty'),
    shell: buildWatched('shell'),
  };
  await Promise.all([...all, slowShell].map(stop));
  await Promise.all([exposition.stop(), slow.stop()]);
  return watched;
}

/** Seconds from the start of a process to its first request of /metrics; the empty program's: to its first line. */
async function timeStarts(bench: Bench, count: number): Promise<Readonly<Record<Program, readonly number[]>>> {
  const seconds: Record<Program, number[]> = { lastscrape: [], empty: [], shell: [] };
  using starter = await openStarter();
  for (let turn = 0; turn < count; turn += 1) {
    for (const program of PROGRAMS) {
      const requested = starter.requested();
      const startedAtMs = performance.now();
      const running =
        program === 'empty'
          ? bench.start([bench.node, '-e', "require('fs').writeSync(1, 'x'); setInterval(() => {}, 1e9)"], {})
          : startProgram(bench, program, starter.exposition, 1);
      await (program === 'empty' && running.child.stdout !== null ? once(running.child.stdout, 'data') : requested);
      seconds[program].push((performance.now() - startedAtMs) / 1000);
      await stop(running);
    }
  }
  return seconds;
}

/** Its own file is not in the page cache then, libc and its like are. */
function dropFromCache(file: string): void {
  try {
    execFileSync('dd', [`if=${file}`, 'iflag=nocache', 'count=0', 'status=none'], { stdio: 'ignore' });
  } catch {
    // A warm start is measured where this dd cannot.
  }
}

// A limit works when the whole scenario, from a cold cache, ends with 0 and as fast as without a limit.
async function findLimits(bench: Bench, isSearched: boolean) {
  using group = openMemoryGroup();
  if (group === undefined) return { smallest: {}, worksIn64Mebibytes: undefined };
  const isWorking = async (program: Program, mebibytes: number, unlimitedSeconds: number): Promise<boolean> => {
    group.setLimit(mebibytes * 2 ** 20);
    return (await measureScenario(bench, program, group.wrap, unlimitedSeconds + SLACK_SECONDS)) !== undefined;
  };
  const smallest: Partial<Record<Program, number>> = {};
  let worksIn64Mebibytes: boolean | undefined;
  for (const program of PROGRAMS) {
    if (!isSearched && program !== 'lastscrape') continue;
    const unlimitedSeconds = await measureScenario(bench, program, (command) => command, SCENARIO_SECONDS);
    if (unlimitedSeconds === undefined)
      throw new Error(`Cannot measure ${program}: its scenario fails without a limit`);
    if (program === 'lastscrape') {
      worksIn64Mebibytes = await isWorking(program, BUDGET_MEBIBYTES, unlimitedSeconds);
    }
    if (!isSearched) continue;
    let { fewest: fails, most: works } = LIMITS_MEBIBYTES;
    while (works - fails > LIMITS_MEBIBYTES.step) {
      const middle = (works + fails) / 2 - (((works + fails) / 2) % LIMITS_MEBIBYTES.step);
      if (await isWorking(program, middle, unlimitedSeconds)) works = middle;
      else fails = middle;
    }
    smallest[program] = works;
  }
  return { smallest, worksIn64Mebibytes };
}

/** How long the scenario took (seconds); `undefined` when it ended badly or not in time. */
async function measureScenario(
  bench: Bench,
  program: Program,
  wrap: Wrap,
  mostSeconds: number,
): Promise<number | undefined> {
  const exposition = await bench.openExposition(SMALL_BYTES);
  if (program !== 'shell') dropFromCache(program === 'empty' ? bench.node : (bench.lastscrape[0] ?? ''));
  const startedAtMs = performance.now();
  const running = startProgram(bench, program, exposition, 0.5, wrap);
  const ending = delay(END_MS).then(() => fetch(`${exposition.url}/end`));
  const code = await Promise.race([running.exited, delay(mostSeconds * 1000, 'late' as const)]);
  const seconds = (performance.now() - startedAtMs) / 1000;
  await ending;
  await stop(running);
  await exposition.stop();
  return code === 0 ? seconds : undefined;
}

function say(part: string): void {
  process.stderr.write(`footprint: ${part}\n`);
}
