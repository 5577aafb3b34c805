import assert from 'node:assert/strict';
import { it } from 'node:test';
import { withFrontPod } from './front-pod.ts';
import { gateFront } from './front-programs.ts';
import { playShortJobs, ROWS_COUNT, SHORT_JOB_PROGRAMS } from './short-jobs.ts';

const skip = gateFront('test/pods/short-jobs.test.ts', SHORT_JOB_PROGRAMS);

it(
  'a counter of a job that is shorter than the interval increases by all that it counted',
  { skip, timeout: 600_000 },
  () =>
    withFrontPod(async (pod) => {
      const { front, direct } = await playShortJobs(pod, 8);
      for (const [increase = 0, anchored, last] of front) {
        assert.deepEqual([anchored, last], [ROWS_COUNT, ROWS_COUNT], JSON.stringify(front));
        // Prometheus takes it that a counter went on after its last sample.
        assert.ok(increase >= ROWS_COUNT, JSON.stringify(front));
      }
      // A scrape can fall between the last row and the end by chance.
      const isLost = direct.some((answers) => !answers.slice(1).includes(ROWS_COUNT));
      assert.ok(isLost, JSON.stringify(direct));
    }),
);
