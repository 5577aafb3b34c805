// Conditions on a file system that hangs: real threads of libuv wait for a FUSE mount that never answers.

import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { mountHanging } from '../base/hanging-mount.ts';
import { gateNamespaces, openPidNamespace, signalInnermost } from '../support/pid-namespace.ts';
import { until } from '../support/until.ts';

const skip = gateNamespaces('test/observe/hanging.test.ts');

/** Nothing ends it but a signal, and there is nothing to hold for or to quit. */
const WATCH = {
  LASTSCRAPE_SCRAPES: '0',
  LASTSCRAPE_QUIT: 'none',
  LASTSCRAPE_POLL: '100ms',
  LASTSCRAPE_START_TIMEOUT: '0',
  LASTSCRAPE_TERMINATION_GRACE: '1s',
  LASTSCRAPE_LOG_LEVEL: 'debug',
};

/** What the conditions showed in each poll. */
function listConditions(log: readonly Readonly<Record<string, unknown>>[]): readonly (readonly string[])[] {
  return log.flatMap(({ conditions }) => (Array.isArray(conditions) ? [conditions] : []));
}

for (const isAlone of [false, true]) {
  test(`a watcher${isAlone ? ', as PID 1,' : ''} observes what hangs within its time, with a thread left, and ends`, {
    skip,
  }, async () => {
    await using namespace = await openPidNamespace();
    const { path } = await mountHanging(namespace);
    const entries = [`file:${path}/a`, `tombstone:${path}/b`, `file:${path}/c`, `file:${path}/d`];
    const missing = join(namespace.folder, 'missing');
    const doneWhen = [...entries, `file:${missing}`].join(',');
    const watcher = namespace.watch({ ...WATCH, LASTSCRAPE_DONE_WHEN: doneWhen }, { isAlone });
    await watcher.said('a condition cannot be checked');
    signalInnermost(watcher.child, 'SIGTERM');
    const { code, report, log } = await watcher.ended;
    assert.deepEqual([code, report?.['msg']], [0, 'report']);
    assert.deepEqual(listConditions(log)[0], [
      `blind: file ${path}/a unknown: timed out`,
      `blind: tombstone ${path}/b unknown: timed out`,
      `blind: file ${path}/c unknown: timed out`,
      `blind: file ${path}/d unknown: 3 other calls hang`,
      `blind: file ${missing} unknown: 3 other calls hang`,
    ]);
  });
}

test('a watcher goes on with the late answer when the file system is gone, or works again', { skip }, async () => {
  await using namespace = await openPidNamespace();
  const { path, server } = await mountHanging(namespace);
  const watcher = namespace.watch({ ...WATCH, LASTSCRAPE_DONE_WHEN: `file:${path}/a` });
  let stdout = '';
  watcher.child.stdout?.on('data', (text: string) => {
    stdout += text;
  });
  await watcher.said('a condition cannot be checked');
  process.kill(server.pid, 'SIGKILL');
  await until('the late answer', 60_000, async () => stdout.includes('ENOTCONN') || undefined);
  signalInnermost(watcher.child, 'SIGTERM');
  const { code, log } = await watcher.ended;
  assert.equal(code, 0);
  const shown = [...new Set(listConditions(log).flat())];
  assert.deepEqual(shown.slice(0, 2), [
    `blind: file ${path}/a unknown: timed out`,
    `blind: file ${path}/a unknown: ENOTCONN`,
  ]);
});
