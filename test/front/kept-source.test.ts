// What becomes of answers that observations read, as for a push without a front.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { TEXT_ACCEPT } from '../../src/decide/serve/pages.ts';
import type { MainView } from '../../src/decide/serve/serve.ts';
import { openReadableCheck } from '../../src/exposition/readable.ts';
import { keepSource } from '../../src/front/kept-source.ts';
import { readWhole, type Source, type SourceRead } from '../../src/front/sources/source.ts';
import { makeFailedReading, REFUSED } from '../../src/observe/exporter.ts';
import { openReads } from '../../src/observe/reads.ts';
import { openBody } from '../../src/snapshot/body.ts';
import { readPieces } from '../support/pieces.ts';
import { VirtualClock } from '../support/virtual-clock.ts';
import { readValue } from './source.ts';

const ENDED: MainView = { main: 'ended', wasAlive: true, endedAtMs: 0 };
const LIVING: MainView = { main: 'living', wasAlive: true, endedAtMs: null };
const ENDING: MainView = { main: 'ending', wasAlive: true, endedAtMs: null };
const NO_TOTALS = { requests: null, failures: null, users: null };
const NEVER = new AbortController().signal;

/** What a source answers. */
type Answer = readonly [body: string, up?: number, finishedCount?: number | null, mayBeCut?: boolean];

function answer([text, up = 1, finishedCount = null, mayBeCut = false]: Answer): SourceRead {
  const open = openBody();
  open.push(Buffer.from(text));
  const check = openReadableCheck('text');
  check.write(Buffer.from(text));
  const why = check.end();
  if (why === null) open.end();
  else open.breakOff(why);
  const scrapes = finishedCount === null ? null : { finishedCount, inFlightCount: 1 };
  const reading = {
    observation: { kind: 'answered', scrapes, totals: NO_TOTALS },
    metric: (name: string) => ({
      kind: 'value' as const,
      value: name === 'locust_up' ? up : (readValue(text, name) ?? 1),
    }),
    hasRequests: false,
    ...(mayBeCut && { mayBeCut }),
  } as const;
  return readWhole(Promise.resolve({ kind: 'answered', body: open.body, reading }));
}

const refuse: SourceRead = { begun: Promise.resolve({ kind: 'refused' }), ended: Promise.resolve(REFUSED) };

/** A source that gives these answers, then fails. */
function openScene() {
  const answers: SourceRead[] = [];
  const failed = { kind: 'failed', why: 'no more' } as const;
  const none = { begun: Promise.resolve(failed), ended: Promise.resolve(makeFailedReading('no more', false)) };
  const source: Source = { path: null, read: () => answers.shift() ?? none, close: async () => {} };
  const kept = keepSource(source, {
    kind: 'exporter',
    pollMs: 1_000,
    isTextWanted: true,
    isPushed: false,
    metricNames: ['locust_up'],
    log: () => {},
    findMoment: () => ({ atMs: 0, seconds: 0 }),
  });
  const tell = () => ({ isCharged: true, wanted: [] });
  const reads = openReads(kept, {
    clock: new VirtualClock(),
    pollMs: 1_000,
    restFactor: 100,
    observing: 'takes',
    tell,
  });
  return {
    kept,
    /** Each read is asked for; what may be cut is asked for again at once. */
    async take(...all: readonly (Answer | 'refused')[]) {
      answers.push(...all.map((each) => (each === 'refused' ? refuse : answer(each))));
      const beginning = await reads.read({ timeoutMs: 1_000, signal: NEVER }).ended;
      if (beginning.kind === 'answered') await beginning.kept;
    },
    async read(): Promise<string | null> {
      const snapshot = await kept.newest();
      return snapshot === null ? null : String(await readPieces(snapshot.body.read()));
    },
  };
}

/** Main from now on, a refusal, an answer, or what a push would send by then. */
type Step = MainView | 'refused' | Answer | { readonly sends: string | null };

const sends = (text: string | null) => ({ sends: text });

