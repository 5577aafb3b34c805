import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type FilterOptions, openFamilyFilter, openFamilyScan } from '../../src/exposition/families.ts';
import type { Format } from '../../src/exposition/format.ts';
import { readRecordedBody } from '../support/recording.ts';

type Pieces = readonly (Uint8Array | string)[];

function scan(...pieces: Pieces): string[] {
  const families = openFamilyScan();
  for (const piece of pieces) families.write(Buffer.from(piece));
  return [...families.end()];
}

function filter(pieces: Pieces, isKept: (family: string) => boolean, options?: FilterOptions): string {
  const open = openFamilyFilter(isKept, options);
  const kept = pieces.flatMap((piece) => [...open.write(Buffer.from(piece))]);
  return Buffer.concat([...kept, ...open.end()]).toString();
}

function* pairs(body: Buffer): Generator<[Buffer, Buffer]> {
  for (let at = 0; at <= body.length; at++) yield [body.subarray(0, at), body.subarray(at)];
}

const EACH_KIND = [
  '# HELP h A histogram.',
  '# TYPE h histogram',
  'h_bucket{le="1"} 1',
  'h_bucket{le="+Inf"} 1',
  'h_sum 1',
  'h_count 1',
  '# HELP h_created When.',
  '# TYPE h_created gauge',
  'h_created 5',
  '# TYPE s summary',
  's{quantile="0.5"} 1',
  's_sum 1',
  's_count 1',
  's_created 1',
  '# TYPE g gauge',
  'g 1',
  'g_sum 1',
  'g_count_total 1',
  'u 1',
  '# HELP gone Its samples vanished.',
  '# TYPE gone gauge',
  '# A comment about g.',
  '',
  'x_bucket 1',
].join('\n');

test('openFamilyScan() finds the families that have samples, and knows the suffixes by the TYPE line', () => {
  assert.deepEqual(scan(EACH_KIND), ['h', 'h_created', 's', 'g', 'g_sum', 'g_count_total', 'u', 'x_bucket']);
});

