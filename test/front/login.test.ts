// A program whose page asks for a login: scrapers bring theirs, and nobody sees what he could not have had.

import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { test } from 'node:test';
import type { LogEntry } from '../../src/decide/messages.ts';
import { TEXT_ACCEPT } from '../../src/decide/serve/budget.ts';
import { ENDED, openWorld } from './front-world.ts';
import { scrape } from './source.ts';

const [ALICE, BOB, EVE] = ['alice', 'bob', 'eve'].map((name) => `Bearer ${name}`);
const OPEN_METRICS = 'application/openmetrics-text;version=1.0.0';
const ASKS = [[ALICE], [BOB, OPEN_METRICS], [EVE], [EVE, OPEN_METRICS], []] as const;

for (const isPrivate of [true, false]) {
  test(isPrivate ? 'a page behind a login' : 'a page that all may see, of scrapers with a login', async (t) => {
    let gotLogin = false;
    const program = createServer(({ headers: { authorization, accept } }, response) => {
      gotLogin ||= authorization !== undefined;
      const isIn = !isPrivate || authorization === ALICE || authorization === BOB;
      const type = accept === OPEN_METRICS ? OPEN_METRICS : 'text/plain; version=0.0.4';
      response.writeHead(isIn ? 200 : 401, { 'content-type': type });
      response.end(`rows{by="${authorization?.slice(7)}"} 1\n${accept === OPEN_METRICS ? '# EOF\n' : ''}`);
    });
    const stop = () => new Promise((resolve) => program.close(resolve).closeAllConnections());
    t.after(stop);
    await new Promise<void>((resolve) => program.listen(0, '127.0.0.1', resolve));
    const url = new URL(`http://127.0.0.1:${(program.address() as AddressInfo).port}/metrics`);
    const log: LogEntry[] = [];
    const { front, post } = await openWorld(t, { url, log: (entry) => log.push(entry) });
    const ask = async (authorization: string | undefined, accept = TEXT_ACCEPT) => {
      const { status, text } = await scrape(front.port, {
        headers: { accept, ...(authorization && { authorization }) },
      });
      return status === 200 ? /^rows\{by="(.*)"\}/m.exec(text)?.[1] : status;
    };
    const askAll = async () => {
      const got = [];
      for (const [login, accept] of ASKS) got.push(await ask(login, accept));
      return got;
    };
    const wanted = isPrivate ? ['alice', 'bob', 503, 503, 503] : Array(5).fill('undefined');

    assert.equal((await post()).status, isPrivate ? 503 : 200);
    assert.deepEqual(await askAll(), wanted, 'while main lives');
    assert.equal((await post()).status, 200);
    front.tell(ENDED);
    await stop();
    assert.deepEqual(await askAll(), wanted, 'after its end');
    assert.equal(await ask(ALICE, OPEN_METRICS), isPrivate ? 'alice' : 'undefined', 'in another format');
    assert.equal((await front.lastPages()).length, isPrivate ? 0 : 2, 'a keeper shows its pages to everybody');
    assert.equal(gotLogin, isPrivate);
    assert.doesNotMatch(JSON.stringify(log), /Bearer/);
  });
}
