import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Exposition, openExposition, type Selector } from '../../src/exposition/exposition.ts';
import { LINE_MAX_BYTES } from '../../src/exposition/sample-filter.ts';
import { openRandom } from '../support/random.ts';
import { readRecordedBody, readRecordedText } from '../support/recording.ts';
import { readReference } from './reference.ts';

function readPieces(
  pieces: Iterable<Uint8Array>,
  metricNames: readonly string[] = ['locust_up'],
  selectors: readonly Selector[] = [],
): Exposition {
  const exposition = openExposition(metricNames, selectors);
  for (const piece of pieces) exposition.write(piece);
  return exposition.end();
}

function readText(text: string, metricNames?: readonly string[]): Exposition {
  return readPieces([Buffer.from(text)], metricNames);
}

function* splitBytes(body: Uint8Array): Generator<Uint8Array> {
  for (let at = 0; at < body.length; at++) yield body.subarray(at, at + 1);
}

/** The columns of the table: up, users, requests, failures, finished scrapes; `-` is unknown. */
function formatRow({ metrics, users, requests, failures, scrapes }: Exposition): string {
  const up = metrics.get('locust_up');
  return [up?.kind === 'value' ? up.value : null, users, requests, failures, scrapes?.finishedCount ?? null]
    .map((value) => value ?? '-')
    .join(' ');
}

type Recording = { readonly path: string; readonly row: string };

// Read off the recordings with grep, not with this code.
const RECORDINGS: readonly Recording[] = Object.entries({
  'exporter-0.5.0-locust-2.47.0': `
      01-before-master.1           0    -      -      -     0
      01b-root                     -    -      -      -     -
      01c-head                     -    -      -      -     -
      01d-openmetrics              0    -      -      -     4
      01e-post                     0    -      -      -     5
      01f-after-other-requests.1   0    -      -      -     6
      02-master-up-noworker.1      1    0      0      0     8
      02a-5557-just-open.1         1    0      0      0     7
      03-ready-1-of-2-workers.1    1    0      0      0     0
      04-spawning-2-workers.1      1    2      0      0     6
      04-spawning.1                1    0      0      0    13
      05-running-2-workers         1    6     48      0    11
      05-running.21                1    6    159     29    40
      05b-master-stalled.1         0    -     48      0    12
      05c-master-resumed.1         1    6    401      0    14
      05d-one-of-two-workers-killed 1    6    598      0    16
      07-stopped.11                1    0    222     36    55
      09-during-shutdown.1         1    0    222     36    56
      09-during-shutdown.5         0    -    222     36    60
      09-during-sigterm.4          0    -    598      0    20
      10-after-master-exit.1       0    -    222     36    61
      10-after-sigterm             0    -    598      0    21
      13-odd-names-stopped         1    0   3828   1305    16
      14-nan-after-exit            0    -      0      0    19
      14-nan-running               1    0      0      0     7
      14-nan-stopped               1    0      0      0    13
`,
  'exporter-0.5.2-locust-2.47.0': `
      02-master-up-noworker.1      1    0      0      0     8
      05-running.9                 1    6    141     27    33
      06-just-stopped.1            1    6    141     27    37
      07-stopped.4                 1    0    207     38    43
      09-during-shutdown.5         0    -    207     38    59
      10-after-master-exit.1       0    -    207     38    60
`,
  'exporter-0.4.3-locust-2.47.0': `
      01-before-master.1           0    -      -      -     0
      10-after-master-exit.1       0    -    204     46    60
      12-after-quit.1              0    -    204     46    63
`,
  'exporter-0.4.0-locust-2.47.0': `
      01-before-master.1           0    -      -      -     0
      07-stopped.14                1    0    213     47    54
      10-after-master-exit.1       0    -    213     47    61
      12-after-quit.1              0    -    213     47    64
`,
  'exporter-0.5': `
      04-spawning.1                1    2      3      1    12
      05-running.1                 1    6    228     45    14
      07-stopped.1                 1    0    519    107    20
      08-reset.1                   1    0      0      0    22
      08b-rerun.1                  1    2     12      1    23
      09-during-shutdown-5.1       0    -     12      1    28
      10-after-master-exit.1       0    -     12      1    30
      13-deb-libs-before-master    0    -      -      -     0
`,
}).flatMap(([folder, table]) =>
  table
    .trim()
    .split('\n')
    .map((line) => {
      const [name, ...values] = line.trim().split(/ +/);
      return { path: `${folder}/${name}.txt`, row: values.join(' ') };
    }),
);

