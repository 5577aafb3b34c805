// `npm run golden`: rewrites the goldens of transcripts, --check and explain. Read the diff.

import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { playCheck } from '../check/check-fixture.ts';
import { playKeeper } from '../decide/keep/keep-transcript.ts';
import { playKept } from '../decide/serve/kept-transcript.ts';
import { playReads } from '../decide/serve/reads-transcript.ts';
import { playTranscript } from '../decide/transcript.ts';
import { playExplain } from '../explain/fixture.ts';
import { playPace } from '../front/locust/pace-transcript.ts';

const FOLDERS: Readonly<Record<string, (fixture: string, name: string) => string | Promise<string>>> = {
  transcripts: playTranscript,
  'transcripts/kept': playKept,
  'transcripts/keeper': playKeeper,
  'transcripts/locust': playPace,
  'transcripts/reads': playReads,
  check: playCheck,
  explain: (_, name) => playExplain(name),
};

for (const [folderName, play] of Object.entries(FOLDERS)) {
  const folder = new URL(`../../fixtures/${folderName}/`, import.meta.url);
  let changedCount = 0;
  for (const name of readdirSync(folder).filter((file) => file.endsWith('.txt'))) {
    const before = readFileSync(new URL(name, folder), 'utf8');
    const after = await play(before, name.replace('.txt', ''));
    if (after === before) continue;
    changedCount++;
    writeFileSync(new URL(name, folder), after);
    console.log(`rewritten: ${name}`);
  }
  console.log(`${changedCount} of fixtures/${folderName} changed`);
}
