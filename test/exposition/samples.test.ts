import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import { test } from 'node:test';
import { FAMILY_PART_COUNT, type Family, openFamilyReader } from '../../src/exposition/samples.ts';
import { readRecordedBody } from '../support/recording.ts';
import { readReferenceLine } from './reference.ts';

function read(...pieces: readonly (Uint8Array | string)[]): Family[] {
  const reader = openFamilyReader();
  return [...pieces.flatMap((piece) => [...reader.write(Buffer.from(piece))]), ...reader.end()];
}

function join(parts: readonly Family[]): Family[] {
  const joined: Family[] = [];
  for (const part of parts) {
    const last = joined.at(-1);
    if (last?.name !== part.name) joined.push(part);
    else joined[joined.length - 1] = { ...last, samples: [...last.samples, ...part.samples] };
  }
  return joined;
}

const EACH_KIND = [
  '# HELP h A histogram\\nof two lines, \\\\ and \\"quotes".',
  '# TYPE h histogram',
  'h_bucket{le="1"} 1',
  'h_bucket{le="+Inf"} 2',
  'h_sum 1.5',
  'h_count 2',
  '# TYPE h_created gauge',
  'h_created 5',
  '# TYPE s summary',
  '# HELP s After its type.',
  's{quantile="0.5"} NaN',
  's_sum 1',
  's_count 1',
  's_bucket 1',
  '# A comment, and a blank line',
  '',
  '# TYPE c counter',
  'c{a="b\\\\ \\"c\\"\\n\\q",empty="",} 1e3 1700000000000',
  ' \tc { a = "" , b="{},=#" } +Inf -5 \r',
  'u{ä} 1',
  '{ä} 1',
  'u{a="b" ä} 1',
  'u 1 2 3',
  'u{a="b} 1',
  'u',
  'u -inf',
  '# TYPE i info',
  'i 1',
  '{"odd.name",a="b","c.d"="e\\"f"} 7 8',
  '{} 7',
  '# TYPE "odd.name" gauge',
  '# HELP "quoted \\"name\\"" Its help.',
  '{"quoted \\"name\\""} 1',
  '# HELP empty',
  '# TYPE empty',
  'empty 1',
].join('\n');

test('openFamilyReader() cuts a timestamp of any length to what a number can tell', () => {
  const reader = openFamilyReader();
  const text = [20, 400].map((digits) => `a 1 ${'9'.repeat(digits)}\na 1 -${'9'.repeat(digits)}\n`).join('');
  reader.write(Buffer.from(text));
  const times = reader.end().flatMap(({ samples }) => samples.map(({ timestampMs }) => timestampMs));
  const { MAX_SAFE_INTEGER: last, MIN_SAFE_INTEGER: first } = Number;
  assert.deepEqual(times, [last, first, last, first]);
});

/** A family a line: name, type, help, then its samples. */
const EACH_KIND_READ = [
  'h histogram "A histogram\\nof two lines, \\\\ and \\\\\\"quotes\\"." | h_bucket {"le":"1"} 1 | h_bucket {"le":"+Inf"} 2 | h_sum {} 1.5 | h_count {} 2',
  'h_created gauge "" | h_created {} 5',
  's summary "After its type." | s {"quantile":"0.5"} NaN | s_sum {} 1 | s_count {} 1',
  's_bucket untyped "" | s_bucket {} 1',
  'c counter "" | c {"a":"b\\\\ \\"c\\"\\n\\\\q","empty":""} 1000 1700000000000 | c {"a":"","b":"{},=#"} Infinity -5',
  'u untyped "" | u {} -Infinity',
  'i untyped "" | i {} 1',
  // Its TYPE line comes before the part's end.
  'odd.name gauge "" | odd.name {"a":"b","c.d":"e\\"f"} 7 8',
  'quoted "name" untyped "Its help." | quoted "name" {} 1',
  'empty untyped "" | empty {} 1',
];

function format({ name, type, help, isFirst, samples }: Family): string {
  assert.ok(isFirst, name);
  const lines = samples.map(({ name: sample, labels, value, timestampMs }) =>
    [sample, JSON.stringify(Object.fromEntries(labels)), value, ...(timestampMs === null ? [] : [timestampMs])].join(
      ' ',
    ),
  );
  return [`${name} ${type} ${JSON.stringify(help)}`, ...lines].join(' | ');
}

test('openFamilyReader() reads names, types, helps, labels, values and times, and skips what is no sample, cut anywhere', () => {
  const body = Buffer.from(EACH_KIND);
  for (let at = 0; at <= body.length; at++) {
    assert.deepEqual(read(body.subarray(0, at), body.subarray(at)).map(format), EACH_KIND_READ, `cut at ${at}`);
  }
  assert.deepEqual(read(...Array.from(body, (byte) => Uint8Array.of(byte))).map(format), EACH_KIND_READ);
});

