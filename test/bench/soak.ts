// `npm run soak`, four minutes: 1,800 polls at 100 ms after 600 to warm up. It fails where memory grows, a
// descriptor or a socket is left behind, or the polls need more than one connection.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { openExporter } from '../stand-in/exporter.ts';
import { openLocust } from '../stand-in/locust.ts';
import { listen } from '../support/listen.ts';
import { findMedian } from './median.ts';
import { countDescriptors, readCost } from './process-cost.ts';
import { findSubject } from './subject.ts';

type Sample = { readonly residentBytes: number; readonly anonymousBytes: number; readonly descriptorCount: number };

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
  const locust = await openLocust({ startMs: 0, webDelayMs: 0, readyMs: 0, spawnMs: 0, runMs: END_MS * 2 });
  await using stack = new AsyncDisposableStack();
  stack.defer(() => locust.kill());
  let lookCount = 0;
  const exporter = stack.use(
    await openExporter({
      locustUrl: locust.webUrl,
      onScrape: () => {
        lookCount += 1;
      },
    }),
  );
  const relay = await openRelay(exporter.port);
  stack.defer(relay.close);
  const [file = '', ...args] = subject.command;
  const watcher = spawn(file, args, {
    env: {
      LASTSCRAPE_METRICS_URL: `http://127.0.0.1:${relay.port}/metrics`,
      LASTSCRAPE_DONE_WHEN: `metric:locust_up,port:${locust.masterPort}`,
      LASTSCRAPE_POLL: POLL,
    },
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  const exited = once(watcher, 'exit');
  stack.defer(async () => {
    watcher.kill('SIGKILL');
    await exited;
  });
  const { pid } = watcher;
  if (pid === undefined) throw new Error(`Cannot start ${subject.name}`);

  const samples: Sample[] = [];
  const endMs = performance.now() + END_MS;
  while (lookCount < WARM_UP_LOOK_COUNT + LOOK_COUNT) {
    await delay(SAMPLE_MS);
    if (watcher.exitCode !== null || watcher.signalCode !== null)
      return [`Cannot finish the soak: it ended after ${lookCount} looks`];
    if (performance.now() > endMs)
      return [`Cannot finish the soak: only ${lookCount} looks within ${END_MS / 60_000} minutes`];
    if (lookCount < WARM_UP_LOOK_COUNT) continue;
    samples.push({ ...readCost(pid), descriptorCount: countDescriptors(pid) });
  }
  return judge(samples, relay.connectionCount());
}

function judge(samples: readonly Sample[], connectionCount: number): readonly string[] {
  const third = Math.floor(samples.length / 3);
  const first = samples.slice(0, third);
  const last = samples.slice(-third);
  const faults: string[] = [];
  console.log('\n| | first third | last third | ratio |\n|---|---:|---:|---:|');
  for (const [name, field] of [
    ['resident memory', 'residentBytes'],
    ['anonymous memory', 'anonymousBytes'],
  ] as const) {
    for (const [how, read, isJudged] of [
      ['least', (values: readonly number[]) => Math.min(...values), true],
      ['median', findMedian, false],
    ] as const) {
      const before = read(first.map((sample) => sample[field]));
      const after = read(last.map((sample) => sample[field]));
      const ratio = after / before;
      console.log(
        `| ${name}, ${how} (MB) | ${(before / 1e6).toFixed(1)} | ${(after / 1e6).toFixed(1)} | ${ratio.toFixed(3)} |`,
      );
      if (isJudged && ratio > MOST_GROWTH)
        faults.push(`The ${name} grew to ${ratio.toFixed(3)} times; at most ${MOST_GROWTH}`);
    }
  }
  // A look at the port may be caught in the act: one socket more, for some 0.2 ms.
  const [before, after] = [first, last].map((part) => findMedian(part.map((sample) => sample.descriptorCount)));
  console.log(`| open descriptors | ${before} | ${after} | |`);
  console.log(`\nConnections to the exporter: ${connectionCount}`);
  if (after !== before) faults.push(`There were ${before} open descriptors, and ${after} at the end`);
  if (connectionCount !== 1) faults.push(`There were ${connectionCount} connections to the exporter; must be 1`);
  return faults;
}

/** Passes bytes on, and counts the connections. */
async function openRelay(exporterPort: number) {
  let connectionCount = 0;
  const server = createServer((visitor) => {
    connectionCount += 1;
    const inner = connect(exporterPort, '127.0.0.1');
    visitor.on('error', () => inner.destroy());
    inner.on('error', () => visitor.destroy());
    visitor.pipe(inner).pipe(visitor);
  });
  const port = await listen(server);
  return {
    port,
    connectionCount: () => connectionCount,
    close: () => {
      server.close();
    },
  };
}
