// `npm run soak`, four minutes: 1,800 polls at 100 ms after 600 to warm up. It fails where memory grows, a
// descriptor is left behind, or the polls need more than one connection in 5 s.

import { setTimeout as delay } from 'node:timers/promises';
import { CONNECTION_USED_MS } from '../../src/observe/get-exposition.ts';
import { findMedian } from './median.ts';
import { type Cost, countDescriptors, readCost } from './process-cost.ts';
import { discard, openRunner, readLookCount, SMALL_BYTES, watchEnv } from './runner.ts';
import { findSubject } from './subject.ts';

type Sample = Cost & { readonly descriptorCount: number };

/** Anonymous memory rises by 1 MB within the first 1,000 looks (compiled code), then no more. */
const WARM_UP_LOOK_COUNT = 600;
const LOOK_COUNT = 1_800;
const POLL = '100ms';
/**
 * Of the least in a third, which is what the garbage collector leaves; memory rises and falls by 3 MB.
 * 5 % is some 700 KB: 1 KB left behind by each of the 1,200 looks between the thirds is seen.
 */
const MOST_GROWTH = 1.05;
const SAMPLE_MS = 1_000;
/** Three times what the looks need on an idle machine. */
const END_MS = 720_000;

const subject = findSubject();
console.log(`${LOOK_COUNT} looks at ${POLL} after ${WARM_UP_LOOK_COUNT}, with ${subject.name}`);
const faults = await soak();
for (const fault of faults) process.stderr.write(`${fault}\n`);
process.exitCode = faults.length === 0 ? 0 : 1;

async function soak(): Promise<readonly string[]> {
  await using runner = openRunner();
  const exposition = await runner.openExposition(SMALL_BYTES);
  const { child, pid } = discard(runner.start(subject.command, { ...watchEnv(exposition), LASTSCRAPE_POLL: POLL }));
  const samples: Sample[] = [];
  const beganMs = performance.now();
  const endMs = beganMs + END_MS;
  for (let lookCount = 0; lookCount < WARM_UP_LOOK_COUNT + LOOK_COUNT; lookCount = await readLookCount(exposition)) {
    await delay(SAMPLE_MS);
    if (child.exitCode !== null || child.signalCode !== null)
      return [`Cannot finish the soak: it ended after ${lookCount} looks`];
    if (performance.now() > endMs)
      return [`Cannot finish the soak: only ${lookCount} looks within ${END_MS / 60_000} minutes`];
    if (lookCount >= WARM_UP_LOOK_COUNT) samples.push({ ...readCost(pid), descriptorCount: countDescriptors(pid) });
  }
  const connectionCount = Number(await (await fetch(`${exposition.url}/connections`)).text());
  const mostCount = 1 + Math.floor((performance.now() - beganMs) / CONNECTION_USED_MS);
  const faults = judge(samples);
  if (connectionCount <= mostCount) return faults;
  return [...faults, `There were ${connectionCount} connections to the exporter; at most ${mostCount}`];
}

function judge(samples: readonly Sample[]): readonly string[] {
  const third = Math.floor(samples.length / 3);
  const thirds = [samples.slice(0, third), samples.slice(-third)];
  const faults: string[] = [];
  for (const [name, field] of [
    ['resident memory', 'residentBytes'],
    ['anonymous memory', 'anonymousBytes'],
  ] as const) {
    const [before = NaN, after = NaN] = thirds.map((part) => Math.min(...part.map((sample) => sample[field])));
    const ratio = after / before;
    console.log(`least ${name}: ${(before / 1e6).toFixed(1)} MB, then ${(after / 1e6).toFixed(1)} MB`);
    if (ratio > MOST_GROWTH) faults.push(`The ${name} grew to ${ratio.toFixed(3)} times; at most ${MOST_GROWTH}`);
  }
  // A look at the port may be caught in the act: one socket more, for some 0.2 ms.
  const [before, after] = thirds.map((part) => findMedian(part.map((sample) => sample.descriptorCount)));
  if (after !== before) faults.push(`There were ${before} open descriptors, and ${after} at the end`);
  return faults;
}
