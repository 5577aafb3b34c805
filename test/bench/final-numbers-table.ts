// `npm run measure -- --front`: the last number of a job, each case at 5 s. It prints a table, and fails only
// when a run does.

import { JOB_CASES, JOB_PROGRAMS, type JobResult, OTHER_CASES, playJobs, SLEEP_SECONDS } from '../pods/front-jobs.ts';
import { POLL, withFrontPod } from '../pods/front-pod.ts';
import { describeFrontPrograms, listMissingFrontPrograms } from '../pods/front-programs.ts';
import { findMedian } from './median.ts';

const CASES = [...JOB_CASES, ...OTHER_CASES];
const SIDE_BY_SIDE_COUNT = 3;
const INTERVAL_MS = 5000;
/** Prints the table. @throws when programs are missing, or a run fails. */
export async function measureFinalNumbers(runCount: number): Promise<void> {
  const missing = listMissingFrontPrograms(JOB_PROGRAMS);
  if (missing.length > 0) throw new Error(`Cannot measure: real programs are missing; install ${missing.join('; ')}`);
  // The table stands in a page: what is named by where it lies on this machine does not.
  process.stderr.write(`Programs: ${describeFrontPrograms(JOB_PROGRAMS).join(', ')}\n`);
  console.log(`Prometheus scrapes every ${INTERVAL_MS / 1000} s; the front polls every ${POLL}\n`);
  const results: JobResult[] = [];
  while (results.length < runCount * CASES.length) {
    results.push(...(await withFrontPod((pod) => playJobs(pod, CASES, SIDE_BY_SIDE_COUNT, INTERVAL_MS))));
    process.stderr.write(`${results.length} of ${runCount * CASES.length} runs\n`);
  }
  console.log('| job | way | final number stored | behind: median, most (ms) | held: median, most (s) |');
  console.log('|---|---|---:|---:|---:|');
  for (const { program, way } of CASES) {
    const found = results.filter((result) => result.program === program && result.way === way);
    console.log(`| ${program} | ${way} | ${describeRuns(found)} |`);
  }
  const leftBehindCount = results.filter(({ isLeftBehind }) => isLeftBehind).length;
  console.log(
    `\nThe Pushgateway of the cluster shows the groups of ${leftBehindCount} jobs that are gone; of lastscrape's none is left.`,
  );
}

/** An unscraped job has no stored number to compare. */
function describeRuns(runs: readonly JobResult[]): string {
  const exactCount = runs.filter(({ stored, final }) => stored === final).length;
  const behindMs = runs.flatMap(({ stored, final }) => (stored === undefined ? [] : [final - stored]));
  const heldSeconds = runs.flatMap(({ way, report }) =>
    way === 'sleep' ? SLEEP_SECONDS : (report?.heldSeconds ?? []),
  );
  return `${exactCount} of ${runs.length} | ${describeSpread(behindMs, 0)} | ${describeSpread(heldSeconds, 1)}`;
}

function describeSpread(values: readonly number[], digits: number): string {
  if (values.length === 0) return '';
  const sorted = values.toSorted((left, right) => left - right);
  return `${findMedian(sorted).toFixed(digits)}, ${(sorted.at(-1) ?? 0).toFixed(digits)}`;
}
