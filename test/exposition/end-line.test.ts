import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openEndLineCutter } from '../../src/exposition/end-line.ts';

function cut(pieces: readonly Uint8Array[]) {
  const cutter = openEndLineCutter();
  const passed = pieces.flatMap((piece) => [...cutter.write(piece)]);
  const { isWhole, rest } = cutter.end();
  return { passed: Buffer.concat(passed).toString(), isWhole, rest: Buffer.from(rest).toString() };
}

const TABLE: readonly (readonly [body: string, passed: string, rest: string])[] = [
  ['', '', ''],
  ['a 1\n', 'a 1\n', ''],
  ['a 1\n# EOF\n', 'a 1\n', '# EOF\n'],
  ['a 1\n# EOF', 'a 1\n', '# EOF'],
  ['a 1\n# EO', 'a 1\n', '# EO'],
  ['# EOF\n', '', '# EOF\n'],
  ['#', '', '#'],
  ['a 1# EOF\n', 'a 1# EOF\n', ''],
  ['a 1\n# EOF\n\n', 'a 1\n# EOF\n\n', ''],
  ['a 1\n# EOF\n# EOF\n', 'a 1\n# EOF\n', '# EOF\n'],
  ['a 1\n# EOF\r\n', 'a 1\n# EOF\r\n', ''],
  ['a 1\n# EOG\n', 'a 1\n# EOG\n', ''],
  ['a 1\n## EOF\n', 'a 1\n## EOF\n', ''],
];

test('openEndLineCutter() keeps the last line back if it is # EOF, and nothing else, cut anywhere', () => {
  for (const [body, passed, rest] of TABLE) {
    const wanted = { passed, isWhole: rest.startsWith('# EOF'), rest };
    const bytes = Buffer.from(body);
    for (let at = 0; at <= bytes.length; at++) {
      const pieces = cut([bytes.subarray(0, at), bytes.subarray(at)]);
      assert.deepEqual(pieces, wanted, `${JSON.stringify(body)} cut at ${at}`);
    }
    assert.deepEqual(cut(Array.from(bytes, (byte) => Uint8Array.of(byte))), wanted, body);
  }
});

test('openEndLineCutter() passes what is no end at once, as it is', () => {
  const piece = Buffer.from('a 1\nb');
  const [passed] = openEndLineCutter().write(piece);
  assert.equal(passed?.buffer, piece.buffer);
  assert.equal(passed.byteOffset, piece.byteOffset);
});
