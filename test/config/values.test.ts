// Values that config.test.ts does not read by way of their variables: sources, receivers, labels, paths.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  isPushUrl,
  parseFrontAddress,
  parseMetricsUrl,
  parsePush,
  parsePushLabel,
  parseWebhook,
  readPushAddress,
} from '../../src/config/values.ts';

test('parseMetricsUrl() reads a file or a folder', () => {
  for (const [text, href] of [
    ['file:///shared/job.prom', 'file:///shared/job.prom'],
    ['file:///shared/metrics/', 'file:///shared/metrics/'],
    ['FILE://localhost/a b', 'file:///a%20b'],
    ['file:///100%25.prom', 'file:///100%25.prom'],
  ] as const) {
    const parsed = parseMetricsUrl(text);
    assert.equal('value' in parsed && parsed.value.href, href, text);
  }
});

const FILE_URL =
  'a file: URL with an absolute path and no host, such as "file:///shared/job.prom", or "file:///shared/metrics/" for a folder';
const PUSH_URL =
  'a pushgateway: URL with a loopback address and a port, such as "pushgateway://127.0.0.1:9091": lastscrape takes pushes there, from within the pod only';

test('parseMetricsUrl() takes no file: URL that names no file', () => {
  const parts = '/// ///// job.prom /shared/job.prom //shared/job.prom ///job.prom?x ///job.prom#x //[/x'.split(' ');
  for (const part of ['', ...parts, ...'///a%2Fb ///a%00 ///%ff ///100%.prom'.split(' ')]) {
    const text = `file:${part}`;
    assert.deepEqual(parseMetricsUrl(text), { problem: FILE_URL }, text);
  }
});

test('parseMetricsUrl() takes pushes on a loopback address with a port, and nowhere else', () => {
  for (const [text, host] of [
    ['pushgateway://127.0.0.1:9091', '127.0.0.1'],
    ['pushgateway://localhost:9091/', 'localhost'],
    ['PUSHGATEWAY://[::1]:9091', '::1'],
  ] as const) {
    const parsed = parseMetricsUrl(text);
    assert.ok('value' in parsed, text);
    assert.deepEqual(readPushAddress(parsed.value), { host, port: 9091, text: parsed.value.host });
    assert.ok(isPushUrl(parsed.value));
  }
  const others =
    '0.0.0.0:9091 pushgateway:9091 127.0.0.1 127.0.0.1:0 127.0.0.1:9091/metrics a:b@127.0.0.1:9091 [x'.split(' ');
  for (const text of others) {
    assert.deepEqual(parseMetricsUrl(`pushgateway://${text}`), { problem: PUSH_URL }, text);
  }
});

const URLS: readonly (readonly [text: string, to: string, href: string])[] = [
  ['pushgateway+http://pushgateway:9091', 'pushgateway', 'http://pushgateway:9091/'],
  ['remote-write+https://prometheus/api/v1/write?a=b', 'remote-write', 'https://prometheus/api/v1/write?a=b'],
  ['otlp+HTTP://[::1]:4318/v1/metrics', 'otlp', 'http://[::1]:4318/v1/metrics'],
];
for (const [text, to, href] of URLS) {
  test(`parsePush() reads ${text}`, () => assert.deepEqual(parsePush(text), { value: { to, url: new URL(href) } }));
  test(`parseWebhook() reads ${href}`, () => assert.deepEqual(parseWebhook(href), { value: new URL(href) }));
}

test('parsePush() refuses the path that it appends itself, and takes one before it', () => {
  const problem =
    'without /metrics and what follows, such as "pushgateway+http://pushgateway:9091"; the labels go in LASTSCRAPE_PUSH_LABELS';
  for (const path of ['metrics', 'metrics/', 'metrics/job/foo', 'a/metrics/job/foo/pod/b', 'metrics/job@base64/Zm9v']) {
    assert.deepEqual(parsePush(`pushgateway+http://a:9091/${path}`), { problem }, path);
    assert.ok('value' in parsePush(`otlp+http://a/${path}`), path);
  }
  for (const path of ['a', 'metrics/a', 'ametrics', 'metrics/jobs']) {
    assert.ok('value' in parsePush(`pushgateway+http://a/${path}`), path);
  }
});

