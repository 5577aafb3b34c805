import assert from 'node:assert/strict';
import { test } from 'node:test';
import { chooseToClose } from '../../src/front/connections.ts';

const NOW_MS = 10_000;

/** Connections such as `A2 idle 9`: the address, a number, and how many seconds they have been idle or blocked. */
function choose(open: readonly string[], address: string): string | null {
  const views = open.map((text) => {
    const [name = '', kind, seconds] = text.split(' ');
    const sinceMs = NOW_MS - Number(seconds) * 1_000;
    const idleSinceMs = kind === 'idle' ? sinceMs : null;
    return { text, address: name.slice(0, 1), idleSinceMs, blockedSinceMs: kind === 'blocked' ? sinceMs : null };
  });
  return chooseToClose(views, address, NOW_MS, 2)?.text ?? null;
}

for (const [what, open, address, expected] of [
  ['the one idle longest', ['A1 idle 1', 'B1 idle 5', 'C1 idle 3'], 'D', 'B1 idle 5'],
  ['the one blocked longest, where none is idle', ['A1 blocked 1', 'B1 blocked 5', 'C1'], 'D', 'B1 blocked 5'],
  ['none that was blocked just now', ['A1 blocked 0.9', 'B1', 'C1'], 'D', null],
  ['one of the address that has too many', ['B1 idle 9', 'A1', 'A2 idle 1', 'A3'], 'B', 'A2 idle 1'],
  ['one of them that is blocked', ['B1 idle 9', 'A1', 'A2 blocked 1', 'A3'], 'C', 'A2 blocked 1'],
  ['the newest of them', ['B1 idle 9', 'A1', 'A2', 'A3'], 'B', 'A3'],
  ['of two crowds the larger one', ['A1', 'A2', 'A3', 'B1', 'B2', 'B3', 'B4'], 'C', 'B4'],
  ['none of others for one too many', ['B1 idle 9', 'A1', 'A2'], 'A', null],
  ['an idle one of its own for one too many', ['B1 idle 9', 'A1', 'A2 idle 1'], 'A', 'A2 idle 1'],
  ['nothing of nothing', [], 'A', null],
] as const) {
  test(`chooseToClose() closes ${what}`, () => assert.equal(choose(open, address), expected));
}
