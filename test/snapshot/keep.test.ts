// What a push has without a front: the last whole, readable body, with what has vanished from it since main ended.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { MainView } from '../../src/decide/serve/serve.ts';
import type { ExporterReading } from '../../src/observe/condition-kind.ts';
import { openKeeper } from '../../src/snapshot/keep.ts';
import { readPieces } from '../support/pieces.ts';

const ENDED: MainView = { main: 'ended', wasAlive: true, endedAtMs: 0 };

const LIVING: MainView = { main: 'living', wasAlive: true, endedAtMs: null };
const ENDING: MainView = { main: 'ending', wasAlive: true, endedAtMs: null };
const NO_TOTALS = { requests: null, failures: null, users: null };

function reading(up: number, finishedCount: number | null = null): ExporterReading {
  const scrapes = finishedCount === null ? null : { finishedCount, inFlightCount: 1 };
  return {
    observation: { kind: 'answered', scrapes, totals: NO_TOTALS },
    metric: (name) => ({ kind: 'value', value: name === 'locust_up' ? up : 1 }),
    hasRequests: false,
  };
}

function openScene(metricNames: readonly string[] = ['locust_up']) {
  const keeper = openKeeper(metricNames, () => ({ atMs: 0, seconds: 0 }));
  return {
    keeper,
    take(text: string, up = 1, finishedCount: number | null = null, mayBeCut?: boolean) {
      const tap = keeper.openTap();
      for (const letter of Buffer.from(text)) tap.write(Uint8Array.of(letter));
      tap.end({ ...reading(up, finishedCount), ...(mayBeCut !== undefined && { mayBeCut }) });
    },
    async read(): Promise<string | null> {
      // What came is judged in turns of the event loop.
      await new Promise((resolve) => setImmediate(resolve));
      const snapshot = await keeper.newest();
      return snapshot === null ? null : String(await readPieces(snapshot.body.read()));
    },
  };
}

/** Main from now on, a refusal, an answer, or what a push would send by then. */
type Step =
  | MainView
  | 'refused'
  | readonly [body: string, up?: number, finishedCount?: number | null, mayBeCut?: boolean]
  | { readonly sends: string | null };

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
  test(`openKeeper() ${what}`, async () => {
    const { keeper, take, read } = openScene();
    for (const step of steps) {
      if (step === 'refused') keeper.openTap().breakOff(true);
      else if ('main' in step) keeper.tell(step);
      else if ('sends' in step) assert.equal(await read(), step.sends);
      else take(...step);
    }
  });
}

test('openKeeper() leaves out what is a part, unreadable or empty', async () => {
  const { keeper, take, read } = openScene();
  take('a 1\n');
  const tap = keeper.openTap();
  tap.write(Buffer.from('a 2\n'));
  tap.breakOff(false);
  take('<html>busy</html>');
  take('');
  assert.equal(await read(), 'a 1\n');
});

test('newest() asks once more where the last answer may be cut: the next poll will not come', async () => {
  const { keeper, take, read } = openScene();
  let askedCount = 0;
  const ask = (text: string) => async () => {
    askedCount++;
    take(text, 1, null, true);
  };
  take('a 1\nb 1\nc 1\n');
  await keeper.newest(ask(''));
  take('a 2\nb 2\n', 1, null, true);
  await keeper.newest(ask('a 3\n'));
  assert.equal(await read(), 'a 1\nb 1\nc 1\n', 'cut twice');
  take('a 4\nb 4\n', 1, null, true);
  await keeper.newest(ask('a 4\nb 4\n'));
  assert.equal(await read(), 'a 4\nb 4\n');
  assert.equal(askedCount, 2);
});

for (const [how, finishedCount] of [
  ['goes on', 102],
  ['was restarted as well', 1],
] as const) {
  test(`openKeeper() forgets the life before with the first answer of a main that is alive again, where its exporter ${how}`, async () => {
    const { keeper, take, read } = openScene();
    keeper.tell(LIVING);
    take('a 7\ngone 7\n', 1, 100);
    keeper.tell(ENDED);
    take('a 8\n', 0, 101);
    keeper.tell(ENDED);
    await read();
    take('a 1\n', 1, finishedCount);
    keeper.tell(LIVING);
    assert.equal(await read(), 'a 1\n');
    take('a 2\n', 0, finishedCount + 1);
    keeper.tell(ENDED);
    assert.equal(await read(), 'a 2\n');
  });
}

test('openKeeper() leaves out what came while a long one was joined, except the newest: no one waits for many', async () => {
  const { keeper, take, read } = openScene();
  keeper.tell(ENDED);
  take('a 0\ngone 7\n');
  for (let index = 0; index < 20; index++) take(`a ${index}\nb${index} 1\n`);
  keeper.tell(ENDED);
  assert.equal(await read(), 'a 19\nb19 1\ngone 7\n');
});
