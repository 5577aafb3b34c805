// lastscrape and each real receiver: 3 MB that is not scraped arrives whole; the built binary runs under the
// manifests' memory limit, the sources without: Node alone takes more.

import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, describe, test } from 'node:test';
import { openMemoryGroup } from '../bench/memory-limit.ts';
import { gateFront } from '../pods/front-programs.ts';
import {
  type Receiver,
  readGroup,
  readSeriesValues,
  serveExpositions,
  startPrometheusReceiver,
  startPushgateway,
} from '../pods/push-receivers.ts';
import { makeFolder } from '../support/folder.ts';
import { readTestVariable } from '../support/programs.ts';
import { until } from '../support/until.ts';
import { COMMAND, openPort, startWatcher } from '../support/watcher.ts';

const LIMIT_BYTES = 64 * 1024 * 1024;
const JOB = 'load';
const BOUNDS = ['0.005', '0.05', '0.5', '1', '2.5', '5', '10', '+Inf'];
const NAMES_COUNT = 1_500;
const SERIES_COUNT = 20 * NAMES_COUNT;
const FOUND_MS = 60_000;

const skip = gateFront('test/binary/push-memory.test.ts', ['prometheus', 'prometheus3', 'pushgateway']);
const isLimited = skip === false && readTestVariable('LASTSCRAPE_TEST_BINARY') !== undefined;
const group = isLimited ? openMemoryGroup() : undefined;
if (skip === false && group === undefined) process.stderr.write('test/binary/push-memory.test.ts: no memory limit\n');
const directory = makeFolder();
after(() => {
  group?.[Symbol.dispose]();
});

/** A histogram, and a family of gauges: what OTLP must put together, and what goes line by line. */
function writeExposition(): Buffer {
  const labels = (index: number) => `method="GET",name="/api/v1/customers/things/with/a/long/path/${index}"`;
  const indexes = Array.from({ length: NAMES_COUNT }, (_, index) => index);
  const histograms = indexes.flatMap((index) => [
    ...BOUNDS.map((bound, at) => `load_seconds_bucket{${labels(index)},le="${bound}"} ${index + at}`),
    `load_seconds_sum{${labels(index)}} ${index / 7}`,
    `load_seconds_count{${labels(index)}} ${index + BOUNDS.length - 1}`,
  ]);
  const gauges = indexes.flatMap((index) =>
    Array.from({ length: 10 }, (_, worker) => `load_requests{${labels(index)},worker="${worker}"} ${index / 7}`),
  );
  const lines = ['# TYPE load_seconds histogram', ...histograms, '# TYPE load_requests gauge', ...gauges, ''];
  return Buffer.from(lines.join('\n'));
}

type ReceiverRow = {
  readonly to: string;
  readonly path: string;
  readonly start: () => Promise<Receiver>;
  readonly count: (receiver: Receiver) => Promise<number>;
};

async function countStored(receiver: Receiver): Promise<number> {
  const [count = 0] = (await readSeriesValues(receiver, `count({__name__=~"load_.+",job="${JOB}"})`)).values();
  return count;
}

const ROWS: readonly ReceiverRow[] = [
  {
    to: 'pushgateway',
    path: '',
    start: () => startPushgateway(directory),
    async count(receiver) {
      const { values } = await readGroup(receiver, JOB);
      return [...values.keys()].filter((series) => series.includes('"load_')).length;
    },
  },
  {
    to: 'remote-write',
    path: '/api/v1/write',
    start: () => startPrometheusReceiver(directory, 'prometheus'),
    count: countStored,
  },
  {
    to: 'otlp',
    path: '/api/v1/otlp',
    start: () => startPrometheusReceiver(directory, 'prometheus3'),
    count: countStored,
  },
];

describe('3 MB of exposition, unscraped', { skip }, () => {
  for (const { to, path, start, count } of ROWS) {
    test(`${to} gets all of ${SERIES_COUNT} series`, async () => {
      group?.setLimit(LIMIT_BYTES);
      const body = writeExposition();
      assert.ok(body.length > 3_000_000, `${body.length} bytes`);
      await using source = await serveExpositions([{ job: JOB, body }]);
      await using receiver = await start();
      const main = await openPort();
      const watcher = startWatcher(
        {
          PATH: process.env['PATH'] ?? '',
          LASTSCRAPE_METRICS_URL: `http://127.0.0.1:${source.port}/${JOB}`,
          LASTSCRAPE_DONE_WHEN: `port:${main.port}`,
          LASTSCRAPE_TERMINATION_LOG: join(directory, `${to}.message`),
          LASTSCRAPE_POLL: '500ms',
          LASTSCRAPE_SETTLE: '0',
          LASTSCRAPE_TTL: '1s',
          LASTSCRAPE_QUIT: 'none',
          LASTSCRAPE_PUSH: `${to}+http://127.0.0.1:${receiver.port}${path}`,
          LASTSCRAPE_PUSH_LABELS: `job=${JOB},instance=${to}`,
        },
        [],
        group?.wrap(COMMAND),
      );
      try {
        await watcher.said('main is running');
        main.close();
        const { code, report, log, stderr } = await watcher.ended;
        assert.deepEqual([code, report?.['outcome']], [0, 'expired'], JSON.stringify(log.slice(-3)) + stderr);
        const push = report?.['push'] as { readonly result: string } | undefined;
        assert.equal(push?.result, 'accepted', JSON.stringify(push));
      } finally {
        main.close();
        watcher.child.kill('SIGKILL');
        await watcher.ended;
      }
      const found = await until(`${SERIES_COUNT} series`, FOUND_MS, async () => (await count(receiver)) || undefined);
      assert.equal(found, SERIES_COUNT);
    });
  }
});
