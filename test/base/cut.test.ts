// Texts are cut where they are too long, and never in the middle of a character.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { cut } from '../../src/base/cut.ts';

const CUT: readonly (readonly [text: string, maxLength: number, cutText: string])[] = [
  ['', 3, ''],
  ['abc', 3, 'abc'],
  ['abcd', 3, 'ab…'],
  ['a😀', 3, 'a😀'],
  ['a😀b', 4, 'a😀b'],
  ['a😀bc', 4, 'a😀…'],
  ['a😀b', 3, 'a…'],
];
for (const [text, maxLength, cutText] of CUT) {
  test(`cut() makes ${JSON.stringify(text)} at most ${maxLength} long`, () =>
    assert.equal(cut(text, maxLength), cutText));
}
