// Every kind of scraper of a front holds the final number: replicas, different intervals, agent mode, version
// 3, the OpenTelemetry Collector. The job has a snapshot made, so that it is exact.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { gateFull } from '../support/programs.ts';
import { START_MS, withFrontPod } from './front-pod.ts';
import { gateFront } from './front-programs.ts';
import { type OpenScrapers, openAgent, openCollector, openPrometheus, playFinals } from './front-scrapers.ts';

const skip = gateFront('test/pods/front-scrapers.test.ts', ['prometheus', 'prometheus3', 'python']);
const skipCollector =
  gateFull('the OpenTelemetry Collector in test/pods/front-scrapers.test.ts') ||
  gateFront('test/pods/front-scrapers.test.ts', ['collector']);

/** Jobs of each scenario, side by side. */
const JOBS_COUNT = 3;

/** Twice the longest interval here: every scraper knows the job. */
const WORK_MS = 12_000;

/** Two cores carry the scrapers of three scenarios. */
const CONCURRENCY = 3;

async function proveFinals(open: OpenScrapers): Promise<void> {
  await withFrontPod(async (pod) => {
    for (const result of await playFinals(pod, open, JOBS_COUNT, WORK_MS)) {
      const { final, stored, report } = result;
      for (const [name, value] of Object.entries(stored))
        assert.equal(value, final, `${name}: ${JSON.stringify(result)}`);
      assert.equal(report.outcome, 'scraped');
      assert.equal(report.scrapesWanted, Object.keys(stored).length, 'one scrape by each');
    }
  });
}

describe('the final number is with every scraper', { concurrency: CONCURRENCY, skip }, () => {
  it('two replicas behind one address, of the same interval', { timeout: 600_000 }, () =>
    proveFinals(async (pod, ports) => [
      await openPrometheus(pod, ports, { name: 'a', interval: '4s' }),
      await openPrometheus(pod, ports, { name: 'b', interval: '4s' }),
    ]),
  );

  it('two Prometheus at different intervals, from two addresses', { timeout: 600_000 }, () =>
    proveFinals(async (pod, ports) => {
      const address = '10.9.8.7';
      await pod.start('ip', ['ip', 'address', 'add', `${address}/32`, 'dev', 'lo']).waitForExit(START_MS);
      return [
        await openPrometheus(pod, ports, { name: 'fast', interval: '3s' }),
        await openPrometheus(pod, ports, { name: 'slow', interval: '6s', address }),
      ];
    }),
  );

  it('a Prometheus in agent mode, which sends on what it scraped', { timeout: 600_000 }, () =>
    proveFinals(async (pod, ports) => [await openAgent(pod, ports, '4s')]),
  );

  it('the OpenTelemetry Collector', { skip: skipCollector, timeout: 600_000 }, () =>
    proveFinals(async (pod, ports) => [await openCollector(pod, ports, '4s')]),
  );

  // Version 3 refuses a Content-Type that it does not know; asked for protobuf, one may answer in text.
  it('Prometheus 3, by its defaults and with protobuf first', { timeout: 600_000 }, () =>
    proveFinals(async (pod, ports) => [
      await openPrometheus(pod, ports, { name: 'defaults', interval: '4s', program: 'prometheus3' }),
      await openPrometheus(pod, ports, {
        name: 'protobuf',
        interval: '4s',
        program: 'prometheus3',
        settings: '    scrape_protocols: [PrometheusProto, OpenMetricsText1.0.0, PrometheusText0.0.4]\n',
      }),
    ]),
  );
});
