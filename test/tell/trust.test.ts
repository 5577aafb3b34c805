// The usual authorities; test/tell/deliver.test.ts has those of a file.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { getCACertificates } from 'node:tls';
import { CA_FILE_MAX_BYTES, listUsualAuthorities } from '../../src/tell/trust.ts';

test('CA_FILE_MAX_BYTES has room for all authorities of a system', () => {
  assert.ok(Buffer.byteLength(getCACertificates('bundled').join('\n')) < CA_FILE_MAX_BYTES);
});

test('listUsualAuthorities() has those of Node and those of the system', () => {
  const usual = new Set(listUsualAuthorities());
  for (const each of [...getCACertificates('bundled'), ...getCACertificates('system')]) assert.ok(usual.has(each));
});
