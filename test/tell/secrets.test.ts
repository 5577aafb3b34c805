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
    assert.equal(hideSecrets(`no ${text}, no ${text}.`, [TOKEN]), text === TOKEN ? 'no ***, no ***.' : null);
  });
}

test('hideSecrets() hides a secret in notations within notations, and one as long as a header may be', () => {
  const nested = {
    'a URL in a URL': encodeURIComponent(encodeURIComponent('s3cret/t0ken')),
    'a URL in a URL in JSON': JSON.stringify(encodeURIComponent('s3cret/t0ken'))
      .slice(1, -1)
      .replaceAll('%', '\\u0025'),
    'HTML in JSON': 's3cret\\u0026#x2f;t0ken',
    'JSON in JSON': 's3cret\\\\/t0ken',
  };
  for (const [name, text] of Object.entries(nested)) {
    assert.equal(hideSecrets(`no: ${text}.`, ['s3cret/t0ken']), null, name);
  }
  const long = `${'x'.repeat(5_000)}/`;
  assert.equal(hideSecrets(`no: ${encodeURIComponent(long)}`, [long]), null);
});

test('hideSecrets() hides letters beyond 16 bits, beyond 7 bits as Latin-1, and what only looks like a notation', () => {
  const secret = 'k\u{1f511}y%41b/\u00e9c';
  for (const text of [
    JSON.stringify(secret).replace('\u{1f511}', '\\ud83d\\uDD11').replace('/', '\\/').slice(1, -1),
    encodeURIComponent(secret),
    encodeURIComponent(encodeURIComponent(secret)),
    secret.replace('\u00e9', '%E9').replace('/', '%2f'),
    secret.replace('\u{1f511}', '&#128273;').replace('/', '&#47;'),
    secret.replace('\u{1f511}', '&#x1F511;').replace('/', '&#x2F;'),
  ]) {
    assert.equal(hideSecrets(`no ${text}, no`, [secret]), null, text);
  }
  const hidden = hideSecrets('%ff%fe %f8 %c3 %ed%a0%80 &#x110000; &#0;', ['s3cret/t0ken']);
  assert.equal(hidden, '%ff%fe %f8 %c3 %ed%a0%80 &#x110000; &#0;');
});

test('hideSecrets() shows nothing of a text in which notations are nested deeper than it reads', () => {
  assert.equal(hideSecrets(`no: %${'25'.repeat(20)}41`, ['s3cret/t0ken']), null);
});

test('hideSecrets() finds a long secret, in another notation, of which a short one is a part', () => {
  assert.equal(hideSecrets('no: s3cret%2Ft0ken', ['s3cret', 's3cret/t0ken']), null);
});

// Each of these took minutes where each letter was an alternative of a regular expression.
for (const [name, secret, hostile] of [
  ['of backslashes', `${'\\'.repeat(24)}x`, `${'\\'.repeat(48)}y`.repeat(1_300)],
  ['of one letter, and an answer of it', `${'a'.repeat(2_000)}b${'a'.repeat(2_000)}`, 'a'.repeat(65_536)],
  ['of one letter, and an answer of its escapes', `${'a'.repeat(4_000)}b`, '%61'.repeat(21_845)],
] as const) {
  test(`hideSecrets() ends with a secret ${name}`, () => {
    assert.ok((hideSecrets(hostile, [secret]) ?? '').length <= hostile.length);
  });
}

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
  const url = new URL('http://a/hooks/tok3n%2FT0ken/b%zz?a=1&key=s3cret%2FKey');
  const query = ['?a=1&key=s3cret%2FKey', 'a=1&key=s3cret%2FKey', 's3cret%2FKey', 's3cret/Key'];
  assert.deepEqual(listUrlSecrets(url, false), query);
  assert.deepEqual(listUrlSecrets(url, true), [...query, '/hooks/tok3n%2FT0ken/b%zz', 'tok3n%2FT0ken', 'tok3n/T0ken']);
});

test('hideSecrets() hides the start of a secret at the end of a text that is cut, wherever that is', () => {
  const secret = 's3cret/t0ken';
  const spell = (write: (hex: string) => string) =>
    Array.from(secret, (letter) => write(letter.charCodeAt(0).toString(16))).join('');
  const spellings = {
    'as it is': [secret, 1],
    'a part of a URL': [spell((hex) => `%${hex}`), 3],
    JSON: [spell((hex) => `\\u00${hex}`), 6],
    HTML: [spell((hex) => `&#x${hex};`), 6],
    'HTML in JSON': [spell((hex) => `\\u0026#x${hex};`), 11],
  } as const;
  for (const [name, [text, letterLength]] of Object.entries(spellings)) {
    for (let length = 4 * letterLength; length <= text.length; length++) {
      const cut = text.slice(0, length);
      const shown = cut === secret ? 'no: ***' : null;
      assert.equal(hideSecrets(`no: ${cut}`, [secret], true), shown, `${name}: ${cut}`);
    }
  }
  assert.equal(hideSecrets('no: s3cret', [secret]), 'no: s3cret');
  assert.equal(hideSecrets('no: s3c', [secret], true), 'no: s3c');
});
