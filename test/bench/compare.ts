// What a change costs: `npm run compare -- BEFORE [AFTER]` runs two binaries side by side, with the exporter's place
// alone set, in --rounds (4, of 75 s each). AFTER: what `npm run build` made. Exits 1 above 1.03 times the size or
// memory, or 1.25 times the time or CPU time: run it twice before you believe a small difference.

import { readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { packLayer } from '../../image/layout.ts';
import { findMedian } from './median.ts';
import { readCost, readThreadSeconds } from './process-cost.ts';
import {
  discard,
  INSTANCE_COUNT,
  openRunner,
  openStarter,
  type Runner,
  SMALL_BYTES,
  type Starter,
  stop,
  WARM_UP_SECONDS,
  watchEnv,
} from './runner.ts';
import { findSubject } from './subject.ts';

const MOST_BYTES_RATIO = 1.03;
const MOST_SECONDS_RATIO = 1.25;

/** Everything that is compared, as medians over all rounds; the binary compressed, as a node pulls it. */
const ROWS = [
  { name: 'binary, as its layer (MB)', field: 'compressedBytes', unit: 1e6, digits: 2, most: MOST_BYTES_RATIO },
  { name: 'anonymous memory (MB)', field: 'anonymousBytes', unit: 1e6, digits: 2, most: MOST_BYTES_RATIO },
  { name: 'resident memory (MB)', field: 'residentBytes', unit: 1e6, digits: 2, most: MOST_BYTES_RATIO },
  { name: 'start to first look (ms)', field: 'startSeconds', unit: 1e-3, digits: 1, most: MOST_SECONDS_RATIO },
  { name: 'CPU of a start (ms)', field: 'startCpuSeconds', unit: 1e-3, digits: 1, most: MOST_SECONDS_RATIO },
  {
    name: 'CPU of a minute of watching (ms)',
    field: 'minuteCpuSeconds',
    unit: 1e-3,
    digits: 1,
    most: MOST_SECONDS_RATIO,
  },
] as const;

type Field = (typeof ROWS)[number]['field'];
type Values = Readonly<Record<Field, readonly number[]>>;

/** A start takes some 50 ms. */
const STARTS_A_ROUND = 10;
/**
 * V8's memory reducer runs some 8 s after the start; after that memory grows for minutes.
 * In 12 s a binary was seen with 1.02 times the memory, that has 0.94 times in the long run.
 */
const WATCH_SECONDS = 60;
const SAMPLE_MS = 200;

const { values: options, positionals } = parseArgs({
  options: { rounds: { type: 'string', default: '4' } },
  allowPositionals: true,
});
const roundCount = Number(options.rounds);
const [before, after = findSubject().binary] = positionals;
if (before === undefined || after === undefined || positionals.length > 2 || !(roundCount >= 1)) {
  process.stderr.write(
    `Cannot compare ${JSON.stringify(process.argv.slice(2).join(' '))}; must be BEFORE [AFTER] [--rounds N], AFTER as "npm run build" made it by default\n`,
  );
  process.exitCode = 64;
} else {
  process.exitCode = await compare(before, after);
}

async function compare(...files: readonly [string, string]): Promise<number> {
  await using runner = openRunner();
  using starter = await openStarter();
  process.stderr.write('compare: compressing\n');
  const sides = await Promise.all(files.map((file, index) => openSide(runner, file, index === 0 ? 'before' : 'after')));
  for (let round = 1; round <= roundCount; round += 1) {
    process.stderr.write(`compare: round ${round} of ${roundCount}\n`);
    // Who is second finds the machine as the first left it: they take turns.
    const inTurn = round % 2 === 1 ? sides : sides.toReversed();
    for (let start = 0; start < STARTS_A_ROUND; start += 1) {
      for (const side of inTurn) await timeStart(runner, starter, side);
    }
    await watchTogether(runner, inTurn);
  }
  const [own, other] = sides.map(({ values }) => values);
  if (own === undefined || other === undefined) throw new Error('Bug: not two sides');
  return tell(own, other);
}

type Side = { readonly command: readonly string[]; readonly values: Record<Field, number[]> };

async function openSide(runner: Runner, file: string, name: string): Promise<Side> {
  return {
    command: [runner.copy(file, name)],
    values: {
      compressedBytes: [(await packLayer(readFileSync(file))).length],
      anonymousBytes: [],
      residentBytes: [],
      startSeconds: [],
      startCpuSeconds: [],
      minuteCpuSeconds: [],
    },
  };
}

async function timeStart(runner: Runner, starter: Starter, { command, values }: Side): Promise<void> {
  const requested = starter.requested();
  const startedAtMs = performance.now();
  const running = discard(runner.start(command, watchEnv(starter.exposition)));
  await requested;
  values.startSeconds.push((performance.now() - startedAtMs) / 1000);
  values.startCpuSeconds.push(readThreadSeconds(running.pid));
  await stop(running);
}

/** New processes in every round: where the collector stands is chance, and differs from one to the other. */
async function watchTogether(runner: Runner, sides: readonly Side[]): Promise<void> {
  const exposition = await runner.openExposition(SMALL_BYTES);
  const watched = Array.from({ length: INSTANCE_COUNT }, () =>
    sides.map(({ command, values }) => ({
      values,
      running: discard(runner.start(command, watchEnv(exposition))),
      anonymousBytes: [] as number[],
      residentBytes: [] as number[],
    })),
  ).flat();
  await delay(WARM_UP_SECONDS * 1000);
  const startedAtMs = performance.now();
  const cpuBefore = watched.map(({ running }) => readThreadSeconds(running.pid));
  while (performance.now() - startedAtMs < WATCH_SECONDS * 1000) {
    await delay(SAMPLE_MS);
    for (const { running, anonymousBytes, residentBytes } of watched) {
      const cost = readCost(running.pid);
      anonymousBytes.push(cost.anonymousBytes);
      residentBytes.push(cost.residentBytes);
    }
  }
  const minutes = (performance.now() - startedAtMs) / 60_000;
  for (const [index, { values, running, anonymousBytes, residentBytes }] of watched.entries()) {
    values.minuteCpuSeconds.push((readThreadSeconds(running.pid) - (cpuBefore[index] ?? 0)) / minutes);
    values.anonymousBytes.push(findMedian(anonymousBytes));
    values.residentBytes.push(findMedian(residentBytes));
  }
  await Promise.all(watched.map(({ running }) => stop(running)));
  await exposition.stop();
}

function tell(own: Values, other: Values): number {
  console.log('| | before | after | after / before | at most |\n|---|---:|---:|---:|---:|');
  let exitCode = 0;
  for (const { name, field, unit, digits, most } of ROWS) {
    const [first, second] = [findMedian(own[field]), findMedian(other[field])];
    const ratio = second / first;
    const isOver = ratio > most;
    if (isOver) exitCode = 1;
    const shown = isOver ? `**${ratio.toFixed(3)}**` : ratio.toFixed(3);
    console.log(
      `| ${name} | ${(first / unit).toFixed(digits)} | ${(second / unit).toFixed(digits)} | ${shown} | ${most} |`,
    );
  }
  console.log(
    `\nMedians of ${own.anonymousBytes.length} processes and ${own.startSeconds.length} starts of each, side by side in ${roundCount} rounds, with an exposition of ${SMALL_BYTES / 1e3} KB and a look every second`,
  );
  return exitCode;
}
