// What a story cannot tell of reads (fixtures/transcripts/front): what they leave behind, and a reader that is slow.

import assert from 'node:assert/strict';
import { getEventListeners } from 'node:events';
import { test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { TEXT_ACCEPT } from '../../src/decide/serve/budget.ts';
import type { Beginning, BegunAnswer, Source, SourceRead } from '../../src/front/sources/source.ts';
import { makeFailedReading, NOT_READ } from '../../src/observe/exporter.ts';
import { openReads, type Reads, type ReadsParts, type ScrapeRead } from '../../src/observe/reads.ts';
import { type Body, type OpenBody, openBody } from '../../src/snapshot/body.ts';
import { readPieces } from '../support/pieces.ts';
import { VirtualClock } from '../support/virtual-clock.ts';

const NEVER = new AbortController().signal;

/** One read of the source, as the test drives it. */
type Asked = {
  readonly signal: AbortSignal;
  readonly open: OpenBody;
  readonly answer: () => Promise<void>;
  readonly refuse: () => Promise<void>;
  readonly end: (mayBeCut?: boolean, isSourceUp?: boolean) => Promise<void>;
};

/** A source whose reads the test drives; one that is given up ends at once, as real ones do. */
class DrivenSource implements Source {
  readonly path = null;
  readonly asked: Asked[] = [];
  isClosed = false;
  /** One that is given up ends a turn later. */
  endsLate = false;
  #openCount = 0;
  read(signal: AbortSignal): SourceRead {
    assert.ok(++this.#openCount <= 2, 'two reads at a time at most');
    const begun = Promise.withResolvers<Beginning>();
    const ended = Promise.withResolvers<typeof NOT_READ>();
    const open = openBody();
    const settle = (reading: typeof NOT_READ) => {
      this.#openCount--;
      ended.resolve(reading);
    };
    signal.addEventListener('abort', () => {
      const why = String(signal.reason);
      open.breakOff(why);
      begun.resolve({ kind: 'failed', why });
      const end = () => settle(makeFailedReading(why, true));
      if (this.endsLate) setImmediate(end);
      else end();
    });
    this.asked.push({
      signal,
      open,
      answer: async () => {
        begun.resolve({ kind: 'answered', body: open.body });
        await turn();
      },
      refuse: async () => {
        begun.resolve({ kind: 'refused' });
        settle(NOT_READ);
        await turn();
      },
      end: async (mayBeCut = false, isSourceUp = true) => {
        begun.resolve({ kind: 'answered', body: open.body, isSourceUp });
        open.end();
        settle({ ...NOT_READ, mayBeCut });
        await turn();
      },
    });
    return { begun: begun.promise, ended: ended.promise };
  }
  async close() {
    assert.equal(this.#openCount, 0, 'its read has ended');
    this.isClosed = true;
  }
}

/** A clock that also lets what was called back run. */
function openClock() {
  const clock = new VirtualClock(5_000);
  return {
    nowMs: clock.nowMs,
    after: clock.after,
    get timerCount() {
      return clock.timerCount;
    },
    async forward(ms: number): Promise<void> {
      clock.advance(ms);
      await turn();
    },
  };
}

function open(parts: Partial<ReadsParts> = {}) {
  const source = new DrivenSource();
  const clock = openClock();
  const tell = () => ({ isCharged: true, wanted: [{ accept: TEXT_ACCEPT }] });
  return {
    source,
    clock,
    reads: openReads(source, { clock, pollMs: 1_000, restFactor: 100, observing: 'takes', tell, ...parts }),
  };
}

type Seen = { beginning: Beginning | null; why: string | null; readonly limit: AbortSignal };

function watch(read: ReturnType<Reads<BegunAnswer>['read']>) {
  const seen: Seen = { beginning: null, why: null, limit: read.limit };
  void read.begun.then((beginning) => {
    seen.beginning = beginning;
  });
  void read.ended.then((ended) => {
    seen.why = ended.kind === 'failed' ? ended.why : 'read';
  });
  return seen;
}

function request(reads: Reads<BegunAnswer>, options: Partial<ScrapeRead> = {}) {
  return watch(reads.read({ timeoutMs: 10_000, signal: NEVER, ...options }));
}

function takeBody({ beginning }: Seen): Body {
  assert.ok(beginning?.kind === 'answered', JSON.stringify(beginning));
  return beginning.body;
}

async function readAll(seen: Seen): Promise<string> {
  return String(await readPieces(takeBody(seen).read(seen.limit)));
}

test('read() begins a read at once, and hands on what comes of it', async () => {
  const { source, clock, reads } = open();
  const { signal } = new AbortController();
  const first = request(reads, { signal });
  assert.equal(source.asked.length, 1);
  await clock.forward(7);
  await source.asked[0]?.answer();
  const text = readAll(first);
  source.asked[0]?.open.push(Buffer.from('a 1\n'));
  assert.equal(first.why, null);
  await source.asked[0]?.end();
  assert.equal(await text, 'a 1\n');
  assert.equal(first.why, 'read');
  assert.deepEqual(getEventListeners(signal, 'abort'), []);
  request(reads, { signal: AbortSignal.abort('gone') });
  assert.equal(source.asked.length, 1, 'who is gone already begins none');
  const second = request(reads);
  await source.asked[1]?.refuse();
  assert.deepEqual([second.beginning, second.why], [{ kind: 'refused' }, 'read']);
  assert.equal(clock.timerCount, 0);
});

test('a read that came whole in time is read to its end at any pace', async () => {
  const { source, clock, reads } = open();
  const controller = new AbortController();
  const slow = request(reads, { timeoutMs: 500, signal: controller.signal });
  await source.asked[0]?.answer();
  source.asked[0]?.open.push(Buffer.from('a 1\n'));
  const reader = takeBody(slow).read(slow.limit)[Symbol.asyncIterator]();
  await reader.next();
  source.asked[0]?.open.push(Buffer.from('b 1\n'));
  await source.asked[0]?.end();
  await clock.forward(60_000);
  controller.abort('gone');
  assert.equal(String(Buffer.from((await reader.next()).value)), 'b 1\n');
  assert.equal((await reader.next()).done, true);
});

test('a read that may be cut, and was given up, is followed by none', async () => {
  const { source, reads } = open();
  source.endsLate = true;
  void reads.observe(NEVER, 'last');
  const closed = reads.close();
  await source.asked[0]?.end(true);
  await closed;
  assert.equal(source.asked.length, 1);
});

test('an answer for a program that is not there cost it nothing: the next look asks again', async () => {
  for (const isSourceUp of [true, false]) {
    const { reads, source, clock } = open();
    void reads.observe(NEVER);
    await clock.forward(500);
    await source.asked[0]?.end(false, isSourceUp);
    await clock.forward(500);
    void reads.observe(NEVER);
    assert.equal(source.asked.length, isSourceUp ? 1 : 2);
    await reads.close();
  }
});

test('close() gives up everybody, waits for the read to end, and closes the source', async () => {
  const { source, clock, reads } = open();
  source.endsLate = true;
  const all = [request(reads), request(reads)];
  const observed = reads.observe(NEVER, 'last');
  await reads.close();
  const ends = all.map(({ why }) => why);
  assert.deepEqual(ends, ['closed', 'closed']);
  assert.equal((await observed).observation.kind, 'none');
  assert.deepEqual([source.asked.length, source.isClosed], [1, true]);
  assert.equal(clock.timerCount, 0);
  const idle = open();
  await idle.reads.close();
  assert.equal(idle.source.isClosed, true);
});

test('observe() rests for our own CPU time where that is more than the read took', async () => {
  let cpuMs = 0;
  const { source, clock, reads } = open({ readCpuMs: () => cpuMs });
  for (const restMs of [1_000, 5_000]) {
    await reads.observe(NEVER);
    await clock.forward(10);
    await source.asked.at(-1)?.end();
    cpuMs += 100;
    await reads.observe(NEVER);
    const { length } = source.asked;
    await clock.forward(restMs - 1);
    assert.equal(source.asked.length, length);
    await clock.forward(1);
    assert.equal(source.asked.length, length + 1);
  }
  await reads.close();
});
