// The whole output of --check for the environments of fixtures/check, which `npm run golden` rewrites.

import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { playCheck } from './check-fixture.ts';

const FOLDER = join(import.meta.dirname, '../../fixtures/check');
const files = readdirSync(FOLDER).filter((file) => file.endsWith('.txt'));

test('there are ten environments at least', () => assert.ok(files.length >= 10));

for (const file of files) {
  test(`--check: ${file}`, async () => {
    const fixture = readFileSync(join(FOLDER, file), 'utf8');
    assert.equal(await playCheck(fixture), fixture);
  });
}
