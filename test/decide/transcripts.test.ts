import { testGoldens } from '../support/goldens.ts';
import { playTranscript } from './transcript.ts';

testGoldens('step() follows', 'transcripts', 20, playTranscript);
