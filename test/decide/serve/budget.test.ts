// How long main is left alone after a read.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { addCost, findRestFactor, findRestMs, NO_COSTS, REST_FACTORS } from '../../../src/decide/serve/budget.ts';

const { usual, onlyEvidence, beside, spared } = REST_FACTORS;

test('findRestFactor() is one percent, five where only a page shows the end or an exporter is scraped last, 0.3 beside a hook or pushes', () => {
  const [isOnlyEvidence, isHooked, kind] = [false, true, 'pushes'] as const;
  assert.equal(findRestFactor({ isOnlyEvidence }), usual);
  assert.equal(findRestFactor({ isOnlyEvidence: true, isHooked }), onlyEvidence);
  assert.equal(findRestFactor({ isOnlyEvidence, isBeside: true }), beside);
  assert.deepEqual(
    [{ isHooked }, { kind }].map((way) => findRestFactor({ isOnlyEvidence, ...way })),
    [spared, spared],
  );
});

for (const [what, tookMs, expected] of [
  ['nothing was read', [], 0],
  ['a first read was quick', [13], 1_300],
  ['a first read was slow: the next one shows whether its page is', [900], 5_000],
  ['one of two was slow', [900, 13], 1_300],
  ['all are slow', [900, 900, 900], 90_000],
  ['two of five were slow', [13, 13, 13, 900, 900], 1_300],
  ['the page has grown', [13, 13, 13, 30, 30, 30], 3_000],
] as const) {
  test(`findRestMs() where ${what}`, () => {
    const costs = tookMs.reduce((all, each) => addCost(all, each, 0), NO_COSTS);
    assert.equal(findRestMs(costs, usual), expected);
  });
}

for (const [what, cpuMs, expected] of [
  ['less than main waits', 10, 1_300],
  ['more: we take no more of a core than main', 30, 3_000],
  ['much more, for scrapes', 300, 10_400],
] as const) {
  test(`findRestMs() where our own work takes ${what}`, () => {
    const costs = [13, 13, 13, 13, 13].reduce((all, each) => addCost(all, each, cpuMs), NO_COSTS);
    assert.equal(findRestMs(costs, usual), expected);
  });
}
