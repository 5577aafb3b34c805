// LASTSCRAPE_FAIL_IF on the whole program, over real sockets: its own process, an exporter or a job with its own page, Locust's stand-in.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { hang, openSource, reply, scrape, scrapeToTheEnd } from '../front/source.ts';
import { makeFolder } from '../support/folder.ts';
import { findFreePort } from '../support/listen.ts';
import { until } from '../support/until.ts';
import { type Ended, openPod, openPort, startWatcher, untilReached, type Watcher } from '../support/watcher.ts';

type Run = {
  readonly watcher: Watcher;
  readonly message: () => Record<string, unknown>;
  readonly source: Awaited<ReturnType<typeof openSource>>;
  readonly endMain: () => void;
};

/** A main that is known by its port, a source that shows `body`, and lastscrape. */
async function open(t: TestContext, body: string, env: Readonly<Record<string, string>>): Promise<Run> {
  const source = await openSource(body);
  const main = await openPort();
  const folder = makeFolder();
  const messagePath = join(folder, 'message');
  const watcher = startWatcher({
    LASTSCRAPE_METRICS_URL: source.url.href,
    LASTSCRAPE_DONE_WHEN: `port:${main.port}`,
    LASTSCRAPE_POLL: '100ms',
    LASTSCRAPE_SETTLE: '0',
    LASTSCRAPE_QUIT: 'none',
    LASTSCRAPE_TERMINATION_LOG: messagePath,
    ...env,
    // A target that lives on.
    ...(env['LASTSCRAPE_QUIT'] === 'SOURCE' ? { LASTSCRAPE_QUIT: source.url.href } : {}),
  });
  t.after(async () => {
    watcher.child.kill('SIGKILL');
    await watcher.ended;
    main.close();
    await source[Symbol.asyncDispose]();
  });
  return {
    watcher,
    source,
    message: () => JSON.parse(readFileSync(messagePath, 'utf8')),
    endMain: () => main.close(),
  };
}

/** Waits until main is seen to run, and was polled once more. */
async function untilRead({ watcher, source }: Run): Promise<void> {
  await watcher.said('main is running');
  await source.requests(source.requestsCount + 2);
}

const pick = ({ code, report }: Ended) => [code, report?.['exitCode'], report?.['verdict'], report?.['failed']];

const NO_HOLD = { LASTSCRAPE_SCRAPES: '0' };

for (const [what, body, env, expected] of [
  ['passes', 'a 1\n', { LASTSCRAPE_FAIL_IF: 'a > 1' }, [0, 0, 'passed', undefined]],
  ['fails', 'a 2\n', { LASTSCRAPE_FAIL_IF: 'a > 1' }, [1, 1, 'failed', { entry: 'a > 1', seen: 2 }]],
  [
    'fails, although EXIT_ZERO covers troubles of its own',
    'a 2\n',
    { LASTSCRAPE_FAIL_IF: 'a > 1', LASTSCRAPE_EXIT_ZERO: 'true' },
    [1, 1, 'failed', { entry: 'a > 1', seen: 2 }],
  ],
  [
    'fails where a target runs on: 1 wins over 69',
    'a 2\n',
    { LASTSCRAPE_FAIL_IF: 'a > 1', LASTSCRAPE_QUIT_TIMEOUT: '50ms', LASTSCRAPE_QUIT: 'SOURCE' },
    [1, 1, 'failed', { entry: 'a > 1', seen: 2 }],
  ],
] as const) {
  test(`a run ${what}`, async (t) => {
    const run = await open(t, body, { ...NO_HOLD, ...env });
    await untilRead(run);
    run.endMain();
    assert.deepEqual(pick(await run.watcher.ended), expected);
  });
}

test('what vanishes at the end is judged as it last was, and what stays by its newest number', async (t) => {
  const run = await open(t, 'ratio 0.5\nerrors 0\n', { ...NO_HOLD, LASTSCRAPE_FAIL_IF: 'ratio > 0.4, errors > 1' });
  await untilRead(run);
  run.source.answer = reply('errors 2\n');
  await run.source.requests(run.source.requestsCount + 2);
  run.endMain();
  const { report } = await run.watcher.ended;
  const judged = [report?.['failed'], report?.['alsoFailed']];
  assert.deepEqual(judged, [{ entry: 'ratio > 0.4', seen: 0.5 }, [{ entry: 'errors > 1', seen: 2 }]]);
});

test('the verdict is in the message from the beginning of the hold on', async (t) => {
  const run = await open(t, 'a 2\n', { LASTSCRAPE_FAIL_IF: 'a > 1' });
  await untilRead(run);
  assert.equal(run.message()['verdict'], undefined, 'main runs');
  run.endMain();
  await run.watcher.said('main ended');
  const { outcome, verdict, failed, exitCode } = run.message();
  assert.deepEqual([outcome, verdict, failed, exitCode], ['unfinished', 'failed', { entry: 'a > 1', seen: 2 }, null]);
});

