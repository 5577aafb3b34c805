import assert from 'node:assert/strict';
import { getEventListeners } from 'node:events';
import { test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { OWN_READ_MS, SILENT_READ_MS } from '../../src/decide/run/pace.ts';
import { openPolls, openReads, type ReadRequest } from '../../src/front/reads.ts';
import type { Beginning, Source, SourceRead } from '../../src/front/sources/source.ts';
import { makeFailedReading, NOT_READ, READ_TIMEOUT_MS } from '../../src/observe/exporter.ts';
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
  readonly end: () => Promise<void>;
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
      end: async () => {
        begun.resolve({ kind: 'answered', body: open.body });
        open.end();
        settle(NOT_READ);
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

function open() {
  const source = new DrivenSource();
  const clock = openClock();
  return { source, clock, reads: openReads(source, clock) };
}

type Seen = { beginning: Beginning | null; why: string | null; readonly limit: AbortSignal };

/** What a request has come to so far. */
function watch(read: ReturnType<ReturnType<typeof openReads>['request']>) {
  const seen: Seen = { beginning: null, why: null, limit: read.limit };
  void read.begun.then((beginning) => {
    seen.beginning = beginning;
  });
  void read.ended.then(({ observation }) => {
    seen.why = observation.kind === 'failed' ? observation.why : 'read';
  });
  return seen;
}

function request(reads: ReturnType<typeof openReads>, options: Partial<ReadRequest> = {}) {
  return watch(reads.request({ timeoutMs: 10_000, signal: NEVER, isPoll: false, ...options }));
}

function takeBody({ beginning }: Seen): Body {
  assert.ok(beginning?.kind === 'answered', JSON.stringify(beginning));
  return beginning.body;
}

async function readAll(seen: Seen): Promise<string> {
  return String(await readPieces(takeBody(seen).read(seen.limit)));
}

test('request() begins a read at once, and hands on what comes of it', async () => {
  const { source, clock, reads } = open();
  assert.equal(reads.isBusy(), false);
  const { signal } = new AbortController();
  const first = request(reads, { signal });
  assert.deepEqual([source.asked.length, reads.isBusy()], [1, true]);
  await clock.forward(7);
  await source.asked[0]?.answer();
  const text = readAll(first);
  source.asked[0]?.open.push(Buffer.from('a 1\n'));
  assert.equal(first.why, null);
  await source.asked[0]?.end();
  assert.equal(await text, 'a 1\n');
  assert.deepEqual([first.why, reads.isBusy()], ['read', false]);
  assert.deepEqual(getEventListeners(signal, 'abort'), []);
  const second = request(reads);
  await source.asked[1]?.refuse();
  assert.deepEqual([second.beginning, second.why], [{ kind: 'refused' }, 'read']);
  assert.equal(clock.timerCount, 0);
});

test('who comes while a read is under way shares the next one, which begins after all of them came', async () => {
  const { source, clock, reads } = open();
  const first = request(reads);
  const others = [request(reads), request(reads, { isPoll: true }), request(reads)];
  await source.asked[0]?.answer();
  const begun = others.map(({ beginning }) => beginning);
  assert.deepEqual(begun, [null, null, null]);
  await clock.forward(50);
  await source.asked[0]?.end();
  assert.deepEqual([first.why, source.asked.length], ['read', 2]);
  source.asked[1]?.open.push(Buffer.from('a 2\n'));
  await source.asked[1]?.end();
  for (const other of others) assert.equal(await readAll(other), 'a 2\n');
  assert.deepEqual([source.asked.length, clock.timerCount], [2, 0]);
});

test('each reader of a shared read gives up at its own time, and a read without readers goes on', async () => {
  const { source, clock, reads } = open();
  const first = request(reads);
  const [short, long] = [request(reads, { timeoutMs: 1_000 }), request(reads, { timeoutMs: 3_000 })];
  await source.asked[0]?.end();
  assert.equal(first.why, 'read');
  await source.asked[1]?.answer();
  source.asked[1]?.open.push(Buffer.from('a 1\n'));
  const brokenOff = assert.rejects(readAll(short), /^Error: timed out$/);
  const text = readAll(long);
  await clock.forward(1_000);
  await brokenOff;
  assert.deepEqual([short.why, long.why], ['timed out', null]);
  assert.equal(source.asked[1]?.signal.aborted, false);
  await clock.forward(1_999);
  await source.asked[1]?.end();
  assert.equal(await text, 'a 1\n');
  assert.equal(long.why, 'read');

  const [last, waiting] = [request(reads, { timeoutMs: 900 }), request(reads, { timeoutMs: 900 })];
  await source.asked[2]?.answer();
  const cut = assert.rejects(readAll(last), /^Error: timed out$/);
  await clock.forward(900);
  await cut;
  assert.deepEqual([waiting.beginning, waiting.why], [{ kind: 'failed', why: 'timed out' }, 'timed out']);
  assert.equal(reads.isBusy(), true);
  await source.asked[2]?.end();
  assert.equal(source.asked.length, 3, 'the one that waited had no time left');
  assert.deepEqual([reads.isBusy(), clock.timerCount], [false, 0]);
});

test('a time limit counts from the request, the wait for the read before it included', async () => {
  const { source, clock, reads } = open();
  request(reads);
  await clock.forward(100);
  const waiting = request(reads, { timeoutMs: 500 });
  await clock.forward(499);
  assert.equal(waiting.why, null);
  await clock.forward(1);
  assert.deepEqual([waiting.beginning, waiting.why], [{ kind: 'failed', why: 'timed out' }, 'timed out']);
  await source.asked[0]?.end();
  assert.equal(source.asked.length, 1, 'nothing waits for another');
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

test('a client that leaves does not end its read: without others it has 15 s in all', async () => {
  const { source, clock, reads } = open();
  const controllers = [new AbortController(), new AbortController()];
  const ended = request(reads);
  const sharing = controllers.map(({ signal }) => request(reads, { signal }));
  await source.asked[0]?.end();
  assert.equal(ended.why, 'read');
  for (const [index, controller] of controllers.entries()) {
    controller.abort('hung up');
    await turn();
    const { beginning, why } = sharing[index] as Seen;
    assert.deepEqual([beginning, why], [{ kind: 'failed', why: 'hung up' }, 'hung up']);
  }
  await clock.forward(READ_TIMEOUT_MS - 1);
  assert.equal(source.asked[1]?.signal.aborted, false);
  assert.equal(request(reads, { signal: AbortSignal.abort('gone') }).why, null);
  await clock.forward(1);
  assert.deepEqual([source.asked[1]?.signal.reason, reads.isBusy()], ['hung up', false]);
  assert.equal(source.asked.length, 2, 'who is gone already begins none');
  const late = request(reads, { timeoutMs: READ_TIMEOUT_MS + 1 });
  await clock.forward(READ_TIMEOUT_MS + 1);
  assert.deepEqual([late.why, source.asked[2]?.signal.reason], ['timed out', 'timed out']);
  assert.equal(clock.timerCount, 0);
});

/** Plays seconds in which each page takes `pageMs`; how many were read. */
async function play(
  { source, clock }: Pick<ReturnType<typeof open>, 'source' | 'clock'>,
  { pageMs, count }: { readonly pageMs: number; readonly count: number },
  onSecond: (second: number) => void,
): Promise<number> {
  const begunAtMs: number[] = [];
  let readCount = 0;
  for (let tick = 0; tick < count * 10; tick++) {
    if (tick % 10 === 0) onSecond(tick / 10);
    for (let index = begunAtMs.length; index < source.asked.length; index++) begunAtMs.push(clock.nowMs());
    await clock.forward(100);
    for (const [index, atMs] of begunAtMs.entries()) {
      if (source.asked[index]?.signal.aborted || clock.nowMs() < atMs + pageMs) continue;
      begunAtMs[index] = Number.POSITIVE_INFINITY;
      await source.asked[index]?.end();
      readCount++;
    }
  }
  return readCount;
}

test('of two formats both are read where a page takes longer than the interval of who scrapes one of them', async () => {
  for (const pageMs of [800, 1_500, 3_000, 5_000]) {
    const opened = open();
    const polls: ReturnType<typeof request>[] = [];
    await play(opened, { pageMs, count: 60 }, () => {
      request(opened.reads, { accept: 'b', timeoutMs: 9_500 });
      if (polls.at(-1)?.why !== null) polls.push(request(opened.reads, { isPoll: true, timeoutMs: READ_TIMEOUT_MS }));
    });
    const count = polls.filter(({ why }) => why === 'read').length;
    assert.ok(count >= 2, `${pageMs} ms: ${count} of ${polls.length}`);
  }
});

test('a read that shows no header for 3 s does not keep the next one from its own, two at a time', async () => {
  const { source, clock, reads } = open();
  const hangs = request(reads, { timeoutMs: 29_500 });
  await clock.forward(1_000);
  const others = [request(reads), request(reads, { isPoll: true })];
  await clock.forward(SILENT_READ_MS - 1_001);
  assert.deepEqual([source.asked.length, reads.isBusy()], [1, true]);
  await clock.forward(1);
  assert.equal(source.asked.length, 2);
  const third = request(reads);
  await clock.forward(SILENT_READ_MS);
  assert.equal(source.asked.length, 2);
  await source.asked[1]?.end();
  const ends = others.map(({ why }) => why);
  assert.deepEqual(ends, ['read', 'read']);
  await source.asked[2]?.end();
  assert.deepEqual([third.why, hangs.why], ['read', null]);
  assert.equal(reads.isBusy(), false, 'a poll does not wait for it either');
  const poll = request(reads, { isPoll: true });
  await source.asked[3]?.end();
  assert.equal(poll.why, 'read');
  await source.asked[0]?.end();
  assert.deepEqual([hangs.why, clock.timerCount], ['read', 0]);
});

test('a read whose header has come keeps the next one waiting, however long its body takes', async () => {
  const { source, clock, reads } = open();
  const first = request(reads, { timeoutMs: 60_000 });
  await source.asked[0]?.answer();
  const second = request(reads, { timeoutMs: 60_000 });
  await clock.forward(30_000);
  assert.equal(source.asked.length, 1);
  await source.asked[0]?.end();
  await source.asked[1]?.end();
  assert.deepEqual([first.why, second.why], ['read', 'read']);
});

test('what was asked may have been counted, what was not was not', async () => {
  const { reads } = open();
  const controller = new AbortController();
  const { signal } = controller;
  const [asked, waiting] = [1, 2].map(() => reads.request({ timeoutMs: 1, signal, isPoll: true }));
  controller.abort('SIGTERM');
  assert.deepEqual((await asked?.ended)?.observation, { kind: 'failed', why: 'SIGTERM', mayCount: true });
  assert.deepEqual((await waiting?.ended)?.observation, { kind: 'failed', why: 'SIGTERM', mayCount: false });
});

test('a poll of its own gives way to a scrape after a second, and shares its read', async () => {
  const { source, clock, reads } = open();
  const poll = request(reads, { isPoll: true });
  await clock.forward(400);
  const scrape = request(reads);
  await clock.forward(OWN_READ_MS - 401);
  assert.equal(source.asked.length, 1);
  await clock.forward(1);
  assert.deepEqual([source.asked[0]?.signal.reason, source.asked.length], ['it gave way to a scrape', 2]);
  assert.equal(poll.why, null);
  source.asked[1]?.open.push(Buffer.from('a 1\n'));
  await source.asked[1]?.end();
  for (const each of [poll, scrape]) assert.equal(await readAll(each), 'a 1\n');
  assert.equal(clock.timerCount, 0);
});

test('a poll that has been going for longer gives way at once, also where its answer has begun', async () => {
  const { source, clock, reads } = open();
  const poll = request(reads, { isPoll: true, timeoutMs: 60_000 });
  await source.asked[0]?.answer();
  await clock.forward(30_000);
  const scrape = request(reads);
  await clock.forward(0);
  assert.equal((await takeBody(poll).ended).kind, 'broken');
  await source.asked[1]?.end();
  assert.deepEqual([poll.why, scrape.why], ['read', 'read']);
  assert.equal(clock.timerCount, 0);
});

test('a read that hangs keeps the last numbers from their own for a second at most, whatever gave way before', async () => {
  const { source, clock, reads } = open();
  request(reads, { isPoll: true });
  request(reads, { timeoutMs: 500 });
  await clock.forward(OWN_READ_MS);
  assert.equal(source.asked[0]?.signal.aborted, false, 'that scrape is gone');
  request(reads, { timeoutMs: 500 });
  await clock.forward(0);
  await source.asked[1]?.answer();
  await clock.forward(500);
  const last = [
    request(reads, { isPoll: true, isLast: true }),
    request(reads, { isPoll: true, isLast: true, accept: 'b' }),
  ];
  await clock.forward(500);
  assert.equal(source.asked.length, 3);
  await clock.forward(OWN_READ_MS);
  assert.equal(source.asked[2]?.signal.aborted, false, 'it does not give way to the other format');
  await source.asked[2]?.end();
  await source.asked[3]?.end();
  const ends = last.map(({ why }) => why);
  assert.deepEqual(ends, ['read', 'read']);
  assert.equal(clock.timerCount, 0);
});

test('a poll goes on where a scrape shares it, where only a poll waits, and where the scrape is gone', async () => {
  const { source, clock, reads } = open();
  request(reads);
  const shared = [request(reads, { isPoll: true }), request(reads)];
  await source.asked[0]?.end();
  const controller = new AbortController();
  const waiting = [request(reads), request(reads, { isPoll: true }), request(reads, { signal: controller.signal })];
  await clock.forward(5_000);
  await source.asked[1]?.end();
  const ends = shared.map(({ why }) => why);
  assert.deepEqual(ends, ['read', 'read']);
  await source.asked[2]?.end();
  const later = waiting.map(({ why }) => why);
  assert.deepEqual(later, ['read', 'read', 'read']);

  const poll = request(reads, { isPoll: true });
  const other = request(reads, { isPoll: true });
  const gone = request(reads, { signal: controller.signal });
  await clock.forward(500);
  controller.abort('hung up');
  await clock.forward(5_000);
  assert.deepEqual([gone.why, source.asked[3]?.signal.aborted], ['hung up', false]);
  await source.asked[3]?.end();
  await source.asked[4]?.end();
  assert.deepEqual([poll.why, other.why], ['read', 'read']);
});

test('a poll that is left alone by the scrape it shared a read with gives way to the next one', async () => {
  const { source, clock, reads } = open();
  const controller = new AbortController();
  request(reads);
  const poll = request(reads, { isPoll: true });
  request(reads, { signal: controller.signal });
  await source.asked[0]?.end();
  const scrape = request(reads);
  await clock.forward(2_000);
  assert.equal(source.asked.length, 2);
  controller.abort('hung up');
  await clock.forward(0);
  assert.equal(source.asked.length, 3);
  await source.asked[2]?.end();
  assert.deepEqual([poll.why, scrape.why], ['read', 'read']);
});

test('close() gives up everybody, waits for the read to end, and closes the source', async () => {
  const { source, clock, reads } = open();
  source.endsLate = true;
  const all = [request(reads), request(reads), request(reads, { isPoll: true })];
  await reads.close();
  const ends = all.map(({ why }) => why);
  assert.deepEqual(ends, ['closed', 'closed', 'closed']);
  assert.deepEqual([source.asked.length, source.isClosed], [1, true]);
  assert.equal(clock.timerCount, 0);
  const idle = open();
  await idle.reads.close();
  assert.equal(idle.source.isClosed, true);
});

/** A source that can be spread, as a class cannot. */
function spread(source: DrivenSource): Source {
  return { path: null, read: (signal) => source.read(signal), close: () => source.close() };
}

test('openPolls() does not wait for a poll that hangs once main may have ended', async () => {
  for (const isPaced of [true, false]) {
    const { source, clock } = open();
    const polls = openPolls(spread(source), {
      clock,
      pollMs: 1_000,
      restFactor: 4,
      isAwaited: false,
      isPaced: () => isPaced,
    });
    await polls.observe(NEVER);
    await clock.forward(SILENT_READ_MS);
    await polls.observe(NEVER);
    assert.equal(source.asked.length, isPaced ? 1 : 2);
    await polls.close();
  }
});

test('openPolls() pauses for what its own read took, not for a scrape that came first', async () => {
  const { source, clock } = open();
  const { asked } = source;
  const polls = openPolls(spread(source), {
    clock,
    pollMs: 1_000,
    restFactor: 4,
    isAwaited: false,
    isPaced: () => true,
  });
  await polls.observe(NEVER);
  await clock.forward(OWN_READ_MS);
  polls.readForScrape({ timeoutMs: 10_000, signal: NEVER, isPoll: false, accept: 'x' });
  for (const number of [1, 2]) {
    await clock.forward(2_000);
    await asked[number]?.end();
  }
  await clock.forward(7_999);
  await polls.observe(NEVER);
  assert.equal(asked.length, 3);
  await clock.forward(1);
  await polls.observe(NEVER);
  assert.equal(asked.length, 4);
  await asked[3]?.end();
  await polls.close();
});

test('openPolls() polls one format however often another one is scraped from a slow source', async () => {
  const { source, clock } = open();
  const { asked } = source;
  const common = { clock, pollMs: 1_000, restFactor: 4, isAwaited: false, isPaced: () => true };
  const polls = openPolls(spread(source), { ...common, listAccepts: () => ['x', 'text'] });
  polls.readForScrape({ timeoutMs: 10_000, signal: NEVER, isPoll: false, accept: 'x' });
  await clock.forward(200);
  await asked[0]?.end();
  await polls.observe(NEVER);
  assert.equal(asked.length, 2);
  await asked[1]?.end();
  await polls.close();
});

test('openPolls() polls next when a scrape that was answered is 500 ms old, and at once where it was not', async () => {
  const { source, clock } = open();
  const { asked } = source;
  const polls = openPolls(spread(source), {
    clock,
    pollMs: 1_000,
    restFactor: 4,
    isAwaited: false,
    isPaced: () => false,
  });
  polls.readForScrape({ timeoutMs: 10_000, signal: NEVER, isPoll: false });
  await asked[0]?.end();
  await polls.observe(NEVER);
  await clock.forward(499);
  assert.equal(asked.length, 1);
  await clock.forward(1);
  assert.equal(asked.length, 2);
  await asked[1]?.end();
  await clock.forward(5_000);
  assert.equal(asked.length, 2, 'an observation asks for each');
  const { ended } = polls.readForScrape({ timeoutMs: 10, signal: NEVER, isPoll: false });
  await clock.forward(10);
  assert.equal((await ended).observation.kind, 'failed');
  await asked[2]?.end();
  await polls.observe(NEVER);
  assert.equal(asked.length, 4);
  await asked[3]?.end();
  await polls.close();
});
