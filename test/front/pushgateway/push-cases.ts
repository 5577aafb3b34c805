// Requests to a Pushgateway and to lastscrape in its place: each case begins without groups, and ends with
// the statuses of its requests and the page.

import { gzipSync } from 'node:zlib';
import { encodeBytes, encodeDouble, encodeUtf8, encodeVarint } from '../../../src/base/wire.ts';

export type PushCaseRequest = readonly [
  method: string,
  path: string,
  body?: string | Buffer,
  headers?: Readonly<Record<string, string>>,
];

export type PushCase = {
  readonly name: string;
  readonly requests: readonly PushCaseRequest[];
  /** How lastscrape answers on purpose what Pushgateway 1.11 answers otherwise; its statuses. */
  readonly ours?: readonly number[];
  /** Pushgateway 1.5 answers otherwise than 1.11. */
  readonly isNew?: boolean;
};

/** What came of a case: the statuses, and the lines of the page but those of the program itself. */
export type PushOutcome = { readonly statuses: readonly number[]; readonly page: readonly string[] };

const OWN = /^(?:# (?:HELP|TYPE) )?(?:go_|process_|promhttp_|pushgateway_)/;

/** The page without the program's own families, the samples of each family sorted, times as `T`. */
export function normalizePage(text: string): readonly string[] {
  const lines = text.split('\n').filter((line) => line !== '' && !OWN.test(line));
  const families: string[][] = [];
  for (const line of lines) {
    const written = line.replace(/^(push_(?:failure_)?time_seconds\{.*\}) [^0].*$/, '$1 T');
    if (line.startsWith('# HELP') || (line.startsWith('# TYPE') && !families.at(-1)?.at(-1)?.startsWith('# HELP')))
      families.push([]);
    (families.at(-1) ?? families[families.push([]) - 1])?.push(written);
  }
  const isHeader = (line: string) => line.startsWith('#');
  return families.flatMap((family) => [
    ...family.filter(isHeader),
    ...family.filter((line) => !isHeader(line)).toSorted(),
  ]);
}

const field = (number: number, bytes: string) => encodeVarint((number << 3) | 2) + encodeBytes(bytes);
const text = (number: number, value: string) => field(number, encodeUtf8(value));
const integer = (number: number, value: number) => encodeVarint(number << 3) + encodeVarint(value);
const double = (number: number, value: number) => encodeVarint((number << 3) | 1) + encodeDouble(value);
export const label = (name: string, value: string) => field(1, text(1, name) + text(2, value));
export const value = (number: number, amount: number) => field(number, double(1, amount));
const float = (number: number) => `${encodeVarint((number << 3) | 5)}abcd`;

/** Messages of `MetricFamily`: name, type, metrics. */
type Families = readonly (readonly [string, number, ...string[]])[];
export const messages = (...families: Families) =>
  Buffer.from(
    families
      .map(([name, type, ...metrics]) =>
        encodeBytes(text(1, name) + text(2, 'h') + integer(3, type) + metrics.map((each) => field(4, each)).join('')),
      )
      .join(''),
    'latin1',
  );

const PROTOBUF = {
  'Content-Type': 'application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited',
};
const OPEN_METRICS = { 'Content-Type': 'application/openmetrics-text; version=1.0.0; charset=utf-8' };
const GZIP = { 'Content-Encoding': 'gzip' };

export const J = '/metrics/job/j';
export const K = '/metrics/job/k';
const HISTOGRAM = '# TYPE h histogram\nh_bucket{le="0.5"} 1\nh_bucket{le="+Inf"} 3\nh_sum 4.5\nh_count 3\n';

const repeat = (make: (index: number) => string, count = 10_001) =>
  Array.from({ length: count }, (_, at) => make(at)).join('');
const OPEN =
  '# TYPE a counter\n# HELP a x\na_total 1 # {t="1"} 1\na_created 5\n# TYPE i info\ni_info{v="1"} 1\n# EOF\n';
const LABELS = repeat((row) => label(`l${row}`, ''));

/** Several cases of one request, the same but for one thing. */
const bodies = (texts: Readonly<Record<string, string | Buffer>>, ours?: readonly number[]): readonly PushCase[] =>
  Object.entries(texts).map(([name, body]) => ({ name, requests: [['PUT', J, body]], ...(ours && { ours }) }));
const paths = (texts: Readonly<Record<string, string>>, ours?: readonly number[]): readonly PushCase[] =>
  Object.entries(texts).map(([name, path]) => ({ name, requests: [['PUT', path, 'm 1\n']], ...(ours && { ours }) }));
const proto = (name: string, ...families: Families) => one(name, ['PUT', J, messages(...families), PROTOBUF]);
const one = (name: string, ...requests: readonly PushCaseRequest[]): PushCase => ({ name, requests });

export const PUSH_CASES: readonly PushCase[] = [
  ...bodies(
    {
      '30,000 families': repeat((row) => `a${row} 1\n`, 30_000),
      'a help of 7 MB': repeat((row) => `# HELP a${row} ${'h'.repeat(1e6)}\na${row} 1\n`, 7),
      'a line of 2 MB': `a{x="${'y'.repeat(2e6)}"} 1\n`,
    },
    [400],
  ),
  one('PUT replaces a group', ['PUT', J, 'a 1\nb 2\n'], ['PUT', J, 'b 3\n']),
  one('POST replaces families of the same name', ['PUT', J, 'a{x="1"} 1\nb 2\n'], ['POST', J, 'a{x="2"} 3\n']),
  one('POST makes a group', ['POST', J, 'a 1\n']),
  one('PUT leaves other groups alone', ['PUT', J, 'a 1\n'], ['PUT', K, 'a 2\n'], ['PUT', `${J}/x/1`, 'a 3\n']),
  one('DELETE removes a group', ['PUT', J, 'a 1\n'], ['PUT', K, 'a 2\n'], ['DELETE', J]),
  one('DELETE takes the exact group', ['PUT', `${J}/x/1`, 'a 1\n'], ['DELETE', J]),
  one('DELETE of what is not there', ['DELETE', J]),
  one('DELETE and PUT again', ['PUT', J, 'a 1\n'], ['DELETE', J], ['PUT', J, '# TYPE a gauge\na 2\n']),
  one('the order of labels is that of no group', ['PUT', `${J}/x/1/y/2`, 'a 1\n'], ['PUT', `${J}/y/2/x/1`, 'b 1\n']),
  one('an empty body', ['PUT', J, ''], ['POST', K, '']),
  one('an empty body empties a group', ['PUT', J, 'a 1\n'], ['PUT', J, '']),
  ...paths({
    'the job in base64': '/metrics/job@base64/L3NsYXNoL2E',
    'the job in padded base64': '/metrics/job@base64/YQ==',
    'a label in base64': `${J}/path@base64/L3Zhci90bXA=`,
    'an empty label in base64': `${J}/empty@base64/=/x/1`,
    'UTF-8 in base64': `${J}/x@base64/w6k`,
    'base64 of the other alphabet': `${J}/x@base64/a+b`,
    'base64 with a line feed': `${J}/x@base64/Y%0AQ`,
    'base64 of an impossible length': `${J}/x@base64/abcde`,
    'an empty job in base64': '/metrics/job@base64/=',
    'a job that is no base64': '/metrics/job@base64/!',
    'an empty label at the end': `${J}/x/`,
    'a slash at the end': `${J}/`,
    'an odd number of parts': `${J}/x`,
    'a label name that is none': `${J}/a-b/1`,
    'a label name of digits': `${J}/1a/1`,
    'a reserved label name': `${J}/__x/1`,
    'an encoded slash, which splits': `${J}/x/a%2Fb/c`,
    'blanks and UTF-8, encoded': `${J}/x/a%20b%C3%A9`,
    'a plus is a plus': `${J}/x/a+b`,
    'a query is ignored': `${J}/x/1?y=2`,
    'a label job in the path': `${J}/job/other`,
    'a label twice in the path': `${J}/x/1/x/2`,
    'an instance in the path': `${J}/instance/i`,
    'another path': '/metrics/jobs/j',
    'quotes in a label': `${J}/x/a%22b%5Cc%0Ad`,
  }),
  ...paths({ 'an empty part, where Pushgateway redirects': `${J}/x//y/1`, 'one at the start': `/${J}` }, [200]),
  ...paths({ 'a job that is missing': '/metrics/job/', 'no UTF-8 in base64': `${J}/x@base64/_w` }, [400]),
  one('other methods', ['GET', J], ['PATCH', J, 'a 1\n']),
  one('a POST without a group', ['POST', '/metrics', 'a 1\n']),
  one('health', ['GET', '/-/healthy'], ['GET', '/-/ready']),
  ...bodies({
    'a type in capitals': '# TYPE a COUNTER\na 1\n',
    'an unknown type': '# TYPE a info\na 1\n',
    'a type twice': '# TYPE a gauge\n# TYPE a gauge\na 1\n',
    'a type after its samples': 'a 1\n# TYPE a gauge\n',
    'a type after its samples, and before others': 'a 1\n# TYPE a histogram\na_sum 2\n',
    'a help twice': '# HELP a x\n# HELP a y\na 1\n',
    'a help without a sample': '# HELP a x\n# TYPE a gauge\nb 1\n',
    'a help with escapes': '# HELP a x\\n\\\\y\na 1\n',
    'a type without a word': '# TYPE a\na 1\n',
    comments: '#\n# a comment\n#HELP a x\n\n \t\na 1\n',
    'escapes in a label': 'a{x="\\"\\\\\\n"} 1\n',
    'UTF-8 in a label': 'a{x="é世"} 1\n',
    'what is no UTF-8': Buffer.from('a{x="\xff"} 1\n', 'latin1'),
    'what is no UTF-8 in a comment and a help': Buffer.from('# \xe9\n# HELP a \xe9\na 1\n', 'latin1'),
    'blanks at the end': 'a 1\n  ',
    'a help of a sum': '# TYPE h histogram\n# HELP h_sum x\nh_sum 1\n',
    'a bound that is NaN, and two': '# TYPE h histogram\nh_bucket{le="NaN"} 1\nh_bucket{le="1",le="2"} 1\n',
    'a trailing comma, blanks and tabs': ' a { x = "1" , } \t 1\nb\t2\n',
    'a timestamp': 'a 1\nb 1 1600000000000\n',
    'a timestamp with a point': 'a 1 1600000000.5\n',
    'text after a timestamp': 'a 1 16 17\n',
    'a series twice': 'a 1\na 2\n',
    'a series twice by its group': 'a{job="x"} 1\na{job="y"} 2\n',
    'a label twice': 'a{x="1",x="2"} 1\n',
    'a label __name__': 'a{__name__="b"} 1\n',
    'a reserved label': 'a{__x="1"} 1\n',
    numbers: 'a 1e3\nb +Inf\nc -inf\nd NaN\ne 0.00001\nf -0.5\ng 123456789\nh .5\ni 1e+300\nj Infinity\n',
    'a number beyond a double': 'a 1e999\n',
    'a hexadecimal number': 'a 0x1p4\n',
    'no number': 'a one\n',
    'no value': 'a\n',
    'no line feed at the end': 'a 1\nb 2',
    'a cut label': 'a{x="1',
    'no metrics at all': '<html>\n<body>nginx</body>\n</html>\n',
    'a body of JSON': '{"a": 1}\n',
    'labels that the group overrides': 'a{job="x",instance="i"} 1\n',
    'an empty instance': 'a{instance=""} 1\n',
    'a family in two places': 'a{x="1"} 1\nb 1\na{x="2"} 2\n',
    'the name of a time': '# TYPE push_time_seconds counter\npush_time_seconds 5\na 1\n',
    'a histogram': HISTOGRAM,
    'a histogram without +Inf': '# TYPE h histogram\nh_bucket{le="0.5"} 1\nh_sum 4.5\nh_count 3\n',
    'a histogram with labels': `${HISTOGRAM.replaceAll(/(h_\w+) /g, '$1{x="1"} ')}h_bucket{x="2",le="1"} 2\n`,
    'a histogram without sum and count': '# TYPE h histogram\nh_bucket{le="1"} 1\n',
    'a histogram whose bound is no number': '# TYPE h histogram\nh_bucket{le="x"} 1\n',
    'a histogram with a sample of its own name': '# TYPE h histogram\nh 1\n',
    'buckets without a type': 'h_bucket{le="1"} 1\nh_sum 1\nh_count 1\n',
    'a summary': '# TYPE s summary\ns{quantile="0.5"} 1\ns{quantile="0.9"} 2\ns_sum 3\ns_count 2\n',
    'a summary without quantiles': '# TYPE s summary\ns_sum 3\ns_count 2\n',
    'a summary whose quantile is no number': '# TYPE s summary\ns{quantile="x"} 1\n',
    'a summary and a count of its own': 's_count 1\n# TYPE s summary\ns_sum 3\n',
  }),
  { name: 'a histogram of floats', requests: [['PUT', J, HISTOGRAM.replaceAll(' 3', ' 3.5')]], isNew: true },
  { name: 'a gauge histogram', requests: [['PUT', J, HISTOGRAM.replace('hist', 'gaugehist')]], isNew: true },
  ...bodies({ 'line ends of Windows': 'a 1\r\n', 'another escape': 'a{x="\\t"} 1\n' }, [200]),
  ...bodies({ 'UTF-8 names': '# TYPE "a.b" gauge\n{"a.b","x.y"="1"} 1\n' }, [200]),
  ...bodies({ 'a type that every object has': '# TYPE a constructor\na 1\n' }, [400]),
  one('types that contradict', ['PUT', J, '# TYPE a gauge\na 1\n'], ['PUT', K, '# TYPE a counter\na 1\n']),
  one('untyped contradicts too', ['PUT', J, '# TYPE a gauge\na 1\n'], ['POST', K, 'a 1\n']),
  one('a type that changes', ['PUT', J, '# TYPE a gauge\na 1\n'], ['PUT', J, '# TYPE a counter\na{x="1"} 1\n']),
  one('a type that changes by POST', ['POST', J, '# TYPE a gauge\na 1\n'], ['POST', J, '# TYPE a counter\na 1\n']),
  one('helps that differ', ['PUT', J, '# HELP a x\na 1\n'], ['PUT', K, '# HELP a x\na 1\n']),
  one('a series of two groups', ['PUT', J, 'a{instance="i"} 1\n'], ['PUT', `${J}/instance/i`, 'a 2\n']),
  one('a sum beside a histogram', ['PUT', J, HISTOGRAM], ['PUT', K, 'h_sum 1\n']),
  one('a histogram beside a sum', ['PUT', J, 'h_sum 1\n'], ['PUT', K, HISTOGRAM]),
  one('a bucket beside a summary', ['PUT', J, '# TYPE s summary\ns_sum 1\n'], ['PUT', K, 's_bucket 1\n']),
  one('a count beside a summary', ['PUT', J, '# TYPE s summary\ns_sum 1\n'], ['PUT', K, 's_count 1\n']),
  one('a failure keeps what was there', ['PUT', J, 'a 1\n'], ['PUT', J, 'a 2 5\n'], ['POST', J, 'b 1\n']),
  one('a failure of the body leaves no trace', ['PUT', J, 'a 1\n'], ['PUT', J, 'a two\n']),
  one('a failure stays after a PUT', ['PUT', J, 'a 1 5\n'], ['PUT', J, 'a 1\n']),
  one('gzip', ['PUT', J, gzipSync('a 1\n'), GZIP]),
  { ...one('gzip in capitals', ['PUT', J, gzipSync(''), { 'Content-Encoding': 'GZIP' }]), isNew: true },
  one('gzip of two members', ['PUT', J, Buffer.concat([gzipSync('a 1\n'), gzipSync('b 1\n')]), GZIP]),
  { ...one('gzip that is cut', ['PUT', J, gzipSync('a 1\n').subarray(0, 15), GZIP]), isNew: true },
  one('gzip that is none', ['PUT', J, 'a 1\n', GZIP]),
  one('no gzip at all', ['PUT', J, '', GZIP]),
  one('another encoding', ['PUT', J, 'a 1\n', { 'Content-Encoding': 'br' }]),
  one('a text of another type', ['PUT', J, 'a 1\n', { 'Content-Type': 'application/x-www-form-urlencoded' }]),
  { ...one('OpenMetrics', ['PUT', J, OPEN, OPEN_METRICS]), ours: [200] },
  one('text that is named OpenMetrics', ['PUT', J, '# TYPE a untyped\na 1\n# TYPE c counter\nc 1\n', OPEN_METRICS]),
  { ...one('OpenMetrics with a timestamp', ['PUT', J, '# TYPE a gauge\na 1 5.5\n# EOF\n', OPEN_METRICS]), ours: [400] },
  one('OpenMetrics with text after its end', ['PUT', J, '# EOF\na\n', OPEN_METRICS]),
  proto(
    'protobuf',
    ['c', 0, label('x', '1') + value(3, 1)],
    ['g', 1, value(2, 1.5), label('x', 'é') + value(2, -1)],
    ['u', 3, value(5, Number.NaN)],
  ),
  proto('a histogram in protobuf', [
    'h',
    4,
    field(7, integer(1, 300) + double(2, 4.5) + field(3, integer(1, 200) + double(2, 0.5))),
  ]),
  proto('a summary in protobuf', [
    's',
    2,
    field(4, integer(1, 3) + double(2, 4.5) + field(3, double(1, 0.5) + double(2, 7))),
  ]),
  proto('protobuf with a timestamp', ['g', 1, value(2, 1) + integer(6, 5)]),
  proto('protobuf with a series twice', ['g', 1, value(2, 1), value(2, 2)]),
  proto('protobuf with a histogram twice', ['h', 4, field(7, integer(1, 1)), field(7, integer(1, 2))]),
  proto('protobuf whose metric is of another type', ['g', 1, value(3, 1)]),
  proto('protobuf with a label quantile', ['s', 2, label('quantile', '1') + field(4, integer(1, 3))]),
  proto('protobuf with an empty family', ['e', 1], ['g', 1, value(2, 1)]),
  one('protobuf that is cut', ['PUT', J, messages(['g', 1, value(2, 1)]).subarray(0, -3), PROTOBUF]),
  ...[
    proto('protobuf with 10,001 labels', ['g', 1, LABELS + value(2, 1)]),
    one('a summary of a group with its label', ['PUT', `${J}/quantile/1`, '# TYPE s summary\ns_sum 1\ns_count 1\n']),
  ].map((each) => ({ ...each, ours: [400] })),
  ...Object.entries({
    'of defaults': encodeBytes(text(1, 'c') + field(4, field(3, ''))),
    'with a wire type that there is not': encodeBytes(`${text(1, 'c')}\x0b`),
    'with a number for a metric': encodeBytes(text(1, 'c') + integer(4, 1)),
    'with a number without end': '\xff'.repeat(11),
    'with a double that is cut': encodeBytes(`${text(1, 'c')}\x09abc`),
    'whose name is missing': encodeBytes(field(4, value(3, 1))),
  }).map(([name, body]) => ({
    ...one(`protobuf ${name}`, ['PUT', J, Buffer.from(body, 'latin1'), PROTOBUF]),
    ...(/a metric|missing/.test(name) && { ours: [/missing/.test(name) ? 200 : 400] }),
  })),
  one('protobuf that is none', ['PUT', J, 'a 1\n', PROTOBUF]),
  one('protobuf without a body', ['PUT', J, '', PROTOBUF]),
  one('protobuf in gzip', ['PUT', J, gzipSync(messages(['g', 1, value(2, 1)])), { ...PROTOBUF, ...GZIP }]),
  proto('protobuf with fields that are unknown', ['g', 1, value(2, 1) + text(99, 'x') + float(98)]),
  {
    ...proto('a native histogram', [
      'h',
      4,
      field(7, integer(1, 3) + double(2, 4.5) + integer(5, 6) + double(6, 0.001) + integer(7, 1) + integer(13, 2)),
    ]),
  },
  {
    ...proto('a histogram of floats in protobuf', [
      'h',
      4,
      field(7, double(4, 3.5) + double(2, 4.5) + field(3, double(4, 1.5) + double(2, 1))),
    ]),
    isNew: true,
  },
  { ...proto('a type of protobuf that is unknown', ['g', 9, value(2, 1)]), ours: [200] },
  { ...proto('protobuf with UTF-8 names', ['g.x', 1, label('a.b', '1') + value(2, 1)]), ours: [200] },
  { ...proto('a gauge histogram in protobuf', ['h', 5, field(7, integer(1, 3) + double(2, 4.5))]), isNew: true },
];
