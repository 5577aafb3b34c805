// Values that config.test.ts does not read by way of their variables: sources, receivers, labels, addresses.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Parse } from '../../src/base/parse.ts';
import {
  parseFrontAddress,
  parseMetricsUrl,
  parsePush,
  parsePushLabel,
  parseWebhook,
  readPushAddress,
} from '../../src/config/values.ts';

const front = (text: string, host: string | null, port = 9469) =>
  [parseFrontAddress, text, { host, port, text }] as const;

/** What is read, and as which value; a URL as its text. */
const READ: readonly (readonly [parse: Parse<unknown>, text: string, value: unknown])[] = [
  [parseMetricsUrl, 'file:///shared/job.prom', 'file:///shared/job.prom'],
  [parseMetricsUrl, 'file:///shared/metrics/', 'file:///shared/metrics/'],
  [parseMetricsUrl, 'FILE://localhost/a b', 'file:///a%20b'],
  [parseMetricsUrl, 'file:///100%25.prom', 'file:///100%25.prom'],
  [parseMetricsUrl, 'pushgateway://localhost:9091/', 'pushgateway://localhost:9091/'],
  [parsePush, 'pushgateway+http://a:9091', { to: 'pushgateway', url: 'http://a:9091/' }],
  [parsePush, 'pushgateway+http://a/metrics/jobs', { to: 'pushgateway', url: 'http://a/metrics/jobs' }],
  [parsePush, 'remote-write+https://a/write?a=b', { to: 'remote-write', url: 'https://a/write?a=b' }],
  [parsePush, 'otlp+HTTP://[::1]:4318/metrics', { to: 'otlp', url: 'http://[::1]:4318/metrics' }],
  [parseWebhook, 'https://a/hook?a=b', 'https://a/hook?a=b'],
  [parsePushLabel, 'job=a', ['job', 'a']],
  [parsePushLabel, '_a1 = b=c d', ['_a1', 'b=c d']],
  [parsePushLabel, 'a__=b', ['a__', 'b']],
  [parsePushLabel, 'job="a" b', ['job', '"a" b']],
  [parsePushLabel, 'job="', ['job', '"']],
  front('1', null, 1),
  front('65535', null, 65535),
  front('localhost:9469', 'localhost'),
  front('127.0.0.1:9469', '127.0.0.1'),
  front('0.0.0.0:9469', '0.0.0.0'),
  front('[::1]:9469', '::1'),
  front('[::]:9469', '::'),
  front('[fd00:0::5]:80', 'fd00::5', 80),
];
for (const [parse, text, value] of READ) {
  test(`${parse.name}() reads ${text}`, () => {
    assert.deepEqual(JSON.parse(JSON.stringify(parse(text))), { value });
  });
}

test('readPushAddress() has the host without its brackets', () => {
  for (const [host, bare] of [
    ['127.0.0.1', '127.0.0.1'],
    ['[::1]', '::1'],
  ] as const) {
    const parsed = parseMetricsUrl(`PUSHGATEWAY://${host}:9091`);
    assert.ok('value' in parsed);
    assert.deepEqual(readPushAddress(parsed.value), { host: bare, port: 9091, text: `${host}:9091` });
  }
});

const FILE_URL =
  'a file: URL with an absolute path and no host, such as "file:///shared/job.prom", or "file:///shared/metrics/" for a folder';
const GATEWAY_URL =
  'a pushgateway: URL with a loopback address and a port, such as "pushgateway://127.0.0.1:9091": lastscrape takes pushes there, from within the pod only';
const PUSH_PATH =
  'without /metrics and what follows, such as "pushgateway+http://pushgateway:9091"; the labels go in LASTSCRAPE_PUSH_LABELS';
const KINDS = '"pushgateway+", "remote-write+" or "otlp+" and';
const EXAMPLE = 'such as "otlp+http://prometheus:9090/api/v1/otlp/v1/metrics"';
const withFile = (variable: string) =>
  `an http: or https: URL without user and password; put a line such as "Authorization: Bearer …" into the file of LASTSCRAPE_${variable}_HEADERS_FILE`;
const LABEL = 'NAME=VALUE such as "job=checkout", with a name of letters, digits and "_" that does not begin with "__"';
const FRONT =
  '"none", or a port from 1 to 65535, with or without an IP address or localhost before it, such as "9469" or "[::1]:9469"';

/** What texts, after their common beginning, must be. */
const WRONG: readonly (readonly [parse: Parse<unknown>, must: string, start: string, texts: string])[] = [
  [parseMetricsUrl, FILE_URL, 'file:', ' /// ///// job.prom /shared/job.prom //shared/job.prom ///job.prom?x'],
  [parseMetricsUrl, FILE_URL, 'file:', '///job.prom#x //[/x ///a%2Fb ///a%00 ///%ff ///100%.prom'],
  [parseMetricsUrl, GATEWAY_URL, 'pushgateway://', '0.0.0.0:9091 pushgateway:9091 127.0.0.1 127.0.0.1:0 [x'],
  [parseMetricsUrl, GATEWAY_URL, 'pushgateway://', '127.0.0.1:9091/metrics a:b@127.0.0.1:9091'],
  [parsePush, PUSH_PATH, 'pushgateway+http://a:9091/', 'metrics metrics/ metrics/job/b a/metrics/job/b/pod/c'],
  [parsePush, PUSH_PATH, 'pushgateway+http://a:9091/', 'metrics/job@base64/Zm9v'],
  [
    parsePush,
    `${KINDS} an http: or https: URL, such as "pushgateway+http://pushgateway:9091", or "none"`,
    '',
    ' http://a pushgateway prometheus+http://a',
  ],
  [parsePush, `${KINDS} an http: or https: URL, ${EXAMPLE}`, 'otlp+', ' ftp://a a:80 http:///a'],
  [parsePush, `${KINDS} ${withFile('PUSH')}`, '', 'otlp+http://me:s3cret@a/'],
  [parseWebhook, withFile('WEBHOOK'), '', 'https://token@a/'],
  [
    parseWebhook,
    'an http: or https: URL, or "none"',
    '',
    ' a a:80 ftp://a http:// http:///a http://a:0 http://a:99999',
  ],
  [parsePushLabel, LABEL, '', ' a a= =b 1a=b a-b=c __name__=x __a=x a:b=c'],
  [parsePushLabel, 'written without quotes, as job=…', 'job=', `"a" 'a'`],
  [parseFrontAddress, FRONT, '', '0 true -1 9469x 127.0.0.1 127.0.0.256:9469 127.0.0.01:9469 127.1:9469 [::g]:9469'],
  [parseFrontAddress, FRONT, '', '[::1]:0 [::1 ::x:9469 :0 65536 127.0.0.1:94690 :9469 *:9469 ::1:9469'],
  [parseFrontAddress, FRONT, 'http://', '127.0.0.1/metrics host:9469/metrics localhost:9469'],
  [
    parseFrontAddress,
    `${FRONT}; host names are not looked up: use the port alone to listen on all addresses`,
    '',
    'locust:9469 LOCALHOST:9469',
  ],
];
for (const [parse, problem, start, texts] of WRONG) {
  test(`${parse.name}() says what ${start} with each of ${texts} must be`, () => {
    for (const text of texts.split(' ')) assert.deepEqual(parse(start + text), { problem }, start + text);
  });
}
