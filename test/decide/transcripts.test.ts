import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { test } from 'node:test';
import { playTranscript } from './transcript.ts';

const folder = new URL('../../fixtures/transcripts/', import.meta.url);
const stories = readdirSync(folder).filter((file) => file.endsWith('.txt'));

test('there are transcripts', () => assert.ok(stories.length >= 20, `only ${stories.length}`));

for (const story of stories) {
  test(`step() tells the story of ${story.replace('.txt', '')}`, () => {
    const text = readFileSync(new URL(story, folder), 'utf8');
    assert.equal(playTranscript(text), text);
  });
}
