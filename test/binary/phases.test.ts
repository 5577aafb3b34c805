// The program as a process, phase by phase: what a kubelet and a person see of it.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { test } from 'node:test';
import { makeFolder } from '../support/folder.ts';
import { until } from '../support/until.ts';
import {
  COMMAND,
  type Ended,
  openPod,
  type Pod,
  scrapeToTheEnd,
  startWatcher,
  untilReached,
  type Watcher,
} from '../support/watcher.ts';

/** Scrapes as Prometheus would: the scrape that counts comes after main's end, whenever that is. */
async function scrapeUntilEnded(pod: Pod, { child, ended }: Watcher): Promise<Ended> {
  await scrapeToTheEnd(pod, () => child.exitCode !== null);
  return ended;
}

test('main job: watches, holds for one scrape, stops the exporter, reports, exits 0', async () => {
  await using pod = await openPod();
  const watcher = startWatcher(pod.env);
  await watcher.said('main is running');
  assert.equal(pod.message()['outcome'], 'unfinished');
  pod.locust.kill();
  await watcher.said('main ended');
  assert.equal(pod.exporter.isOpen, true, 'held until scraped');
  const { code, stderr, log, report } = await scrapeUntilEnded(pod, watcher);
  assert.equal(code, 0);
  assert.equal(stderr, '');
  assert.equal(pod.exporter.isOpen, false);
  const messages = log.map(({ msg }) => msg);
  assert.deepEqual(messages, ['watching', 'main is running', 'main ended', 'quitting', 'target stopped', 'report']);
  assert.equal(report?.['outcome'], 'scraped');
  const { time: _time, level: _level, msg: _msg, ...fields } = report ?? {};
  assert.deepEqual(pod.message(), fields, 'the termination message is the report');
  const summary = String(report?.['summary']);
  assert.match(summary, /^Scraped (once|\d+ times) \d+\.\d s after main ended; locust-exporter stopped$/);
});

test('a second signal, SIGINT, gives up at once with 130', async () => {
  await using pod = await openPod();
  const watcher = startWatcher(pod.env);
  await watcher.said('main is running');
  watcher.child.kill('SIGTERM');
  await watcher.said('asked to terminate');
  watcher.child.kill('SIGINT');
  const { code, report } = await watcher.ended;
  assert.deepEqual([code, report?.['outcome'], report?.['exitCode']], [130, 'terminated', 130]);
  assert.equal(pod.exporter.isOpen, true, 'no target was asked');
});

test('a target that lives on is reported, with a hint, and EXIT_ZERO hides it from the kubelet', async () => {
  await using pod = await openPod({ faults: { outlivesQuit: true } });
  const env = { LASTSCRAPE_SCRAPES: '0', LASTSCRAPE_QUIT_TIMEOUT: '2s', LASTSCRAPE_EXIT_ZERO: 'true' };
  const watcher = startWatcher({ ...pod.env, ...env });
  await watcher.said('main is running');
  pod.locust.kill();
  const { code, report } = await watcher.ended;
  assert.deepEqual([code, report?.['exitCode']], [0, 69]);
  const [target] = (report?.['targets'] ?? []) as readonly Record<string, unknown>[];
  assert.equal(target?.['result'], 'failed');
  assert.match(String(target?.['hint']), /before v0\.5\.0 has no \/quitquitquit/);
});

test('a killed watcher leaves a message that says how far it came, and the next one goes on', async () => {
  await using pod = await openPod();
  const killed = startWatcher(pod.env);
  await killed.said('main is running');
  pod.locust.kill();
  await killed.said('main ended');
  killed.child.kill('SIGKILL');
  assert.equal((await killed.ended).code, null);
  assert.deepEqual([pod.message()['outcome'], pod.message()['summary']], ['unfinished', 'Unfinished: holding']);
  const next = startWatcher(pod.env);
  await next.said('main ended');
  const { code, report } = await scrapeUntilEnded(pod, next);
  assert.deepEqual([code, report?.['outcome'], pod.exporter.isOpen], [0, 'scraped', false]);
});

test('a reader of stdout that went away does not end the job', async () => {
  await using pod = await openPod();
  const watcher = startWatcher(pod.env);
  await watcher.said('main is running');
  watcher.child.stdout?.destroy();
  pod.locust.kill();
  const exited = once(watcher.child, 'exit');
  await scrapeToTheEnd(pod, () => watcher.child.exitCode !== null);
  const [code] = await exited;
  assert.equal(code, 0);
  assert.equal(pod.message()['outcome'], 'scraped');
});

