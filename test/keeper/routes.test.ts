// The keeper's ports, with pods that prove who they are: who comes when many do, and what counts as refused.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readdirSync } from 'node:fs';
import { request } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { test } from 'node:test';
import { SYSTEM_CLOCK } from '../../src/base/waits.ts';
import type { ServerLimits } from '../../src/front/listen.ts';
import { openPages } from '../../src/keeper/pages.ts';
import { Refused } from '../../src/keeper/request.ts';
import { closeServers, openPodServer } from '../../src/keeper/routes.ts';
import { openStore } from '../../src/keeper/store.ts';
import { makeFolder } from '../support/folder.ts';
import { TEXT, until, writeHandOver } from './keeper.ts';

/** Many hours. */
const PATIENT = { requestMs: 3_600_000, requestCheckMs: 3_600_000 };
const LIMITS = { maxBytes: 256_000_000, maxPages: 10_000 };

/** A server for pods, whose token is `NAMESPACE.NAME`; `onProve` may take its time. */
async function openServer(onProve: () => Promise<void> = async () => {}, limits: Partial<ServerLimits> = {}) {
  const folder = makeFolder();
  const clock = SYSTEM_CLOCK;
  const lines: unknown[] = [];
  const log = (entry: unknown) => void lines.push(entry);
  const pages = await openPages({ store: await openStore(folder), limits: LIMITS, clock, wallMs: Date.now, log });
  async function prove(token: string) {
    const [namespace = '', name = ''] = token.split('.');
    if (token === '') throw new Refused('anonymous');
    if (name === '') throw new Refused('unproven');
    await onProve();
    return { namespace, name, uid: `uid-${name}`, node: '' };
  }
  const server = openPodServer({ pages, clock, prove, log }, { ...PATIENT, ...limits });
  assert.equal(await server.listen('127.0.0.1', 0), null);
  const { port } = server.http.address() as AddressInfo;
  return {
    folder,
    pages,
    /** How often each reason refused one. */
    refused: () => Object.fromEntries(Object.entries(pages.count().refused_total).filter(([, count]) => count > 0)),
    connections: () => server.connections.list(),
    lines,
    /** Sends from that address of this machine; the status. */
    send(
      token: string,
      { from = '127.0.0.1', method = 'POST', path = '/hand-over', body = writeHandOver({}), headersCount = 0 } = {},
    ) {
      return new Promise<number>((resolve, reject) => {
        const sent = request({ port, host: '127.0.0.1', localAddress: from, method, path });
        for (let index = 0; index < headersCount; index++) sent.setHeader(`x-${index}`, '');
        if (token !== '') sent.setHeader('authorization', `Bearer ${token}`);
        sent.setHeader('content-length', body.length);
        sent.on('error', reject);
        sent.on('response', (response) => {
          response.resume();
          response.on('end', () => resolve(response.statusCode ?? 0));
        });
        sent.end(body);
      });
    },
    /** Begins a hand-over from that address which never ends. */
    stall(token: string, from: string, body = writeHandOver({})): void {
      const socket = connect({ port, host: '127.0.0.1', localAddress: from });
      socket.on('error', () => {});
      const head = `Host: k\r\nAuthorization: Bearer ${token}\r\nContent-Length: ${body.length}\r\n\r\n`;
      socket.write(`POST /hand-over HTTP/1.1\r\n${head}`);
      socket.write(body.subarray(0, body.length - 1));
    },
    /** Sends that many requests at once over one connection; once it is closed. */
    async pipeline(token: string, count: number): Promise<void> {
      const socket = connect({ port, host: '127.0.0.1' });
      socket.on('error', () => {});
      socket.write(`POST /hand-over/check HTTP/1.1\r\nHost: k\r\nAuthorization: Bearer ${token}\r\n\r\n`.repeat(count));
      await once(socket, 'close');
    },
    [Symbol.asyncDispose]: () => closeServers([server]),
  };
}

test('300 pods that end at once are all taken, and few tokens are checked at a time', async () => {
  const proving = { count: 0, most: 0 };
  const eight = Promise.withResolvers<void>();
  await using server = await openServer(async () => {
    proving.count++;
    proving.most = Math.max(proving.most, proving.count);
    if (proving.count === 8) eight.resolve();
    await eight.promise;
    proving.count--;
  });
  const addresses = Array.from(
    { length: 300 },
    (_, index) => `127.0.${1 + Math.floor(index / 200)}.${1 + (index % 200)}`,
  );
  const statuses = await Promise.all(addresses.map((from, index) => server.send(`shop.job-${index}`, { from })));
  assert.deepEqual(
    statuses.filter((status) => status !== 201),
    [],
  );
  assert.equal(proving.most, 8);
});

