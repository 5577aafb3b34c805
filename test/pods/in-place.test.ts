// lastscrape in the place of Locust's exporter, with nothing but what the operator tells the exporter: a real
// Prometheus holds the number of requests that Locust printed.
import assert from 'node:assert/strict';
import { describe } from 'node:test';
import { readFinalTotal, START_MS } from '../support/pod.ts';
import { findPrograms, gate } from '../support/programs.ts';
import { proveReport, proveScrapesSeen, proveStored, readLast } from '../support/proof.ts';
import { until } from '../support/until.ts';
import { runScenario } from './scenario.ts';

const programs = findPrograms();
const skip = gate(programs, 'test/pods/in-place.test.ts', ['locust', 'prometheus']);
/** The exporter is not used. */
const anyOne = { ...programs, exporters: programs.exporters.slice(0, 1) };

const TOTAL_LINE = 'locust_requests_num_requests\\{method="",name="Aggregated"\\}';
/** Long enough for the run of 8 s to be over. */
const BUSY_MS = 20_000;

/** A run of 8 s and an autoquit of 5 s, after the start. */
const RUN_MS = START_MS + 60_000;

describe("in the place of Locust's exporter", { concurrency: 2, skip }, () => {
  runScenario(
    anyOne,
    'a run that ends by autoquit is stored whole, with percentiles, and the pod ends',
    async (pod) => {
      const watcher = pod.startInPlace();
      await pod.network.waitForPort(pod.network.ports.exporter);
      const prometheus = await pod.startPrometheus('5s');
      const master = pod.startMaster();
      pod.startWorker();
      assert.equal((await master.waitForExit(RUN_MS)).code, 0, 'the exit code of Locust');
      const total = readFinalTotal(master);
      assert.ok(total > 50, `a run of ${total} requests proves little`);

      const report = await proveReport(pod, watcher, 'scraped');
      assert.equal(report.final.requests, total, 'the requests in the report');
      assert.deepEqual(report.targets, []);
      assert.ok(
        watcher.lines.some(({ text }) =>
          /"serving in place of Locust's exporter: .*"LOCUST_EXPORTER_URI is set"/.test(text),
        ),
        'it says that it is in the place of the exporter, and why',
      );
      await proveStored(prometheus, total);
      await proveScrapesSeen(prometheus, report);
      const median = 'locust_requests_response_time_percentile{method="",name="Aggregated",quantile="0.5"}';
      assert.ok(((await readLast(prometheus, median)) ?? 0) > 0, 'the median is stored');
    },
  );

  runScenario(anyOne, 'a Locust that is busy over its end is down, and nothing of it is missed', async (pod) => {
    const { ports } = pod.network;
    const read = async () => {
      const { body } = await pod.network.get(ports.exporter, '/metrics');
      const value = (name: string) => new RegExp(`^${name} (.*)$`, 'm').exec(body)?.[1];
      return { up: value('locust_up'), users: value('locust_users'), total: Number(value(TOTAL_LINE)) };
    };
    const watcher = pod.startInPlace();
    await pod.network.waitForPort(ports.exporter);
    const master = pod.startMaster();
    pod.startWorker();
    const before = await until('requests on the page', RUN_MS, async () => {
      const now = await read();
      return now.total > 0 ? now : undefined;
    });
    assert.equal(before.up, '1');
    master.signal('SIGSTOP');
    const frozenAtMs = performance.now();
    // The exporter gives Locust 5 s too (LOCUST_EXPORTER_TIMEOUT); the run ends meanwhile, unnoticed.
    await until('down', RUN_MS, async () => ((await read()).up === '0' ? true : undefined));
    while (performance.now() - frozenAtMs < BUSY_MS) {
      const now = await read();
      assert.ok(now.total >= before.total, 'the rows stay');
      assert.equal(now.up, '0', 'no page within 5 s');
      assert.equal(now.users, undefined, 'the gauges vanish with it');
    }
    assert.equal(watcher.exit, undefined, 'port 5557 takes connections: Locust has not ended');
    master.signal('SIGCONT');
    await until('up again', RUN_MS, async () => ((await read()).up === '1' ? true : undefined));
    const prometheus = await pod.startPrometheus('2s');
    assert.equal((await master.waitForExit(RUN_MS)).code, 0, 'the exit code of Locust');
    const report = await proveReport(pod, watcher, 'scraped');
    const total = readFinalTotal(master);
    assert.ok(total > before.total, 'it went on after it was seen last');
    assert.equal(report.final.requests, total);
    await proveStored(prometheus, total);
  });
});