test('an unread pipe as stdout does not stop the job, even at debug level', async () => {
  await using pod = await openPod();
  const folder = makeFolder();
  // A debug line has 2 KB: unbounded, the log would fill the 64 KiB of a pipe in 4 s.
  const existing = Array.from({ length: 20 }, () => `file:${'/.'.repeat(50)}`).join(',');
  const env = {
    ...pod.env,
    PATH: process.env['PATH'] ?? '',
    LASTSCRAPE_LOG_LEVEL: 'debug',
    LASTSCRAPE_DONE_WHEN: `${existing},port:${pod.locust.masterPort}`,
    LASTSCRAPE_RUN_TIMEOUT: '6s',
    LASTSCRAPE_SCRAPES: '0',
  };
  await untilReached(pod);
  // The shell opens the pipe for reading and never reads.
  const script = 'mkfifo "$0/pipe" && exec 3<>"$0/pipe" && "$@" >"$0/pipe"';
  const child = spawn('sh', ['-c', script, folder, ...COMMAND], { env, stdio: 'ignore' });
  const [code] = await once(child, 'exit');
  assert.deepEqual([code, pod.message()['outcome'], pod.exporter.isOpen], [0, 'timedOut', false]);
});

test('a configuration that cannot be used: all problems on stderr and in the message, nothing on stdout, 78', async () => {
  await using pod = await openPod();
  const env = { ...pod.env, LASTSCRAPE_TTL: '9O s', LASTSCRAPE_SCRAPES: 'one', LASTSCRAPE_POLLS: '2s' };
  const { code, stdout, stderr } = await startWatcher(env).ended;
  assert.deepEqual([code, stdout], [78, '']);
  assert.equal(stderr.trimEnd().split('\n').length, 3);
  assert.deepEqual(pod.message()['problems'], stderr.trimEnd().split('\n'));
  assert.equal(pod.message()['outcome'], 'misconfigured');
});

test('a configuration that cannot be used, with EXIT_ZERO: says so at once, and stays until main has ended', async () => {
  await using pod = await openPod();
  await untilReached(pod);
  const watcher = startWatcher({ ...pod.env, LASTSCRAPE_TTL: 'soon', LASTSCRAPE_EXIT_ZERO: 'true' });
  await until('the message', 60_000, async () => pod.message());
  assert.deepEqual([pod.message()['outcome'], pod.message()['exitCode']], ['misconfigured', 78]);
  const firstCount = await scrapeAndCount(pod);
  let ownCount = 0;
  await until('five looks of the watcher', 60_000, async () => {
    ownCount += 1;
    return (await scrapeAndCount(pod)) >= firstCount + ownCount + 5 ? true : undefined;
  });
  assert.equal(watcher.child.exitCode, null, 'stays while main runs');
  pod.locust.kill();
  const { code, stdout } = await watcher.ended;
  assert.deepEqual([code, stdout], [0, '']);
  assert.equal(pod.exporter.isOpen, true, 'nothing is stopped');
  assert.equal(pod.message()['outcome'], 'misconfigured');
});

/** Scrapes once. @returns how many scrapes had finished before, by anyone */
async function scrapeAndCount({ exporter }: Pod): Promise<number> {
  const body = await (await fetch(`${exporter.url}/metrics`)).text();
  return Number(/^promhttp_metric_handler_requests_total\{code="200"\} (\d+)$/m.exec(body)?.[1]);
}

test('--check prints the plan or the problems, and writes no message', async () => {
  await using pod = await openPod();
  const right = await startWatcher({ ...pod.env, LASTSCRAPE_QUIT: 'http://u:secret@localhost:1/q?t=secret' }, [
    '--check',
  ]).ended;
  assert.equal(right.code, 0);
  assert.match(right.stdout, /POST http:\/\/\*\*\*@localhost:1\/q\?\*\*\*/);
  const wrong = await startWatcher({ ...pod.env, LASTSCRAPE_TTL: 'x', LASTSCRAPE_EXIT_ZERO: 'true' }, ['--check'])
    .ended;
  assert.deepEqual([wrong.code, wrong.stdout], [78, '']);
  assert.match(wrong.stderr, /LASTSCRAPE_TTL/);
  assert.equal(existsSync(pod.messagePath), false);
});
