// Which messages are seen at which level: below a warning no one has to act, and an error is a run that did not do its work.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { MESSAGES } from '../../src/decide/messages.ts';

function listAt(level: string): string[] {
  return Object.entries(MESSAGES).flatMap(([id, message]) => (message.level === level ? [id] : []));
}

test('MESSAGES: a poll and one request are seen with debug only, and every step of a run with info', () => {
  assert.deepEqual(listAt('debug'), [
    'polled',
    'pushRetried',
    'webhookRetried',
    'targetAsked',
    'targetNotForced',
    'debugFull',
  ]);
  // The others at info are in transcripts.
  const steps = ['watching', 'inExportersPlace', 'tombstoneSkipped', 'report'];
  const shown = listAt('info').filter((id) => steps.includes(id));
  assert.deepEqual(shown, steps);
});

test('MESSAGES: an error is a threshold that fails the run, a target that still runs, a kept page that is lost, or a bug', () => {
  assert.deepEqual(listAt('error'), [
    'thresholdsNotJudged',
    'thresholdFailed',
    'targetFailed',
    'keptPageCorrupt',
    'bug',
  ]);
});

test('MESSAGES: every text is its own, and one that a log is searched for stays as it is', () => {
  const texts = Object.values(MESSAGES).map(({ text }) => text);
  assert.equal(new Set(texts).size, texts.length);
  const { watching, polled, quitting, report } = MESSAGES;
  const fixed = [watching, polled, quitting, report].map(({ text }) => text);
  assert.deepEqual(fixed, ['watching', 'poll', 'quitting', 'report']);
});
