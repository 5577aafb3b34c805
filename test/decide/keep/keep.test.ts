import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { test } from 'node:test';
import {
  type Claim,
  changeClaim,
  chooseFormat,
  countHandOver,
  judgeRoom,
  NO_CLAIM,
  type Rates,
} from '../../../src/decide/keep/keep.ts';
import { TEXT_ACCEPT } from '../../../src/decide/serve/budget.ts';
import { RICH_ACCEPT } from '../../../src/decide/serve/pages.ts';
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
const claim = (sizeBytes: number, more: Partial<Claim> = {}): Claim => ({
  ...NO_CLAIM,
  pagesCount: 1,
  sizeBytes,
  ...more,
});
const judge = (all: Claim, own: Claim) => judgeRoom(all, own, LIMITS);

test('judgeRoom() has a bound for all, and half of it for each namespace', () => {
  assert.equal(judge(claim(1_500), claim(750)), null);
  assert.equal(judge(claim(1_501), claim(750)), 'full');
  assert.equal(judge(claim(1_500), claim(751)), 'namespaceFull');
  assert.equal(judge(claim(1), claim(1, { labelBytes: 9_000_000 })), 'namespaceFull', 'labels');
  assert.equal(judge(claim(6, { pagesCount: 10 }), claim(5, { pagesCount: 5 })), null);
  assert.equal(judge(claim(6, { pagesCount: 10 }), claim(5, { pagesCount: 6 })), 'namespaceFull');
  assert.equal(judge(claim(6, { pagesCount: 11 }), claim(5)), 'full');
  const most = (LIMITS.maxBytes * 16) / 2;
  assert.equal(judge(claim(1), claim(1, { plainBytes: most })), null, 'unpacked');
  assert.equal(judge(claim(1), claim(1, { plainBytes: most + 1 })), 'namespaceFull', 'unpacked');
});

test('changeClaim() replaces one of the claims of a sum', () => {
  const sum = { pagesCount: 3, sizeBytes: 30, plainBytes: 300, labelBytes: 9 };
  const one = { pagesCount: 1, sizeBytes: 10, plainBytes: 100, labelBytes: 3 };
  assert.deepEqual(changeClaim(sum, one, NO_CLAIM), { pagesCount: 2, sizeBytes: 20, plainBytes: 200, labelBytes: 6 });
  assert.deepEqual(changeClaim(sum, NO_CLAIM, one), { pagesCount: 4, sizeBytes: 40, plainBytes: 400, labelBytes: 12 });
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
