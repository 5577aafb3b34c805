import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  cut,
  formatJson,
  redactEntry,
  redactHref,
  redactPath,
  redactPathEntry,
  redactUrl,
} from '../../src/base/text.ts';

const TABLE: readonly (readonly [text: string, redacted: string])[] = [
  ['', ''],
  ['locust-exporter', 'locust-exporter'],
  ['http://localhost:9646/metrics', 'http://localhost:9646/metrics'],
  ['http://user:pass@localhost/quit', 'http://***@localhost/quit'],
  ['http://user@localhost/quit', 'http://***@localhost/quit'],
  ['http://user:p@ss@localhost/quit', 'http://***@localhost/quit'],
  ['http://user:p/a?s@localhost/quit', 'http://***@localhost/quit'],
  ['http://localhost/quit?token=abc', 'http://localhost/quit?***'],
  ['http://localhost/quit?a=b?c=d&e', 'http://localhost/quit?***'],
  ['http://u:p@localhost/quit?token=abc#x', 'http://***@localhost/quit?***'],
  ['POST http://u:p@a/b?c, GET http://d/e?f,none', 'POST http://***@a/b?***, GET http://d/e?***,none'],
  ['http://u:p@a,http://v:q@b', 'http://***@a,http://***@b'],
  ['http//u:p@a', 'http//***@a'],
  ['http://u:pa', 'http://***'],
  ['ss@host/quit', '***@host/quit'],
  ['http://u:pa,ss@host/quit', 'http://***,***@host/quit'],
  ['http://localhost:9646', 'http://localhost:9646'],
  ['http://[::1]:9646/metrics', 'http://[::1]:9646/metrics'],
];

for (const [text, redacted] of TABLE) {
  test(`redactUrl() prints ${JSON.stringify(text)} as ${JSON.stringify(redacted)}`, () => {
    assert.equal(redactUrl(text), redacted);
  });
}

const ENTRIES: readonly (readonly [text: string, redacted: string])[] = [
  ['POST admin:hunter2@localhost:8080/quit', 'POST ***@localhost:8080/quit'],
  ['http:/admin:hunter2@localhost:9646/metrics', '***@localhost:9646/metrics'],
  ['POST http:/admin:hunter2@localhost/quit', 'POST ***@localhost/quit'],
  ['http://localhost:9646/metrics?match=a,SECRET', 'http://localhost:9646/metrics?***'],
  ['http://admin:hunter two@localhost/m', 'http://***@localhost/m'],
  ['http://admin:x,hun/ter2@localhost/quit', 'http://***@localhost/quit'],
  ['admin:hun/ter2@localhost/quit', '***@localhost/quit'],
  ['http://a/b?c@d', 'http://***@d'],
  ['https://hooks.a.test/services/T0/s3cret', 'https://hooks.a.test/***'],
  ['PUT http://a.test:1/hooks/s3cret?k', 'PUT http://a.test:1/***?***'],
  ['slack+https://hooks.a.test/services/s3cret', 'slack+https://hooks.a.test/***'],
  ['locust-exporter;https://hooks.a.test/services/s3cret,x', 'locust-exporter;https://hooks.a.test/***'],
  ['hooks.a.test:443/services/s3cret', 'hooks.a.test:443/***'],
  ['PUT hooks.a.test/s3cret', 'PUT hooks.a.test/***'],
  ['locust+http://localhost:8089/a', 'locust+http://localhost:8089/a'],
  ['file:///shared/job.prom', 'file:///shared/job.prom'],
  ['/shared/job.prom/a', '/shared/job.prom/a'],
  ['https://127.0.0.1:1/a', 'https://127.0.0.1:1/a'],
  ['https://localhost.a.test/s3cret', 'https://localhost.a.test/***'],
  ['locust-exporter', 'locust-exporter'],
  ['POST http://localhost/quit', 'POST http://localhost/quit'],
];
for (const [text, redacted] of ENTRIES) {
  test(`redactEntry() prints ${JSON.stringify(text)} as ${JSON.stringify(redacted)}`, () => {
    assert.equal(redactEntry(text), redacted);
  });
}

test('formatJson() has nothing that a terminal obeys or that turns text round, and is read back as it was', () => {
  const value = { agent: 'a\u0007\u009b31m\u007f\u202eb\u2066\u200f\u061c\u2028 \u00e9\u{1f511}' };
  const text = formatJson(value);
  assert.equal(text, '{"agent":"a\\u0007\\u009b31m\\u007f\\u202eb\\u2066\\u200f\\u061c\\u2028 \u00e9\u{1f511}"}');
  assert.deepEqual(JSON.parse(text), value);
});

test('redactHref() prints a URL without user, password and query', () => {
  assert.equal(redactHref(new URL('http://u:p@[::1]:9/a,b?match=a,SECRET#x')), 'http://***@[::1]:9/a,b?***');
  assert.equal(redactHref(new URL('http://localhost/metrics')), 'http://localhost/metrics');
});

test('redactPath() and redactPathEntry() show where a URL leads to, and no more', () => {
  assert.equal(redactPath(new URL('https://me:pw@a.test:8443/services/T0/s3cret?b=c')), 'https://a.test:8443/***');
  assert.equal(redactPath(new URL('https://a.test')), 'https://a.test');
  const texts: readonly (readonly [string, string])[] = [
    ['https://a.test/services/s3cret', 'https://a.test/***'],
    ['htps://a.test?s3cret', 'htps://a.test/***'],
    ['https://a.test#s3cret', 'https://a.test/***'],
    ['https://a.test/', 'https://a.test/'],
    ['https://me:s3cret@a.test/x', 'https://***'],
    ['https://me:s3/cret@a.test/x', 'https://***'],
    ['hooks.a.test/services/s3cret', '***'],
    ['slack', 'slack'],
  ];
  for (const [text, shown] of texts) assert.equal(redactPathEntry(text), shown);
});

const CUT: readonly (readonly [text: string, maxLength: number, cutText: string])[] = [
  ['', 3, ''],
  ['abc', 3, 'abc'],
  ['abcd', 3, 'ab…'],
  ['a😀', 3, 'a😀'],
  ['a😀b', 4, 'a😀b'],
  ['a😀bc', 4, 'a😀…'],
  ['a😀b', 3, 'a…'],
];
for (const [text, maxLength, cutText] of CUT) {
  test(`cut() makes ${JSON.stringify(text)} at most ${maxLength} long`, () =>
    assert.equal(cut(text, maxLength), cutText));
}