for (const { path, row } of RECORDINGS) {
  test(`openExposition() reads ${path}`, () => {
    const body = readRecordedBody(path);
    const whole = readPieces([body]);
    assert.equal(formatRow(whole), row);
    assert.equal(whole.hasRequests, whole.requests !== null, 'a total row proves that Locust was reached');
    assert.equal(whole.scrapes?.inFlightCount ?? 1, 1);
    assert.deepEqual(readPieces(splitBytes(body)), whole, 'in one-byte chunks');
  });
}

test('openExposition() reads a body of many names', () => {
  const body = readRecordedBody('exporter-0.5.0-locust-2.47.0/15-many-names-running.txt.gz');
  const whole = readPieces([body]);
  assert.equal(formatRow(whole), '1 6 129 0 9');
  assert.deepEqual(readPieces(splitBytes(body)), whole);
});

// The cut line can be read short (`locust_users 60` as 6): src/base/net/exchange.ts refuses a body that did not
// end as HTTP says.
for (const path of [
  'exporter-0.5.0-locust-2.47.0/05-running.21.txt',
  'exporter-0.4.0-locust-2.47.0/07-stopped.14.txt',
  'exporter-0.4.3-locust-2.47.0/10-after-master-exit.1.txt',
  'expositions/statsd_exporter-0.31.0.txt',
]) {
  test(`openExposition() reads ${path} cut at any byte as the slow reference does`, () => {
    const lines = readRecordedBody(path)
      .toString()
      .match(/^.*(?:locust_(?:up|users|requests_num)|promhttp_).*\n/gm);
    const body = Buffer.from(lines?.join('') ?? '');
    for (let cut = 0; cut <= body.length; cut++) {
      const bytes = body.subarray(0, cut);
      assert.deepEqual(readPieces([bytes]), readReference(bytes, ['locust_up']), `cut at byte ${cut}`);
    }
  });
}

// Columns: finished scrapes and those in flight, as the recordings' README lists them.
const OTHER_PROGRAMS: Readonly<Record<string, string>> = {
  '2 1': `
    alertmanager-0.25.0 apache_exporter-0.12.0 blackbox_exporter-0.23.0 elasticsearch_exporter-1.5.0 haproxy_exporter-0.14.0
    mysqld_exporter-0.14.0-db-down node_exporter-1.12.1 node_exporter-1.5.0 postgres_exporter-0.11.1-db-down
    process_exporter-0.7.10 prometheus-2.42.0 statsd_exporter-0.31.0`,
  '-': `
    blackbox_exporter-0.23.0-probe cloud-sql-proxy-2.27.0 envoy-1.40.0-admin-stats nginx_exporter-0.11.0
    node-prom-client-15.1.3 pushgateway-1.5.1 python-prometheus_client-0.26.0-openmetrics
    python-prometheus_client-0.26.0-prom3-accept python-prometheus_client-0.26.0 redis_exporter-1.45.0-db-down`,
};

