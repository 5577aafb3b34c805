// Two real programs on one port, one after the other, each of which asks for its page to be kept as its last act: the
// last numbers of both are stored, also where no scraper had come when the first one asked.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { jobCommand, readResult, WORKED } from './front-jobs.ts';
import { readReport, START_MS, scrapeConfig, terminateAfter, waitForDown, withFrontPod } from './front-pod.ts';
import { gateFront } from './front-programs.ts';

const skip = gateFront('test/pods/front-in-turn.test.ts', ['prometheus', 'python']);
const INTERVAL_MS = 2_000;

for (const isScraped of [true, false]) {
  const who = isScraped ? 'while Prometheus scrapes' : 'before Prometheus comes';
  test(`the numbers of a program that ends ${who}, and of the next on its port`, { skip, timeout: 600_000 }, () =>
    withFrontPod(async (pod) => {
      const sourcePort = await pod.network.newPort();
      const port = await pod.network.newPort();
      const front = await pod.startFront({ source: `http://127.0.0.1:${sourcePort}/metrics`, port });
      const instance = `127.0.0.1:${port}`;
      const env = { JOB_PORT: `${sourcePort}`, JOB_SNAPSHOT_URL: `http://${instance}/-/snapshot` };
      const begin = async (name: string, workMs: number) => {
        const job = pod.start(name, jobCommand('python'), { ...env, JOB_MS: `${workMs}` });
        await job.waitForLine(/^started$/, START_MS);
        return job;
      };
      const scrape = () => pod.startPrometheus({ config: scrapeConfig(`${INTERVAL_MS}ms`, [instance]) });
      const early = isScraped ? await scrape() : null;
      // Prometheus takes 5 s to find its targets.
      const extract = await readResult(await begin('extract', isScraped ? 4.5 * INTERVAL_MS : 500));
      const load = await begin('load', 5.5 * INTERVAL_MS);
      const prometheus = early ?? (await scrape());
      await terminateAfter(load, front.child);
      const { final } = await readResult(load);
      const { outcome } = await readReport(front);
      await waitForDown(prometheus, instance);
      const [series] = await prometheus.readSeries(`${WORKED}{instance="${instance}"}`);
      const values = series?.samples.map(({ value }) => value) ?? [];
      const seen = JSON.stringify({ values, extract: extract.final, load: final, outcome });
      assert.ok(values.includes(extract.final), seen);
      assert.deepEqual([values.at(-1), outcome], [final, 'scraped'], seen);
    }),
  );
}
