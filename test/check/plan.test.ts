// The whole output of --check for the environments of fixtures/check, which `npm run golden` rewrites; and the
// plan of configurations that none of them has.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { formatPlan } from '../../src/check/plan.ts';
import { readValid, toEnvironment } from '../config/read-config.ts';
import { testGoldens } from '../support/goldens.ts';
import { playCheck } from './check-fixture.ts';

testGoldens('--check:', 'check', 10, playCheck);

/** What is set, and what the plan says of it. */
const PLANS: readonly (readonly [settings: string, ...patterns: RegExp[]])[] = [
  [
    'START_TIMEOUT=0; RUN_TIMEOUT=2h; SCRAPES=3; EXIT_ZERO=true',
    /^ {12}Waits for main without limit until it is seen alive\.$/m,
    /^ {12}Treats main as done after it ran for 2h\.$/m,
    /until others have scraped 3 times since main ended, for 1m30s at most\.$/m,
    /exit 0, always\.$/m,
  ],
  ['FRONT=9469', /^ {14}\/metrics: http:\/\/localhost:9646\/metrics; once main is gone, /m],
  [
    'FRONT=127.0.0.1:9469; METRICS_URL=http://localhost:8000/prom?token=secret; SCRAPES=2',
    /^ {3}Serve +on 127\.0\.0\.1:9469:$/m,
    /^ {14}\/metrics and \/prom: http:\/\/localhost:8000\/prom\?\*\*\*; /m,
  ],
  // A path that ends with a slash is no folder.
  ['FRONT=9469; METRICS_URL=http://localhost:8000/', /^ {14}\/metrics and \/: http:\/\/localhost:8000\/; once /m],
  [
    'DONE_WHEN=sigterm',
    /^ {12}Main is alive until this signal comes:\n {14}sigterm\n2\. Hold/m,
    /since main ended, for 25s at most\.$/m,
  ],
  ['DONE_WHEN=sigterm,port:80; TTL=10s', /for 10s at most\.$/m],
  ['FRONT=9469; SCRAPES=0; DONE_WHEN=sigterm', /^1\. Watch +every 1s, reading http/m, /^2\. Hold +not at all /m],
  ['TTL=0', /^2\. Hold +not at all /m],
  ['DRY_RUN=true; TOMBSTONE=/graveyard/main', /write \/graveyard\/main, .*\(not in a dry run\)\.$/m],
  ['TERMINATION_LOG=/log', /^4\. Report +in the log and in \/log; then exit\.$/m],
];
for (const [settings, ...patterns] of PLANS) {
  test(`formatPlan() shows "${settings}", and no secret of a URL`, () => {
    const found = { isPod: true, lines: [], warnings: [], problems: [] };
    const text = formatPlan(readValid(toEnvironment(settings)), found);
    for (const pattern of patterns) assert.match(text, pattern);
    assert.ok(!text.includes('secret'));
  });
}