for (const [counters, names] of Object.entries(OTHER_PROGRAMS)) {
  for (const name of names.trim().split(/\s+/))
    test(`openExposition() reads the scrape counters of ${name}`, () => {
      const body = readRecordedBody(`expositions/${name}.txt`);
      const whole = readPieces([body]);
      const { scrapes, ...rest } = whole;
      assert.equal(scrapes === null ? '-' : `${scrapes.finishedCount} ${scrapes.inFlightCount}`, counters);
      assert.deepEqual(rest, {
        metrics: new Map([['locust_up', { kind: 'unknown', why: 'not in the exposition' }]]),
        selected: [],
        hasRequests: false,
        requests: null,
        failures: null,
        users: null,
        isFront: false,
      });
      assert.deepEqual(readPieces(splitBytes(body)), whole, 'in one-byte chunks');
    });
}

test('openExposition() reads another program by its own metric', () => {
  const read = readPieces([readRecordedBody('expositions/redis_exporter-1.45.0-db-down.txt')], ['redis_up']);
  assert.deepEqual(read.metrics.get('redis_up'), { kind: 'value', value: 0 });
});

test('openExposition() takes the prefix from the metric that ends in _up (LOCUST_METRIC_NAMESPACE)', () => {
  const body = readRecordedBody('exporter-0.5.2-locust-2.47.0/01g-namespace-load_test.txt');
  assert.deepEqual(readPieces([body], ['load_test_up']).metrics.get('load_test_up'), { kind: 'value', value: 0 });
  assert.equal(readPieces([body]).metrics.get('locust_up')?.kind, 'unknown');
  const later = readText(
    'load_test_up 0\nload_test_requests_num_requests{method="",name="Aggregated"} 7\n' +
      'load_test_requests_num_failures{method="",name="Aggregated"} 2\nload_test_users 3\nlocust_users 9\n',
    ['go_goroutines', 'load_test_up'],
  );
  const { hasRequests, requests, failures, users } = later;
  const read = { hasRequests, requests, failures, users };
  assert.deepEqual(read, { hasRequests: true, requests: 7, failures: 2, users: 3 });
  assert.equal(readText('locust_users 9\n', ['go_goroutines']).users, 9, 'without such a metric: locust');
});

test('openExposition() reads each name of 13-odd-names as Prometheus does', () => {
  const folder = 'exporter-0.5.0-locust-2.47.0/';
  const known: unknown = JSON.parse(readRecordedText(`${folder}13-odd-names.prometheus-label-values.json`)).data;
  const stored = new Set(known as readonly string[]);
  const body = readRecordedBody(`${folder}13-odd-names-stopped.txt`).toString();
  const lines = body.split('\n').filter((line) => line.startsWith('locust_requests_num_requests{'));
  const names = new Set<string>();
  for (const line of lines) {
    // Each row alone, in the place of the total row: the parser must give the name back as Prometheus has it.
    const [, method, escaped, value] = /^[^{]+\{method="((?:[^"\\]|\\.)*)",name="(.*)"\} (\d+)$/s.exec(line) ?? [];
    assert.ok(method !== undefined && escaped !== undefined, line);
    const name = escaped.replace(/\\(.)/g, (_, letter) => (letter === 'n' ? '\n' : letter));
    names.add(name);
    const read = readText(`${line}\n`);
    assert.equal(read.hasRequests, true, line);
    assert.equal(read.requests, method === '' && name === 'Aggregated' ? Number(value) : null, line);
    assert.equal(read.metrics.get('locust_up')?.kind, 'unknown', line);
  }
  // To Prometheus an empty label is a missing one.
  names.delete('');
  assert.deepEqual([...names].sort(), [...stored].sort());
});

test('openExposition() knows the page of another lastscrape', () => {
  assert.equal(readText('locust_up 0\nlastscrape_build_info{version="0.1.0"} 1\n').isFront, true);
  for (const text of [
    'locust_up 0\n',
    '# TYPE lastscrape_build_info gauge\n',
    'lastscrape_build_info 1\n',
    'lastscrape_build_info{version="0.1.0"} \n',
    'lastscrape_build_info_of_another{version="0.1.0"} 1\n',
    'locust_requests_num_requests{method="GET",name="lastscrape_build_info{version="} 1\n',
  ]) {
    assert.equal(readText(text).isFront, false, text);
  }
});

