// SIGTERM while Node starts, as PID 1: where a pod's main ends at once, the kubelet's signal comes that early.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { gateNamespaces, openPidNamespace, signalInnermost } from '../support/pid-namespace.ts';

const skip = gateNamespaces('test/binary/early-signal.test.ts');

test('a SIGTERM that Node itself took is not lost', { skip }, async () => {
  await using namespace = await openPidNamespace();
  const env = { LASTSCRAPE_DONE_WHEN: 'sigterm', LASTSCRAPE_METRICS_URL: 'http://127.0.0.1:1/metrics' };
  const watcher = namespace.watch(env, { isAlone: true });
  // Node catches SIGTERM from its first moments on, long before it has read the program.
  while (!listDescendants(watcher.child.pid ?? 0).some(isCatchingSigterm)) await turn();
  signalInnermost(watcher.child, 'SIGTERM');
  const { stdout } = await watcher.ended;
  assert.match(stdout, /"msg":"main ended"/);
});

function listDescendants(pid: number): readonly number[] {
  const rows = execFileSync('ps', ['-A', '-o', 'pid=,ppid='], { encoding: 'utf8' }).trim().split('\n');
  const pairs = rows.map((row) => row.trim().split(/\s+/).map(Number));
  const children = pairs.filter(([, parent]) => parent === pid).map(([child = 0]) => child);
  return children.flatMap((child) => [child, ...listDescendants(child)]);
}

function isCatchingSigterm(pid: number): boolean {
  try {
    const [, caught = '0'] = /^SigCgt:\s*(\w+)$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? [];
    const isNode = readFileSync(`/proc/${pid}/comm`, 'utf8').match(/^(node|MainThread|lastscrape)/) !== null;
    return isNode && (BigInt(`0x${caught}`) & (1n << 14n)) !== 0n;
  } catch {
    return false;
  }
}
