import assert from 'node:assert/strict';
import { test } from 'node:test';
import { at, isObject, parseObject, toNumber, toObjects, toText, toTexts } from '../../src/base/json.ts';

test('what is not there, or is of another kind, is empty', () => {
  assert.deepEqual(parseObject('{"a":1}'), { a: 1 });
  for (const text of ['[1]', '1', 'null', '"a"', '{', '']) assert.equal(parseObject(text), null, text);
  assert.deepEqual([{}, [], null, 'a'].map(isObject), [true, false, false, false]);
  const object = { inner: { a: 1 }, list: [{ b: 2 }, 3, null], text: 'x', number: 0 };
  assert.deepEqual([at(object, 'inner'), at(object, 'list'), at(object, 'gone')], [{ a: 1 }, {}, {}]);
  assert.deepEqual([toObjects(object.list), toObjects(object.inner)], [[{ b: 2 }], []]);
  assert.deepEqual([toText(object.text), toText(object.number)], ['x', '']);
  assert.deepEqual([toTexts(['a', '', 1]), toTexts('a')], [['a'], []]);
  assert.deepEqual([toNumber(object.number, 7), toNumber(object.text, 7)], [0, 7]);
});
