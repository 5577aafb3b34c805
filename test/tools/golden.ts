// `npm run golden`: rewrites the goldens of transcripts, --check and explain. Read the diff.

import { writeFileSync } from 'node:fs';
import { playCheck } from '../check/check-fixture.ts';
import { playKeeper } from '../decide/keep/keep-transcript.ts';
import { playReads } from '../decide/serve/reads-transcript.ts';
import { playTranscript } from '../decide/transcript.ts';
import { playExplain } from '../explain/fixture.ts';
import { playPace } from '../front/locust/pace-transcript.ts';
import { playFront } from '../front/story.ts';
import { listGoldens, type Play } from '../support/goldens.ts';

const FOLDERS: Readonly<Record<string, Play>> = {
  transcripts: playTranscript,
  'transcripts/front': playFront,
  'transcripts/keeper': playKeeper,
  'transcripts/locust': playPace,
  'transcripts/reads': playReads,
  check: playCheck,
  explain: (_, name) => playExplain(name),
};

for (const [folderName, play] of Object.entries(FOLDERS)) {
  let changedCount = 0;
  for (const { name, url, text } of listGoldens(folderName)) {
    const after = await play(text, name);
    if (after === text) continue;
    changedCount++;
    writeFileSync(url, after);
    console.log(`rewritten: ${name}`);
  }
  console.log(`${changedCount} of fixtures/${folderName} changed`);
}
