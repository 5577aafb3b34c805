import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import { test } from 'node:test';
import { encodeBytes } from '../../../src/base/wire.ts';
import { TEXT_ACCEPT } from '../../../src/decide/serve/budget.ts';
import { TEXT_TYPE } from '../../../src/exposition/format.ts';
import { openHttpSource, START_METRIC } from '../../../src/front/sources/http.ts';
import type { Beginning } from '../../../src/front/sources/source.ts';
import type { ExporterReading } from '../../../src/observe/condition-kind.ts';
import { type Body, type BodyEnd, BrokenBody } from '../../../src/snapshot/body.ts';
import { type Answerer, answerWith, openPeer } from '../../support/peer.ts';
import { readPieces } from '../../support/pieces.ts';
import { readRecordedBody, readRecordedHeader } from '../../support/recording.ts';

const NEVER = new AbortController().signal;
const STOPPED = readRecordedBody('exporter-0.5.0-locust-2.47.0/07-stopped.11.txt');
const HEAD = 'HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4\r\n';

type Result = { readonly beginning: Beginning; readonly reading: ExporterReading };

async function readOnce(answer: Answerer, signal: AbortSignal = NEVER, accept?: string): Promise<Result> {
  await using peer = await openPeer(answer);
  const source = openHttpSource(peer.url, ['locust_up']);
  const { begun, ended } = source.read(signal, accept);
  const result = { beginning: await begun, reading: await ended };
  await source.close();
  return result;
}

const readAll = (body: Body) => readPieces(body.read());

function takeBody({ beginning }: Result): Body {
  assert.ok(beginning.kind === 'answered', JSON.stringify(beginning));
  return beginning.body;
}

/** No answer began, and the conditions know nothing. */
function assertFailed({ beginning, reading }: Result, why: RegExp, mayCount: boolean): void {
  assert.ok(beginning.kind === 'failed', JSON.stringify(beginning));
  assert.match(beginning.why, why);
  assertUnread(reading, why, mayCount);
}

function assertUnread({ observation, metric }: ExporterReading, why: RegExp, mayCount: boolean): void {
  assert.ok(observation.kind === 'failed', JSON.stringify(observation));
  assert.match(observation.why, why);
  assert.equal(observation.mayCount, mayCount);
  assert.equal(metric('locust_up').kind, 'unknown');
}

/** An answer began, and what came of it is not taken for whole. */
async function assertBroken(result: Result, why: RegExp): Promise<void> {
  const body = takeBody(result);
  const end: BodyEnd = await body.ended;
  assert.ok(end.kind === 'broken', JSON.stringify(end));
  assert.match(end.why, why);
  await assert.rejects(readAll(body), BrokenBody);
  assertUnread(result.reading, why, true);
}

test('read() reads a page that its program redirects to, as Starlette does for a mounted application', async () => {
  const result = await readOnce((socket, request) => {
    const location = `Location: http://127.0.0.1:${socket.localPort}/metrics/\r\n`;
    const isMoved = request.startsWith('GET /metrics ');
    socket.write(isMoved ? answerWith('', '307 Temporary Redirect', location) : answerWith('locust_up 1\n'));
  });
  assert.equal((await readAll(takeBody(result))).toString(), 'locust_up 1\n');
  assert.deepEqual(result.reading.metric('locust_up'), { kind: 'value', value: 1 });
});

test('read() hands on what real programs answer, in every format', async () => {
  const folder = new URL('../../../fixtures/recordings/', import.meta.url);
  const formats = new Set<string>();
  for (const name of ['expositions', 'formats'].flatMap((each) =>
    readdirSync(new URL(each, folder)).map((file) => `${each}/${file}`),
  )) {
    if (name.endsWith('.md')) continue;
    const type = readRecordedHeader(name, 'content-type');
    const bytes = readRecordedBody(name);
    const result = await readOnce((socket) => {
      socket.write(`HTTP/1.1 200 OK\r\nContent-Type: ${type}\r\nContent-Length: ${bytes.length}\r\n\r\n`);
      socket.write(bytes);
    });
    const body = takeBody(result);
    assert.equal(body.type.contentType, type);
    assert.ok((await readAll(body)).equals(bytes), name);
    assert.equal((await body.ended).kind, 'whole', name);
    formats.add(body.type.format);
  }
  assert.deepEqual(formats, new Set(['text', 'openMetrics', 'protobuf']));
});

test("read() takes a start of protobuf for the program's own where it would of text: if there is one", async () => {
  const metric = `\x22${encodeBytes(`\x12\x09\x09${'\0'.repeat(7)}@`)}`;
  const type = 'application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited';
  for (const [metrics, kind] of Object.entries({ [metric]: 'value', [metric + metric]: 'unknown' })) {
    const page = encodeBytes(`\x0a${encodeBytes(START_METRIC)}${metrics}`);
    const { reading } = await readOnce((socket) => socket.write(answerWith(page).replace('text/plain', type)));
    assert.equal(reading.metric(START_METRIC).kind, kind);
  }
});

test('read() takes any content type, and none, for text where it is no other', async () => {
  for (const type of ['TEXT/Plain ; charset=utf-8', 'text/html', '']) {
    const answer = answerWith('a 1\n').replace('text/plain', type);
    const body = takeBody(await readOnce((socket) => socket.write(answer)));
    assert.equal(String(await readAll(body)), 'a 1\n', type);
    assert.deepEqual(body.type, { format: 'text', contentType: type.startsWith('TEXT') ? type : TEXT_TYPE });
  }
});

