// When the source is read next, by transcripts.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { REST_FACTORS } from '../../../src/decide/serve/budget.ts';
import { beginReads, findWait, READ_TIMEOUT_MS, stepReads } from '../../../src/decide/serve/reads.ts';
import { testGoldens } from '../../support/goldens.ts';
import { playReads } from './reads-transcript.ts';

testGoldens('stepReads() follows', 'transcripts/reads', 16, playReads);

test('stepReads() fails on an event outside its type', () => {
  const reads = beginReads({ pollMs: 1_000, restFactor: REST_FACTORS.usual, observing: 'takes' });
  assert.throws(() => stepReads(reads, 'slow' as never, 0), /^Error: Bug: unexpected value "slow"$/);
});

test('stepReads() remembers the reads of formats that are wanted, and the newest: clients may ask for any number', () => {
  const settings = { pollMs: 1_000, restFactor: REST_FACTORS.usual, observing: 'takes' } as const;
  const wanted = [{ accept: 'text/plain' }];
  const begun = stepReads(beginReads(settings), { kind: 'main', isCharged: true, wanted }, 0).reads;
  const accepts = ['text/plain', 'a', 'b', 'c'];
  const end = accepts.reduce((reads, accept, index) => {
    const request = { id: -1, need: 'scrape', accept, untilMs: 10_000 } as const;
    const asked = stepReads(reads, { kind: 'asked', request }, index).reads;
    const read = asked.underWay[0]?.id as number;
    return stepReads(asked, { kind: 'ended', read, how: 'whole', cpuMs: 0 }, index).reads;
  }, begun);
  assert.deepEqual([...end.newest.keys()], ['text/plain', 'c']);
});

test('stepReads() takes a format by any name: that of a property is no read of before', () => {
  const settings = { pollMs: 1_000, restFactor: REST_FACTORS.usual, observing: 'takes' } as const;
  const wanted = [{ accept: 'constructor' }];
  const { reads } = stepReads(beginReads(settings), { kind: 'main', isCharged: true, wanted }, 0);
  const { moves } = stepReads(reads, { kind: 'observation', need: 'own' }, 0);
  assert.deepEqual(
    moves.map(({ read }) => read.accept),
    ['constructor'],
  );
});

test('findWait() waits for what an observation needs, and without a front for any read', () => {
  const begin = (observing: 'contains' | 'takes' | 'waits') =>
    beginReads({ pollMs: 500, restFactor: REST_FACTORS.usual, observing });
  const last = { timeoutMs: READ_TIMEOUT_MS, need: 'last' };
  for (const [observing, need, hasReading, expected] of [
    ['contains', 'own', true, { timeoutMs: READ_TIMEOUT_MS }],
    ['waits', 'last', true, last],
    ['takes', 'last', false, last],
    ['waits', 'own', false, { timeoutMs: 500 }],
    ['waits', 'own', true, null],
    ['waits', 'end', false, null],
    ['takes', 'own', false, null],
  ] as const) {
    assert.deepEqual(findWait(begin(observing), need, hasReading), expected, `${observing} ${need}`);
  }
});
