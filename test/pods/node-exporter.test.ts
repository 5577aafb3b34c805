// The scrape arithmetic on promhttp's real counters (node_exporter): counted is at most what others scraped
// since the end, and the hold ends at LASTSCRAPE_SCRAPES.
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe } from 'node:test';
import { type Pod, START_MS } from '../support/pod.ts';
import { findPrograms, gate } from '../support/programs.ts';
import { assertRuns, proveReport, proveScrapesSeen } from '../support/proof.ts';
import { runScenario } from './scenario.ts';

const programs = findPrograms();
const skip = gate(programs, 'test/pods/node-exporter.test.ts', ['prometheus', 'nodeExporter']);
/** The exporter of Locust is not used. */
const anyOne = { ...programs, exporters: programs.exporters.slice(0, 1) };

/** Starts node_exporter, and lastscrape before it with a hold for that many scrapes; `end()` is main's end. */
async function openNodeExporter(pod: Pod, wanted: number) {
  const { nodeExporter } = pod.network.ports;
  const exporter = pod.startNodeExporter();
  await pod.network.waitForPort(nodeExporter);
  const donePath = join(pod.directory, 'done');
  const watcher = pod.startWatcher({
    env: {
      LASTSCRAPE_METRICS_URL: `http://127.0.0.1:${nodeExporter}/metrics`,
      LASTSCRAPE_DONE_WHEN: `file:${donePath}`,
      LASTSCRAPE_QUIT: 'none',
      LASTSCRAPE_SCRAPES: String(wanted),
    },
  });
  await watcher.waitForLine(/"msg":"main is running"/, START_MS);
  return { exporter, watcher, end: () => writeFileSync(donePath, '') };
}

describe('scrapes of a real promhttp counter', { concurrency: 3, skip }, () => {
  runScenario(anyOne, 'two scrapes by a real Prometheus end a hold for two', async (pod) => {
    const { exporter, watcher, end } = await openNodeExporter(pod, 2);
    const prometheus = await pod.startPrometheus('2s', pod.network.ports.nodeExporter);
    end();
    const report = await proveReport(pod, watcher, 'scraped');
    assert.deepEqual(report.targets, []);
    assert.ok((report.scrapesSeen ?? 0) >= 2, `it saw ${report.scrapesSeen} scrapes`);
    await proveScrapesSeen(prometheus, report);
    assertRuns(exporter);
  });

  // The exporter cannot tell a curl from a Prometheus; the README says so.
  runScenario(anyOne, "a person's requests after the end count as scrapes", async (pod) => {
    const { exporter, watcher, end } = await openNodeExporter(pod, 3);
    end();
    await watcher.waitForLine(/"msg":"main ended"/, START_MS);
    assertRuns(watcher);
    for (let count = 0; count < 3; count += 1) await pod.network.get(pod.network.ports.nodeExporter, '/metrics');
    const report = await proveReport(pod, watcher, 'scraped');
    assert.equal(report.scrapesSeen, 3);
    assertRuns(exporter);
  });
});