test('openExposition() reads the longest lines, whatever they are made of, without trying one byte twice', () => {
  // If this takes seconds, a pattern matches something in more than one way.
  const fill = (head: string, piece: string, tail = '') =>
    head + piece.repeat(Math.floor((LINE_MAX_BYTES - head.length - tail.length) / piece.length)) + tail;
  const table: readonly (readonly [line: string, read: number | string])[] = [
    [fill('locust_up ', '1', 'x'), 'unreadable'],
    [fill('locust_up ', '1'), 'unreadable'],
    [fill('locust_up 1.', '1', 'x'), 'unreadable'],
    [fill('locust_up 1e', '1', 'x'), 'unreadable'],
    [fill('locust_up 1 ', '1', 'x'), 'unreadable'],
    [fill('locust_up', ' x'), 'unreadable'],
    [fill('locust_up', ' }'), 'unreadable'],
    [fill('locust_up', '{}'), 'unreadable'],
    [fill('locust_up', ' ', '0'), 0],
    [fill('locust_up 0', ' '), 0],
    [fill('locust_up{', ' ', '} 0'), 0],
    [fill('locust_up{a="b"', ' ', '} 0'), 'it has labels'],
    [fill('locust_up{', 'a="b",', '} 0'), 'it has labels'],
    [fill('locust_up{', 'a="b",', '!} 0'), 'unreadable'],
    [fill('locust_up{a="', '\\n', '"} 0'), 'it has labels'],
    [fill('locust_up{a="', '\\n'), 'unreadable'],
  ];
  for (const [line, expected] of table) {
    const reading = readText(`${line}\n`).metrics.get('locust_up');
    assert.equal(reading?.kind === 'value' ? reading.value : reading?.why, expected, line.slice(0, 30));
  }
});

// The same bodies every time, so that a red run is the change's fault; LASTSCRAPE_TEST_SEED=NUMBER makes others.
const FUZZ_BODIES_COUNT = 3_000;

test('openExposition() reads generated expositions as the slow reference does', (context) => {
  const seed = Number(process.env['LASTSCRAPE_TEST_SEED'] ?? 20_261_121);
  context.diagnostic(`LASTSCRAPE_TEST_SEED=${seed}`);
  const next = openRandom(seed);
  let valuesCount = 0;
  const selectedCounts = { none: 0, unmatched: 0, several: 0, value: 0 };
  for (let body = 0; body < FUZZ_BODIES_COUNT; body++) {
    const bytes = generateBody(next);
    const { selected, ...others } = readPieces(pieces(bytes, next), ['locust_up', 'a_up'], SELECTORS);
    // What is nearest has its own table, in selector.test.ts.
    const read = { ...others, selected: selected.map((each) => (each.kind === 'value' ? each : { kind: each.kind })) };
    const expected = readReference(bytes, ['locust_up', 'a_up'], SELECTORS);
    assert.deepEqual(read, expected, `seed ${seed}, body ${body}: ${JSON.stringify(bytes.toString('latin1'))}`);
    for (const value of [read.users, read.requests, read.failures, read.scrapes]) if (value !== null) valuesCount++;
    for (const reading of read.metrics.values()) if (reading.kind === 'value') valuesCount++;
    for (const { kind } of read.selected) selectedCounts[kind]++;
  }
  for (const [kind, count] of Object.entries(selectedCounts)) assert.ok(count > 100, `${kind}: only ${count}`);
  assert.ok(valuesCount > FUZZ_BODIES_COUNT, `the generated bodies hold next to nothing: ${valuesCount} values`);
});

