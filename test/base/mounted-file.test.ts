// Headers from a file: what is read, what is refused, and that no value is ever shown.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { listSecrets, parseHeaders } from '../../src/base/mounted-file.ts';

const READ: readonly (readonly [text: string, headers: Readonly<Record<string, string>>])[] = [
  ['', {}],
  ['\n# a comment\n\n', {}],
  ['Authorization: Bearer abc\n', { Authorization: 'Bearer abc' }],
  ['Authorization:Bearer abc', { Authorization: 'Bearer abc' }],
  ['\uFEFFX-Scope-OrgID: one\r\nX-Two:  a: b \r\n', { 'X-Scope-OrgID': 'one', 'X-Two': 'a: b' }],
];
for (const [text, headers] of READ) {
  test(`parseHeaders() reads ${JSON.stringify(text)}`, () => {
    assert.deepEqual(parseHeaders(text), { headers });
  });
}

const WRONG: readonly (readonly [text: string, why: string])[] = [
  ['Bearer s3cret', 'line 1 is no header; must be "Name: value"'],
  ['A: 1\n\nB = s3cret', 'line 3 is no header; must be "Name: value"'],
  ['Bad name: s3cret', 'line 1 is no header; must be "Name: value"'],
  ['A:', 'line 1 has no value, or one that a header cannot have'],
  ['A: s3cret\u0000', 'line 1 has no value, or one that a header cannot have'],
  ['A: s3cret…', 'line 1 has no value, or one that a header cannot have'],
  ['A: x\ra: y', 'line 1 has no value, or one that a header cannot have'],
  ['Content-Length: 3', 'line 1 is content-length, which lastscrape sets itself'],
  ['Accept-Encoding: gzip', 'line 1 is accept-encoding, which lastscrape sets itself'],
  ['HOST: s3cret', 'line 1 is host, which lastscrape sets itself'],
  ['Transfer-Encoding: chunked', 'line 1 is transfer-encoding, which lastscrape sets itself'],
  ['A: 1\na: s3cret', 'line 2 is a, which an earlier line has'],
];
for (const [text, why] of WRONG) {
  test(`parseHeaders() refuses ${JSON.stringify(text)}, without its value`, () => {
    assert.deepEqual(parseHeaders(text), { why });
  });
}

test('listSecrets() has the values, their words, and what Basic credentials are made of', () => {
  const secrets = listSecrets({
    Authorization: `Basic ${Buffer.from('user:pa55word').toString('base64')}`,
    'X-Token': 's3cret',
    'X-Org': '1',
  });
  for (const secret of ['Basic dXNlcjpwYTU1d29yZA==', 'dXNlcjpwYTU1d29yZA==', 'user:pa55word', 'pa55word', 's3cret']) {
    assert.ok(secrets.includes(secret), secret);
  }
  assert.ok(!secrets.includes('1'), 'so short a text is a part of any word');
});

test('listSecrets() has the parameters of a value, without their quotes and separators', () => {
  const secrets = listSecrets({
    Authorization: 'Token token="s3cretToken", id=7',
    Cookie: 'session=s3cretCookie; theme=x',
  });
  for (const secret of ['s3cretToken', 's3cretCookie']) assert.ok(secrets.includes(secret), secret);
});
