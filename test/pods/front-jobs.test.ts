// The last numbers of a program that serves its page and ends, with the official clients: lost without
// lastscrape, stored to the last change with one line in the job, to the last read without.
import assert from 'node:assert/strict';
import { before, describe, it } from 'node:test';
import { JOB_CASES, JOB_PROGRAMS, type JobCase, type JobResult, playJobs } from './front-jobs.ts';
import { withFrontPod } from './front-pod.ts';
import { gateFront } from './front-programs.ts';

const skip = gateFront('test/pods/front-jobs.test.ts', JOB_PROGRAMS);

/** Of each case; all of them run at once. */
const EACH_COUNT = 3;

/** A Pushgateway alone lives for another second, half an interval: too often it is scraped by then. */
const CASES = JOB_CASES.filter(({ program, way }) => !(program === 'shell' && way === 'nothing'));

/** A job works for 5 to 8 s then. */
const INTERVAL_MS = 2000;

let results: readonly JobResult[] = [];

describe('a job that ends with its numbers', { skip }, () => {
  before(
    async () => {
      results = await withFrontPod((pod) => playJobs(pod, CASES, EACH_COUNT, INTERVAL_MS));
    },
    { timeout: 600_000 },
  );

  for (const program of ['python', 'node'] as const) {
    // A scrape can fall between the last change and the end by chance, in a few of a hundred.
    it(`${program}, without lastscrape: the final number is lost`, () => {
      const found = pick({ program, way: 'nothing' });
      const isLost = found.some(({ stored, final }) => (stored ?? 0) < final);
      assert.ok(isLost, describeResults(found));
    });
  }

  for (const jobCase of CASES.filter(({ way }) => way !== 'nothing' && way !== 'front')) {
    it(`${jobCase.program}, ${jobCase.way}: the final number is stored, in every run`, () => {
      for (const result of pick(jobCase)) {
        assert.equal(result.stored, result.final, JSON.stringify(result));
        assert.equal(result.report?.outcome, 'scraped');
      }
    });
  }

  for (const program of ['python', 'node'] as const) {
    it(`${program}, the front alone: what its page showed last is stored`, () => {
      for (const result of pick({ program, way: 'front' })) {
        const { reads, stored = 0, final, report } = result;
        // The last read may be cut off by the end of the job; the one before it was not.
        assert.ok(stored >= (reads.at(-2) ?? final) && stored <= final, JSON.stringify(result));
        assert.equal(report?.outcome, 'scraped');
      }
    });
  }
});

/** @throws when there are fewer than were played. */
function pick({ program, way }: JobCase): readonly JobResult[] {
  const found = results.filter((result) => result.program === program && result.way === way);
  assert.equal(found.length, EACH_COUNT, 'runs');
  return found;
}

function describeResults(found: readonly JobResult[]): string {
  return found.map(({ stored, final }) => `${stored} of ${final}`).join(', ');
}