test('openFamilyScan() counts a recording as its TYPE lines do', () => {
  for (const name of ['prometheus-2.42.0', 'node_exporter-1.12.1', 'python-prometheus_client-0.26.0']) {
    const body = readRecordedBody(`expositions/${name}.txt`);
    const announced = [...body.toString().matchAll(/^# TYPE (\S+)/gm)].map(([, family]) => family);
    const found = scan(body);
    assert.deepEqual(found.toSorted(), announced.filter((family) => found.includes(family ?? '')).toSorted(), name);
    assert.ok(found.length > 15);
  }
});

test('openFamilyScan() reads blanks, CR, quotes and what is no family as they are meant', () => {
  const table: readonly (readonly [body: string, families: readonly string[]])[] = [
    [' \ta 1\r\n\ta{b="c"} 2\n', ['a']],
    ['#TYPE\ta \thistogram\r\n  a_bucket 1', ['a']],
    ['#  \tTYPE a summary\na_sum 1', ['a']],
    ['# TYPE a histogram\n a_bucket 1\nab_bucket 1\na_buckets 1', ['a', 'ab_bucket', 'a_buckets']],
    ['a_sum 1\n# TYPE a histogram\n', ['a_sum']],
    ['# HELP a histogram\na_sum 1', ['a_sum']],
    ['# TYPES a histogram\na_sum 1', ['a_sum']],
    ['# TYPE a histograms\na_sum 1', ['a_sum']],
    ['# TYPE a\na 1', ['a']],
    ['{"odd.é",b="c"} 1\n', ['odd.é']],
    ['# TYPE "odd.h" histogram\n{ "odd.h_sum"} 1\n', ['odd.h']],
    ['a{b="\r\nc 1\r"} 1\n', ['a']],
    ['a{b="\r\nc 1\r} 1\n', ['a', 'c']],
    ['{b="c","d.e"} 1\n{"f"="g" ,"h",} 1\n{"i"="j"} 1\n', ['d.e', 'h']],
    ['# a 1\n#a 1\n\n \t\n<p>\n9 1\n{} 1\n{"a 1', []],
    ['a', ['a']],
    ['', []],
  ];
  for (const [body, families] of table) assert.deepEqual(scan(body), families, JSON.stringify(body));
});

test('openFamilyFilter() keeps everything byte for byte, or nothing', () => {
  for (const name of ['envoy-1.40.0-admin-stats', 'pushgateway-1.5.1', 'statsd_exporter-0.31.0']) {
    const body = readRecordedBody(`expositions/${name}.txt`);
    const all = filter([body], () => true);
    assert.equal(all, body.toString(), name);
    const none = filter([body], () => false, { keepsOther: false });
    assert.equal(none, '', name);
  }
});

test('openFamilyFilter() leaves out the HELP, TYPE and sample lines of a family, cut anywhere', () => {
  const body = Buffer.from(EACH_KIND);
  const others = EACH_KIND.split('\n').filter(
    (line) => !/^(?:# HELP h A|# TYPE h hist|h_[bsu]|h_count|# (?:HELP|TYPE) gone)/.test(line),
  );
  assert.equal(others.length, 16);
  for (const [first, second] of pairs(body)) {
    const kept = filter([first, second], (family) => !['h', 'gone'].includes(family));
    assert.equal(kept, others.join('\n'), `cut at ${first.length}`);
  }
});

test('openFamilyFilter() leaves out other comments and blank lines on request', () => {
  const body = '\n# a\n# HELP a A.\r\n# TYPE a gauge\r\n \t\n#\na 1\r\n# b\nb 1';
  const ofA = filter([body], (family) => family === 'a', { keepsOther: false });
  assert.equal(ofA, '# HELP a A.\r\n# TYPE a gauge\r\na 1\r\n');
  const ofB = filter([body], (family) => family === 'b', { keepsOther: false });
  assert.equal(ofB, 'b 1');
  const withOthers = filter([body], (family) => family === 'b');
  assert.equal(withOthers, '\n# a\n \t\n#\n# b\nb 1');
});

test('openFamilyFilter() asks for families, and may be used while it asks', () => {
  const asked: string[] = [];
  const body = '# TYPE a histogram\na_sum 1\na_count 1\nb 1\nb 2\na_bucket 1\n';
  const kept = filter([body], (family) => {
    asked.push(family);
    assert.deepEqual(scan('c 1\nd 1\n'), ['c', 'd']);
    return family === 'a';
  });
  assert.deepEqual(asked, ['a', 'a', 'a', 'b', 'a']);
  assert.equal(kept, '# TYPE a histogram\na_sum 1\na_count 1\na_bucket 1\n');
});

test('openFamilyFilter() keeps or leaves out the whole of a line of up to 1 MiB; a longer one has no family', () => {
  for (const length of [1_000, 65_536, 3_000_000]) {
    const line = `a{b="${'x'.repeat(1_000_000)}"} 1\n`;
    const body = Buffer.from(`b 1\n${line}b 2\n#${'c'.repeat(500_000)}\n${line}b 3\n${line.slice(0, 300_000)}`);
    const pieces = Array.from({ length: Math.ceil(body.length / length) }, (_, at) =>
      body.subarray(at * length, (at + 1) * length),
    );
    const all = filter(pieces, () => true);
    assert.equal(all, body.toString(), `pieces of ${length}`);
    const withoutA = `b 1\nb 2\n#${'c'.repeat(500_000)}\nb 3\n`;
    const ofB = filter(pieces, (family) => family === 'b');
    assert.equal(ofB, withoutA, `pieces of ${length}`);
    assert.deepEqual(scan(...pieces), ['b', 'a']);
  }
  const tooLong = Buffer.from(`b 1\n${'x'.repeat(2_000_000)} 1\nb 2\n`);
  assert.equal(
    filter([tooLong], () => true),
    'b 1\nb 2\n',
  );
});

function scanAs(format: Format, body: Uint8Array): string[] {
  const families = openFamilyScan(format);
  families.write(body);
  return [...families.end()];
}

test('openFamilyScan() knows the suffixes of OpenMetrics', () => {
  const body = Buffer.from(
    [
      '# TYPE c counter',
      '# TYPE g gauge',
      '# TYPE gh gaugehistogram',
      '# TYPE i info',
      '# TYPE h histogram',
      ...['c_total', 'c_created', 'g_total', 'g_info', 'gh_bucket', 'gh_gsum', 'gh_gcount', 'gh_sum', 'i_info', 'i'],
      ...['h_bucket', 'h_total', 'x_total'],
    ].join(' 1\n'),
  );
  const lines = body.toString().replace(/^(# TYPE .*) 1$/gm, '$1');
  const found = scanAs('openMetrics', Buffer.from(`${lines} 1\n# EOF\n`));
  assert.deepEqual(found, ['c', 'g_total', 'g_info', 'gh', 'gh_sum', 'i', 'h', 'h_total', 'x_total']);
  assert.ok(scanAs('text', Buffer.from(lines)).includes('c_total'));
});

test('openFamilyScan() lists what the same program shows in each format', () => {
  const names = ['classic_seconds', 'native_seconds', 'row_bytes', 'rows.left 残り'];
  const read = (file: string) => readRecordedBody(`formats/client_golang-1.23.2-${file}`);
  assert.deepEqual(scanAs('text', read('text.txt')), [...names, 'rows_total']);
  assert.deepEqual(scanAs('openMetrics', read('openmetrics.txt')), [...names, 'rows']);
  assert.deepEqual(scanAs('protobuf', read('protobuf.bin')), [...names, 'rows_total']);
  const all = ['rows', 'load_ratio', 'seconds', 'bytes', 'build', 'state'];
  assert.deepEqual(scanAs('openMetrics', readRecordedBody('formats/prometheus_client-0.26.0-openmetrics.txt')), all);
});

test('openFamilyFilter() leaves out # EOF, and UNIT with its family, of OpenMetrics cut anywhere', () => {
  const body = readRecordedBody('formats/prometheus_client-0.26.0-openmetrics.txt');
  const text = body.toString();
  for (const pieces of pairs(body)) {
    const all = filter(pieces, () => true, { format: 'openMetrics' });
    assert.equal(all, text.replace('# EOF\n', ''));
    const kept = filter(pieces, (family) => family === 'load_ratio', { format: 'openMetrics', keepsOther: false });
    assert.equal(kept, text.slice(text.indexOf('# HELP load_ratio'), text.indexOf('# HELP seconds')));
  }
  const comments = filter(['# EOF\n# EOF'], () => true, { format: 'text' });
  assert.equal(comments, '# EOF\n# EOF');
});

test('openFamilyScan() and openFamilyFilter() read a line feed within a value, cut anywhere', () => {
  const [first, second] = ['a{b="c\nd 1\n",e="f"} 2\n', '{b="c\nd 1\n","g"} 3\n'];
  for (const pieces of pairs(Buffer.from(`${first}${second}`))) {
    assert.deepEqual(scan(...pieces), ['a', 'g']);
    assert.equal(
      filter(pieces, (family) => family === 'a'),
      first,
    );
    assert.equal(
      filter(pieces, (family) => family === 'g'),
      second,
    );
  }
  assert.deepEqual(scan('a{b="c\nd 1\n'), ['a', 'd']);
});
