// LASTSCRAPE_FAIL_IF on the whole program: its own process, an exporter, Locust's stand-in.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { openSource } from '../front/source.ts';
import { makeFolder } from '../support/folder.ts';
import { openPod, openPort, startWatcher, untilReached } from '../support/watcher.ts';

test('the verdict is in the message from the beginning of the hold on, and in the exit code', async (t) => {
  await using source = await openSource('a 2\n');
  const main = await openPort();
  const messagePath = join(makeFolder(), 'message');
  const watcher = startWatcher({
    LASTSCRAPE_METRICS_URL: source.url.href,
    LASTSCRAPE_DONE_WHEN: `port:${main.port}`,
    LASTSCRAPE_POLL: '100ms',
    LASTSCRAPE_SETTLE: '0',
    LASTSCRAPE_QUIT: 'none',
    LASTSCRAPE_TERMINATION_LOG: messagePath,
    LASTSCRAPE_TERMINATION_GRACE: '0',
    LASTSCRAPE_FAIL_IF: 'a > 1',
  });
  t.after(() => {
    watcher.child.kill('SIGKILL');
    main.close();
  });
  const readMessage = () => JSON.parse(readFileSync(messagePath, 'utf8'));
  await watcher.said('main is running');
  await source.requests(source.requestsCount + 2);
  assert.equal(readMessage().verdict, undefined, 'main runs');
  main.close();
  await watcher.said('main ended');
  const { outcome, verdict, failed, exitCode } = readMessage();
  assert.deepEqual([outcome, verdict, failed, exitCode], ['unfinished', 'failed', { entry: 'a > 1', seen: 2 }, null]);
  watcher.child.kill('SIGTERM');
  const { code, report } = await watcher.ended;
  assert.deepEqual([code, report?.['exitCode'], report?.['verdict'], report?.['failed']], [1, 1, 'failed', failed]);
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