test('slow requests of two namespaces keep no other from its hand-over, from however many addresses', async () => {
  await using server = await openServer();
  const countUnfinished = () => readdirSync(server.folder).filter((name) => name.endsWith('.tmp')).length;
  for (let pod = 1; pod <= 12; pod++) server.stall(`slow-${pod % 2}.pod-${pod}`, `127.0.0.${pod + 1}`);
  await until('slow hand-overs', 30_000, async () => countUnfinished() >= 8 || undefined);
  server.stall('slow-1.pod', '127.0.0.2', writeHandOver({ pages: [`${TEXT}# ${'-'.repeat(1_000_000)}\n`] }));
  const findMostRead = () => Math.max(...server.connections().map(({ socket }) => socket.bytesRead));
  await until('the large one', 30_000, async () => findMostRead() > 60_000 || undefined);
  assert.equal(await server.send('shop.job-1'), 201);
  assert.equal(countUnfinished(), 8, 'they are still under way');
  assert.ok(findMostRead() <= 65_536, 'what waits is read once');
});

test('slow requests of several pods, a few of each, keep no other pod from connecting', async () => {
  await using server = await openServer(undefined, { connectionsCount: 6 });
  for (const from of ['127.0.1.1', '127.0.1.2', '127.0.1.3'])
    for (let i = 0; i < 2; i++) server.stall('evil.pod', from);
  await until('all of them', 30_000, async () => server.connections().length === 6 || undefined);
  assert.equal(await server.send('shop.pod'), 201);
});

test('a request of hundreds of headers is refused: those that wait for their turn would fill the heap', async () => {
  await using server = await openServer();
  assert.equal(await server.send('shop.job-1', { headersCount: 50 }), 201);
  assert.equal(await server.send('shop.job-1', { headersCount: 150 }), 431);
});

test('a connection is closed over which three requests come at once', { timeout: 60_000 }, async () => {
  const never = Promise.withResolvers<void>();
  await using server = await openServer(() => never.promise);
  await server.pipeline('shop.job-1', 3);
  never.resolve();
});

test('what is refused is read to its end: its client may not look for an answer before that', async () => {
  await using server = await openServer();
  server.stall('shop.job-1', '127.0.0.2', Buffer.concat([Buffer.from('{}\n'), Buffer.alloc(30_000_000)]));
  const findMostRead = () => Math.max(0, ...server.connections().map(({ socket }) => socket.bytesRead));
  await until('all of it', 30_000, async () => findMostRead() > 29_999_999 || undefined);
});

test('what is refused counts where a pod then holds: no check, and nobody without a token', async () => {
  await using server = await openServer();
  const wrong = Buffer.from('{}\n');
  assert.equal(await server.send(''), 401);
  assert.equal(await server.send('shop.job-1', { path: '/hand-over/check', body: wrong }), 400);
  assert.equal(await server.send('shop.job-1', { method: 'DELETE', body: wrong }), 400);
  assert.deepEqual([server.refused(), server.lines], [{}, []]);
  assert.equal(await server.send('shop'), 401);
  assert.equal(await server.send('shop.job-1', { body: wrong }), 400);
  assert.deepEqual(server.refused(), { unproven: 1, unreadable: 1 });
  assert.equal(server.lines.length, 2);
});

test('a hand-over under way when the keeper is asked to stop is refused as that', async () => {
  const ready = Promise.withResolvers<void>();
  const stopped = Promise.withResolvers<void>();
  await using server = await openServer(async () => {
    ready.resolve();
    await stopped.promise;
  });
  const status = server.send('shop.job-1');
  await ready.promise;
  server.pages.stop();
  stopped.resolve();
  assert.equal(await status, 503);
  assert.deepEqual(server.refused(), { stopping: 1 });
  assert.deepEqual(readdirSync(server.folder), []);
});

test('a pod takes back its own page only, whatever it says of itself', async () => {
  await using server = await openServer();
  assert.equal(await server.send('shop.job-1'), 201);
  const body = Buffer.from(`${writeHandOver({}).toString().split('\n')[0]}\n`);
  assert.equal(await server.send('other.job-1', { method: 'DELETE', body }), 200);
  assert.equal(server.pages.count().pages, 1);
  assert.equal(await server.send('shop.job-1', { method: 'DELETE', body }), 200);
  assert.equal(server.pages.count().pages, 0);
});
