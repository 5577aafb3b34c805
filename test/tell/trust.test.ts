// A file of authorities: what is one, and what is wrong with another.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { getCACertificates } from 'node:tls';
import { CA_FILE_MAX_BYTES, listUsualAuthorities, parseAuthorities } from '../../src/tell/trust.ts';

const [ONE = '', TWO = ''] = getCACertificates('bundled');
const NONE = '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----';

test('parseAuthorities() reads every certificate, whatever stands around them', () => {
  assert.deepEqual(parseAuthorities(ONE), { certificates: [ONE.trim()] });
  assert.deepEqual(parseAuthorities(`# One\n${ONE}\n# Two\n${TWO}\n`), { certificates: [ONE.trim(), TWO.trim()] });
});

test('parseAuthorities() says which certificate cannot be read, or that none is there', () => {
  assert.deepEqual(parseAuthorities(NONE), { why: 'its certificate 1 of 1 cannot be read' });
  assert.deepEqual(parseAuthorities(`${ONE}\n${NONE}\n${TWO}`), { why: 'its certificate 2 of 3 cannot be read' });
  for (const text of ['', 'x', ONE.slice(0, -10)]) {
    assert.deepEqual(parseAuthorities(text), { why: 'it has no certificate in PEM form' }, text);
  }
});

test('CA_FILE_MAX_BYTES has room for all authorities of a system', () => {
  assert.ok(Buffer.byteLength(getCACertificates('bundled').join('\n')) < CA_FILE_MAX_BYTES);
});

test('listUsualAuthorities() has those of Node and those of the system', () => {
  const usual = new Set(listUsualAuthorities());
  for (const each of [...getCACertificates('bundled'), ...getCACertificates('system')]) assert.ok(usual.has(each));
});
