// The scrape arithmetic on promhttp's real counters (node_exporter): counted is at most what others scraped
// since the end, and the hold ends at LASTSCRAPE_SCRAPES.
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import type { Child } from '../support/child.ts';
import { openPod, type Pod, START_MS } from '../support/pod.ts';
import { findPrograms, gate } from '../support/programs.ts';
import { assertRuns, proveReport, proveScrapesSeen } from '../support/proof.ts';

const programs = findPrograms();
const skip = gate(programs, 'test/pods/node-exporter.test.ts', ['prometheus', 'nodeExporter']);
const [anyExporter] = programs.exporters;

async function withNodeExporter(
  wanted: number,
  body: (pod: Pod, watcher: Child, end: () => void) => Promise<void>,
): Promise<void> {
  if (anyExporter === undefined) throw new Error('Bug: no exporter at all');
  await using pod = await openPod(programs, anyExporter);
  const { ports } = pod.network;
  const exporter = pod.startNodeExporter();
  await pod.waitForPort(ports.nodeExporter);
  const donePath = join(pod.directory, 'done');
  const watcher = pod.startWatcher({
    env: {
      LASTSCRAPE_METRICS_URL: `http://127.0.0.1:${ports.nodeExporter}/metrics`,
      LASTSCRAPE_DONE_WHEN: `file:${donePath}`,
      LASTSCRAPE_QUIT: 'none',
      LASTSCRAPE_SCRAPES: String(wanted),
    },
  });
  await watcher.waitForLine(/"msg":"main is running"/, START_MS);
  await body(pod, watcher, () => writeFileSync(donePath, ''));
  assertRuns(exporter);
}

describe('scrapes of a real promhttp counter', { concurrency: 3, skip }, () => {
  it('two scrapes by a real Prometheus end a hold for two', async () => {
    await withNodeExporter(2, async (pod, watcher, end) => {
      const prometheus = await pod.startPrometheus('2s', pod.network.ports.nodeExporter);
      end();
      const report = await proveReport(pod, watcher, 'scraped');
      assert.deepEqual(report.targets, []);
      assert.ok((report.scrapesSeen ?? 0) >= 2, `it saw ${report.scrapesSeen} scrapes`);
      await proveScrapesSeen(prometheus, report);
    });
  });

  // The exporter cannot tell a curl from a Prometheus; the README says so.
  it("a person's requests after the end count as scrapes", async () => {
    await withNodeExporter(3, async (pod, watcher, end) => {
      const { ports } = pod.network;
      end();
      await watcher.waitForLine(/"msg":"main ended"/, START_MS);
      assertRuns(watcher);
      for (let count = 0; count < 3; count += 1) await pod.network.get(ports.nodeExporter, '/metrics');
      const report = await proveReport(pod, watcher, 'scraped');
      assert.equal(report.scrapesSeen, 3);
    });
  });
});
