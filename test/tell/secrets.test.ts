import assert from 'node:assert/strict';
import { test } from 'node:test';
import { hideSecrets, listUrlSecrets } from '../../src/tell/secrets.ts';

const SECRET = 's3cret/t0ken é"&';

for (const [name, text] of Object.entries({
  JSON: JSON.stringify(SECRET),
  'JSON of PHP': JSON.stringify(SECRET).replaceAll('/', '\\/').replace('é', '\\u00e9'),
  'a URL in a URL in JSON': JSON.stringify(encodeURIComponent(encodeURIComponent(SECRET))),
  HTML: SECRET.replaceAll('&', '&amp;').replaceAll('/', '&#x2F;'),
})) {
  test(`hideSecrets() shows nothing of a text that has a secret in the notation of ${name}`, () => {
    assert.equal(hideSecrets(`no ${text}.`, [SECRET]), null);
  });
}

test('hideSecrets() hides a secret as it is, each time', () => {
  assert.equal(hideSecrets(`no ${SECRET}, no ${SECRET}.`, [SECRET]), 'no ***, no ***.');
});

test('hideSecrets() finds a long secret, in another notation, of which a short one is a part', () => {
  assert.equal(hideSecrets('no: s3cret%2Ft0ken', ['s3cret', 's3cret/t0ken']), null);
});

test('hideSecrets() hides the longest first, a short one only as it is, and leaves other texts', () => {
  assert.equal(hideSecrets('Bearer s3cret-t0ken s3cret', ['s3cret', 's3cret-t0ken', 'Bearer s3cret-t0ken']), '*** ***');
  assert.equal(hideSecrets('a/bc a\\/bc %', ['a/bc']), '*** a\\/bc %');
  assert.equal(hideSecrets('100% "\\u00e9" &amp; %zz', ['s3cret/t0ken']), '100% "\\u00e9" &amp; %zz');
  assert.equal(hideSecrets('', ['s3cret/t0ken']), '');
});

test('hideSecrets() hides a secret of any length', () => {
  const secret = 'x'.repeat(40_000);
  assert.equal(hideSecrets(`no: ${secret}`, [secret]), 'no: ***');
});

test('listUrlSecrets() has the query and, where it is secret, the path, with their parts, as written and decoded', () => {
  const url = new URL('http://a/hooks/tok3n%2FT0ken/b%zz-long?a=1&key=s3cret%2FKey');
  const query = ['?a=1&key=s3cret%2FKey', 'a=1&key=s3cret%2FKey', 's3cret%2FKey', 's3cret/Key'];
  assert.deepEqual(listUrlSecrets(url, false), query);
  const path = ['/hooks/tok3n%2FT0ken/b%zz-long', 'tok3n%2FT0ken', 'b%zz-long', 'tok3n/T0ken', 'b%zz-long'];
  assert.deepEqual(listUrlSecrets(url, true), [...query, ...path]);
});

test('hideSecrets() hides the start of a secret at the end of a text that is cut', () => {
  const secret = 's3cret/t0ken';
  for (let length = 4; length < secret.length; length++) {
    assert.equal(hideSecrets(`no: ${secret.slice(0, length)}`, [secret], true), null);
  }
  assert.equal(hideSecrets('no: s3c', [secret], true), 'no: s3c');
  assert.equal(hideSecrets(`no: ${secret}`, [secret], true), 'no: ***');
});
