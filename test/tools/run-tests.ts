// `npm test`: the tests of the pure parts with their coverage (cover.ts), then all others, several files at a
// time: most of them wait for a real program rather than for a processor. `npm test -- FILE…` runs only these
// files.

import { spawnSync } from 'node:child_process';
import { globSync } from 'node:fs';
import { COVERED_TESTS, coverPureParts } from './cover.ts';

/**
 * Files at the same time: two processors are busy, and no test waits so long for one that its time runs out.
 */
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
