import assert from 'node:assert/strict';
import { test } from 'node:test';
import { assertNever } from '../../src/decide/model.ts';

test('assertNever() fails on a value outside its type', () => {
  assert.throws(() => assertNever({ kind: 'new' } as never), /Bug: unexpected value \{"kind":"new"\}/);
});
