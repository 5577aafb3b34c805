// `npm run measure`: the tables of `-- --front`, `-- --keeper`, `-- --locust` or `-- --short-jobs`, of `--runs=N` runs.

import { measureFinalNumbers as measureHandOvers } from '../keeper/final-numbers.ts';
import { measureFinalNumbers } from './final-numbers-table.ts';
import { measureInPlace } from './in-place.ts';
import { measureShortJobs } from './short-jobs-table.ts';

const runCount = Number(process.argv.find((arg) => /^--runs=\d+$/.test(arg))?.slice(7) ?? Number.NaN);

if (process.argv.includes('--front')) await measureFinalNumbers(runCount || 30);
else if (process.argv.includes('--keeper')) await measureHandOvers(runCount || 200);
else if (process.argv.includes('--locust')) await measureInPlace(runCount || 20);
else if (process.argv.includes('--short-jobs')) await measureShortJobs(runCount || 20);
else throw new Error('Cannot measure nothing: add "-- --front", "-- --keeper", "-- --locust" or "-- --short-jobs"');
