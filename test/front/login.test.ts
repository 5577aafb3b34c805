// A program whose page asks for a login: scrapers bring theirs, and nobody sees what he could not have had.

import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type TestContext, test } from 'node:test';
import type { LogEntry } from '../../src/decide/messages.ts';
import { TEXT_ACCEPT } from '../../src/decide/serve/budget.ts';
import { ENDED, openWorld, turn } from './front-world.ts';
import { scrape } from './source.ts';

const [ALICE, BOB, EVE] = ['alice', 'bob', 'eve'].map((name) => `Bearer ${name}`);
const OPEN_METRICS = 'application/openmetrics-text;version=1.0.0';
const ASKS = [[ALICE], [BOB, OPEN_METRICS], [EVE], [EVE, OPEN_METRICS], []] as const;

type MayRead = (authorization: string | undefined) => boolean;

async function openProgram(t: TestContext, mayRead: MayRead) {
  const program = { mayRead, logins: new Set<string | undefined>() };
  const server = createServer(({ headers: { authorization, accept } }, response) => {
    program.logins.add(authorization);
    const type = accept === OPEN_METRICS ? OPEN_METRICS : 'text/plain; version=0.0.4';
    response.writeHead(program.mayRead(authorization) ? 200 : 401, { 'content-type': type });
    response.end(`rows{by="${authorization?.slice(7)}"} 1\n${accept === OPEN_METRICS ? '# EOF\n' : ''}`);
  });
  const stop = () => new Promise((resolve) => server.close(resolve).closeAllConnections());
  t.after(stop);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}/metrics`);
  const log: LogEntry[] = [];
  const world = await openWorld(t, { url, log: (entry) => log.push(entry) });
  const { front } = world;
  async function ask(authorization?: string, accept = TEXT_ACCEPT) {
    const { status, text } = await scrape(front.port, { headers: { accept, ...(authorization && { authorization }) } });
    const by = /^rows\{by="(.*)"\}/m.exec(text)?.[1];
    return status === 200 ? by + (text.includes('# EOF') ? ' om' : '') : status;
  }
  async function end() {
    front.tell(ENDED);
    await stop();
  }
  return { ...world, program, log, ask, end };
}

for (const isPrivate of [true, false]) {
  test(isPrivate ? 'a page behind a login' : 'a page that all may see, of scrapers with a login', async (t) => {
    const mayRead: MayRead = (login) => !isPrivate || login === ALICE || login === BOB;
    const { front, ask, post, program, log, end } = await openProgram(t, mayRead);
    const askAll = async () => {
      const got = [];
      for (const [login, accept] of ASKS) got.push(await ask(login, accept));
      return got;
    };
    const all = ASKS.map(([, accept]) => (accept ? 'undefined om' : 'undefined'));
    const wanted = isPrivate ? ['alice', 'bob om', 503, 503, 503] : all;

    assert.equal((await post()).status, isPrivate ? 503 : 200);
    assert.deepEqual(await askAll(), wanted, 'while main lives');
    assert.equal((await post()).status, 200);
    await end();
    assert.deepEqual(await askAll(), wanted, 'after its end');
    assert.equal(await ask(ALICE, OPEN_METRICS), isPrivate ? 'alice' : 'undefined om', 'in another format');
    assert.equal((await front.lastPages()).length, isPrivate ? 0 : 2, 'a keeper shows its pages to everybody');
    assert.equal(program.logins.size > 1, isPrivate);
    assert.doesNotMatch(JSON.stringify(log), /Bearer/);
  });
}

test('a login that is right once main has ended gets what the source still answers', async (t) => {
  const { front, ask } = await openProgram(t, (login) => login !== undefined);
  assert.equal(await ask(ALICE), 503);
  assert.deepEqual(await ask(ALICE), 'alice');
  front.tell(ENDED);
  assert.deepEqual(await ask(BOB), 'bob');
  assert.equal(await ask(), 503);
  for (const login of ['Bearer 3', 'Bearer 4']) assert.notEqual(await ask(login), 503);
  assert.equal(await ask('Bearer 5'), 503, 'four have room');
});

test('a public page keeps its format for a scraper with a login where main refused it once', async (t) => {
  const { program, ask, end } = await openProgram(t, () => true);
  for (const accept of [TEXT_ACCEPT, OPEN_METRICS]) await ask(ALICE, accept);
  program.mayRead = () => false;
  assert.equal(await ask(ALICE, OPEN_METRICS), 503);
  await end();
  assert.deepEqual(await ask(ALICE, OPEN_METRICS), 'undefined om');
});

test('a page that was private for a moment is public again, also for a login that main refuses', async (t) => {
  const { front, program, ask, post, end } = await openProgram(t, () => false);
  assert.equal(await ask(ALICE), 503);
  program.mayRead = (login) => login === undefined;
  assert.equal((await post()).status, 200);
  assert.deepEqual(await ask(ALICE), 'undefined');
  await end();
  assert.equal((await front.lastPages()).length, 1, 'for a keeper');
});

test('a login that main refused once is tried again for a call of /-/snapshot', async (t) => {
  const { program, ask, post } = await openProgram(t, (login) => login === ALICE);
  for (const got of [503, 'alice']) assert.equal(await ask(ALICE), got);
  program.mayRead = () => false;
  assert.equal(await ask(ALICE), 503);
  program.mayRead = (login) => login === ALICE;
  assert.equal((await post()).status, 200);
});

test('a scraper that is shown no page is not waited for', async (t) => {
  const { front, ask } = await openProgram(t, (login) => login === ALICE || login === BOB);
  async function takeScrape(login?: string) {
    await ask(login);
    const kinds: string[] = [];
    for (; kinds.at(-1) !== 'scraped'; await turn()) kinds.push(front.takeEvent()?.kind ?? 'none');
    return kinds.filter((kind) => kind !== 'none');
  }
  await ask();
  assert.equal(front.takeEvent()?.kind, 'requested', 'nothing is kept yet');
  assert.equal((await takeScrape(ALICE))[0], 'requested');
  for (const login of [undefined, EVE]) await ask(login);
  assert.equal(front.takeEvent(), null);
  assert.deepEqual(await takeScrape(BOB), ['requested', 'scraped'], 'it is known now');
});
