import assert from 'node:assert/strict';
import { test } from 'node:test';
import { TEXT_ACCEPT } from '../../../src/decide/serve/budget.ts';
import {
  type AcceptUse,
  beginPages,
  chooseAccept,
  findPage,
  listLiving,
  listWanted,
  type Pages,
  RICH_ACCEPT,
  readAccept,
  takeFailure,
  takeKept,
  takePage,
  takesFormat,
  takeUse,
} from '../../../src/decide/serve/pages.ts';

const NAMES: Readonly<Record<string, string>> = { rich: RICH_ACCEPT, text: TEXT_ACCEPT };
const nameAccept = (accept: string) => Object.keys(NAMES).find((name) => NAMES[name] === accept) ?? accept;

/** `living`, `ending`: main is seen so; `later`: 30 minutes; `use A`, `fail A`, `unreadable A`; `A gets FORMAT [MB] [lost]`: an answer. */
function tell(events: string, isTextWanted = false, hasFormats = true) {
  const log: string[] = [];
  let pages: Pages<string> = beginPages(isTextWanted, hasFormats);
  let isLiving = true;
  let nowMs = 0;
  const take = (step: { readonly pages: Pages<string>; readonly log?: { readonly id: string } }) => {
    ({ pages } = step);
    if (step.log !== undefined) log.push(step.log.id);
  };
  for (const [first = '', second = '', format = '', size, last] of events
    .split(', ')
    .map((event) => event.split(' '))) {
    nowMs++;
    const accept = NAMES[second] ?? second;
    if (first === 'ending' || first === 'living') isLiving = first === 'living';
    else if (first === 'later') nowMs += 1_800_000;
    else if (first === 'use') pages = takeUse(pages, accept, nowMs);
    else if (first === 'fail') take(takeFailure(pages, accept));
    else if (first === 'unreadable') take(takeFailure(pages, accept, 'why'));
    else {
      const body = { sizeBytes: Number(size ?? 1) * 1e6, type: { format: format as 'text', contentType: format } };
      const open = (from?: string) => (from === undefined ? first : `${first} after ${from}`);
      const mayOpenPage = isLiving || last === 'whole';
      const { page, ...step } = takePage(pages, { accept: NAMES[first] ?? first, body }, { nowMs, open, mayOpenPage });
      take(step);
      if (page !== null && last !== 'opened') pages = takeKept(pages, page, nowMs, isLiving ? nowMs : null);
    }
  }
  return {
    kept: pages.list.map(({ accept, store }) => `${nameAccept(accept)}: ${store}`).join(', '),
    polled: listWanted(pages, nowMs, isLiving)
      .map(({ accept, isSpare }) => `${nameAccept(accept)}${isSpare === true ? '?' : ''}`)
      .join(' '),
    log: log.join(' '),
    leftOutCount: pages.leftOut.length,
    find: (accept?: string) => findPage(pages, accept)?.store,
    choose: (accept: string) => nameAccept(chooseAccept(pages, accept, isLiving)),
  };
}

for (const row of [
  'nothing was read yet | living | text rich | ',
  'both are large | text gets text 20, rich gets protobuf 15 | text | text: text',
  'the first rich read failed | fail rich | text rich? | ',
  'text comes after that | fail rich, text gets text | text rich? | text: text',
  'the second rich read is one | fail rich, text gets text, rich gets protobuf | text? rich | text: text, rich: rich',
  'the second failed too | fail rich, text gets text, fail rich, text gets text | text rich? | text: text',
  'the rich page is broken | unreadable rich, text gets text | text rich? | text: text',
  'a later rich read failed | rich gets protobuf, fail rich | text? rich | rich: rich',
  'the rich page is large | text gets text, rich gets protobuf 17 | text | text: text',
  'a page is unreadable twice | use om, om gets protobuf, unreadable om, unreadable om | om text | om: om',
  'it stays so | use om, unreadable om, unreadable om, unreadable om, text gets text | om text | text: text | pageUnreadable',
  'it ends before anything came | ending, use om, om gets openMetrics | om | om: om',
  'an answer lacks what vanished | rich gets text, use om, ending, om gets protobuf | text | text: rich',
  'two do not fit | use a, a gets text 20, use b, b gets protobuf 20, b gets protobuf 20 | a | a: a | formatLeftOut',
  'two fit | use a, a gets text 10, use b, b gets protobuf 15, b gets protobuf 15 | b a | a: a, b: b',
  'the one that fits is asked for no more | use a, a gets text 20, use b, b gets protobuf 20, later, use b, b gets protobuf 20 | b | b: b | formatLeftOut',
]) {
  const [what, events = '', polled, kept, log = ''] = row.split(' | ');
  test(`pages where ${what}`, () => {
    const told = tell(events);
    assert.deepEqual([told.polled, told.kept, told.log], [polled, kept, log]);
  });
}

test('text is polled where its numbers are needed and no scraper gets it, and alone without formats', () => {
  assert.equal(tell('use om, om gets openMetrics', true).polled, 'om text');
  assert.equal(tell('rich gets openMetrics', true).polled, 'text rich', 'no spare');
  const login = tell('use om\nx, om\nx gets openMetrics', true).polled;
  assert.equal(login, `om\nx ${TEXT_ACCEPT}\nx`, 'behind a login');
  assert.deepEqual([tell('use om, om gets text', true).polled, tell('living', true, false).polled], ['om', 'text']);
});

