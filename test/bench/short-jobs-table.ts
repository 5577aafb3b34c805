// `npm run measure -- --short-jobs`: what Prometheus says of counters of jobs shorter than its interval.
import { withFrontPod } from '../pods/front-pod.ts';
import { describeFrontPrograms } from '../pods/front-programs.ts';
import { type Answers, playShortJobs, QUESTIONS, ROWS_COUNT, SHORT_JOB_PROGRAMS } from '../pods/short-jobs.ts';

/** Prints how many of the jobs each question finds whole, and all that it answers. */
export async function measureShortJobs(runCount: number): Promise<void> {
  process.stderr.write(`Programs: ${describeFrontPrograms(SHORT_JOB_PROGRAMS).join(', ')}\n`);
  const { front, direct } = await withFrontPod((pod) => playShortJobs(pod, runCount));
  console.log(`| asked, of ${runCount} jobs that count to ${ROWS_COUNT} | with a front | without |\n|---|---|---|`);
  for (const [index, question] of QUESTIONS.entries())
    console.log(`| \`${question}\` | ${describe(front, index)} | ${describe(direct, index)} |`);
}

function describe(answers: readonly Answers[], index: number): string {
  const found = answers.flatMap((each) => each[index] ?? []);
  const exactCount = found.filter((value) => value === ROWS_COUNT).length;
  const range = found.length === 0 ? '' : `, ${Math.min(...found).toFixed(1)} to ${Math.max(...found).toFixed(1)}`;
  return `${exactCount} of ${answers.length} exact, ${answers.length - found.length} nothing${range}`;
}
