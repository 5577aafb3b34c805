// `lastscrape keep` as a process: what pods hand over, what Prometheus gets, and what is left after a restart.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { test } from 'node:test';
import { readPages, startKeeper, startKeeperHere, TEXT, until, writeHandOver } from './keeper.ts';

const OPEN_METRICS = '# TYPE jobs_done counter\njobs_done_total 5\n# EOF\n';

test('a page is listed with the labels of its pod, and served in the format that is asked for', async () => {
  await using keeper = await startKeeper();
  assert.deepEqual(await keeper.listTargets(), []);
  assert.equal(await keeper.handOver({ pages: [TEXT, OPEN_METRICS] }), '201 kept');
  const [target, ...others] = await keeper.listTargets();
  assert.deepEqual(others, []);
  assert.deepEqual(target?.targets, [keeper.serveUrl.replace('http://', '')], 'as the keeper was asked');
  assert.equal(target.labels['instance'], '127.0.0.1:9469');
  assert.equal(target.labels['__meta_kubernetes_pod_label_app'], 'shop');
  const path = target.labels['__metrics_path__'] ?? '';
  assert.deepEqual(await keeper.scrape(path), { status: 200, type: 'text/plain; version=0.0.4', text: TEXT });
  const open = await keeper.scrape(path, 'application/openmetrics-text;version=1.0.0,text/plain;q=0.1');
  assert.deepEqual([open.type, open.text], ['application/openmetrics-text; version=1.0.0', OPEN_METRICS]);
  assert.equal(await keeper.handOver({ pages: ['changed 1\n'] }), '201 kept');
  assert.deepEqual(await readPages(keeper), { 'job-1': 'changed 1\n' }, 'the same pod replaces what it gave');
  assert.equal(await keeper.metric('handed_over_total'), 2);
});

test('a pod that has two fronts hands over the page of each, and takes back that of one', async () => {
  await using keeper = await startKeeper();
  const front = (port: number) => ({ head: { target: { container: 'lastscrape', portName: 'lastscrape', port } } });
  for (const port of [9469, 9569]) assert.equal(await keeper.handOver(front(port)), '201 kept');
  const listInstances = async () => (await keeper.listTargets()).map(({ labels }) => labels['instance']);
  assert.deepEqual(await listInstances(), ['127.0.0.1:9469', '127.0.0.1:9569']);
  assert.equal(await keeper.handOver(front(9469), 'withdraw'), '200 forgotten');
  assert.deepEqual(await listInstances(), ['127.0.0.1:9569']);
});

test('a list of many targets, sent in pieces, is whole', async () => {
  await using keeper = await startKeeper();
  const names = Array.from({ length: 65 }, (_, index) => `job-${index}`);
  for (const [index, name] of names.entries()) {
    assert.equal(await keeper.handOver({ name }), '201 kept');
    if ([0, 31, 32, 64].includes(index)) assert.equal((await keeper.listTargets()).length, index + 1);
  }
  const listed = (await keeper.listTargets()).map(({ labels }) => labels['__meta_kubernetes_pod_name']);
  assert.deepEqual(listed, names);
});

test('a hand-over that is not whole, or says what cannot be, is refused and leaves nothing', async () => {
  await using keeper = await startKeeper();
  const pod = { namespace: 'shop', name: 'job-1', uid: 'u', ip: '10.0.0.1', labels: {}, annotations: {} };
  const format = { accept: '', contentType: 'text/plain', sizeBytes: Buffer.byteLength(TEXT) };
  const refused: readonly (readonly [Record<string, unknown>, RegExp])[] = [
    [{ pod: { ...pod, namespace: '../x' } }, /^400 .*pod\.namespace/],
    [{ pod: { ...pod, name: 'A' } }, /^400 .*pod\.name/],
    [{ pod: { ...pod, uid: '' } }, /^400 .*pod\.uid/],
    [{ pod: { ...pod, ip: 'host' } }, /^400 .*pod\.ip/],
    [{ target: { port: 0 } }, /^400 .*target\.port/],
    [{ endedAtSeconds: 'now' }, /^400 .*endedAtSeconds/],
    [{ formats: [] }, /^400 .*formats/],
    [{ formats: [{ ...format, contentType: 'text/plain\r\nX: y' }] }, /^400 .*formats/],
    [{ formats: [{ ...format, sizeBytes: 64_000_001 }] }, /^413 /],
    [{ formats: [{ ...format, sizeBytes: -1 }] }, /^400 .*formats/],
    [
      {
        formats: [
          { ...format, sizeBytes: 40_000_000 },
          { ...format, sizeBytes: 40_000_000 },
        ],
      },
      /^413 /,
    ],
    [{ formats: [{ ...format, sizeBytes: format.sizeBytes + 1 }] }, /^400 .*cut off/],
    [{ formats: [{ ...format, sizeBytes: format.sizeBytes - 1 }] }, /^400 .*declared/],
    [{ pod: { ...pod, labels: { app: 'x'.repeat(20_000) } } }, /^413 .*labels/],
  ];
  for (const [head, wanted] of refused) assert.match(await keeper.handOver({ head }), wanted, JSON.stringify(head));
  const plain = await fetch(keeper.handOverUrl, { method: 'POST', body: 'no json\n' });
  assert.deepEqual(
    [plain.status, await plain.text()],
    [400, 'the hand-over cannot be read: its first line is not JSON\n'],
  );
  assert.deepEqual(await keeper.listTargets(), []);
  assert.deepEqual(readdirSync(keeper.folder), []);
});

