// How long the page of a call stays.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  addCall,
  type Call,
  endCalls,
  findCall,
  hasPutAside,
  isOwed,
  keepLiving,
  replacePages,
  takeCalled,
} from '../../../src/decide/serve/calls.ts';

/** `call 1 2`: while these scrapers live; `ends`, `replaces`, `takes N 1`: scraper 1 that of call N; `newest 1`; `living 1`. */
function tell(events: string): readonly Call<string>[] {
  let calls: readonly Call<string>[] = [];
  let answersCount = 0;
  for (const [what = '', ...rest] of events.split(', ').map((event) => event.split(' '))) {
    const numbers = rest.map(Number);
    const [first = 0, second = 0] = numbers;
    if (what === 'call') ({ calls } = addCall(calls, numbers));
    else if (what === 'ends') calls = endCalls(calls);
    else if (what === 'replaces') calls = replacePages(calls, [`page ${++answersCount}`]);
    else if (what === 'takes') calls = takeCalled(calls, first, second);
    else if (what === 'newest') calls = takeCalled(calls, null, first);
    else calls = keepLiving(calls, numbers);
  }
  return calls;
}

for (const [what, events, expected] of [
  ['its program lives', 'call 1, replaces', 'none'],
  ['its program has ended', 'call 1, ends', 'newest'],
  ['another program answers', 'call 1, ends, replaces, replaces', 'page 1'],
  ['the scraper has had it', 'call 1 2, ends, takes 1 1', 'none'],
  ['another scraper has had it', 'call 1 2, ends, takes 1 2', 'newest'],
  ['the scraper has had the newest page', 'call 1, ends, newest 1', 'none'],
  ["the newest page is another program's", 'call 1, ends, replaces, newest 1', 'page 1'],
  ['the scraper lives no more', 'call 1, ends, living 2', 'none'],
  ['a second program has ended as well', 'call 1, ends, replaces, call 1, ends, takes 1 1, replaces', 'page 2'],
  ['its program called again', 'call 1, call 1, ends, replaces, takes 2 1', 'none'],
  ['nobody lived', 'call, ends, replaces, living, living 1', 'page 1'],
  ['nobody lived, and another came first', 'call, ends, replaces, takes 1 2', 'none'],
  ['nobody lived, and another had the newest page', 'call, ends, newest 2', 'none'],
] as const) {
  test(`the page of a call for scraper 1 where ${what}`, () => {
    const found = findCall(tell(events), 1, false);
    assert.equal(found === null ? 'none' : (found.replaced[0] ?? 'newest'), expected);
  });
}

test('calls: four at most, the newest; after the end only a page that was replaced is one of its own', () => {
  const calls = tell(Array(5).fill('call 1, ends').join(', '));
  assert.deepEqual([calls.length, findCall(calls, 1, false)?.number, findCall(calls, 1, true)], [4, 2, null]);
  assert.deepEqual([addCall(calls, [1]).isFull, addCall(calls.slice(1), [1]).isFull], [true, false]);
});

test('hasPutAside() while a scraper has not had a page that another program has replaced', () => {
  const stories = ['call 1, ends', 'call 1, ends, replaces', 'call 1, ends, replaces, takes 1 1'];
  assert.deepEqual(stories.map(tell).map(hasPutAside), [false, true, false]);
});

test('isOwed() while the program that called may still answer, and a scraper has not had its page', () => {
  const stories = ['call 1', 'call 2', 'call 1, ends', 'call 1, newest 1', 'call'];
  assert.deepEqual(
    stories.map((story) => isOwed(tell(story), 1)),
    [true, false, false, false, true],
  );
});