test('a run that a signal cut short is not judged, with EXIT_ZERO too', async (t) => {
  const env = { LASTSCRAPE_EXIT_ZERO: 'true', LASTSCRAPE_TERMINATION_GRACE: '200ms' };
  const run = await open(t, 'a 0\n', { LASTSCRAPE_FAIL_IF: 'a > 1', ...env });
  await untilRead(run);
  run.watcher.child.kill('SIGTERM');
  const ended = await run.watcher.ended;
  assert.deepEqual([ended.report?.['outcome'], ...pick(ended)], ['terminated', 75, 75, 'notJudged', undefined]);
});

test('a run whose main had ended when the signal came is judged', async (t) => {
  const run = await open(t, 'a 2\n', { ...NO_HOLD, LASTSCRAPE_FAIL_IF: 'a > 1' });
  await untilRead(run);
  run.endMain();
  run.watcher.child.kill('SIGTERM');
  assert.deepEqual(pick(await run.watcher.ended), [1, 1, 'failed', { entry: 'a > 1', seen: 2 }]);
});

test('an exporter that comes back after the end with nothing in it is not believed', async (t) => {
  const counted = (count: number, errors: number) =>
    reply(
      `errors ${errors}\npromhttp_metric_handler_requests_total{code="200"} ${count}\npromhttp_metric_handler_requests_in_flight 1\n`,
    );
  const run = await open(t, 'errors 0\n', { LASTSCRAPE_FAIL_IF: 'errors > 4' });
  run.source.answer = counted(100, 5);
  await untilRead(run);
  await run.source.requests(run.source.requestsCount + 1);
  run.source.answer = counted(0, 0);
  // In the very poll that shows the end, or in one after it.
  run.endMain();
  const ended = await run.watcher.ended;
  const shown = [ended.report?.['outcome'], ...pick(ended)];
  assert.deepEqual(shown, ['exporterGone', 1, 1, 'failed', { entry: 'errors > 4', seen: 5 }]);
});

test('with a front the answer that ends the hold is the one that is judged', async (t) => {
  const port = await findFreePort();
  const run = await open(t, 'a 0\n', {
    LASTSCRAPE_FAIL_IF: 'a > 1',
    LASTSCRAPE_FRONT: `127.0.0.1:${port}`,
    LASTSCRAPE_SCRAPES: '1',
    // No poll comes between.
    LASTSCRAPE_DONE_WHEN: 'sigterm',
    LASTSCRAPE_POLL: '1h',
  });
  await until('the front', 60_000, async () =>
    (await scrape(port, { path: '/-/ready' }).catch(() => null))?.status === 200 ? true : undefined,
  );
  await run.watcher.said('main is running');
  run.watcher.child.kill('SIGTERM');
  await run.watcher.said('main ended');
  run.source.answer = reply('a 2\n');
  const ended = await scrapeToTheEnd(port, run.watcher);
  const shown = [ended.report?.['outcome'], ...pick(ended)];
  assert.deepEqual(shown, ['scraped', 1, 1, 'failed', { entry: 'a > 1', seen: 2 }]);
});

test('a source that hangs at the end is judged by what it last showed', async (t) => {
  const run = await open(t, 'a 2\n', { ...NO_HOLD, LASTSCRAPE_FAIL_IF: 'a > 1', LASTSCRAPE_TTL: '1s' });
  await untilRead(run);
  run.source.answer = hang;
  run.endMain();
  run.watcher.child.kill('SIGTERM');
  assert.deepEqual(pick(await run.watcher.ended), [1, 1, 'failed', { entry: 'a > 1', seen: 2 }]);
});

test("a load test fails by Locust's own numbers, of which the failure ratio vanishes with Locust", async () => {
  await using pod = await openPod();
  const watcher = startWatcher({
    ...pod.env,
    LASTSCRAPE_SCRAPES: '0',
    LASTSCRAPE_FAIL_IF: [
      'locust_requests_fail_ratio >= 0',
      'locust_requests_num_requests{name="Aggregated"} < 1e9',
      'locust_requests_current_response_time_percentile_95 > 500',
    ].join(', '),
  });
  await watcher.said('main is running');
  await untilReached(pod);
  pod.locust.kill();
  const { code, report, log } = await watcher.ended;
  assert.deepEqual([code, report?.['verdict']], [1, 'failed']);
  assert.match(String(report?.['summary']), /^Failed by locust_requests_fail_ratio >= 0 \([\d.]+\), and 1 more; /);
  const zero = log.filter(({ msg }) => String(msg).startsWith('a metric in LASTSCRAPE_FAIL_IF was always 0'));
  // The recorded exporters show 0 there with Locust 2.x, whatever happens.
  assert.ok(
    zero.some(
      ({ level, entry }) => level === 'warn' && entry === 'locust_requests_current_response_time_percentile_95 > 500',
    ),
  );
});
