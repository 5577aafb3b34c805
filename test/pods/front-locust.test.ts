// The Locust exporter behind a front: what it stops showing with Locust (users, failure ratio, percentiles)
// is in the last sample stored, next to locust_up 0.
import assert from 'node:assert/strict';
import { describe } from 'node:test';
import { locustfile, type Pod, readFinalTotal, START_MS } from '../support/pod.ts';
import { findPrograms, gate } from '../support/programs.ts';
import type { Prometheus } from '../support/prometheus.ts';
import { proveExporterGone, proveReport, proveStored } from '../support/proof.ts';
import { runScenario } from './scenario.ts';

const programs = findPrograms();
const skip = gate(programs, 'test/pods/front-locust.test.ts', ['locust', 'prometheus']);

/** A run of 8 s and an autoquit of 5 s, after the start. */
const RUN_MS = START_MS + 60_000;

/** Gone with Locust; recordings/exporter-0.5.0-locust-2.47.0. */
const VANISHING = [
  'locust_users',
  'locust_workers_count',
  'locust_requests_fail_ratio',
  'locust_requests_current_response_time_percentile_50',
  'locust_requests_current_response_time_percentile_95',
];

/** The value in the scrape of that time; undefined: it had no such metric. */
async function readAt(prometheus: Prometheus, metric: string, atSeconds: number): Promise<number | undefined> {
  const [series] = await prometheus.readSeries(metric);
  return series?.samples.find((sample) => sample.atSeconds === atSeconds)?.value;
}

async function playEnd(pod: Pod, frontPort: number): Promise<void> {
  const exporter = pod.startExporter();
  const watcher = pod.startWatcher({ env: { LASTSCRAPE_FRONT: String(frontPort) } });
  await pod.waitForPort(frontPort);
  const prometheus = await pod.startPrometheus('2s', frontPort);
  const master = pod.startMaster({ locustfile: locustfile('failing') });
  pod.startWorker(locustfile('failing'));
  assert.equal((await master.waitForExit(RUN_MS)).code, 1, 'the exit code of Locust');
  const total = readFinalTotal(master);

  const report = await proveReport(pod, watcher, 'scraped');
  await proveExporterGone(exporter, report);
  await proveStored(prometheus, total);
  const [up] = await prometheus.readSeries('locust_up');
  const lastSeconds = up?.samples.at(-1)?.atSeconds ?? 0;
  for (const metric of VANISHING) {
    assert.notEqual(await readAt(prometheus, metric, lastSeconds), undefined, `${metric} is in the last scrape`);
  }
  const ratio = await readAt(prometheus, 'locust_requests_fail_ratio', lastSeconds);
  assert.equal(ratio?.toFixed(9), ((report.final.failures ?? 0) / total).toFixed(9), 'the final failure ratio');
}

describe('Locust behind a front', { skip }, () => {
  runScenario(programs, 'what vanishes with Locust is in the last scrape', async (pod) =>
    playEnd(pod, await pod.network.newPort()),
  );
});