test('what pods may ask is not what Prometheus may ask, at two ports', async () => {
  await using keeper = await startKeeper();
  assert.equal(await keeper.handOver(), '201 kept');
  for (const path of ['/targets', '/metrics', '/pages/1']) {
    assert.equal((await fetch(new URL(path, keeper.handOverUrl))).status, 404, path);
  }
  assert.equal((await fetch(`${keeper.serveUrl}/hand-over`, { method: 'POST', body: 'x' })).status, 405);
  assert.equal((await keeper.scrape('/pages/0123')).status, 404);
  assert.equal((await fetch(keeper.handOverUrl)).status, 404);
  for (const path of ['/-/healthy', '/-/ready']) assert.equal((await fetch(keeper.serveUrl + path)).status, 200);
});

test('a pod that hangs up in the middle leaves nothing, and one that is slow does not keep others from theirs', async () => {
  await using keeper = await startKeeper();
  const body = writeHandOver({ name: 'slow' });
  const sockets = Array.from({ length: 6 }, () => {
    const socket = connect(keeper.ports[0], '127.0.0.1');
    socket.on('error', () => {});
    socket.write(`POST /hand-over HTTP/1.1\r\nHost: k\r\nContent-Length: ${body.length}\r\n\r\n`);
    socket.write(body.subarray(0, body.length - 1));
    return socket;
  });
  await until('unfinished files', 30_000, async () => readdirSync(keeper.folder).length === 4 || undefined);
  for (const socket of sockets) socket.destroy();
  assert.equal(await keeper.handOver(), '201 kept');
  await until('no other file', 30_000, async () => readdirSync(keeper.folder).length === 1 || undefined);
  assert.deepEqual(Object.keys(await readPages(keeper)), ['job-1']);
});

test('a keeper that is full says so, also to who would replace a page, and is ready again once there is room', async () => {
  await using keeper = await startKeeper({ LASTSCRAPE_KEEPER_PAGES: '4' });
  for (const name of ['a', 'b']) assert.equal(await keeper.handOver({ name }), '201 kept');
  assert.match(await keeper.handOver({ name: 'c' }), /^507 this namespace takes up half/);
  assert.match(await keeper.handOver({ name: 'b' }), /^507 this namespace takes up half/);
  for (const name of ['d', 'e']) assert.equal(await keeper.handOver({ name, namespace: 'other' }), '201 kept');
  assert.match(await keeper.handOver({ name: 'f', namespace: 'third' }), /^507 the keeper is full/);
  assert.equal((await fetch(`${keeper.serveUrl}/-/ready`)).status, 503);
  assert.match(await keeper.handOver({ name: 'f', namespace: 'third' }, 'check'), /^507 the keeper is full/);
});

test('after a restart every page is there again, and one that was changed on the disk is named and not served', async () => {
  const first = await startKeeper();
  const names = ['a', 'b', 'c', 'd', 'e'];
  for (const name of names) assert.equal(await first.handOver({ name, pages: [`${name} 1\n`] }), '201 kept');
  const paths = Object.fromEntries(
    (await first.listTargets()).map(({ labels }) => [
      labels['__meta_kubernetes_pod_name'] ?? '',
      join(first.folder, `${labels['__metrics_path__']?.replace('/pages/', '')}.page`),
    ]),
  );
  await first[Symbol.asyncDispose]();
  const change = (name: string, edit: (bytes: Buffer) => Buffer) => {
    const path = paths[name] ?? '';
    writeFileSync(path, edit(readFileSync(path)));
  };
  const flip = (findAt: (bytes: Buffer) => number) => (bytes: Buffer) => {
    bytes[findAt(bytes)] = Number(bytes[findAt(bytes)]) ^ 1;
    return bytes;
  };
  change('b', (bytes) => bytes.subarray(0, bytes.length - 5));
  change('c', (bytes) => bytes.subarray(5));
  change(
    'd',
    flip((bytes) => bytes.indexOf('"shop"') + 1),
  );
  writeFileSync(join(first.folder, '.7.tmp'), 'torn');
  const unreadable = join(first.folder, 'f.page');
  mkdirSync(unreadable);
  await using second = await startKeeper({}, first);
  assert.equal(await second.metric('corrupt_total'), 4, 'cut off, labels that were changed, one that cannot be read');
  assert.match(second.child.lines.map(({ text }) => text).join(), /f\.page: EISDIR: .*; mend it and start again/);
  assert.ok(existsSync(unreadable), 'it stays: the next start may read it');
  change(
    'e',
    flip(() => 15),
  );
  const pages = await readPages(second);
  assert.deepEqual([Object.keys(pages).sort(), pages['a']], [['a', 'e'], 'a 1\n']);
  assert.match(pages['e'] ?? '', /^500 the page cannot be read: the checksum of its page is wrong/);
  assert.deepEqual(await readPages(second), { a: 'a 1\n' }, 'and it is no longer listed');
  assert.equal(await second.metric('corrupt_total'), 5);
  for (const name of ['b', 'c', 'd', 'e']) {
    const problems = second.child.lines.filter(({ text }) => text.includes(`${paths[name]}.corrupt`));
    assert.equal(problems.length, 1, name);
  }
  change('a', () => Buffer.from('short'));
  assert.match((await readPages(second))['a'] ?? '', /^500 the page cannot be read: /);
  assert.deepEqual(await readPages(second), {});
});