test('openFamilyReader() reads OpenMetrics: counters by the names of their samples, seconds, exemplars', () => {
  const body = [
    '# HELP a Its help.',
    '# TYPE a counter',
    'a_total{b="c"} 1 # {trace_id="abc"} 1 1700000000.5',
    'a_created 1700000000',
    // As the Java client writes it.
    '# TYPE b counter',
    '# HELP b After its type.',
    'b_total 2 1700000000.0625',
    '# TYPE c_total counter',
    'c_total 3',
    '# TYPE h histogram',
    'h_bucket{le="+Inf"} 4 # {} 4',
    '# EOF\n',
  ].join('\n');
  const reader = openFamilyReader('openMetrics');
  assert.deepEqual([...reader.write(Buffer.from(body)), ...reader.end()].map(format), [
    'a_total counter "Its help." | a_total {"b":"c"} 1',
    'a_created untyped "" | a_created {} 1700000000',
    'b_total counter "After its type." | b_total {} 2 1700000000063',
    'c_total counter "" | c_total {} 3',
    'h histogram "" | h_bucket {"le":"+Inf"} 4',
  ]);
});

const FOLDER = new URL('../../fixtures/recordings/expositions/', import.meta.url);

test('openFamilyReader() reads of every recorded exposition what the obvious reader does', () => {
  for (const file of readdirSync(FOLDER).filter((name) => name.endsWith('.txt'))) {
    const body = readRecordedBody(`expositions/${file}`);
    const samples = read(body).flatMap((family) => family.samples);
    const expected = body
      .toString()
      .split('\n')
      .flatMap((line) => {
        const { name, sample } = readReferenceLine(line);
        return sample === null ? [] : [{ name, labels: sample.labels, value: sample.value }];
      });
    const shown = samples.map(({ name, labels, value }) => ({ name, labels, value }));
    assert.deepEqual(shown, expected, file);
    assert.ok(samples.length > 0);
  }
});

test('openFamilyReader() gives a long family in parts, of which the first is marked', () => {
  const lines = Array.from({ length: 2 * FAMILY_PART_COUNT + 1 }, (_, index) => `long{n="${index}"} ${index}\n`);
  const parts = read('# TYPE long counter\n', ...lines);
  const shown = parts.map(({ name, type, isFirst, samples }) => [name, type, isFirst, samples.length]);
  assert.deepEqual(shown, [
    ['long', 'counter', true, FAMILY_PART_COUNT],
    ['long', 'counter', false, FAMILY_PART_COUNT],
    ['long', 'counter', false, 1],
  ]);
  assert.deepEqual(join(parts)[0]?.samples.at(-1), {
    name: 'long',
    labels: [['n', String(2 * FAMILY_PART_COUNT)]],
    value: 2 * FAMILY_PART_COUNT,
    timestampMs: null,
  });
});

test('openFamilyReader() gives lines of a family between those of another as parts of their own', () => {
  const parts = read('# TYPE a counter\na{n="1"} 1\nb 1\na{n="2"} 1\n');
  const shown = parts.map(({ name, type, isFirst }) => [name, type, isFirst]);
  assert.deepEqual(shown, [
    ['a', 'counter', true],
    ['b', 'untyped', true],
    ['a', 'counter', false],
  ]);
});

test('openFamilyReader() goes by the TYPE line of a name that another family has as one of its samples', () => {
  const ofItsOwn = '# TYPE h_sum counter\n';
  for (const body of [`${ofItsOwn}# TYPE h histogram\nh_sum 1\n`, `# TYPE h histogram\n${ofItsOwn}h_sum 1\n`]) {
    const types = read(body).map(({ name, type }) => [name, type]);
    assert.deepEqual(types, [['h_sum', 'counter']], body);
  }
  // Without one the histogram that comes afterwards takes the name.
  const late = read('h_sum 1\n# TYPE h histogram\nh_sum{a="b"} 1\n').map(({ name, type }) => [name, type]);
  assert.deepEqual(late, [
    ['h_sum', 'untyped'],
    ['h', 'histogram'],
  ]);
});

test('openFamilyReader() forgets names where there are more than a program can want to have, and goes on', () => {
  const all = Array.from({ length: 10_000 }, (_, index) => `# TYPE n${index} counter\nn${index} 1\n`);
  const parts = read(...all, 'n0 2\n', '# TYPE one_more counter\none_more 1\n', 'n0 3\n', 'one_more 2\n');
  const last = parts.slice(-4);
  const shown = last.map(({ name, type, isFirst }) => [name, type, isFirst]);
  assert.deepEqual(shown, [
    ['n0', 'counter', false],
    ['one_more', 'counter', true],
    ['n0', 'untyped', true],
    ['one_more', 'counter', false],
  ]);
  assert.ok(parts.slice(0, -4).every(({ type }) => type === 'counter'));
});

test('openFamilyReader() reads a line of 1 MiB', () => {
  const text = `\\"${'{}, \\n'.repeat(200_000)}`;
  const [family] = read(`a{b="${text}"} 1\n`);
  assert.equal(family?.samples[0]?.labels[0]?.[1].length, text.length - 1 - 200_000);
});

test('openFamilyReader() reads a line feed within a value, cut anywhere', () => {
  const body = Buffer.from('a{b="c\nd 1\n",e="f"} 2\ng 3\n');
  for (let at = 0; at <= body.length; at++) {
    const samples = read(body.subarray(0, at), body.subarray(at)).flatMap((family) => family.samples);
    const found = samples.map(({ name, labels, value }) => [name, ...labels.flat(), value]);
    assert.deepEqual(
      found,
      [
        ['a', 'b', 'c\nd 1\n', 'e', 'f', 2],
        ['g', 3],
      ],
      `cut at ${at}`,
    );
  }
});
