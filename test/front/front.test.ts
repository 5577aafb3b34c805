import assert from 'node:assert/strict';
import { rmSync, writeFileSync } from 'node:fs';
import { Agent } from 'node:http';
import type { Socket } from 'node:net';
import { join } from 'node:path';
import { test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { LAST_WAIT_MS } from '../../src/decide/run/pace.ts';
import { OWN_READ_MS, SILENT_READ_MS } from '../../src/decide/serve/reads.ts';
import { addRequest, addScrape, NO_SCRAPERS, type ServedKind } from '../../src/decide/serve/scrapers.ts';
import type { MainView } from '../../src/decide/serve/serve.ts';
import type { FrontEvent } from '../../src/decide/state.ts';
import type { Selector } from '../../src/exposition/exposition.ts';
import { type Front, openFront } from '../../src/front/front.ts';
import { makeFolder } from '../support/folder.ts';
import { findFreePort } from '../support/listen.ts';
import { VirtualClock } from '../support/virtual-clock.ts';
import {
  ENDED,
  ENDING,
  LIVING,
  NEVER,
  openKept,
  openWorld,
  POLL_MS,
  readNewest,
  takeSnapshot,
  turn,
  untilKept,
  type World,
  withoutOwn,
} from './front-world.ts';
import { type Answer, hang, readValue, reply, scrape } from './source.ts';

/** Of the header that scrape() sends, 10 s, less the reserve. */
const SCRAPE_TIMEOUT_MS = 9_500;
const OWN = /# HELP lastscrape_[\s\S]*$/;

/** Waits until that many scrapes have no answer yet. */
async function inFlight(front: Front, count: number): Promise<void> {
  while (front.observe().inFlightCount !== count) await turn();
}

type Scraped = Extract<FrontEvent, { readonly kind: 'scraped' }>;

/** The next scrape that was handed over, a moment after the client has all of it. */
async function takeScrape({ front }: Pick<World, 'front'>): Promise<Scraped> {
  for (;;) {
    await new Promise<void>((resolve) => void front.onEvent(resolve));
    const event = front.takeEvent();
    if (event?.kind === 'scraped') return event;
  }
}

function breakOff(body: string): Answer {
  return (socket) => {
    socket.write(`HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 100000\r\n\r\n${body}`, () => {
      socket.end();
    });
  };
}

/** Scrapes of a source that hangs; the clock moves on once the source has been asked. */
async function scrapeTooLong({ front, source, clock }: World, options = {}) {
  const before = source.requestsCount;
  const scraped = scrape(front.port, options);
  await source.requests(before + 1);
  if (source.answer === hang) clock.advance(SCRAPE_TIMEOUT_MS);
  return scraped;
}

test('living and answers: the very bytes, while they come, and our families after them', async (t) => {
  const { front, source } = await openWorld(t);
  const sent = Promise.withResolvers<Socket>();
  source.answer = (socket) => {
    socket.write('HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\n5\r\na 1\r\n\r\n');
    sent.resolve(socket);
  };
  const first = Promise.withResolvers<string>();
  const { connect } = await import('node:net');
  const client = connect(front.port, '127.0.0.1');
  let seen = '';
  client.setEncoding('latin1').on('data', (text: string) => {
    seen += text;
    if (seen.includes('a 1')) first.resolve(seen);
  });
  client.write('GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n');
  const socket = await sent.promise;
  // The source has not ended its answer yet.
  assert.match(await first.promise, /a 1/);
  source.answer = reply('a 1\nb{c="d"}   2 1234 \n\n# x\nb{c="é"} 3\n');
  socket.write('4\r\nb 2\n\r\n0\r\n\r\n');
  const whole = await scrape(front.port);
  assert.equal(withoutOwn(whole.text), 'a 1\nb{c="d"}   2 1234 \n\n# x\nb{c="é"} 3\n');
  assert.equal(whole.headers['content-type'], 'text/plain; version=0.0.4');
  assert.equal(readValue(whole.text, 'lastscrape_source_up'), 1);
  assert.equal(readValue(whole.text, 'lastscrape_main_ended'), 0);
  assert.equal(readValue(whole.text, 'lastscrape_snapshot_timestamp_seconds'), 1_000_001);
  assert.doesNotMatch(whole.text, /lastscrape_main_end_timestamp_seconds/);
  assert.match(whole.text, /^lastscrape_build_info\{version="[^"]+"\} 1$/m);
  client.destroy();
});

test('living and refuses: 503 without a snapshot, the snapshot with lastscrape_source_up 0 with one', async (t) => {
  const world = await openWorld(t, { body: 'a 1\n' });
  await world.source.stop();
  const none = await scrape(world.front.port);
  assert.deepEqual([none.status, none.text], [503, 'the source is not there\n']);
  await world.source.start();
  await takeSnapshot(world);
  const readAtMs = world.clock.nowMs();
  await world.source.stop();
  world.clock.advance(500);
  const last = await scrape(world.front.port);
  assert.deepEqual([last.status, withoutOwn(last.text)], [200, 'a 1\n']);
  assert.equal(readValue(last.text, 'lastscrape_source_up'), 0);
  assert.equal(readValue(last.text, 'lastscrape_snapshot_timestamp_seconds'), 1_000_000 + readAtMs / 1000);
  const served = (await takeScrape(world)).scrape;
  assert.deepEqual([served.served, served.isByRefusal, served.readAtMs], ['snapshot', true, readAtMs]);
});

const OTHERWISE: readonly { readonly name: string; readonly answer: Answer; readonly why: RegExp }[] = [
  { name: 'hangs', answer: hang, why: /timed out/ },
  { name: 'has an error status', answer: reply('a 1\n', { status: 500 }), why: /HTTP 500/ },
  { name: 'has another type', answer: reply('a 1\n', { type: 'text/html' }), why: /Content-Type text\/html/ },
  { name: 'closes the connection', answer: (socket) => socket.destroy(), why: /the connection was closed/ },
];

for (const { name, answer, why } of OTHERWISE) {
  for (const [view, open] of [
    [LIVING, openKept],
    [ENDING, openKept],
    [ENDED, openWorld],
  ] as const) {
    test(`${view.main} and ${name}: 503 with the reason, whatever the snapshot, which ${view === ENDED ? 'is missing' : 'is there'}`, async (t) => {
      const world = await open(t);
      world.front.tell(view);
      world.source.answer = answer;
      const { status, text } = await scrapeTooLong(world);
      assert.equal(status, 503);
      assert.match(text, why);
      assert.equal(world.front.takeEvent()?.kind, 'requested');
      assert.equal(world.front.takeEvent(), null, 'no answer was taken');
    });
  }
  test(`ended and ${name}: the snapshot`, async (t) => {
    const world = await openKept(t, { body: 'a 1\n' }, ENDED);
    world.source.answer = answer;
    const { status, text } = await scrapeTooLong(world);
    assert.deepEqual([status, withoutOwn(text)], [200, 'a 1\n']);
    assert.deepEqual([readValue(text, 'lastscrape_source_up'), readValue(text, 'lastscrape_main_ended')], [0, 1]);
    assert.equal(readValue(text, 'lastscrape_main_end_timestamp_seconds'), 1_000_005);
    assert.equal((await takeScrape(world)).scrape.isByRefusal, false);
  });
}

/** A whole answer without a length, as HTTP/1.0 has it; a program that is killed while it writes sends the same. */
function replyUntilClosed(body: string): Answer {
  return (socket) => socket.end(`HTTP/1.0 200 OK\r\nContent-Type: text/plain\r\n\r\n${body}`);
}

/** Another body for each request, each without a length. */
function replyInTurn(...bodies: readonly string[]): Answer {
  const left = [...bodies];
  return (socket, number) => replyUntilClosed(left.shift() ?? '')(socket, number);
}

const WAITING: MainView = { main: 'living', wasAlive: false, endedAtMs: null };
const JUDGED: readonly Selector[] = [
  { name: 'a', labels: [] },
  { name: 'b', labels: [] },
];

function readNumbers({ front }: World): readonly (number | string)[] {
  const { thresholds = [] } = front.observe();
  return thresholds.map((reading) => (reading.kind === 'value' ? reading.value : reading.kind));
}

/** Main from now on, what the source does, a poll that is kept, the last read, or how long to wait. */
type Step =
  | MainView
  | Answer
  | number
  | 'poll'
  | 'lastRead'
  | 'stop'
  | 'start'
  /** What a scrape gets: the source's part of a page, a status, or null where it breaks off. */
  | { readonly gets: string | number | null }
  /** What the oldest scrape that was not looked at yet got, as it is reported. */
  | { readonly served: ServedKind }
  /** The status of a call for a snapshot. */
  | { readonly posts: number }
  | { readonly judged: readonly (number | string)[] }
  /** How many requests the source has had, once it has. */
  | { readonly requests: number };

async function play(world: World, step: Step): Promise<void> {
  const { front, source, clock } = world;
  if (typeof step === 'function') source.answer = step;
  else if (typeof step === 'number') clock.advance(step);
  else if (step === 'poll') await takeSnapshot(world);
  else if (step === 'lastRead') await front.readExporter(NEVER, 'last');
  else if (typeof step === 'string') await source[step]();
  else if ('main' in step) front.tell(step);
  else if ('served' in step) assert.equal((await takeScrape(world)).scrape.served, step.served);
  else if ('posts' in step) assert.equal((await world.post()).status, step.posts);
  else if ('judged' in step) assert.deepEqual(readNumbers(world), step.judged);
  else if ('requests' in step) await source.requests(step.requests);
  else {
    const got = await scrape(front.port).catch(() => null);
    const page = got?.status === 200 ? withoutOwn(got.text) : got?.status;
    assert.equal(got?.isWhole ? page : null, step.gets);
  }
}

const gets = (text: string | number | null) => ({ gets: text });
const OF_BOTH = [reply('kept 1\napp_rows 42\n'), 'poll', reply('kept 2\n'), 'poll', 1_000] as const;
const GONE = '# HELP gone G.\n# TYPE gone gauge\ngone{x="1"} 7\ngone{x="2"} 8 123\n';
const UNREADABLE = [breakOff('a 2\n'), reply('a 2\n<html>\n'), reply('a 2\r\n')];
const ABC = [replyUntilClosed('a 1\nb 1\nc 1\n'), 'poll'] as const;
const AB = replyUntilClosed('a 2\nb 2\n');

const STORIES: Readonly<Record<string, readonly Step[]>> = {
  'living and answers, without a last line feed: ours begin on a line of their own': [reply('a 1'), gets('a 1\n')],
  'living and breaks off: ours breaks off, and it is no snapshot': [
    ...([breakOff('a 1\n'), gets(null), 'stop', gets(503)] as const),
  ],
  'an answer without a length that ends within a line is broken off: its program may have been killed': [
    ...([replyUntilClosed('rows_total 12'), gets(null), { posts: 503 }] as const),
    ...([replyUntilClosed('rows_total 12345\n'), gets('rows_total 12345\n')] as const),
  ],
  ...Object.fromEntries(
    [ENDING, ENDED].flatMap((view): [string, readonly Step[]][] => [
      [
        `${view.main} and breaks off, or cannot be read: as if it had failed`,
        [
          ...([reply('a 1\n'), 'poll', view] as const),
          ...UNREADABLE.flatMap((answer) => [answer, gets(view === ENDED ? 'a 1\n' : 503)]),
        ],
      ],
      [
        `${view.main} and answers: its answer, and after it the families that have vanished`,
        [
          ...([reply(`${GONE}kept 1\n`), 'poll', view] as const),
          ...([
            reply('# TYPE gone gauge\nkept 2\nnew 3\n'),
            gets(`kept 2\nnew 3\n${GONE}`),
            { served: 'joined' },
          ] as const),
          // No number goes back: what was new then is kept now.
          ...[reply('kept 4'), gets(`kept 4\nnew 3\n${GONE}`)],
        ],
      ],
    ]),
  ),
  'what vanished shortly before the end was known is served after it': [
    ...[...OF_BOTH, gets('kept 2\n'), ENDED, gets('kept 2\napp_rows 42\n')],
  ],
  'what vanished shortly before the end was known is served after it, where the source refuses': [
    ...([...OF_BOTH, ENDED, 'stop', gets('kept 2\napp_rows 42\n')] as const),
  ],
  'a source that refuses may be a main that has ended: what vanished shortly before is served until it answers': [
    ...([...OF_BOTH, 'stop', gets('kept 2\napp_rows 42\n'), 'start', gets('kept 2\n')] as const),
  ],
  'an answer without a length that lacks a family may be cut: the older one stays, unless the next one confirms it': [
    ...([...ABC, replyInTurn('a 2\nb 2\n', 'a 3\n'), gets('a 2\nb 2\n'), { requests: 3 }] as const),
    ...([replyInTurn('', ''), { posts: 503 }, ENDED, 'stop', gets('a 1\nb 1\nc 1\n'), { judged: [1, 1] }] as const),
  ],
  "main's last word may lack a family and have no length: it is asked for twice, and kept": [
    ...([...ABC, AB, { posts: 200 }, 'stop', gets('a 2\nb 2\nc 1\n'), { judged: [2, 2] }] as const),
  ],
  'the last read may lack a family and have no length: it is asked for twice, and kept': [
    ...([...ABC, AB, 'lastRead', 'stop', gets('a 2\nb 2\nc 1\n'), { judged: [2, 2] }] as const),
  ],
  'an answer without a length is provisional as well where it has others than a provisional one': [
    LIVING,
    ENDED,
  ].flatMap((view): Step[] => [
    ...([...ABC, view] as const),
    ...[replyInTurn('a 2\nb 2\n', 'a 3\n'), { posts: 503 }],
    ...[replyInTurn('a 3\nb 3\n', 'b 4\n'), { posts: 503 }],
    ...[replyInTurn('a 4\n', 'a 4\nb 4\n'), { posts: 503 }],
    ...[replyUntilClosed('a 5\nb 5\nc 5\n'), { posts: 200 }, gets('a 5\nb 5\nc 5\n')],
  ]),
  'what is judged: of each entry the newest number of the answers since main was alive': [
    ...([WAITING, { judged: [] }, reply('a 1\nb 1\n'), 'poll', { judged: [1, 1] }] as const),
    // What was shown before main was alive is of another run; the newest may be the one that shows it alive.
    ...([reply('a 2\n'), 'poll', { judged: [2, 'none'] }, LIVING, { judged: [2, 'none'] }] as const),
    ...([reply('b 3\n'), 'poll', { judged: [2, 3] }] as const),
    ...([reply('a NaN\nb{c="d"} 4\nb{c="e"} 5\n'), 'poll', { judged: [Number.NaN, 'several'] }] as const),
  ],
  'what is judged: nothing of an answer that cannot be read, breaks off, or is missing': [
    ...([reply('a 1\nb 1\n'), 'poll'] as const),
    ...[
      reply('a 2\nwhat is this\n'),
      breakOff('a 2\nb 2\n'),
      reply('a 2\nb 2\n', { status: 500 }),
      reply('a 2\nb 2\n', { type: 'text/html' }),
      replyUntilClosed('a 25\nb 2'),
    ].flatMap((answer) => [answer, { posts: 503 }, { judged: [1, 1] }]),
    ...(['stop', gets('a 1\nb 1\n'), { judged: [1, 1] }] as const),
  ],
};

for (const [what, steps] of Object.entries(STORIES)) {
  test(what, async (t) => {
    const world = await openWorld(t, { selectors: JUDGED });
    for (const step of steps) await play(world, step);
  });
}

test('a read whose answer may be cut has ended when it is known what becomes of it', async (t) => {
  const world = await openWorld(t, { selectors: JUDGED });
  const { front, source, clock } = world;
  source.answer = replyUntilClosed('a 1\nb 1\n');
  await takeSnapshot(world);
  source.answer = replyUntilClosed('a 2\nb 2\n');
  clock.advance(30_000);
  await front.readExporter(NEVER);
  while ((await front.readExporter(NEVER)).observation.kind !== 'answered') await turn();
  assert.deepEqual([readNumbers(world), front.observe().answeredAtMs], [[2, 2], clock.nowMs()]);
});

test('a scraper whose time is up while an answer is being confirmed gets the snapshot', async (t) => {
  const world = await openWorld(t);
  const { front, source, clock } = world;
  source.answer = replyUntilClosed('a 1\nb 1\n');
  await takeSnapshot(world);
  front.tell(ENDED);
  source.answer = (socket, number) => {
    source.answer = hang;
    replyUntilClosed('a 2\n')(socket, number);
  };
  const scraped = scrape(front.port);
  await source.requests(3);
  clock.advance(SCRAPE_TIMEOUT_MS);
  assert.equal(withoutOwn((await scraped).text), 'a 1\nb 1\n');
});

test('of two reads without a length that end at once the one that began later is kept', async (t) => {
  const world = await openKept(t, { body: 'a 1\nb 1\n' });
  const { front, source, clock } = world;
  const sockets: Socket[] = [];
  source.answer = (socket) => sockets.push(socket);
  const older = scrape(front.port);
  await source.requests(2);
  const younger = scrape(front.port);
  await inFlight(front, 2);
  clock.advance(SILENT_READ_MS);
  await source.requests(3);
  const [olderSocket, youngerSocket] = sockets as [Socket, Socket];
  replyUntilClosed('a 3\nb 3\n')(youngerSocket, 3);
  replyUntilClosed('a 2\nb 2\n')(olderSocket, 2);
  await Promise.all([older, younger]);
  await untilKept(world, clock.nowMs());
  await source.stop();
  assert.equal(await world.page(), 'a 3\nb 3\n');
});

test('a program that refused after the end is not asked again, until main lives again', async (t) => {
  const world = await openKept(t, { body: 'a 1\n' }, ENDED);
  await world.source.stop();
  await scrape(world.front.port);
  await world.source.start();
  world.source.answer = reply('a 0\n');
  const before = world.source.requestsCount;
  assert.equal(await world.page(), 'a 1\n');
  world.clock.advance(POLL_MS);
  await world.front.readExporter(NEVER);
  // Every observation sees that it is gone.
  await turn();
  assert.equal((await world.front.readExporter(NEVER)).observation.kind, 'refused');
  assert.equal(world.source.requestsCount, before);
  world.front.tell(LIVING);
  assert.equal(await world.page(), 'a 0\n');
});

test('one whose metric is a condition is asked again: it shows that main was started again', async (t) => {
  const world = await openKept(t, { body: 'up 0\n', metricNames: ['up'] }, ENDED);
  await world.source.stop();
  await scrape(world.front.port);
  await world.source.start();
  world.source.answer = reply('up 1\n');
  assert.equal(await world.page(), 'up 0\n', 'not main yet');
  assert.deepEqual((await world.front.readExporter(NEVER)).metric('up'), { kind: 'value', value: 1 });
  world.front.tell(LIVING);
  assert.equal(await world.page(), 'up 1\n');
});

test('a file is text for any Accept; one that is missing after the end is asked for again', async (t) => {
  const folder = makeFolder();
  const path = join(folder, 'job.prom');
  const world = await openWorld(t, { url: pathToFileURL(path) });
  assert.equal((await scrape(world.front.port)).status, 503);
  writeFileSync(path, 'a 0\n');
  const { headers } = await scrape(world.front.port, { headers: { accept: 'application/openmetrics-text' } });
  assert.equal(headers['content-type'], 'text/plain; version=0.0.4; charset=utf-8');
  rmSync(path);
  world.front.tell(ENDED);
  assert.equal(await world.page(), 'a 0\n');
  writeFileSync(path, 'a 1\n');
  assert.equal(await world.page(), 'a 1\n');
  writeFileSync(path, 'a 2');
  const last = await scrape(world.front.port);
  assert.deepEqual([withoutOwn(last.text), readValue(last.text, 'lastscrape_source_up')], ['a 1\n', 0]);
});

test('an answer that itself shows the end takes with it what has vanished', async (t) => {
  const world = await openKept(t, { metricNames: ['up'], body: 'up 1\nusers 50\n' });
  world.source.answer = reply('up 0\n');
  await takeSnapshot(world);
  await world.source.stop();
  assert.equal(await world.page(), 'up 0\nusers 50\n');
});

test('lastscrape_scrapes_total counts scrapes that were handed over, of those who count', async (t) => {
  const world = await openWorld(t);
  const { front } = world;
  const count = async () => {
    const { text } = await scrape(front.port);
    await takeScrape(world);
    return readValue(text, 'lastscrape_scrapes_total');
  };
  assert.equal(await count(), 0);
  assert.equal(await count(), 1);
  await scrape(front.port, { method: 'HEAD' });
  await scrape(front.port, { path: '/other' });
  assert.equal(await count(), 2);
});

test('what is shown of a moment does not move when the wall clock is set', async (t) => {
  let offset = 0;
  const world = await openKept(t, { toUnixSeconds: (atMs) => offset + atMs / 1000 }, ENDED);
  await world.source.stop();
  const own = async () => OWN.exec((await scrape(world.front.port)).text)?.[0].replace(/^lastscrape_scrapes.*\n/m, '');
  const before = await own();
  offset = -3_600;
  world.front.tell({ ...ENDED });
  assert.equal(await own(), before);
});

test('a scraper whose time is up gets the snapshot, and a hook why not, though another one waits longer for the same read', async (t) => {
  const world = await openKept(t, { body: 'a 1\n' }, ENDED);
  const { front, source, clock } = world;
  const asked = source.requestsCount;
  // All wait behind a first one, so that they share a read.
  source.answer = hang;
  const first = new AbortController();
  const before = scrape(front.port, { signal: first.signal }).catch(() => {});
  await source.requests(asked + 1);
  const shorter = scrape(front.port, { headers: { 'x-prometheus-scrape-timeout-seconds': '5' } });
  const posted = world.post();
  const longer = scrape(front.port, { headers: { 'x-prometheus-scrape-timeout-seconds': '60' } });
  // Their requests are there before the first one gives up: it came over an older connection.
  await scrape(front.port, { path: '/-/ready' });
  source.answer = (socket) => {
    socket.write('HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 8\r\n\r\na 2\n');
  };
  first.abort();
  await before;
  clock.advance(OWN_READ_MS);
  await source.requests(asked + 2);
  await new Promise((resolve) => setTimeout(resolve, 50));
  clock.advance(4_500 - OWN_READ_MS);
  assert.equal(withoutOwn((await shorter).text), 'a 1\n');
  clock.advance(10_500);
  assert.deepEqual([(await posted).status, (await posted).text], [503, 'timed out\n']);
  clock.advance(45_000);
  assert.equal(withoutOwn((await longer).text), 'a 1\n');
});

test('an older number is not served while a newer one is being kept', async (t) => {
  // Large enough that finding what has vanished takes turns of the event loop.
  const rows = Array.from({ length: 60_000 }, (_, row) => `kept{row="${row}"} 1\n`).join('');
  const world = await openKept(t, { body: `gone 1\n${rows}a 1\n` }, ENDED);
  world.source.answer = reply(`${rows}a 2\n`);
  const before = world.source.requestsCount;
  world.clock.advance(30_000);
  void world.front.readExporter(NEVER);
  await world.source.requests(before + 1);
  // Asked for after that read, and refused while what it found is being kept.
  const { text } = await (async () => {
    const scraped = scrape(world.front.port);
    world.source.answer = (socket) => socket.destroy();
    return scraped;
  })();
  assert.equal(readValue(text, 'a'), 2);
});

test('polls: begun by an observation, left out where a scrape read the source within the last POLL, and made up then', async (t) => {
  const world = await openWorld(t);
  const { front, source, clock } = world;
  await front.readExporter(NEVER);
  await untilKept(world, clock.nowMs());
  clock.advance(400);
  await scrape(front.port);
  clock.advance(600);
  // 600 ms after the scrape.
  assert.equal((await front.readExporter(NEVER)).observation.kind, 'answered');
  assert.equal(source.requestsCount, 2);
  // The next observation would come up to two POLLs after the scrape.
  clock.advance(400);
  await source.requests(3);
});

test('polls continue while scrapers give up at once', async (t) => {
  const world = await openKept(t, { metricNames: ['up'], body: 'up 1\n' });
  const { front, source, clock } = world;
  source.answer = hang;
  clock.advance(5_000);
  const before = source.requestsCount;
  for (let turn = 0; turn < 3; turn++) {
    const scraped = scrape(front.port, { headers: { 'x-prometheus-scrape-timeout-seconds': '0.6' } });
    await inFlight(front, 1);
    clock.advance(300);
    assert.equal((await scraped).status, 503);
    await inFlight(front, 0);
  }
  await source.requests(before + 1);
  source.answer = reply('up 0\n');
  clock.advance(SILENT_READ_MS);
  assert.equal((await front.readExporter(AbortSignal.abort('interrupted'))).observation.kind, 'none');
  await source.requests(before + 2);
  await untilKept(world, clock.nowMs());
  // Nor does this read hide what was seen.
  source.answer = hang;
  await scrapeTooLong(world);
  assert.deepEqual((await front.readExporter(NEVER)).metric('up'), { kind: 'value', value: 0 });
});

test('a scrape that waits for a source that hangs gets the snapshot before the hold ends without it', async (t) => {
  const world = await openKept(t, { body: 'a 1\n' });
  const { front, source, clock } = world;
  source.answer = hang;
  const before = source.requestsCount;
  const scraped = scrape(front.port);
  await source.requests(before + 1);
  front.tell({ ...ENDED, holdOverAtMs: clock.nowMs() });
  const answered: unknown[] = [];
  scraped.then((answer) => answered.push(answer));
  clock.advance(LAST_WAIT_MS - 1);
  front.tell({ ...ENDED, holdOverAtMs: clock.nowMs() - LAST_WAIT_MS + 1 });
  await scrape(front.port, { path: '/-/ready' });
  assert.equal(answered.length, 0);
  clock.advance(1);
  assert.equal(withoutOwn((await scraped).text), 'a 1\n');
});

test('a scraper that sends no time-out waits 15 s, and 4 s where it then gets the snapshot', async (t) => {
  const world = await openWorld(t, { body: 'a 1\n' });
  const { front, source, clock } = world;
  const headers = { 'user-agent': 'Telegraf/1.30.0 Go/1.22.2' };
  const scrapeFor = async (waitMs: number) => {
    const before = source.requestsCount;
    const scraped = scrape(front.port, { headers, isScraper: false });
    await source.requests(before + 1);
    const answered: unknown[] = [];
    scraped.then((answer) => answered.push(answer));
    clock.advance(waitMs - 1);
    await scrape(front.port, { path: '/-/ready' });
    assert.equal(answered.length, 0);
    clock.advance(1);
    const { status, text } = await scraped;
    clock.advance(30_000);
    return [status, withoutOwn(text)];
  };
  source.answer = hang;
  front.tell(ENDED);
  assert.deepEqual(await scrapeFor(15_000), [503, 'the source cannot be read: timed out\n'], 'no snapshot');
  source.answer = reply('a 1\n');
  await takeSnapshot(world);
  source.answer = hang;
  assert.deepEqual(await scrapeFor(4_000), [200, 'a 1\n']);
  front.tell(LIVING);
  assert.deepEqual(await scrapeFor(15_000), [503, 'the source cannot be read: timed out\n']);
});

test('one request that hangs keeps neither another scraper nor a poll from what is newest', async (t) => {
  const world = await openWorld(t, { metricNames: ['a'] });
  const { front, source, clock } = world;
  const interrupted = AbortSignal.abort('interrupted');
  let hanging: Socket | undefined;
  source.answer = (socket) => {
    hanging = socket;
  };
  const patient = scrape(front.port, { headers: { 'x-prometheus-scrape-timeout-seconds': '30' } });
  await source.requests(1);
  source.answer = reply('a 2\n');
  clock.advance(1_000);
  const other = scrape(front.port);
  await inFlight(front, 2);
  clock.advance(SILENT_READ_MS - 1_000);
  assert.equal(withoutOwn((await other).text), 'a 2\n');
  source.answer = reply('a 3\n');
  clock.advance(POLL_MS);
  const readAtMs = clock.nowMs();
  await front.readExporter(interrupted);
  await untilKept(world, readAtMs);
  // What began before is older than what is kept, and is served to the one who waited for it only.
  reply('a 1\n')(hanging as Socket, 1);
  assert.equal(withoutOwn((await patient).text), 'a 1\n');
  await inFlight(front, 0);
  assert.equal(front.observe().answeredAtMs, readAtMs);
  assert.deepEqual((await front.readExporter(interrupted)).metric('a'), { kind: 'value', value: 3 });
  front.tell(ENDED);
  source.answer = (socket) => {
    hanging = socket;
  };
  const late = scrape(front.port, { headers: { 'x-prometheus-scrape-timeout-seconds': '30' } });
  await source.requests(4);
  source.answer = reply('a 5\n');
  clock.advance(SILENT_READ_MS);
  const newer = scrape(front.port);
  assert.equal(withoutOwn((await newer).text), 'a 5\n');
  reply('a 4\n')(hanging as Socket, 1);
  assert.equal(withoutOwn((await late).text), 'a 5\n', 'no number goes back after the end');
});

test('an observation waits for the read of a metric, for a POLL at most, and not at all without one', async (t) => {
  const world = await openWorld(t, { metricNames: ['up'], body: 'up 1\n' });
  assert.deepEqual((await world.front.readExporter(NEVER)).metric('up'), { kind: 'value', value: 1 });
  world.source.answer = hang;
  world.clock.advance(POLL_MS);
  const reading = world.front.readExporter(NEVER);
  await world.source.requests(2);
  world.clock.advance(POLL_MS);
  assert.equal((await reading).observation.kind, 'none');
  const interrupted = new AbortController();
  const again = world.front.readExporter(interrupted.signal);
  interrupted.abort('interrupted');
  assert.equal((await again).observation.kind, 'none');
  const other = await openWorld(t);
  other.source.answer = hang;
  assert.equal((await other.front.readExporter(NEVER)).observation.kind, 'none');
});

test('a fresh observation reads whatever POLL says, by a read that begins after it, and sees what was kept', async (t) => {
  const world = await openWorld(t, { selectors: [{ name: 'a', labels: [] }], body: 'a 1\n' });
  const { front, source } = world;
  await scrape(front.port);
  source.answer = hang;
  void scrape(front.port).catch(() => null);
  await source.requests(2);
  const fresh = front.readExporter(NEVER, 'last');
  source.answer = reply('a 2\n');
  world.clock.advance(9_500);
  assert.deepEqual((await fresh).observation.kind, 'answered');
  assert.deepEqual(front.observe().thresholds, [{ kind: 'value', value: 2 }]);
  assert.equal(source.requestsCount, 3);
});

test('POST /-/snapshot reads at once, by a read that begins after it, and says why it could not be kept', async (t) => {
  const world = await openWorld(t, { body: 'a 1\n' });
  const { front, source, clock } = world;
  const post = () => world.post();
  const kept = await post();
  assert.deepEqual([kept.status, kept.text], [200, 'kept\n']);
  assert.notEqual(front.observe().answeredAtMs, null);
  // One that comes while a read is on its way waits for the next one.
  const asked = source.requestsCount;
  const held = Promise.withResolvers<Socket>();
  source.answer = held.resolve;
  const scraped = scrape(front.port);
  const socket = await held.promise;
  source.answer = reply('a 3\n');
  const posted = post();
  await scrape(front.port, { path: '/-/ready' });
  reply('a 2\n')(socket, 0);
  await scraped;
  assert.equal((await posted).status, 200);
  assert.equal(source.requestsCount, asked + 2);

  for (const [answer, why] of [
    [reply('a 4\n', { status: 404 }), /HTTP 404/],
    [reply('a 4\nb\n'), /a line that Prometheus refuses: "b"/],
    [breakOff('a 4\n'), /closed|ended|terminated/],
  ] as const) {
    source.answer = answer;
    const { status, text } = await post();
    assert.equal(status, 503);
    assert.match(text, why);
  }
  source.answer = hang;
  const before = source.requestsCount;
  const late = post();
  await source.requests(before + 1);
  clock.advance(15_000);
  assert.deepEqual([(await late).status, (await late).text], [503, 'the source cannot be read: timed out\n']);
  await source.stop();
  const gone = await post();
  assert.deepEqual([gone.status, gone.text], [503, 'the source is not there\n']);
  assert.equal(await world.page(), 'a 3\n');
});

test('onEvent() calls once there is an event, at once where there is one already, and not after it was cancelled', async (t) => {
  const world = await openWorld(t);
  const { front } = world;
  let calls = 0;
  const called = Promise.withResolvers<void>();
  const count = () => {
    calls++;
    called.resolve();
  };
  const cancel = front.onEvent(count);
  await scrape(front.port);
  await called.promise;
  cancel();
  assert.equal((await takeScrape(world)).scrape.served, 'live');
  front.onEvent(count)();
  await scrape(front.port);
  await takeScrape(world);
  assert.deepEqual([calls, front.takeEvent()], [1, null]);
});

test('close() ends scrapes, polls and snapshot calls that wait, and leaves no timer', async (t) => {
  const { front, source, clock } = await openWorld(t);
  await scrape(front.port, { agent: new Agent({ keepAlive: true }) });
  await front.readExporter(NEVER);
  source.answer = hang;
  const waiting = [
    scrape(front.port),
    scrape(front.port),
    scrape(front.port, { method: 'POST', path: '/-/snapshot' }),
  ].map((each) => each.catch((error: Error) => error));
  await source.requests(2);
  clock.advance(POLL_MS);
  await front.readExporter(NEVER);
  await front.close();
  for (const each of waiting) assert.ok((await each) instanceof Error);
  await turn();
  assert.equal(clock.timerCount, 0);
  await front.close();
});

function openPushFront(port: number | string, clock: VirtualClock) {
  return openFront({
    at: { host: '127.0.0.1', port: 0 },
    url: new URL(`pushgateway://127.0.0.1:${port}`),
    metricNames: [],
    pollMs: POLL_MS,
    ttlMs: 90_000,
    clock,
    toUnixSeconds: (atMs) => atMs / 1000,
    log: (entry) => assert.fail(entry.id),
  });
}

test('what is pushed is on the page at once, after the end too, and what is deleted until its scraper has taken it', async (t) => {
  const clock = new VirtualClock(1_000);
  const port = await findFreePort();
  const opened = await openPushFront(port, clock);
  assert.ok(opened.kind === 'open');
  const { front } = opened;
  t.after(front.close);
  let scrapers = NO_SCRAPERS;
  const put = async (method: string, body?: string) => {
    clock.advance(1_000);
    const options = { method, ...(body !== undefined && { body }) };
    return (await fetch(`http://127.0.0.1:${port}/metrics/job/j`, options)).status;
  };
  const get = async () => {
    clock.advance(1_000);
    const { text } = await scrape(front.port);
    scrapers = addScrape(scrapers, (await takeScrape({ front })).scrape);
    front.tell(LIVING, scrapers);
    return [readValue(text, 'lastscrape_source_up'), /^rows\{.*\} (.*)$/m.exec(text)?.[1]];
  };
  front.tell(LIVING);
  assert.deepEqual(await get(), [1, undefined]);
  assert.equal(await put('PUT', 'rows 1\n'), 200);
  assert.deepEqual(await get(), [1, '1']);
  assert.equal(await put('POST', 'rows 2\n'), 200);
  assert.equal(await put('DELETE'), 202);
  assert.deepEqual(front.observe().pushes, {
    changedAtMs: 5_000,
    takenCount: 2,
    refusedCount: 0,
    droppedCount: 0,
    why: '',
  });
  assert.deepEqual(await get(), [1, '2']);
  assert.deepEqual(await get(), [1, undefined]);
  front.tell(ENDED, scrapers);
  assert.equal(await put('PUT', 'rows 3\n'), 200);
  assert.deepEqual(await get(), [1, '3']);
  assert.equal(await put('PUT', 'rows 4\n'), 200);
  await front.retire();
  await assert.rejects(put('PUT', 'rows 5\n'));
  assert.match(await readNewest({ front }), /^rows\{.*\} 4$/m, 'what a push sends');
});

test('a port of pushes that is taken is a problem of its own', async (t) => {
  const { source, clock } = await openWorld(t);
  const opened = await openPushFront(source.url.port, clock);
  assert.deepEqual(opened.kind === 'failed' && opened.variable, 'LASTSCRAPE_METRICS_URL');
});

for (const view of [LIVING, ENDED]) {
  test(`what is judged: what a scrape got, by the time it is reported (main ${view.main})`, async (t) => {
    const world = await openKept(t, { selectors: JUDGED, body: 'a 1\nb 1\n' }, view);
    const { front, source } = world;
    source.answer = reply('a 2\n');
    await scrape(front.port);
    assert.deepEqual((await takeScrape(world)).front.thresholds, [
      { kind: 'value', value: 2 },
      { kind: 'value', value: 1 },
    ]);
  });
}

test('a program that is restarted after the end of main: its numbers are served, kept and judged for nothing', async (t) => {
  const show = (a: number, scrapesCount: number) =>
    `a ${a}\nb 1\npromhttp_metric_handler_requests_total{code="200"} ${scrapesCount}\npromhttp_metric_handler_requests_in_flight 1\n`;
  const world = await openKept(t, { selectors: JUDGED, body: show(7, 100) }, ENDING);
  const { front, source, clock } = world;
  source.answer = reply(show(8, 101));
  await takeSnapshot(world);
  const keptAtMs = clock.nowMs();
  // Between two polls: nothing refused.
  source.answer = reply(show(0, 1));
  for (const view of [ENDING, ENDED]) {
    front.tell(view);
    clock.advance(30_000);
    const { text } = await scrape(front.port);
    assert.deepEqual([withoutOwn(text), readValue(text, 'lastscrape_source_up')], [show(8, 101), 0]);
    const { served, readAtMs, isByRefusal } = (await takeScrape(world)).scrape;
    assert.deepEqual({ served, readAtMs, isByRefusal }, { served: 'snapshot', readAtMs: keptAtMs, isByRefusal: false });
    assert.deepEqual(readNumbers(world), [8, 1]);
    assert.equal(front.observe().answeredAtMs, keptAtMs);
  }
  const { status, text } = await world.post();
  assert.deepEqual([status, text], [503, 'the source was restarted after main ended, and counts from 0\n']);
  front.tell(LIVING);
  assert.equal(await world.page(), show(0, 1));
  await takeSnapshot(world);
  assert.deepEqual(readNumbers(world), [0, 1], 'main lives again, and so do its numbers');
});

const START = 'process_start_time_seconds';

/** Scrapes as one scraper, and tells the front who scrapes, as the loop does. */
function openScraper(world: World, view: () => MainView) {
  let facts = NO_SCRAPERS;
  let countedCount = 0;
  const take = () => {
    for (let event = world.front.takeEvent(); event; event = world.front.takeEvent()) {
      if (event.kind === 'requested') facts = addRequest(facts, event.request).front;
      if (event.kind === 'scraped') {
        countedCount++;
        facts = addScrape(facts, event.scrape);
      }
    }
    world.front.tell(view(), facts);
  };
  const scrapeOnce = async () => {
    const before = countedCount;
    const { text } = await scrape(world.front.port);
    // Its answer is an event a moment after it was taken.
    for (let turns = 0; turns < 50; turns++) await turn();
    take();
    return { rows: readValue(text, 'job_rows_total'), isCounted: countedCount > before };
  };
  return { scrapeOnce, tell: take };
}

for (const [what, endsEarly] of [
  ['while the next one lives', false],
  ['after main has ended as well, and does not count as its last numbers', true],
] as const) {
  test(`a page that a program asked to keep is served once to each scraper, ${what}`, async (t) => {
    const world = await openKept(t, { body: 'job_rows_total 40\n' });
    const { source, clock, post } = world;
    let view: MainView = LIVING;
    const { scrapeOnce, tell } = openScraper(world, () => view);
    assert.equal((await scrapeOnce()).rows, 40);
    source.answer = reply(`job_rows_total 100\n${START} 1\n`);
    assert.equal((await post()).status, 200);
    const calledAtMs = world.front.observe().calledAtMs;
    source.answer = reply(`job_rows_total 7\n${START} 2\n`);
    await takeSnapshot(world);
    assert.deepEqual([typeof calledAtMs, world.front.observe().calledAtMs], ['number', undefined]);
    if (endsEarly) {
      view = { ...ENDED, endedAtMs: clock.nowMs() };
      tell();
      await source.stop();
    }
    assert.deepEqual(await scrapeOnce(), { rows: 100, isCounted: !endsEarly });
    assert.deepEqual(await scrapeOnce(), { rows: 7, isCounted: true });
  });
}

test('the last page says for how long before the end changes may be missing, and that none are after a call', async (t) => {
  const world = await openKept(t, { body: 'job_rows_total 40\n' });
  const readMisses = async () => readValue((await scrape(world.front.port)).text, 'lastscrape_may_miss_seconds');
  await takeSnapshot(world);
  const endedAtMs = world.clock.nowMs() + 700;
  assert.equal(await readMisses(), undefined);
  await world.source.stop();
  world.front.tell({ ...ENDED, endedAtMs });
  assert.equal(await readMisses(), 0.7);
  world.front.tell(LIVING);
  await world.source.start();
  assert.equal((await world.post()).status, 200);
  await world.source.stop();
  world.front.tell({ ...ENDED, endedAtMs });
  assert.equal(await readMisses(), 0);
});

test('a scrape that is the first to see the next program gets the page that the one before asked to keep', async (t) => {
  const world = await openKept(t, { body: `job_rows_total 40\n${START} 1\n` });
  const { scrapeOnce } = openScraper(world, () => LIVING);
  assert.equal((await scrapeOnce()).rows, 40);
  assert.equal((await world.post()).status, 200);
  assert.equal((await scrapeOnce()).rows, 40);
  world.source.answer = reply(`job_rows_total 7\n${START} 2\n`);
  const rows: (number | undefined)[] = [];
  for (let count = 0; count < 3; count++) rows.push((await scrapeOnce()).rows);
  assert.deepEqual(rows, [40, 7, 7]);
});

test('what has vanished from an exporter that outlives main may miss what changed since it was last read', async (t) => {
  const world = await openKept(t, { body: 'job_rows_total 40\nup 1\n' });
  await takeSnapshot(world);
  const endedAtMs = world.clock.nowMs() + 700;
  world.source.answer = reply('up 1\n');
  world.front.tell({ ...ENDED, endedAtMs });
  world.clock.advance(5_000);
  const { text } = await scrape(world.front.port);
  assert.deepEqual([readValue(text, 'job_rows_total'), readValue(text, 'lastscrape_may_miss_seconds')], [40, 0.7]);
});

test('an observation says why the newest read failed: the status, the refusal, the line', async (t) => {
  const world = await openKept(t, { body: 'job_rows_total 40\n' });
  const { front, source } = world;
  const readWhy = async () => {
    await scrape(front.port);
    for (let turns = 0; turns < 50; turns++) await turn();
    return front.observe().unreadWhy;
  };
  assert.equal(await readWhy(), undefined);
  source.answer = reply('no', { status: 404 });
  assert.equal(await readWhy(), 'HTTP 404');
  source.answer = reply('job_rows_total forty\n');
  assert.match((await readWhy()) ?? '', /^a line that Prometheus refuses/);
  await source.stop();
  assert.equal(await readWhy(), 'connection refused');
});

test('a program that goes on after it asked to keep its page is served live', async (t) => {
  const world = await openKept(t, { body: 'job_rows_total 40\n' });
  const { source, post } = world;
  const { scrapeOnce } = openScraper(world, () => LIVING);
  await scrapeOnce();
  await post();
  source.answer = reply('job_rows_total 50\n');
  await takeSnapshot(world);
  assert.equal((await scrapeOnce()).rows, 50);
});

test('a page that was kept stays where its program was seen to be gone before the next one came', async (t) => {
  const world = await openKept(t, { body: 'job_rows_total 100\n' });
  const { source, front, clock, post } = world;
  const { scrapeOnce } = openScraper(world, () => LIVING);
  await scrapeOnce();
  await post();
  await source.stop();
  clock.advance(30_000);
  while ((await front.readExporter(NEVER)).observation.kind !== 'refused') await turn();
  await source.start();
  source.answer = reply('job_rows_total 7\n');
  assert.deepEqual([(await scrapeOnce()).rows, (await scrapeOnce()).rows], [100, 7]);
});

test('a page that the last program asked to keep is its last: it counts at once', async (t) => {
  const world = await openKept(t, { body: 'job_rows_total 40\n' });
  const { source, clock, post } = world;
  let view: MainView = LIVING;
  const { scrapeOnce, tell } = openScraper(world, () => view);
  await scrapeOnce();
  source.answer = reply('job_rows_total 100\n');
  await post();
  await source.stop();
  view = { ...ENDED, endedAtMs: clock.nowMs() };
  tell();
  assert.deepEqual(await scrapeOnce(), { rows: 100, isCounted: true });
});

test('what vanished between the end and a look that comes 10 s later is served, and not what went long before', async (t) => {
  for (const [agoMs, expected] of [
    [9_000, 'a 2\nb 1\n'],
    [12_000, 'a 2\n'],
  ] as const) {
    const world = await openKept(t, { body: 'a 1\nb 1\n', pollMs: 10_000 });
    const { source, front, clock } = world;
    source.answer = reply('a 2\n');
    await world.page();
    clock.advance(agoMs);
    front.tell(ENDING);
    await source.stop();
    front.tell(ENDED);
    assert.equal(await world.page(), expected);
  }
});