test('a pod whose main runs again takes back its own page, and no other', async () => {
  await using keeper = await startKeeper();
  for (const name of ['a', 'b']) assert.equal(await keeper.handOver({ name }), '201 kept');
  assert.equal(await keeper.handOver({ name: 'a' }, 'withdraw'), '200 forgotten');
  assert.deepEqual(Object.keys(await readPages(keeper)), ['b']);
  assert.equal(readdirSync(keeper.folder).length, 1);
  assert.equal(await keeper.handOver({ name: 'a' }, 'withdraw'), '200 forgotten', 'there is none');
  assert.equal(await keeper.metric('withdrawn_total'), 1);
});

test('a scrape counts once its client asks again, or has not hung up for twice its time-out', async () => {
  const clock = { aheadMs: 0 };
  await using keeper = await startKeeperHere({}, clock);
  clock.aheadMs = 300_000;
  assert.equal(await keeper.handOver(), '201 kept');
  const [target] = await keeper.listTargets();
  const path = target?.labels['__metrics_path__'] ?? '';
  const scrape = async (timeoutSeconds: number) => {
    const socket = connect(Number(new URL(keeper.serveUrl).port), '127.0.0.1');
    const headers = `Host: k\r\nUser-Agent: node\r\nX-Prometheus-Scrape-Timeout-Seconds: ${timeoutSeconds}`;
    socket.write(`GET ${path} HTTP/1.1\r\n${headers}\r\n\r\n`);
    await once(socket, 'data');
    return socket;
  };
  (await scrape(3600)).destroy();
  clock.aheadMs += 60_000;
  await keeper.listTargets();
  assert.equal((await keeper.listTargets()).length, 1, 'it may have dropped what its kernel had');
  const patient = await scrape(1);
  await until('counted', 60_000, async () => (await keeper.listTargets()).length === 0 || undefined);
  patient.destroy();
});

test('SIGTERM: nothing more is taken, and it ends once who asks for targets has scraped all, and could see them go', async () => {
  const clock = { aheadMs: 0 };
  await using keeper = await startKeeperHere({ LASTSCRAPE_TERMINATION_GRACE: '1h' }, clock);
  assert.equal(await keeper.handOver(), '201 kept');
  await keeper.listTargets(1);
  keeper.signal();
  assert.match(await keeper.handOver({ name: 'late' }), /^503 the keeper is stopping/);
  assert.equal((await fetch(`${keeper.serveUrl}/-/ready`)).status, 503);
  assert.deepEqual(await readPages(keeper), { 'job-1': TEXT });
  assert.equal((await keeper.listTargets(1)).length, 1, 'others may not have asked since it began');
  clock.aheadMs += 300_000;
  // The scrape counts once its connection is used again.
  await until('unlisted', 60_000, async () => (await keeper.listTargets(1)).length === 0 || undefined);
  clock.aheadMs += 12_000;
  assert.equal(await keeper.exited, 0);
  assert.deepEqual(readdirSync(keeper.folder), [], 'what was scraped is gone');
});

test('SIGTERM: what nobody scraped stays on the disk when the grace is over, or a second signal comes', async () => {
  const keeper = await startKeeper({ LASTSCRAPE_TERMINATION_GRACE: '1ms' });
  assert.equal(await keeper.handOver(), '201 kept');
  process.kill(keeper.child.pid, 'SIGTERM');
  assert.equal((await keeper.child.exited).code, 0);
  await using next = await startKeeper({ LASTSCRAPE_TERMINATION_GRACE: '5m' }, keeper);
  assert.deepEqual(await readPages(next), { 'job-1': TEXT });
  process.kill(next.child.pid, 'SIGTERM');
  await next.waitForLine(/asked to terminate/);
  process.kill(next.child.pid, 'SIGTERM');
  assert.equal((await next.child.exited).code, 0);
  assert.equal(readdirSync(next.folder).length, 1);
});