test('read() takes OpenMetrics for another format than the text, unless only the text was asked for', async () => {
  const answer = answerWith('# EOF\n').replace('text/plain', 'application/openmetrics-text; version=1.0.0');
  const asked = { '': undefined, '\nBearer a': undefined, ';q=0.6,application/openmetrics-text;q=0.5': true };
  for (const [more, isOther] of Object.entries(asked)) {
    const { reading } = await readOnce((socket) => socket.write(answer), NEVER, TEXT_ACCEPT + more);
    assert.equal(reading.isOther, isOther, more);
  }
});

test('read() keeps its connection after answers of every kind', async () => {
  const answers = [
    answerWith('a 1\n'),
    answerWith('no', '500 No'),
    answerWith('a 1\n', '200 OK', 'Content-Encoding: gzip\r\n'),
    answerWith('a 1\n'),
  ];
  await using peer = await openPeer((socket, _, count) => socket.write(answers[count] ?? ''), '/m?a=b');
  const source = openHttpSource(peer.url, []);
  const begun: Beginning[] = [];
  for (const _ of answers) {
    const read = source.read(NEVER);
    begun.push(await read.begun);
    await read.ended;
  }
  await source.close();
  const pages = begun.map((each) => (each.kind === 'answered' ? each.body.page : each.kind));
  assert.deepEqual(pages.slice(1, 3), ['failed', 'failed']);
  assert.equal(pages[0], pages[3], 'the same bytes are not looked at again');
  assert.equal(peer.connectionsCount(), 1);
  assert.doesNotMatch(peer.requests.join(), /accept-encoding/i);
});

test('read() begins when the answer does, and hands on pieces as they come', async () => {
  const { promise: more, resolve: sendMore } = Promise.withResolvers<void>();
  await using peer = await openPeer((socket) => {
    socket.write(`${HEAD}Content-Length: 8\r\n\r\n`);
    void more.then(() => socket.write('b 2\n'));
    socket.write('a 1\n');
  });
  const source = openHttpSource(peer.url, []);
  const { begun, ended } = source.read(NEVER);
  const beginning = await begun;
  assert.ok(beginning.kind === 'answered');
  const reader = beginning.body.read()[Symbol.asyncIterator]();
  assert.equal(String(Buffer.from((await reader.next()).value)), 'a 1\n');
  sendMore();
  assert.equal(String(Buffer.from((await reader.next()).value)), 'b 2\n');
  assert.equal((await ended).observation.kind, 'answered');
  assert.equal((await reader.next()).done, true);
  await source.close();
});

test('read() asks once more where a kept connection was closed, and learns that the program is gone', async () => {
  await using peer = await openPeer((socket, _, count) => {
    if (count === 1) socket.destroy();
    else socket.write(answerWith('a 1\n'));
  });
  const source = openHttpSource(peer.url, []);
  for (const expectedCount of [1, 3]) {
    const { begun, ended } = source.read(NEVER);
    assert.equal((await begun).kind, 'answered');
    await ended;
    assert.equal(peer.requests.length, expectedCount);
  }
  await source.close();

  const ending = await openPeer((socket) => {
    void ending[Symbol.asyncDispose]();
    socket.destroy();
  });
  const gone = openHttpSource(ending.url, []);
  assert.deepEqual(await gone.read(NEVER).begun, { kind: 'refused' });
  await gone.close();
});

test('an answer that ends at any byte of its body is whole for no reader', async () => {
  const body = STOPPED.subarray(0, 300).toString('latin1');
  const chunked = `64\r\n${body.slice(0, 100)}\r\nc8\r\n${body.slice(100)}\r\n0\r\n\r\n`;
  let answer = '';
  await using peer = await openPeer((socket) => socket.end(answer, 'latin1'));
  const source = openHttpSource(peer.url, []);
  for (const [header, sent] of [
    ['Content-Length: 300', body],
    ['Transfer-Encoding: chunked', chunked],
  ] as const) {
    for (let length = 0; length < sent.length; length++) {
      answer = `${HEAD}${header}\r\n\r\n${sent.slice(0, length)}`;
      const { begun, ended } = source.read(NEVER);
      await assertBroken({ beginning: await begun, reading: await ended }, /closed|EOF|terminated|Invalid|Response/i);
    }
  }
  await source.close();
});

test('an answer is broken by a reset, by wrong chunks, and if it hangs by the signal', async () => {
  await assertBroken(
    await readOnce((s) => s.write(`${HEAD}Content-Length: 99\r\n\r\na 1\n`, () => s.resetAndDestroy())),
    /ECONNRESET/,
  );
  await assertBroken(
    await readOnce((s) => s.write(`${HEAD}Transfer-Encoding: chunked\r\n\r\n4\r\na 1\n\r\nnone\r\n`)),
    /Invalid character in chunk size/,
  );
  await using peer = await openPeer((s) => s.write(`${HEAD}Content-Length: 99\r\n\r\na 1\n`));
  const source = openHttpSource(peer.url, ['locust_up']);
  const controller = new AbortController();
  const { begun, ended } = source.read(controller.signal);
  const beginning = await begun;
  controller.abort('timed out');
  await assertBroken({ beginning, reading: await ended }, /^timed out$/);
  await source.close();
});

test('a source that hangs before it answers is given up by the signal', async () => {
  const controller = new AbortController();
  const result = await readOnce(() => controller.abort('timed out'), controller.signal);
  assertFailed(result, /^timed out$/, true);
  assertFailed(await readOnce(() => assert.fail('asked'), AbortSignal.abort('gone')), /^gone$/, false);
});

test('an HTTP source is a program, and says at which other path it is served', async () => {
  for (const [path, own] of [
    ['/metrics', null],
    ['/metrics?a=b', null],
    ['/', '/'],
    ['/actuator/prometheus?a=b', '/actuator/prometheus'],
  ] as const) {
    const source = openHttpSource(new URL(path, 'http://localhost:1'), []);
    assert.equal(source.path, own);
    await source.close();
  }
});
