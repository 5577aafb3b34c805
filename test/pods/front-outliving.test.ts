// A real statsd_exporter that outlives main behind a front: what reaches it in the hold is stored as well.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { assertRuns } from '../support/proof.ts';
import { jobCommand, readResult, WORKED, waitForPort } from './front-jobs.ts';
import {
  readLast,
  readReport,
  START_MS,
  scrapeConfig,
  terminateAfter,
  waitForDown,
  waitForScrapes,
  withFrontPod,
} from './front-pod.ts';
import { frontProgram, gateFront } from './front-programs.ts';

const PROGRAMS = ['prometheus', 'statsdExporter', 'python'] as const;
const skip = gateFront('test/pods/front-outliving.test.ts', PROGRAMS);

describe('a source outlives main', { skip }, () => {
  it('statsd_exporter has the newest number stored', { timeout: 200_000 }, () =>
    withFrontPod(async (pod) => {
      const [sourcePort, statsdPort] = [await pod.network.newPort(), await pod.network.newPort()];
      const source = pod.start('statsd_exporter', [
        frontProgram('statsdExporter'),
        `--web.listen-address=127.0.0.1:${sourcePort}`,
        `--statsd.listen-udp=127.0.0.1:${statsdPort}`,
        '--statsd.listen-tcp=',
      ]);
      await waitForPort(pod, sourcePort);
      const front = await pod.startFront({
        source: `http://127.0.0.1:${sourcePort}/metrics`,
        port: await pod.network.newPort(),
        // The fifth is 8 s after the first, and late enough for what came in the hold.
        env: { LASTSCRAPE_SCRAPES: '5' },
      });
      const instance = `127.0.0.1:${front.port}`;
      const prometheus = await pod.startPrometheus({ config: scrapeConfig('2s', [instance]) });
      await waitForScrapes(prometheus, 1);
      const job = pod.start('the job', jobCommand('python'), { JOB_MS: '5000', JOB_STATSD_PORT: `${statsdPort}` });
      await terminateAfter(job, front.child);
      const { final } = await readResult(job);
      const send = `import socket as s; s.socket(s.AF_INET, s.SOCK_DGRAM).sendto(b"${WORKED}:1|c", ("127.0.0.1", ${statsdPort}))`;
      await pod.start('a late packet', [frontProgram('python'), '-c', send]).waitForExit(START_MS);
      const report = await readReport(front);
      assert.equal(report.outcome, 'scraped');
      assert.deepEqual(report.targets, [], 'no target is asked to quit');
      await waitForDown(prometheus, instance);
      assert.equal(await readLast(prometheus, WORKED), final + 1);
      assert.equal(await readLast(prometheus, 'lastscrape_main_ended'), 1, 'the last scrape was after the end');
      assert.equal(await readLast(prometheus, 'lastscrape_source_up'), 1, 'and it was live');
      assertRuns(source);
    }),
  );
});
