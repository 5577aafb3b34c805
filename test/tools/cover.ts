// `npm run cover`: line and branch coverage of the pure parts; fails below 100 %, and when a file of them is missing.

import { spawnSync } from 'node:child_process';
import { globSync } from 'node:fs';

const covered = globSync([
  'src/{config,decide,exposition,tell/encode}/*.ts',
  'src/front/locust/{csv,memory,page,rows}.ts',
  'src/pod/{mount-info,pod-request,pod-status}.ts',
]).filter((file) => !file.endsWith('.d.ts'));
// model.ts holds types and one function that can only be called by a bug; it counts like the others.
const tests = globSync(['test/{config,decide,exposition,front/locust,pod,tell/encode}/*.test.ts']);
const run = spawnSync(
  process.execPath,
  [
    '--test',
    '--experimental-test-coverage',
    '--test-coverage-lines=100',
    '--test-coverage-branches=100',
    '--test-coverage-functions=100',
    ...covered.map((file) => `--test-coverage-include=${file}`),
    '--test-reporter=tap',
    ...tests,
  ],
  { encoding: 'utf8', maxBuffer: 256 * 1024 * 1024 },
);
const start = run.stdout.indexOf('# start of coverage report');
const report = run.stdout.slice(Math.max(0, start)).replaceAll(/^# ?/gm, '');
if (run.status !== 0) {
  // The report alone would not say which test failed, or why.
  const failed = run.stdout
    .split('\n')
    .flatMap((line, index, lines) => (/^\s*not ok /.test(line) ? lines.slice(index, index + 30) : []));
  console.error(failed.join('\n'), run.stderr);
}
console.log(start === -1 ? run.stdout.slice(-4000) : report);
const missing = covered.filter((file) => !report.includes(file.split('/').at(-1) as string));
if (missing.length > 0) console.error(`Cannot vouch for ${missing.join(', ')}: no test imports it`);
process.exitCode = run.status === 0 && missing.length === 0 ? 0 : 1;