const SELECTORS: readonly Selector[] = [
  { name: 'locust_up', labels: [] },
  { name: 'locust_up', labels: [['a', 'b']] },
  { name: 'locust_users', labels: [['a', '']] },
  { name: 'a_up', labels: [['a', '"} 1\nlocust_up 0\n']] },
  { name: 'locust_requests_num_requests', labels: [['name', 'Aggregated']] },
  { name: 'locust_requests_num_requests', labels: [['method', '']] },
  {
    name: 'promhttp_metric_handler_requests_total',
    labels: [
      ['code', '200'],
      ['a', 'b'],
    ],
  },
];
const listOf = (table: string) => table.slice(1).split(/\|\n?/);
const PLAIN = listOf(`
locust_up|a_up{}|locust_users|locust_requests_num_requests{method="",name="Aggregated"}|promhttp_metric_handler_requests_in_flight|
locust_requests_num_failures{method="",name="Aggregated"}|promhttp_metric_handler_requests_total{code="200"}|
locust_requests_num_requests{method="GET",name="/"}`);
const NAMES = listOf(`
locust_up|locust_up|a_up|locust_users|locust_requests_num_requests|locust_requests_num_failures|locust_requests_x|locust_requests_|
promhttp_metric_handler_requests_total|promhttp_metric_handler_requests_in_flight|locust_up2|locust_u|go_threads|# HELP locust_up|#||`);
const LABELS = listOf(`
"locust_up"|"locust_up","a.b"="c"|"a_up",a="b"|"locust_up2"|"code"="200"|"a b"="c",a="b"|method="",name="Aggregated"|code="500"|a="b"|
name="Aggregated",method=""|code="200"|||a="\\"} 1\\nlocust_up 0\\n"|a="\\\\",b="\r\u2028\0"|a="x\\qy"|a="locust_up 0|a=b|a b="c"|
co de="200"|code="200",a="b"|method="",name="Aggregated",a="b"|,|a="}{",method=""`);
const VALUES = '0 1 6 60 1e3 1e+06 0.5 .5 5. -1 +Inf -Inf NaN 0x0 x 1_0 1e Inf inf +Infinity nan -nan 0x1p4'.split(' ');
const BLANKS = ['', '', '', ' ', '  ', '\t', ' \t'];
const ENDS = ['\n', '\n', '\n', '\n', '\r\n', ' \n', '\n\n', '\r', '\u2028\n', '\0\n', ' 123\n', ' x\n', '\u{ff}\n'];

function generateBody(next: (below: number) => number): Buffer {
  const pick = (from: readonly string[]) => from[next(from.length)] as string;
  let text = '';
  for (let left = next(14); left >= 0; left--) {
    if (next(2) === 0) {
      text += `${pick(PLAIN)} ${next(100)}\n`;
      continue;
    }
    const hasLabels = next(2) === 0;
    // A blank may stand before and behind each of a label's signs, never inside of a word.
    const labels = pick(LABELS).replace(/^|[=,](?=["a-z])|$/g, (sign) => pick(BLANKS) + sign + pick(BLANKS));
    const head = pick(BLANKS.slice(0, next(3) === 0 ? 7 : 1)) + pick(NAMES);
    text += head + (hasLabels ? `${pick(BLANKS)}{${labels}}` : ' ') + pick(BLANKS) + pick(VALUES) + pick(ENDS);
  }
  const bytes = Buffer.from(text, next(4) === 0 ? 'latin1' : 'utf8');
  // Damage: a byte here and there, and a body that ends anywhere.
  if (next(4) === 0 && bytes.length > 0) bytes[next(bytes.length)] = next(256);
  return next(4) === 0 ? bytes.subarray(0, next(bytes.length + 1)) : bytes;
}

function* pieces(bytes: Buffer, next: (below: number) => number): Generator<Uint8Array> {
  const longest = [1, 3, 20, 200, 5_000][next(5)] as number;
  for (let at = 0; at < bytes.length; ) {
    const length = next(longest + 1);
    yield bytes.subarray(at, at + length);
    at += length;
  }
}
