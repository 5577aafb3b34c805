import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { test } from 'node:test';
import { type Claim, chooseFormat, countHandOver, judgeRoom, type Rates } from '../../../src/decide/keep/keep.ts';
import { RICH_ACCEPT, TEXT_ACCEPT } from '../../../src/decide/serve/pages.ts';
import { playKeeper } from './keep-transcript.ts';

const folder = new URL('../../../fixtures/transcripts/keeper/', import.meta.url);

for (const transcript of readdirSync(folder).filter((file) => file.endsWith('.txt'))) {
  test(`advancePage() follows ${transcript.replace('.txt', '')}`, () => {
    const text = readFileSync(new URL(transcript, folder), 'utf8');
    assert.equal(playKeeper(text), text);
  });
}

// A sixteenth of the bytes is for files that cannot be read back.
const LIMITS = { maxBytes: 1_600, maxPages: 10 };
const claim = (sizeBytes: number, namespace = 'a', more: Partial<Claim> = {}): Claim => ({
  ...{ namespace, sizeBytes, plainBytes: 0, labelsBytes: 0 },
  ...more,
});
const judge = (others: readonly Claim[], last: Claim) => judgeRoom([...others, last], last.namespace, LIMITS);

test('judgeRoom() has a bound for all, and half of it for each namespace', () => {
  const both = [claim(650), claim(750, 'b')];
  assert.equal(judge(both, claim(100)), null);
  assert.equal(judge(both, claim(101)), 'full');
  assert.equal(judge(both, claim(1, 'b')), 'namespaceFull');
  assert.equal(judge(both, claim(1, 'c', { labelsBytes: 9_000_000 })), 'namespaceFull', 'labels');
  const many = Array.from({ length: 5 }, () => claim(1));
  assert.equal(judge(many, claim(1)), 'namespaceFull');
  assert.equal(judge(many, claim(1, 'b')), null);
});

test('judgeRoom() bounds what the pages of a namespace unpack to', () => {
  const most = (LIMITS.maxBytes * 16) / 2;
  const others = [claim(1, 'a', { plainBytes: most - 10 })];
  assert.equal(judge(others, claim(1, 'a', { plainBytes: 10 })), null);
  assert.equal(judge(others, claim(1, 'a', { plainBytes: 11 })), 'namespaceFull');
  assert.equal(judge(others, claim(1, 'b', { plainBytes: 11 })), null);
});

test('countHandOver() lets a namespace hand over 1,200 at once, then 20 a second, and forgets it once it may again', () => {
  let rates: Rates = new Map();
  const count = (atMs: number, namespace = 'a') => {
    const next = countHandOver(rates, namespace, atMs);
    if (typeof next === 'string') return next;
    rates = next;
    return null;
  };
  for (let index = 0; index < 1_200; index++) assert.equal(count(0), null);
  assert.equal(count(0), 'tooOften');
  assert.equal(count(0, 'b'), null);
  assert.equal(count(49), 'tooOften');
  assert.equal(count(50), null);
  assert.equal(count(20), 'tooOften', 'a clock that goes back gives nothing');
  assert.equal(count(60_049, 'c'), null);
  assert.deepEqual([...rates.keys()], ['a', 'c']);
  assert.equal(count(60_050, 'c'), null);
  assert.deepEqual([...rates.keys()], ['c']);
});

test('chooseFormat() gives each scraper what it got from the pod, else the richest that it takes', () => {
  const [text, open, proto] = [
    { accept: 'mine', contentType: 'text/plain; version=0.0.4', sizeBytes: 10 },
    { accept: 'x', contentType: 'application/openmetrics-text; version=1.0.0', sizeBytes: 20 },
    { accept: 'y', contentType: 'application/vnd.google.protobuf; proto=…', sizeBytes: 30 },
  ];
  const all = [text, open, proto];
  assert.equal(chooseFormat(all, 'mine'), 0);
  assert.equal(chooseFormat(all, RICH_ACCEPT), 2);
  assert.equal(chooseFormat([text, open], RICH_ACCEPT), 1);
  assert.equal(chooseFormat(all, TEXT_ACCEPT), 0);
  assert.equal(chooseFormat([open], TEXT_ACCEPT), 0);
});