const STORIES: readonly (readonly [what: string, steps: readonly Step[]])[] = [
  [
    'has nothing before the first answer, then the newest one',
    [sends(null), ['locust_up 1\na 1\n'], ['locust_up 1\na 2\n'], sends('locust_up 1\na 2\n')],
  ],
  [
    'keeps what vanishes in the answer that shows the end',
    [LIVING, ['locust_up 1\nlocust_users 5\n'], ['locust_up 0\n', 0], sends('locust_up 0\nlocust_users 5\n')],
  ],
  [
    'keeps what vanishes once the end is known',
    [['locust_up 1\nlocust_users 5\n'], ENDED, ['locust_up 1\n'], sends('locust_up 1\nlocust_users 5\n')],
  ],
  [
    'keeps what vanishes where another condition shows the end by the same poll',
    [LIVING, ['a 1\nb 1\n'], LIVING, ['a 2\n'], ENDING, sends('a 2\nb 1\n')],
  ],
  [
    'keeps what vanished shortly before the end was known, though no poll has answered since',
    [LIVING, ['a 1\nb 1\n'], LIVING, ['a 2\n'], LIVING, sends('a 2\n'), 'refused', ENDED, sends('a 2\nb 1\n')],
  ],
  [
    'keeps what vanished shortly before a refusal',
    [LIVING, ['a 1\nb 1\n'], LIVING, ['a 2\n'], LIVING, sends('a 2\n'), 'refused', sends('a 2\nb 1\n')],
  ],
  [
    'keeps the older one where one that may be cut lacks a family, until it is confirmed',
    [['a 1\nb 1\n'], ['a 2\n', 1, null, true], sends('a 1\nb 1\n'), ['a 3\n', 1, null, true], sends('a 3\n')],
  ],
  [
    'does not believe an exporter whose counter fell after the end',
    [ENDING, ['a 7\n', 1, 100], ['a 0\n', 1, 1], ENDED, ['a 0\n', 1, 2], sends('a 7\n')],
  ],
  [
    'does not believe an exporter that refused before the end was seen',
    [LIVING, ['a 7\n'], 'refused', ENDING, ['a 0\n'], sends('a 7\n')],
  ],
  [
    'takes an exporter that restarted while main lives',
    [LIVING, ['a 7\n', 1, 100], 'refused', LIVING, ['a 1\n', 1, 1], ['a 2\n', 1, 2], ENDED, sends('a 2\n')],
  ],
  ['takes an exporter that comes up after the end', [ENDED, 'refused', ENDED, ['a 1\n'], sends('a 1\n')]],
];

for (const [what, steps] of STORIES) {
  test(`keepSource() ${what}`, async () => {
    const { kept, take, read } = openScene();
    for (const step of steps) {
      if (step === 'refused') await take(step);
      else if ('main' in step) kept.takeView(step);
      else if ('sends' in step) assert.equal(await read(), step.sends);
      else await take(step);
    }
  });
}

test('keepSource() leaves out what is unreadable or empty', async () => {
  const { take, read } = openScene();
  await take(['a 1\n']);
  await take(['<html>busy</html>']);
  assert.equal(await read(), 'a 1\n');
});

test('keepSource() asks once more where an answer may be cut: the next poll may not come', async () => {
  const { take, read } = openScene();
  await take(['a 1\nb 1\nc 1\n']);
  await take(['a 2\nb 2\n', 1, null, true], ['a 3\n', 1, null, true]);
  assert.equal(await read(), 'a 1\nb 1\nc 1\n', 'cut twice');
  await take(['a 4\nb 4\n', 1, null, true], ['a 4\nb 4\n', 1, null, true]);
  assert.equal(await read(), 'a 4\nb 4\n');
});

for (const [how, finishedCount] of [
  ['goes on', 102],
  ['was restarted as well', 1],
] as const) {
  test(`keepSource() forgets the life before once main is seen alive again, where its exporter ${how}`, async () => {
    const { kept, take, read } = openScene();
    kept.takeView(LIVING);
    await take(['a 7\ngone 7\n', 1, 100]);
    kept.takeView(ENDED);
    await take(['a 8\n', 0, 101]);
    kept.takeView(ENDED);
    await take(['a 1\n', 1, finishedCount]);
    kept.takeView(LIVING);
    await take(['a 1\n', 1, finishedCount]);
    assert.equal(await read(), 'a 1\n');
    await take(['a 2\n', 0, finishedCount + 1]);
    kept.takeView(ENDED);
    assert.equal(await read(), 'a 2\n');
  });
}

test('keepSource() takes a page that may be cut for short if its last family has fewer samples, unless it comes again', async () => {
  const { kept, take, read } = openScene();
  kept.takeView(LIVING);
  await take(['a 1\nb{c="1"} 1\nb{c="2"} 1\n', 1, null, true]);
  const cut = ['a 2\nb{c="1"} 2\n', 1, null, true] as const;
  await take(cut, ['a 3\n', 1, null, true]);
  assert.equal(await read(), 'a 1\nb{c="1"} 1\nb{c="2"} 1\n');
  await take(cut, cut);
  assert.equal(await read(), 'a 2\nb{c="1"} 2\n');
});

for (const livingIds of [[7], []]) {
  test(`keepSource() owes the newest four pages of calls, as they were, where ${livingIds.length} lived`, async () => {
    const { kept, take } = openScene();
    kept.takeView(LIVING);
    for (let start = 1; start <= 6; start++) {
      await take([`extracted 1\nprocess_start_time_seconds ${start}\n`]);
      kept.addCall(livingIds, 0);
    }
    kept.takeView(ENDED);
    await take(['loaded 1\nprocess_start_time_seconds 7\n']);
    kept.takeView(LIVING);
    await take(['loaded 2\nprocess_start_time_seconds 7\n']);
    kept.keepLiving([7]);
    const called = await kept.findCalled(7, livingIds.length === 0 ? 'text/plain;q=0.7' : TEXT_ACCEPT, true);
    assert.match(String(await readPieces(called?.snapshot.body.read() ?? [])), /^extracted 1\nprocess.* 3\n$/);
    assert.deepEqual(kept.observe(0), { answeredAtMs: 0, inFlightCount: 0, hasOwedPage: true, lostCallsCount: 2 });
  });
}
