import assert from 'node:assert/strict';
import { test } from 'node:test';
import { LINE_MAX_BYTES, openSampleFilter, type WantedSample } from '../../src/exposition/sample-filter.ts';
import { readRecordedBody } from '../support/recording.ts';

type Kept = { readonly lines: readonly string[]; readonly tooLongCount: number };

/** What the filter keeps of the pieces; `enough`: how many lines are asked for. */
function keep(
  pieces: Iterable<Uint8Array>,
  wanted: Omit<WantedSample, 'onSample' | 'onTooLong'>,
  enough: number = Number.POSITIVE_INFINITY,
): Kept {
  const lines: string[] = [];
  let tooLongCount = 0;
  const filter = openSampleFilter(
    [
      {
        ...wanted,
        onSample: (sample) => lines.push(sample?.labels[0]?.[1] ?? '') < enough,
        onTooLong: () => tooLongCount++,
      },
    ],
    (line) => ({ labels: [['line', line]], value: 0 }),
  );
  for (const piece of pieces) filter.write(piece);
  filter.end();
  return { lines, tooLongCount };
}

function* cut(body: Uint8Array, length: number): Generator<Uint8Array> {
  for (let at = 0; at < body.length; at += length) yield body.subarray(at, at + length);
}

const UP = { name: 'locust_up' };
const ANY_REQUESTS = { name: 'locust_requests_', isPrefix: true, contains: ['{'] };

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
  const body = Buffer.from(
    'a 1\nlocust_up 1\nb 2\n \tlocust_up {} 2 \nlocust_updated 3\n{ "locust_up" } 3\nlocust_up 4',
  );
  for (let at = 0; at <= body.length; at++) {
    const { lines } = keep([body.subarray(0, at), body.subarray(at)], UP);
    assert.deepEqual(lines, ['locust_up 1', ' \tlocust_up {} 2 ', '{ "locust_up" } 3', 'locust_up 4'], `cut at ${at}`);
  }
});

test('openSampleFilter() wants the whole name, or with isPrefix how it begins, and then the texts', () => {
  const names = [
    'locust_requests_',
    'locust_requests_x',
    'locust_requests_x{a="b"}',
    'locust_requests_ {a="b"}',
    '{"locust_requests_"}',
    ' {\t"locust_requests_x.y"}',
  ];
  const others = [
    'locust_requests',
    'Locust_requests_x{',
    'xlocust_requests_{',
    '# locust_requests_{',
    '',
    '{locust_requests_}',
  ];
  const lines = [...names, ...others].map((name) => `${name} 1`);
  const name = 'locust_requests_';
  const table: readonly (readonly [wanted: Omit<WantedSample, 'name' | 'onSample'>, indexes: readonly number[]])[] = [
    [{ isPrefix: true }, [0, 1, 2, 3, 4, 5]],
    [{ isPrefix: true, contains: ['a=', '"b"'] }, [2, 3]],
    [{ isPrefix: true, contains: ['a=', '"c"'] }, []],
    [{}, [0, 3, 4]],
    [{ contains: ['a='] }, [3]],
  ];
  for (const [wanted, indexes] of table) {
    const kept = indexes.map((index) => lines[index]);
    assert.deepEqual(keep([Buffer.from(lines.join('\n'))], { name, ...wanted }).lines, kept);
    // Without the odd starts, which are searched for in another way.
    const usual = lines.slice(0, 4).join('\n');
    const found = keep([Buffer.from(usual)], { name, ...wanted }).lines;
    assert.deepEqual(found, kept.slice(0, indexes.filter((at) => at < 4).length));
  }
});

test('openSampleFilter() asks each who wants a line, and reads it once', () => {
  const asked: string[] = [];
  let readCount = 0;
  const want = (name: string, contains: readonly string[] = []) => ({
    name: 'a',
    contains,
    onSample: () => asked.push(name) > 0,
  });
  const filter = openSampleFilter([want('one'), want('two', ['c']), want('three', ['b'])], () => {
    readCount++;
    return null;
  });
  filter.write(Buffer.from('x 1\na{b="d"} 1\nb 1\n'));
  filter.end();
  assert.deepEqual(asked, ['one', 'three']);
  assert.equal(readCount, 1);
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
    for (const text of [
      `${line}\nlocust_up 1\n`,
      `z\n${line}\nlocust_up 1`,
      `${line.replace('lo', '  lo').replace('xx', '')}\nlocust_up 1`,
    ]) {
      for (const length of [1_000_000, 65_536, 1_000, 7]) {
        const { lines, ...rest } = keep(cut(Buffer.from(text), length), UP);
        assert.deepEqual(rest, { tooLongCount }, `${extra} bytes more, chunks of ${length}`);
        const [first, last] = text.split('\n').filter((each) => each.includes('locust_up'));
        assert.deepEqual(lines, tooLongCount === 0 ? [first, last] : ['locust_up 1']);
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
  const chunk = Buffer.from('locust');
  function* reuse(): Generator<Uint8Array> {
    yield chunk;
    chunk.fill('x');
    yield Buffer.from('_up 1\n');
  }
  assert.deepEqual(keep(reuse(), UP).lines, ['locust_up 1']);
});

test('openSampleFilter() reads a view into a larger buffer', () => {
  const whole = new Uint8Array(Buffer.from('locust_up 9\nlocust_up 1\nlocust_up 8\n'));
  assert.deepEqual(keep([whole.subarray(12, 24)], UP).lines, ['locust_up 1']);
});
