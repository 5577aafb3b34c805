// Textfiles on a file system that hangs: real threads of libuv wait for a FUSE mount that never answers.

import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { mountHanging } from '../base/hanging-mount.ts';
import { gateNamespaces, openPidNamespace } from '../support/pid-namespace.ts';
import { until } from '../support/until.ts';

const NODE_COMM = readFileSync('/proc/self/comm', 'utf8').trim();

const skip = gateNamespaces('test/front/hanging.test.ts');

test('a file source that hangs is given up in time, holds one thread, and finds out when it is gone', {
  skip,
}, async () => {
  await using namespace = await openPidNamespace();
  const { path, server } = await mountHanging(namespace);
  const output = join(namespace.folder, 'output');
  const script = join(import.meta.dirname, 'hanging-inside.ts');
  const { ended } = await namespace.start([process.execPath, script, path, output], { uid: 0, comm: NODE_COMM });
  const lines = () => (existsSync(output) ? readFileSync(output, 'utf8').split('\n').slice(0, -1) : []);
  await until('six reads', 60_000, async () => lines().length >= 6 || undefined);
  assert.deepEqual(lines().slice(0, 6), [
    '0 timed out',
    '0 timed out',
    '1 timed out',
    '2 timed out',
    '3 3 other calls hang',
    '0 timed out',
  ]);
  process.kill(server.pid, 'SIGKILL');
  assert.equal(await ended, 0);
  assert.deepEqual(lines().slice(6), [`0 ${path}/job.prom cannot be read: ENOTCONN`]);
});
