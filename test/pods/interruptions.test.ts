// Locust stopped, killed or frozen in mid-run, with a real Prometheus. After SIGTERM and SIGKILL the exporter
// may not have Locust's last numbers; what it has is stored.
import assert from 'node:assert/strict';
import { describe } from 'node:test';
import type { Child } from '../support/child.ts';
import { type Pod, readFinalTotal, START_MS } from '../support/pod.ts';
import { findPrograms, gate } from '../support/programs.ts';
import { assertRuns, proveExporterGone, proveReport, proveStored, readLast } from '../support/proof.ts';
import { until } from '../support/until.ts';
import { runScenario } from './scenario.ts';

const programs = findPrograms();
const skip = gate(programs, 'test/pods/interruptions.test.ts', ['locust', 'prometheus']);

/** Two cores carry three pods: what they spend is mostly Locust's import at the start. */
const CONCURRENCY = 3;

/** A run of at most 30 s and an autoquit of 5 s, after the start. */
const RUN_MS = START_MS + 80_000;

/** A poll in the debug log: the exporter says down, and the connect to 5557 came to nothing. */
const FROZEN_POLL = /"msg":"poll".*"conditions":\["done: locust_up 0","unknown: /;

/** Mid-run: the watcher saw Locust alive, and the exporter has a total of some size. */
async function waitForMidRun(pod: Pod, watcher: Child): Promise<void> {
  await waitForMsg(watcher, 'main is running');
  await until('a total above 50 in the exporter', START_MS, async () => {
    const { body } = await pod.network.get(pod.network.ports.exporter, '/metrics');
    const match = /^locust_requests_num_requests\{method="",name="Aggregated"\} (\d+)$/m.exec(body);
    return Number(match?.[1] ?? 0) > 50 ? true : undefined;
  });
}

function waitForMsg(watcher: Child, msg: string): Promise<unknown> {
  return watcher.waitForLine(new RegExp(`"msg":"${msg}"`), START_MS);
}

async function endLocustBy(pod: Pod, signal: 'SIGTERM' | 'SIGKILL'): Promise<Child> {
  const exporter = pod.startExporter();
  const prometheus = await pod.startPrometheus('5s');
  const watcher = pod.startWatcher();
  const master = pod.startMaster({ runTime: '10m' });
  pod.startWorker();
  await waitForMidRun(pod, watcher);
  master.signal(signal);
  await master.waitForExit(RUN_MS);

  const report = await proveReport(pod, watcher, 'scraped');
  const known = report.final?.requests ?? 0;
  assert.ok(known > 50, `the report knows of ${known} requests`);
  await proveExporterGone(exporter, report);
  await proveStored(prometheus, known);
  return master;
}

describe('a load test is interrupted', { concurrency: CONCURRENCY, skip }, () => {
  // First, since it takes longest. locust_up 0 and a connect that times out: neither is an end.
  runScenario(programs, 'a frozen Locust is not taken for done, and nothing is lost after it goes on', async (pod) => {
    const exporter = pod.startExporter();
    const prometheus = await pod.startPrometheus('6s');
    const watcher = pod.startWatcher({ env: { LASTSCRAPE_LOG_LEVEL: 'debug' } });
    // It must not be over before it is frozen; the time goes on meanwhile.
    const master = pod.startMaster({ runTime: '20s' });
    pod.startWorker();
    await waitForMidRun(pod, watcher);

    master.signal('SIGSTOP');
    const crowdCount = await pod.network.crowd(pod.network.ports.master);
    assert.ok(crowdCount < 200, 'a full backlog takes no more connects');
    // Two, since "done" is never believed before a second look.
    await watcher.waitForLine(FROZEN_POLL, RUN_MS, 2);
    await until('locust_up 0 in Prometheus', RUN_MS, async () =>
      (await readLast(prometheus, 'locust_up')) === 0 ? true : undefined,
    );
    assertRuns(watcher);
    assertRuns(exporter);
    master.signal('SIGCONT');
    assert.equal((await master.waitForExit(RUN_MS)).code, 0, 'the exit code of Locust');

    const report = await proveReport(pod, watcher, 'scraped');
    await proveExporterGone(exporter, report);
    await proveStored(prometheus, readFinalTotal(master));
  });

  runScenario(programs, 'SIGTERM to Locust: what the exporter has is stored', async (pod) => {
    const master = await endLocustBy(pod, 'SIGTERM');
    assert.equal(master.exit?.code, 0, 'the exit code of Locust');
  });

  runScenario(programs, 'SIGKILL to Locust: what the exporter has is stored', async (pod) => {
    const master = await endLocustBy(pod, 'SIGKILL');
    assert.equal(master.exit?.signal, 'SIGKILL');
  });
});
