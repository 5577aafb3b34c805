import assert from 'node:assert/strict';
import { rmSync, writeFileSync } from 'node:fs';
import { Agent } from 'node:http';
import type { Socket } from 'node:net';
import { join } from 'node:path';
import { test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { addScrape, NO_SCRAPERS } from '../../src/decide/serve/scrapers.ts';
import type { FrontEvent } from '../../src/decide/state.ts';
import { openFront } from '../../src/front/front.ts';
import { makeFolder } from '../support/folder.ts';
import { findFreePort } from '../support/listen.ts';
import { VirtualClock } from '../support/virtual-clock.ts';
import {
  ENDED,
  LIVING,
  NEVER,
  openWorld,
  POLL_MS,
  readNewest,
  takeSnapshot,
  turn,
  type World,
  withoutOwn,
} from './front-world.ts';
import { openRawClient } from './raw-client.ts';
import { hang, readValue, reply, scrape } from './source.ts';

type Scraped = Extract<FrontEvent, { readonly kind: 'scraped' }>;

/** The next scrape that was handed over, a moment after the client has all of it. */
async function takeScrape({ front }: Pick<World, 'front'>): Promise<Scraped> {
  for (;;) {
    await new Promise<void>((resolve) => void front.onEvent(resolve));
    const event = front.takeEvent();
    if (event?.kind === 'scraped') return event;
  }
}

test('living and answers: the very bytes, while they come', async (t) => {
  const { front, source } = await openWorld(t);
  const sent = Promise.withResolvers<Socket>();
  source.answer = (socket) => {
    socket.write('HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\n5\r\na 1\r\n\r\n');
    sent.resolve(socket);
  };
  const client = await openRawClient(front.port);
  client.send('GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n');
  const socket = await sent.promise;
  // The source has not ended its answer yet.
  while (!client.received().includes('a 1')) await turn();
  socket.write('4\r\nb 2\n\r\n0\r\n\r\n');
  const { body } = await client.readAnswer();
  assert.match(body.toString(), /^a 1\r\nb 2\n# HELP lastscrape_source_up /);
  client.socket.destroy();
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

test('an older number is not served while a newer one is being kept', async (t) => {
  // Large enough that finding what has vanished takes turns of the event loop.
  const rows = Array.from({ length: 60_000 }, (_, row) => `kept{row="${row}"} 1\n`).join('');
  const world = await openWorld(t, { body: `gone 1\n${rows}a 1\n` });
  await takeSnapshot(world);
  world.front.tell(ENDED);
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
  await scrape(front.port, { method: 'POST', path: '/-/snapshot' });
  await scrape(front.port);
  assert.equal(world.source.connectionsCount(), 2, 'main may wait for that of the call while its server closes');
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

for (const livingCount of [1, 0]) {
  test(`of pages of calls the newest four are owed, as they were, where ${livingCount} lived`, async (t) => {
    const world = await openWorld(t, { body: 'extracted 1\n' });
    const { front, source, post } = world;
    let scrapers = NO_SCRAPERS;
    if (livingCount > 0) {
      await scrape(front.port);
      scrapers = addScrape(scrapers, (await takeScrape(world)).scrape);
    }
    front.tell(LIVING, scrapers);
    for (let start = 1; start <= 6; start++) {
      source.answer = reply(`extracted 1\nprocess_start_time_seconds ${start}\n`);
      await post();
    }
    for (const rows of [1, 2]) {
      source.answer = reply(`loaded ${rows}\nprocess_start_time_seconds 7\n`);
      await takeSnapshot(world);
    }
    const { hasOwedPage, lostCallsCount } = front.observe();
    assert.deepEqual({ hasOwedPage, lostCallsCount }, { hasOwedPage: true, lostCallsCount: 2 });
    assert.match(await world.page(), /^extracted 1\nprocess.* 3\n$/);
  });
}

test('a program that called is seen to be gone before a read is due: the next serves another page', async (t) => {
  const world = await openWorld(t, { body: 'rows 40\n' });
  const { front, source, post, page } = world;
  await post();
  const { requestsCount } = source;
  await front.readExporter(NEVER);
  await source.stop();
  await front.readExporter(NEVER);
  source.answer = reply('rows 60\n');
  await source.start();
  await front.readExporter(NEVER);
  assert.equal(source.requestsCount, requestsCount);
  assert.deepEqual([await page(), await page()], ['rows 40\n', 'rows 60\n']);
});