test('parsePush() and parseWebhook() say what is not a URL of theirs', () => {
  const kinds = /^"pushgateway\+", "remote-write\+" or "otlp\+" and an http: or https: URL, such as "/;
  for (const text of ' http://a pushgateway pushgateway+ prometheus+http://a otlp+ftp://a otlp+a:80 otlp+http:///a'.split(
    ' ',
  )) {
    const parsed = parsePush(text);
    assert.match('problem' in parsed ? parsed.problem : '', kinds, text);
  }
  for (const text of ' a a:80 ftp://a http:// http:///a http://a:0 http://a:99999 file:///a'.split(' ')) {
    assert.deepEqual(parseWebhook(text), { problem: 'an http: or https: URL, or "none"' }, text);
  }
});

test('credentials in a URL are refused, with the file that they belong in', () => {
  const push = parsePush('otlp+http://me:s3cret@a/');
  assert.match('problem' in push ? push.problem : '', /without user and password; .* LASTSCRAPE_PUSH_HEADERS_FILE$/);
  const webhook = parseWebhook('https://token@a/');
  const why = 'problem' in webhook ? webhook.problem : '';
  assert.match(why, /without user and password; .* LASTSCRAPE_WEBHOOK_HEADERS_FILE$/);
});

test('parsePushLabel() takes no quotes around a value, which would be a part of it', () => {
  for (const text of ['job="a b"', "job = 'a b'"]) {
    assert.deepEqual(parsePushLabel(text), { problem: 'written without quotes, as job=…' });
  }
  assert.deepEqual(parsePushLabel('job="a" b'), { value: ['job', '"a" b'] });
  assert.deepEqual(parsePushLabel('job="'), { value: ['job', '"'] });
});

test('parsePushLabel() reads a name and a value, and nothing else', () => {
  assert.deepEqual(parsePushLabel('job=a'), { value: ['job', 'a'] });
  assert.deepEqual(parsePushLabel('_a1 = b=c d'), { value: ['_a1', 'b=c d'] });
  assert.deepEqual(parsePushLabel('a__=b'), { value: ['a__', 'b'] });
  for (const text of ['', 'a', 'a=', '=b', '1a=b', 'a-b=c', '__name__=x', '__a=x', 'a:b=c']) {
    assert.ok('problem' in parsePushLabel(text), text);
  }
});

const FRONTS: readonly (readonly [text: string, host: string | null, port: number])[] = [
  ['9469', null, 9469],
  ['1', null, 1],
  ['65535', null, 65535],
  ['localhost:9469', 'localhost', 9469],
  ['127.0.0.1:9469', '127.0.0.1', 9469],
  ['0.0.0.0:9469', '0.0.0.0', 9469],
  ['[::1]:9469', '::1', 9469],
  ['[::]:9469', '::', 9469],
  ['[fd00:0::5]:80', 'fd00::5', 80],
];
for (const [text, host, port] of FRONTS) {
  test(`parseFrontAddress() reads ${text}`, () => {
    assert.deepEqual(parseFrontAddress(text), { value: { host, port, text } });
  });
}

const NAME = '; host names are not looked up: use the port alone to listen on all addresses';
/** Wrong texts, without blanks, and the advice after what they must be. */
const WRONG: readonly (readonly [texts: string, advice: string])[] = [
  ['0 true -1 9469x 127.0.0.1 127.0.0.256:9469 127.0.0.01:9469 127.1:9469 [::g]:9469 [::1]:0 [::1 ::x:9469 :0', ''],
  ['http://127.0.0.1/metrics http://host:9469/metrics', ''],
  ['65536 127.0.0.1:94690 :9469 *:9469 http://localhost:9469 ::1:9469', ''],
  ['locust:9469 LOCALHOST:9469', NAME],
];
for (const [texts, advice] of WRONG) {
  test(`parseFrontAddress() says what ${texts} must be`, () => {
    const problem = `"none", or a port from 1 to 65535, with or without an IP address or localhost before it, such as "9469" or "[::1]:9469"${advice}`;
    for (const text of texts.split(' ')) assert.deepEqual(parseFrontAddress(text), { problem }, text);
  });
}
