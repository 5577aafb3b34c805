// How a load test ends undisturbed, on the real Locust: Prometheus holds the number that Locust printed.
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { describe } from 'node:test';
import { type MasterStart, type Pod, readFinalTotal, readLocustTime, START_MS } from '../support/pod.ts';
import { findPrograms, gate } from '../support/programs.ts';
import {
  assertRuns,
  proveExporterGone,
  proveReport,
  proveScrapesSeen,
  proveScrapesWhileRunning,
  proveStored,
  readLast,
  TOTAL,
} from '../support/proof.ts';
import { runScenario } from './scenario.ts';

const programs = findPrograms();
const skip = gate(programs, 'test/pods/endings.test.ts', ['locust', 'prometheus']);

/** Two cores carry three pods: what they spend is mostly Locust's import at the start. */
const CONCURRENCY = 3;

const ODD_NAMES = join(
  import.meta.dirname,
  '../../fixtures/recordings/exporter-0.5.0-locust-2.47.0/13-odd-names.locustfile.py',
);

/** A run of 8 s and an autoquit of 5 s, after the start. */
const RUN_MS = START_MS + 60_000;

async function playNormalEnd(
  pod: Pod,
  run: MasterStart & { readonly scrapeInterval: string; readonly isBare?: boolean; readonly masterExitCode: number },
): Promise<void> {
  const exporter = pod.startExporter();
  const prometheus = await pod.startPrometheus(run.scrapeInterval);
  const watcher = pod.startWatcher({ isBare: run.isBare ?? false });
  const master = pod.startMaster(run);
  pod.startWorker(run.locustfile);
  assert.equal((await master.waitForExit(RUN_MS)).code, run.masterExitCode, 'the exit code of Locust');
  const total = readFinalTotal(master);
  assert.ok(total > 50, `a run of ${total} requests proves little`);

  const report = await proveReport(pod, watcher, 'scraped');
  assert.equal(report.final.requests, total, 'the requests in the report');
  await proveExporterGone(exporter, report);
  await proveStored(prometheus, total);
  await proveScrapesSeen(prometheus, report);
  await proveScrapesWhileRunning(prometheus, report);
}

describe('a load test ends undisturbed', { concurrency: CONCURRENCY, skip }, () => {
  runScenario(programs, 'Prometheus at 5 s holds the final total, no variable set', (pod) =>
    playNormalEnd(pod, { scrapeInterval: '5s', isBare: true, masterExitCode: 0 }),
  );

  runScenario(programs, 'odd request names cost no number', (pod) =>
    playNormalEnd(pod, { locustfile: ODD_NAMES, scrapeInterval: '5s', masterExitCode: 1 }),
  );

  // locust_up stays 0 for the whole run, and only the port shows that Locust is there.
  runScenario(programs, '--headless is not taken for done before its end', async (pod) => {
    const exporter = pod.startExporter();
    const prometheus = await pod.startPrometheus('5s');
    const watcher = pod.startWatcher();
    const master = pod.startMaster({ extraArgs: ['--headless'] });
    pod.startWorker();
    const end = await master.waitForLine(/Shutting down/, RUN_MS);
    assertRuns(watcher);
    assertRuns(exporter);
    assert.equal((await master.waitForExit(RUN_MS)).code, 0, 'the exit code of Locust');

    const report = await proveReport(pod, watcher, 'scraped');
    assert.ok(
      Date.parse(report.mainEndedAt ?? '') >= readLocustTime(end),
      `main ended at ${report.mainEndedAt}, before Locust said "${end.text}"`,
    );
    await proveExporterGone(exporter, report);
    assert.equal(await readLast(prometheus, 'locust_up'), 0);
    assert.equal(await readLast(prometheus, TOTAL), undefined, 'an exporter without a web page has no total');
  });
});
