// What --check prints of a configuration: that nothing is missing in the plan, and its shape. Whole outputs: check-output.test.ts.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Findings, formatPlan } from '../../src/check/plan.ts';
import type { Environment } from '../../src/config/config.ts';
import { readValid } from '../config/read-config.ts';

const NOTHING: Findings = { isPod: true, lines: [], warnings: [], problems: [] };

function plan(env: Environment, found: Partial<Findings> = {}): string {
  return formatPlan(readValid(env), { ...NOTHING, ...found });
}

const PLANS: Readonly<Record<string, readonly [Environment, readonly RegExp[]]>> = {
  'the defaults': [
    {},
    [
      /^1\. Watch +every 1s, reading http:\/\/localhost:9646\/metrics\.$/m,
      /^ {14}metric:locust_up$/m,
      /^ {14}port:5557$/m,
      /not seen alive for 10m\.$/m,
      /Watches a running main without limit/,
      /^2\. Hold +until others have scraped once since main ended, for 1m30s at most\.$/m,
      /^3\. Quit +in this order, each within 30s:$/m,
      /^ {14}locust-exporter: POST http:\/\/localhost:9646\/quitquitquit$/m,
      /^4\. Report +in the log and in \/dev\/termination-log, where that exists; then exit\.$/m,
      /^After SIGTERM all of this has 25s; /m,
    ],
  ],
  'limits of their own': [
    {
      LASTSCRAPE_START_TIMEOUT: '0',
      LASTSCRAPE_RUN_TIMEOUT: '2h',
      LASTSCRAPE_SCRAPES: '3',
      LASTSCRAPE_EXIT_ZERO: 'true',
    },
    [
      /Waits for main without limit until it is seen alive/,
      /Treats main as done after it ran for 2h/,
      /scraped 3 times /,
      /exit 0, always\.$/m,
    ],
  ],
  'a front': [
    { LASTSCRAPE_FRONT: '9469' },
    [
      /^ {3}Serve +on port 9469 of all addresses:$/m,
      /^ {14}\/metrics: http:\/\/localhost:9646\/metrics; once main is gone, /m,
      /^2\. Hold +until every active scraper has scraped the front since main ended, at least one, for 1m30s at most\.$/m,
    ],
  ],
  'a front at one address, and another path': [
    {
      LASTSCRAPE_FRONT: '127.0.0.1:9469',
      LASTSCRAPE_METRICS_URL: 'http://localhost:8000/prom?x',
      LASTSCRAPE_SCRAPES: '2',
    },
    [
      /^ {3}Serve +on 127\.0\.0\.1:9469:$/m,
      /^ {14}\/metrics and \/prom: http:\/\/localhost:8000\/prom\?\*\*\*; /m,
      /^2\. Hold +until others have scraped the front 2 times since main ended, /m,
    ],
  ],
  'a front for what looks like a folder': [
    { LASTSCRAPE_FRONT: '9469', LASTSCRAPE_METRICS_URL: 'http://localhost:8000/' },
    [/^ {14}\/metrics and \/: http:\/\/localhost:8000\/; once /m],
  ],
  'a front for files': [
    { LASTSCRAPE_FRONT: '9469', LASTSCRAPE_METRICS_URL: 'file:///shared/metrics/' },
    [/^ {14}\/metrics: file:\/\/\/shared\/metrics\/, every \*\.prom in it; /m],
  ],
  'a front for a file': [
    { LASTSCRAPE_FRONT: '9469', LASTSCRAPE_METRICS_URL: 'file:///shared/job.prom' },
    [/^ {14}\/metrics: file:\/\/\/shared\/job\.prom; /m],
  ],
  'a signal': [
    { LASTSCRAPE_DONE_WHEN: 'sigterm' },
    [
      /^ {12}Main is alive until this signal comes, which proves its end at once:\n {14}sigterm\n2\. Hold/m,
      /since main ended, for 25s at most\.$/m,
      /^Hold and quitting end 25s after SIGTERM \(LASTSCRAPE_TERMINATION_GRACE\)/m,
    ],
  ],
  'a signal beside a port, and a short hold': [
    { LASTSCRAPE_DONE_WHEN: 'sigterm,port:80', LASTSCRAPE_TTL: '10s' },
    [/all of these hold; all but the signal in two polls and for 3s:$/m, /for 10s at most\.$/m],
  ],
  'a front without a hold': [
    { LASTSCRAPE_FRONT: '9469', LASTSCRAPE_SCRAPES: '0', LASTSCRAPE_DONE_WHEN: 'sigterm' },
    [/^1\. Watch +every 1s, reading http/m, /^2\. Hold +not at all /m],
  ],
  'no hold': [{ LASTSCRAPE_SCRAPES: '0' }, [/^2\. Hold +not at all /m]],
  'no hold by its time': [{ LASTSCRAPE_TTL: '0' }, [/^2\. Hold +not at all /m]],
  'no target': [{ LASTSCRAPE_QUIT: 'none' }, [/^3\. Quit +nothing \(LASTSCRAPE_QUIT is none\)\.$/m]],
  'no exporter': [{ LASTSCRAPE_DONE_WHEN: 'port:80', LASTSCRAPE_SCRAPES: '0' }, [/^1\. Watch +every 1s/m]],
  'a dry run': [
    { LASTSCRAPE_DRY_RUN: 'true', LASTSCRAPE_TOMBSTONE: '/graveyard/main' },
    [
      /^3\. Quit +nothing, but log it \(LASTSCRAPE_DRY_RUN\); otherwise in this order/m,
      /write \/graveyard\/main, .*\(not in a dry run\)\.$/m,
    ],
  ],
  'a termination log of its own': [
    { LASTSCRAPE_TERMINATION_LOG: '/log' },
    [/^4\. Report +in the log and in \/log; then exit\.$/m],
  ],
};

for (const [name, [env, patterns]] of Object.entries(PLANS)) {
  test(`formatPlan() shows ${name}`, () => {
    const text = plan(env);
    for (const pattern of patterns) assert.match(text, pattern);
    assert.deepEqual(
      [...text.matchAll(/^(\d)\. /gm)].map(([, number]) => number),
      ['1', '2', '3', '4'],
    );
  });
}

test('formatPlan() ends with what was found, and no secret of a URL', () => {
  const env = { LASTSCRAPE_METRICS_URL: 'http://localhost:9646/metrics?token=secret' };
  const found = { lines: [{ name: 'port:5557', text: 'alive' }], warnings: ['odd'] };
  const text = plan(env, found);
  assert.match(text, /\nThe pod shows this now:\n\n {2}port:5557: alive\n {2}warning: odd\n$/);
  assert.ok(!text.includes('secret'));
  assert.match(plan(env, { ...found, isPod: false }), /\nThis is not a Kubernetes pod\. .*:\n\n {2}port:5557: alive\n/);
  assert.match(
    plan(env, { problems: ['Cannot use it'] }),
    /^The configuration can be read, but cannot work in this pod /,
  );
});
