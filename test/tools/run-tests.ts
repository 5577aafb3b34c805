// `npm test`: the pure parts with coverage (cover.ts), then all others, several files at a time: most wait
// for a real program. `npm test -- FILE…` runs only these.

import { spawnSync } from 'node:child_process';
import { globSync } from 'node:fs';
import { COVERED_TESTS, coverPureParts } from './cover.ts';

/** Files at a time: two processors stay busy, and no test runs out of time. */
const CONCURRENCY = 4;
/** Of one file. */
const TIMEOUT_MS = 900_000;

const chosen = process.argv.slice(2);
if (chosen.length > 0) runFiles(chosen);
else {
  coverPureParts();
  runFiles(globSync('test/**/*.test.ts').filter((file) => !COVERED_TESTS.includes(file)));
}

function runFiles(files: readonly string[]): void {
  const flags = ['--test', `--test-timeout=${TIMEOUT_MS}`, `--test-concurrency=${CONCURRENCY}`];
  const { status } = spawnSync(process.execPath, [...flags, ...files], { stdio: 'inherit' });
  if (status !== 0) process.exitCode = 1;
}
