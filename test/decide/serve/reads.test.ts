// When the source is read next, by transcripts.

import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { test } from 'node:test';
import { playReads } from './reads-transcript.ts';

const folder = new URL('../../../fixtures/transcripts/reads/', import.meta.url);
const transcripts = readdirSync(folder).filter((file) => file.endsWith('.txt'));

test('there are transcripts', () => assert.ok(transcripts.length >= 16, `only ${transcripts.length}`));

for (const transcript of transcripts) {
  test(`stepReads() follows ${transcript.replace('.txt', '')}`, () => {
    const text = readFileSync(new URL(transcript, folder), 'utf8');
    assert.equal(playReads(text), text);
  });
}
