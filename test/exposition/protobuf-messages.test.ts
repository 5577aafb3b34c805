import assert from 'node:assert/strict';
import { test } from 'node:test';
import { encodeBytes, encodeVarint } from '../../src/base/wire.ts';
import { openFamilyFilter, openFamilyScan } from '../../src/exposition/families.ts';
import { openPageEnd } from '../../src/exposition/own-families.ts';
import { readNumber } from '../../src/exposition/protobuf-messages.ts';
import { openReadableCheck } from '../../src/exposition/readable.ts';
import { readRecordedBody } from '../support/recording.ts';

type Pieces = readonly Uint8Array[];

const RECORDED = readRecordedBody('formats/client_golang-1.23.2-protobuf.bin');
const NAMES = ['classic_seconds', 'native_seconds', 'row_bytes', 'rows.left 残り', 'rows_total'];

function check(...pieces: Pieces): string | null {
  const messages = openReadableCheck('protobuf');
  for (const piece of pieces) messages.write(piece);
  return messages.end();
}

function scan(...pieces: Pieces): string[] {
  const messages = openFamilyScan('protobuf');
  for (const piece of pieces) messages.write(piece);
  return [...messages.end()];
}

function filter(pieces: Pieces, isKept: (name: string) => boolean): Buffer {
  const messages = openFamilyFilter(isKept, { format: 'protobuf' });
  const kept = pieces.flatMap((piece) => messages.write(piece).map((bytes) => Buffer.from(bytes)));
  return Buffer.concat([...kept, ...messages.end()]);
}

function* cuts(body: Buffer): Generator<Pieces> {
  for (let at = 0; at <= body.length; at++) yield [body.subarray(0, at), body.subarray(at)];
  yield Array.from(body, (byte) => Uint8Array.of(byte));
}

function field(number: number, type: number, bytes: string): string {
  return encodeVarint(number * 8 + type) + bytes;
}
const text = (number: number, bytes: string) => field(number, 2, encodeBytes(bytes));
const message = (...fields: readonly string[]) => encodeBytes(fields.join(''));
const bytes = (letters: string) => Buffer.from(letters, 'latin1');
const FIELD_MAX_BYTES = 1024 * 1024;
const METRIC = text(4, text(2, field(1, 1, '\0'.repeat(8))));

test('openReadableCheck() and openFamilyScan() read pages cut anywhere; families are those that have a metric', () => {
  const family = message(text(1, 'a'), METRIC, text(2, ''));
  for (const [page, names] of [
    [RECORDED, NAMES],
    [bytes(family), ['a']],
    [bytes(message(text(1, 'a')) + message(text(1, 'Ã©'), METRIC) + family), ['é', 'a']],
  ] as const) {
    for (const pieces of cuts(page)) assert.deepEqual([check(...pieces), scan(...pieces)], [null, names]);
  }
});

test('readNumber() reads the number of a metric of the wanted family, cut anywhere; of a summary, without one or with labels there is none', () => {
  const two = bytes(`${'\0'.repeat(7)}@`).toString('latin1');
  const number = (kind: number, labels = '') => message(text(1, 'a'), text(4, labels + text(kind, field(1, 1, two))));
  const other = message(text(1, 'b'), METRIC);
  for (const [page, expected] of [
    ...[2, 3, 5].map((kind) => [number(kind) + other, [2]] as const),
    [number(4), [null]],
    [number(2, text(1, text(1, 'b'))), [null]],
    [message(text(1, 'a'), text(4, text(2, ''))), [null]],
  ] as const) {
    for (const pieces of cuts(bytes(page))) {
      const found: (number | null)[] = [];
      const take = (metric: Buffer) => found.push(readNumber(metric));
      const messages = openReadableCheck('protobuf', { wanted: { family: 'a', take } });
      for (const piece of pieces) messages.write(piece);
      assert.deepEqual([messages.end(), found], [null, expected]);
    }
  }
});

test('openReadableCheck() finds a page that ends anywhere within a message', () => {
  const ends = new Set<number>();
  let at = 0;
  for (const name of NAMES) {
    at += filter([RECORDED], (each) => each === name).length;
    ends.add(at);
  }
  assert.equal(at, RECORDED.length);
  for (let length = 0; length < RECORDED.length; length++) {
    const wanted = length === 0 || ends.has(length) ? null : 'the last message is cut';
    assert.equal(check(RECORDED.subarray(0, length)), wanted, `${length} bytes`);
  }
});

