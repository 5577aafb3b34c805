// When Locust's page and CSV are read, by transcripts.

import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { test } from 'node:test';
import { playPace } from './pace-transcript.ts';

const folder = new URL('../../../fixtures/transcripts/locust/', import.meta.url);
const transcripts = readdirSync(folder).filter((file) => file.endsWith('.txt'));

test('there are transcripts', () => assert.ok(transcripts.length >= 9, `only ${transcripts.length}`));

for (const transcript of transcripts) {
  test(`stepPace() follows ${transcript.replace('.txt', '')}`, () => {
    const text = readFileSync(new URL(transcript, folder), 'utf8');
    assert.equal(playPace(text), text);
  });
}
