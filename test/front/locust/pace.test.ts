// When Locust's page and CSV are read, by transcripts.

import { testGoldens } from '../../support/goldens.ts';
import { playPace } from './pace-transcript.ts';

testGoldens('stepPace() follows', 'transcripts/locust', 9, playPace);
