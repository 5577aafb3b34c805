import assert from 'node:assert/strict';
import { test } from 'node:test';
import { hideSecrets, listUrlSecrets } from '../../src/tell/secrets.ts';

const TOKEN = 'a+b/c="d\'<é>&\\';
const escapeEach = (write: (hex: string, code: number) => string) =>
  Array.from(TOKEN, (letter) => {
    const code = letter.charCodeAt(0);
    return write(code.toString(16).padStart(2, '0'), code);
  }).join('');

const SPELLINGS: Readonly<Record<string, string>> = {
  'as it is': TOKEN,
  JSON: JSON.stringify(TOKEN).slice(1, -1),
  'JSON of PHP': JSON.stringify(TOKEN).slice(1, -1).replaceAll('/', '\\/').replace('é', '\\u00e9'),
  'JSON of Go': JSON.stringify(TOKEN)
    .slice(1, -1)
    .replace('<', '\\u003c')
    .replace('>', '\\u003E')
    .replace('&', '\\u0026'),
  'each letter as JSON': escapeEach((hex) => `\\u00${hex}`),
  'a part of a URL': encodeURIComponent(TOKEN),
  'a part of a URL, in small letters': encodeURIComponent(TOKEN).toLowerCase(),
  'each letter but é as in a URL': escapeEach((hex, code) => (code < 0x80 ? `%${hex}` : '%C3%A9')),
  HTML: TOKEN.replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;')
    .replaceAll("'", '&#39;'),
  'HTML of others': TOKEN.replaceAll('/', '&#x2F;')
    .replaceAll("'", '&apos;')
    .replaceAll('"', '&#034;')
    .replaceAll('&\\', '&amp;\\'),
  'each letter as HTML': escapeEach((hex) => `&#x0${hex.toUpperCase()};`),
  'each letter as a number in HTML': escapeEach((_, code) => `&#${code};`),
};
for (const [name, text] of Object.entries(SPELLINGS)) {
  test(`hideSecrets() hides a secret: ${name}`, () => {
    assert.equal(hideSecrets(`no ${text}, no ${text}.`, [TOKEN]), 'no ***, no ***.');
  });
}

test('hideSecrets() shows nothing of a text that has a secret in nested notations', () => {
  const nested = {
    'a URL in a URL': encodeURIComponent(encodeURIComponent('s3cret/t0ken')),
    'a URL in a URL in JSON': JSON.stringify(encodeURIComponent('s3cret/t0ken')).replaceAll('%', '\\u0025'),
    'HTML in JSON': 's3cret\\u0026#x2f;t0ken',
    'JSON in JSON': 's3cret\\\\/t0ken',
  };
  for (const [name, text] of Object.entries(nested)) {
    assert.equal(hideSecrets(`no: ${text}`, ['s3cret/t0ken']), null, name);
  }
  const long = `${'x'.repeat(5_000)}/`;
  assert.equal(hideSecrets(`no: ${long}`, [long]), 'no: ***');
  assert.equal(hideSecrets(`no: ${encodeURIComponent(long)}`, [long]), null);
});

test('hideSecrets() hides the longest first, a short one only as it is, and leaves other texts', () => {
  assert.equal(hideSecrets('Bearer s3cret-t0ken s3cret', ['s3cret', 's3cret-t0ken', 'Bearer s3cret-t0ken']), '*** ***');
  assert.equal(hideSecrets('a/bc a\\/bc %', ['a/bc']), '*** a\\/bc %');
  assert.equal(hideSecrets('100% "\\u00e9" &amp; %zz', ['s3cret/t0ken']), '100% "\\u00e9" &amp; %zz');
  assert.equal(hideSecrets('', ['s3cret/t0ken']), '');
});

test('listUrlSecrets() has the query and, where it is secret, the path, with their parts, as written and decoded', () => {
  const url = new URL('http://a/hooks/tok3n%2FT0ken/b%zz?a=1&key=s3cret%2FKey');
  const query = ['?a=1&key=s3cret%2FKey', 'a=1&key=s3cret%2FKey', 's3cret%2FKey', 's3cret/Key'];
  assert.deepEqual(listUrlSecrets(url, false), query);
  assert.deepEqual(listUrlSecrets(url, true), [...query, '/hooks/tok3n%2FT0ken/b%zz', 'tok3n%2FT0ken', 'tok3n/T0ken']);
});
