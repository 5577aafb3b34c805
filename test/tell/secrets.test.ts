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

test('hideSecrets() hides the longest first, and leaves other texts', () => {
  assert.equal(hideSecrets('Bearer s3cret-t0ken Bearer', ['Bearer', 's3cret-t0ken', 'Bearer s3cret-t0ken']), '*** ***');
  assert.equal(hideSecrets('a/bc a\\/bc %', ['a/bc']), '*** a\\/bc %');
  assert.equal(hideSecrets('100% "\\u00e9" &amp; %zz', ['s3cret/t0ken']), '100% "\\u00e9" &amp; %zz');
});

test('listUrlSecrets() has the values of the query and the long parts of the path', () => {
  const url = new URL('http://a/hooks/tok3nT0ken/b?a=1&key=s3cret%2FKey');
  assert.deepEqual(listUrlSecrets(url), ['s3cret/Key', 'tok3nT0ken']);
  assert.deepEqual(listUrlSecrets(new URL('http://a/?x=1&s3cretKey')), ['s3cretKey']);
});
