// Sources that outlive main behind a front: after the end each scrape is read from them, so that what reaches
// them in the hold is stored as well. Real node_exporter with a textfile, and statsd_exporter; main is the
// job with the official client library.
import assert from 'node:assert/strict';
import { mkdirSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import type { Child } from '../support/child.ts';
import { assertRuns } from '../support/proof.ts';
import { jobCommand, readResult, WORKED, waitForPort } from './front-jobs.ts';
import {
  type FrontPod,
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

const PROGRAMS = ['prometheus', 'nodeExporter', 'statsdExporter', 'python'] as const;
const skip = gateFront('test/pods/front-outliving.test.ts', PROGRAMS);

/** A source that is there before the job, and the job's variables that make it report to that source. */
type Outliving = {
  readonly source: Child;
  readonly env: Readonly<Record<string, string>>;
  /** Adds 1 to the job's number when the job is gone. */
  readonly addLate: (final: number) => Promise<void>;
};

async function proveFinal(open: (pod: FrontPod, port: number) => Promise<Outliving>): Promise<void> {
  await withFrontPod(async (pod) => {
    const sourcePort = await pod.network.newPort();
    const { source, env, addLate } = await open(pod, sourcePort);
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
    const job = pod.start('the job', jobCommand('python'), { JOB_MS: '5000', ...env });
    await terminateAfter(job, front.child);
    const { final } = await readResult(job);
    await addLate(final);
    const report = await readReport(front);
    assert.equal(report.outcome, 'scraped');
    assert.deepEqual(report.targets, [], 'no target is asked to quit');
    await waitForDown(prometheus, instance);
    assert.equal(await readLast(prometheus, WORKED), final + 1);
    assert.equal(await readLast(prometheus, 'lastscrape_main_ended'), 1, 'the last scrape was after the end');
    assert.equal(await readLast(prometheus, 'lastscrape_source_up'), 1, 'and it was live');
    assertRuns(source);
  });
}

describe('a source outlives main', { concurrency: 2, skip }, () => {
  it("node_exporter's textfile collector has the newest number stored", { timeout: 200_000 }, () =>
    proveFinal(async (pod, port) => {
      const folder = join(pod.directory, 'textfiles');
      mkdirSync(folder);
      const source = pod.start('node_exporter', [
        frontProgram('nodeExporter'),
        '--collector.disable-defaults',
        '--collector.textfile',
        `--collector.textfile.directory=${folder}`,
        `--web.listen-address=127.0.0.1:${port}`,
      ]);
      const textfile = join(folder, 'job.prom');
      const addLate = async (final: number) => {
        writeFileSync(`${textfile}.part`, `# TYPE ${WORKED} counter\n${WORKED} ${final + 1}\n`);
        renameSync(`${textfile}.part`, textfile);
      };
      return { source, env: { JOB_TEXTFILE: textfile }, addLate };
    }),
  );

  it('statsd_exporter has the newest number stored', { timeout: 200_000 }, () =>
    proveFinal(async (pod, port) => {
      const statsdPort = await pod.network.newPort();
      const source = pod.start('statsd_exporter', [
        frontProgram('statsdExporter'),
        `--web.listen-address=127.0.0.1:${port}`,
        `--statsd.listen-udp=127.0.0.1:${statsdPort}`,
        '--statsd.listen-tcp=',
      ]);
      const send = `import socket as s; s.socket(s.AF_INET, s.SOCK_DGRAM).sendto(b"${WORKED}:1|c", ("127.0.0.1", ${statsdPort}))`;
      const addLate = async () => {
        await pod.start('a late packet', [frontProgram('python'), '-c', send]).waitForExit(START_MS);
      };
      return { source, env: { JOB_STATSD_PORT: `${statsdPort}` }, addLate };
    }),
  );
});
