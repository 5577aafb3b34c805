// What becomes of what was read, by transcripts.

import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { test } from 'node:test';
import { playKept } from './kept-transcript.ts';

const folder = new URL('../../../fixtures/transcripts/kept/', import.meta.url);
const transcripts = readdirSync(folder).filter((file) => file.endsWith('.txt'));

test('there are transcripts', () => assert.ok(transcripts.length >= 12, `only ${transcripts.length}`));

for (const transcript of transcripts) {
  test(`what is kept follows ${transcript.replace('.txt', '')}`, () => {
    const text = readFileSync(new URL(transcript, folder), 'utf8');
    assert.equal(playKept(text), text);
  });
}