test('openReadableCheck() says what is broken', () => {
  const table: readonly (readonly [letters: string, why: string | null])[] = [
    [message(text(1, 'a'), METRIC), null],
    [message(text(1, 'a')), null],
    ['', null],
    ['\0', null],
    [message(text(1, 'a'), text(2, ''), field(3, 0, '\x01'), METRIC, text(5, 'unit')), null],
    [message(text(1, 'a'), METRIC, field(10, 5, '\0'.repeat(4)), field(9, 1, '\0'.repeat(8))), null],
    [message(text(1, 'a'), field(9, 0, `${'\x80'.repeat(9)}\x01`), METRIC), null],
    [message(text(1, 'a'), field(9, 0, `${'\x80'.repeat(10)}\x01`), METRIC), 'a number of more than 64 bits'],
    [message(text(1, 'a'), text(1, 'b'), METRIC), null],
    [message(text(1, '')), null],
    [message(text(1, ''), METRIC), 'a metric without a name in UTF-8'],
    [message(text(1, '\xff'), METRIC), 'a metric without a name in UTF-8'],
    [message(text(1, 'a'), METRIC, text(2, '\xff')), 'a help that is not UTF-8'],
    [message(text(1, 'a'), text(2, '\xff')), null],
    [message(text(1, 'a'), METRIC, field(3, 0, '\x05')), null],
    [message(text(1, 'a'), METRIC, field(3, 0, '\x06')), 'the metric type 6'],
    [message(text(1, 'a'), text(3, '')), 'a field 3 of the type 2'],
    [message(text(1, 'a'), field(0, 0, '\x01')), 'a field 0 of the type 0'],
    [message(text(1, 'x'.repeat(FIELD_MAX_BYTES - 4)), METRIC), null],
    [message(text(1, 'x'.repeat(FIELD_MAX_BYTES - 3)), METRIC), `a field of more than ${FIELD_MAX_BYTES} bytes`],
    [message(text(2, 'help'), text(1, 'a')), 'a message that does not begin with its name'],
    [message(field(1, 0, '\x01')), 'a message that does not begin with its name'],
    [message(text(1, 'a'), field(3, 3, '')), 'a field of the unknown type 3'],
    [message(text(1, 'a'), field(3, 4, '')), 'a field of the unknown type 4'],
    [message(text(1, 'a'), field(4, 2, '\x05abc')), 'a field beyond the end of its message'],
    [message(text(1, 'a'), field(4, 2, '')) + METRIC, 'a field beyond the end of its message'],
    [message(text(1, 'a'), field(4, 1, 'abc')), 'a field beyond the end of its message'],
    [message(field(1, 2, '')) + METRIC, 'a field beyond the end of its message'],
    [encodeVarint(2 ** 26 + 1), `a message of ${2 ** 26 + 1} bytes`],
    ['\xff'.repeat(20), 'a number of more than 64 bits'],
    ['<html>', 'a message that does not begin with its name'],
  ];
  for (const [letters, why] of table) {
    const first = bytes(letters);
    const letterByLetter = first.length < 1_000 ? [Array.from(first, (byte) => Uint8Array.of(byte))] : [];
    for (const pieces of [[first], ...letterByLetter]) {
      assert.equal(check(...pieces), why, JSON.stringify(letters.slice(0, 60)));
      // A message before or after it mends nothing.
      if (why === null) continue;
      assert.equal(check(RECORDED, ...pieces, RECORDED), why, JSON.stringify(letters.slice(0, 60)));
    }
  }
});

test('openFamilyFilter() keeps messages byte for byte, cut anywhere', () => {
  const [first = '', second = ''] = NAMES;
  const parts = NAMES.map((name) => filter([RECORDED], (each) => each === name));
  assert.deepEqual(Buffer.concat(parts), RECORDED);
  for (const pieces of cuts(RECORDED)) {
    const all = filter(pieces, () => true);
    assert.deepEqual(all, RECORDED);
    assert.equal(filter(pieces, () => false).length, 0);
    const without = filter(pieces, (name) => name !== second);
    assert.deepEqual(without, Buffer.concat(parts.toSpliced(1, 1)));
    assert.deepEqual(scan(without), [first, ...NAMES.slice(2)]);
  }
});

test('openFamilyFilter() gives nothing after what is broken', () => {
  for (const letters of ['\x02\0\0', message(text(1, 'a'), field(3, 3, ''))]) {
    const broken = openFamilyFilter(() => true, { format: 'protobuf' });
    const [whole] = broken.write(Buffer.concat([RECORDED, bytes(letters)]));
    assert.ok(whole !== undefined);
    for (let count = 0; count < 100; count++) assert.deepEqual(broken.write(Buffer.alloc(64 * 1024, 1)), []);
    assert.deepEqual(broken.end(), []);
  }
});

test('openPageEnd() is whole at the ends of messages alone, cut anywhere', () => {
  const hasEnd = (...pieces: Pieces) => {
    const page = openPageEnd('protobuf');
    for (const piece of pieces) assert.deepEqual(page.write(piece), [piece]);
    return page.end().isWhole;
  };
  for (const pieces of cuts(RECORDED)) assert.equal(hasEnd(...pieces), true);
  for (let length = 1; length < RECORDED.length; length++) {
    const cut = RECORDED.subarray(0, length);
    assert.equal(hasEnd(cut), check(cut) === null, `${length} bytes`);
  }
  assert.deepEqual([hasEnd(bytes('\x80')), hasEnd(Buffer.alloc(1_000, 0x80))], [false, false]);
});
