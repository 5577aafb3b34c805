// What scrapes get and what is kept, by stories (fixtures/transcripts/front/README.md).

import { testGoldens } from '../support/goldens.ts';
import { playFront } from './story.ts';

testGoldens('the front follows', 'transcripts/front', 10, playFront);