test('findPage() is its own, else the richest that it takes, else the text; to push text, else OpenMetrics', () => {
  const { find } = tell('rich gets openMetrics, text gets text');
  const found = [TEXT_ACCEPT, 'application/openmetrics-text', '*/*', undefined].map(find);
  assert.deepEqual(found, ['text', 'rich', 'text', 'text']);
  const others = ['rich gets openMetrics', 'rich gets protobuf', 'use om'].map((events) => tell(events).find());
  assert.deepEqual(others, ['rich', undefined, undefined]);
  assert.equal(tell('use text, text gets text, use om, om gets openMetrics 1 opened').find('om'), 'text');
  assert.equal(tell('use pb, pb gets protobuf, use om, om gets openMetrics, use v1, v1 gets text').find('*/*'), 'v1');
  assert.equal(tell('use pb, pb gets protobuf, use om, om gets openMetrics').find('*/*'), 'om');
  assert.deepEqual([tell('use pb, pb gets protobuf').find('*/*'), tell('use om').find('om')], ['pb', undefined]);
  assert.equal(tell('use v1, v1 gets text, use text, text gets text').find('*/*'), 'text after v1');
});

test('a page behind a login is for those who have it', () => {
  const { kept, find } = tell('use a\nx, a\nx gets text, use b\ny, b\ny gets text');
  assert.equal(kept, 'a\nx: a\nx, b\ny: b\ny');
  assert.deepEqual(['b\nx', 'a\ny', 'a', 'b\nz'].map(find), ['a\nx', 'b\ny', undefined, undefined]);
});

test('chooseAccept() asks for what a scraper asks for while main lives, then for what is kept', () => {
  assert.equal(tell('rich gets text').choose('om'), 'om');
  assert.equal(tell('rich gets text, ending').choose('om'), 'text');
  assert.equal(tell('ending').choose('om'), 'om', 'nothing is kept');
});

test('pages that do not fit are remembered while they may be asked for', () => {
  const others = Array.from({ length: 20 }, (_, index) => `use a, use ${index}, ${index} gets protobuf 20`).join(', ');
  const { kept, log, leftOutCount } = tell(`use a, a gets text 20, ${others}`);
  assert.deepEqual([kept, log, leftOutCount], ['a: a', 'formatLeftOut', 4]);
});

const MINUTE_MS = 60_000;

function use(...requests: readonly (readonly [accept: string, atMs: number])[]): readonly AcceptUse[] {
  return requests.reduce((pages, [accept, atMs]) => takeUse(pages, accept, atMs), beginPages(true, true)).uses;
}

test('readAccept() keeps an Accept byte for byte, but for OpenMetrics from 2.0 on, and takes text for anything', () => {
  const [om1, om2] = ['1', '2'].map((major) => `application/openmetrics-text;version=${major}.0.0;q=0.5`);
  assert.equal(readAccept(`${om2},${om1},text/plain`), `${om1},text/plain`);
  assert.equal(readAccept(om2), TEXT_ACCEPT);
  for (const header of [undefined, '', ' ', '*/*', ' */* ']) assert.equal(readAccept(header), TEXT_ACCEPT);
  for (const header of ['*/*;q=0.1', ' text/plain', 'a, */*', 'x'.repeat(8_192)])
    assert.equal(readAccept(header), header);
});

test('takeUse() remembers four, the newest', () => {
  const uses = use(...['a', 'b', 'c', 'd', 'e', 'b', 'f'].map((accept, index) => [accept, index] as const));
  assert.deepEqual(listLiving(uses, 7), ['f', 'b', 'e', 'd']);
});

test('listLiving() drops an Accept that was not sent for 30 minutes, or for 2.5 of its own gaps', () => {
  const once = use(['om', 0]);
  assert.deepEqual(listLiving(once, 30 * MINUTE_MS), ['om']);
  assert.deepEqual(listLiving(once, 30 * MINUTE_MS + 1), []);
  // An HA pair: their gaps differ.
  const slow = use(['om', 0], ['om', 19 * MINUTE_MS], ['om', 20 * MINUTE_MS]);
  assert.deepEqual(listLiving(slow, 67.5 * MINUTE_MS), ['om']);
  assert.deepEqual(listLiving(slow, 67.5 * MINUTE_MS + 1), []);
});

test('takesFormat() goes by the media type and its weight', () => {
  for (const accept of [RICH_ACCEPT, 'a/b, Application/OpenMetrics-Text;version=0.0.1;q=0.01'])
    assert.equal(takesFormat(accept, 'openMetrics'), true, accept);
  for (const accept of [
    '*/*',
    TEXT_ACCEPT,
    'application/openmetrics-text;q=0',
    'application/openmetrics-text;q=0.00 ;v=1',
  ])
    assert.equal(takesFormat(accept, 'openMetrics'), false, accept);
  const taken = [takesFormat(RICH_ACCEPT, 'protobuf'), takesFormat('application/openmetrics-text', 'protobuf')];
  assert.deepEqual(taken, [true, false]);
});
