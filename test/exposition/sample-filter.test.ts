import assert from 'node:assert/strict';
import { test } from 'node:test';
import { LINE_MAX_BYTES, openSampleFilter, type WantedLine } from '../../src/exposition/sample-filter.ts';
import { readRecordedBody } from '../support/recording.ts';

type Kept = { readonly lines: readonly string[]; readonly tooLongCount: number };

/** What the filter keeps of the pieces; `enough`: how many lines are asked for. */
function keep(
  pieces: Iterable<Uint8Array>,
  wanted: Omit<WantedLine, 'onLine'>,
  enough: number = Number.POSITIVE_INFINITY,
): Kept {
  const lines: string[] = [];
  const filter = openSampleFilter([{ ...wanted, onLine: (line) => lines.push(line) < enough }]);
  for (const piece of pieces) filter.write(piece);
  filter.end();
  return { lines, tooLongCount: filter.tooLongCount };
}

function* cut(body: Uint8Array, length: number): Generator<Uint8Array> {
  for (let at = 0; at < body.length; at += length) yield body.subarray(at, at + length);
}

const UP = { name: 'locust_up', isPrefix: false, labels: [] };
const ANY_REQUESTS = { name: 'locust_requests_', isPrefix: true, labels: ['{'] };

test('openSampleFilter() keeps the same lines of a recording in chunks of any size', () => {
  const body = readRecordedBody('exporter-0.5.0-locust-2.47.0/13-odd-names-stopped.txt');
  const whole = keep([body], ANY_REQUESTS);
  const expected = body
    .toString()
    .split('\n')
    .filter((line) => line.startsWith('locust_requests_') && line.includes('{'));
  assert.deepEqual(whole, { lines: expected, tooLongCount: 0 });
  for (const length of [1, 2, 3, 7, 64, 1_000, 4_096, 65_536]) {
    assert.deepEqual(keep(cut(body, length), ANY_REQUESTS), whole, `chunks of ${length}`);
  }
});

test('openSampleFilter() keeps a line that is cut anywhere between two chunks', () => {
  const body = Buffer.from('a 1\nlocust_up 1\nb 2\n \tlocust_up {} 2 \nlocust_updated 3\nlocust_up 4');
  for (let at = 0; at <= body.length; at++) {
    const { lines } = keep([body.subarray(0, at), body.subarray(at)], UP);
    assert.deepEqual(lines, ['locust_up 1', 'locust_up{} 2', 'locust_up 4'], `cut at ${at}`);
  }
});

test('openSampleFilter() normalises blanks outside of quotes', () => {
  const table: readonly (readonly [line: string, kept: string])[] = [
    ['locust_up\t \t0', 'locust_up 0'],
    ['locust_up 0 \t5 \r', 'locust_up 0 5'],
    ['locust_up { a\t= "x  y\t\\" } z" ,\tb="" , } 0', 'locust_up{a="x  y\t\\" } z",b="",} 0'],
    ['locust_up{a="\\\\"}  0', 'locust_up{a="\\\\"} 0'],
    ['locust_up{a="x\\', 'locust_up{a="x\\'],
    ['locust_up "a  b" 0', 'locust_up "a b" 0'],
    ['locust_up 0\r5', 'locust_up 0\r5'],
    ['locust_up 0\u2028', 'locust_up 0\u2028'],
    ['locust_up', 'locust_up'],
  ];
  for (const [line, kept] of table) assert.deepEqual(keep([Buffer.from(line)], UP).lines, [kept], JSON.stringify(line));
});

test('openSampleFilter() wants the whole name, or with isPrefix how it begins, and then the labels', () => {
  const names = ['locust_requests_', 'locust_requests_x', 'locust_requests_x{a="b"}', 'locust_requests_ {a="b"}'];
  const others = ['locust_requests', 'Locust_requests_x{', 'xlocust_requests_{', '# locust_requests_{', ''];
  const body = Buffer.from([...names, ...others].map((name) => `${name} 1\n`).join(''));
  const name = 'locust_requests_';
  assert.equal(keep([body], { name, isPrefix: true, labels: [] }).lines.length, 4);
  assert.equal(keep([body], { name, isPrefix: true, labels: ['{'] }).lines.length, 2);
  assert.equal(keep([body], { name, isPrefix: true, labels: ['{b', '{a="b"}'] }).lines.length, 2);
  assert.equal(keep([body], { name, isPrefix: false, labels: [] }).lines.length, 2);
});

test('openSampleFilter() stops asking where onLine had enough', () => {
  const body = Buffer.from('locust_up 1\nlocust_up 2\n locust_up 3\nlocust_up 4\nlocust_up 5');
  for (const length of [1, 5, 100]) {
    assert.deepEqual(keep(cut(body, length), UP, 1).lines, ['locust_up 1'], `chunks of ${length}`);
    assert.deepEqual(keep(cut(body, length), UP, 2).lines, ['locust_up 1', 'locust_up 2'], `chunks of ${length}`);
  }
});

test('openSampleFilter() keeps a line of LINE_MAX_BYTES and skips a longer one', () => {
  for (const [extra, tooLongCount] of [
    [0, 0],
    [1, 1],
    [140_000, 1],
  ] as const) {
    const head = 'locust_up{a="';
    const line = `${head}${'x'.repeat(LINE_MAX_BYTES + extra - head.length - 4)}"} 0`;
    assert.equal(line.length, LINE_MAX_BYTES + extra);
    for (const text of [`${line}\nlocust_up 1\n`, `z\n \t${line}\nlocust_up 1`]) {
      for (const length of [1_000_000, 65_536, 1_000, 7]) {
        const { lines, ...rest } = keep(cut(Buffer.from(text), length), UP);
        assert.deepEqual(rest, { tooLongCount }, `${extra} bytes more, chunks of ${length}`);
        assert.deepEqual(lines, tooLongCount === 0 ? [line, 'locust_up 1'] : ['locust_up 1']);
      }
    }
  }
});

test('openSampleFilter() skips a line of 200 KB without end, wanted or not, in one chunk and in many', () => {
  for (const [start, tooLongCount] of [
    ['locust_up 1', 1],
    ['other 1', 0],
    ['', 0],
  ] as const) {
    const body = Buffer.alloc(200 * 1024, '1');
    body.write(start);
    for (const length of [body.length, 4_096, 1]) {
      const kept = keep(cut(Buffer.concat([Buffer.from('locust_up 5\n'), body]), length), UP);
      assert.deepEqual(kept, { lines: ['locust_up 5'], tooLongCount }, `${start}, chunks of ${length}`);
    }
  }
});

test('openSampleFilter() does not keep the chunks: the caller may use them again', () => {
  const lines: string[] = [];
  const filter = openSampleFilter([{ ...UP, onLine: (line) => lines.push(line) < 9 }]);
  const chunk = Buffer.from('locust');
  filter.write(chunk);
  chunk.fill('x');
  filter.write(Buffer.from('_up 1\n'));
  filter.end();
  assert.deepEqual(lines, ['locust_up 1']);
});

test('openSampleFilter() reads a view into a larger buffer', () => {
  const whole = new Uint8Array(Buffer.from('locust_up 9\nlocust_up 1\nlocust_up 8\n'));
  assert.deepEqual(keep([whole.subarray(12, 24)], UP).lines, ['locust_up 1']);
});
