// What becomes of what was read, by transcripts.

import { testGoldens } from '../../support/goldens.ts';
import { playKept } from './kept-transcript.ts';

testGoldens('what is kept follows', 'transcripts/kept', 12, playKept);
