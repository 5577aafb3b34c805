import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { test } from 'node:test';
import { playTranscript } from './transcript.ts';

const folder = new URL('../../fixtures/transcripts/', import.meta.url);
const transcripts = readdirSync(folder).filter((file) => file.endsWith('.txt'));

test('there are transcripts', () => assert.ok(transcripts.length >= 20, `only ${transcripts.length}`));

for (const transcript of transcripts) {
  test(`step() follows ${transcript.replace('.txt', '')}`, () => {
    const text = readFileSync(new URL(transcript, folder), 'utf8');
    assert.equal(playTranscript(text), text);
  });
}
