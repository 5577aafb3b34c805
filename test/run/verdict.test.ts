// LASTSCRAPE_FAIL_IF on the whole program, over real sockets: its own process, an exporter or a job with its own page, Locust's stand-in.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { openSource, reply, scrape, scrapeToTheEnd } from '../front/source.ts';
import { makeFolder } from '../support/folder.ts';
import { findFreePort } from '../support/listen.ts';
import { until } from '../support/until.ts';
import { type Ended, openPod, openPort, startWatcher, untilReached } from '../support/watcher.ts';

/** A main that is known by its port, a source that shows `body`, and lastscrape. */
async function open(t: TestContext, body: string, env: Readonly<Record<string, string>>) {
  const source = await openSource(body);
  const main = await openPort();
  const messagePath = join(makeFolder(), 'message');
  const watcher = startWatcher({
    LASTSCRAPE_METRICS_URL: source.url.href,
    LASTSCRAPE_DONE_WHEN: `port:${main.port}`,
    LASTSCRAPE_POLL: '100ms',
    LASTSCRAPE_SETTLE: '0',
    LASTSCRAPE_QUIT: 'none',
    LASTSCRAPE_TERMINATION_LOG: messagePath,
    ...env,
  });
  t.after(async () => {
    watcher.child.kill('SIGKILL');
    await watcher.ended;
    main.close();
    await source[Symbol.asyncDispose]();
  });
  return { watcher, source, main, message: () => JSON.parse(readFileSync(messagePath, 'utf8')) };
}

const pick = ({ code, report }: Ended) => [code, report?.['exitCode'], report?.['verdict'], report?.['failed']];

test('the verdict is in the message from the beginning of the hold on, and in the exit code', async (t) => {
  const run = await open(t, 'a 2\n', { LASTSCRAPE_FAIL_IF: 'a > 1', LASTSCRAPE_TERMINATION_GRACE: '0' });
  await run.watcher.said('main is running');
  await run.source.requests(run.source.requestsCount + 2);
  assert.equal(run.message().verdict, undefined, 'main runs');
  run.main.close();
  await run.watcher.said('main ended');
  const { outcome, verdict, failed, exitCode } = run.message();
  assert.deepEqual([outcome, verdict, failed, exitCode], ['unfinished', 'failed', { entry: 'a > 1', seen: 2 }, null]);
  run.watcher.child.kill('SIGTERM');
  assert.deepEqual(pick(await run.watcher.ended), [1, 1, 'failed', { entry: 'a > 1', seen: 2 }]);
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
