// `npm run golden`: writes the outputs of the golden transcripts anew. Read the diff before you commit it.

import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { playTranscript } from '../decide/transcript.ts';

const folder = new URL('../../fixtures/transcripts/', import.meta.url);
let changedCount = 0;
for (const name of readdirSync(folder).filter((file) => file.endsWith('.txt'))) {
  const before = readFileSync(new URL(name, folder), 'utf8');
  const after = playTranscript(before);
  if (after === before) continue;
  changedCount++;
  writeFileSync(new URL(name, folder), after);
  console.log(`rewritten: ${name}`);
}
console.log(`${changedCount} transcripts changed`);
