// What Go's HTTP client reads of an answer, our exchange reads too, and no more: else Prometheus would have
// taken a page that lastscrape refuses, or the other way round.

import assert from 'node:assert/strict';
import { createServer, type Socket } from 'node:net';
import { Duplex } from 'node:stream';
import { test } from 'node:test';
import { type Dial, openExchange } from '../../../src/base/net/exchange.ts';
import { askJudge, gateJudge } from '../../judges/judges.ts';
import { listen } from '../../support/listen.ts';
import { openPeer } from '../../support/peer.ts';
import { openRandom } from '../../support/random.ts';

const skip = gateJudge('test/base/net/http-judge.test.ts');

/** What the judge says of an answer (test/judges/http); texts in base64. */
type Verdict = {
  readonly requests: readonly string[] | null;
  readonly status: number;
  readonly contentType: string | null;
  readonly body: string | null;
  readonly error: string;
};

/** A page and its type, where all of it came; `cut`: a 200 that did not; `none`: nothing that is an answer. */
type Reading = string;

function readVerdict({ status, contentType, body, error }: Verdict): Reading {
  if (status === 0) return 'none';
  if (status !== 200) return `status ${status}`;
  const [type, page] = [contentType, body].map((each) => Buffer.from(each ?? '', 'base64').toString('latin1'));
  return error === '' ? `page ${type} ${page}` : 'cut';
}

/** Answers of many kinds, most with something wrong; letters are bytes. */
function makeAnswer(below: (count: number) => number): string {
  const pick = <One>(list: readonly One[]) => list[below(list.length)] as One;
  const often = <One>(usual: One, others: readonly One[]) => (below(8) > 0 ? usual : pick(others));
  const eol = often('\r\n', ['\n', '\n', '\n', '\r\r\n']);
  const end = () => (below(30) > 0 ? eol : pick(['\r\n', '\n']));
  const page = pick(['a 1\n', '', 'a 1\r\nb 2\r\n', 'x'.repeat(300), '0\r\n\r\n', 'HTTP/1.1 200 OK\r\n\r\n']);
  const chunk = (text: string) => {
    const size = often(text.length.toString(16), [
      text.length.toString(16).toUpperCase(),
      `000${text.length.toString(16)}`,
      `${(text.length + 1).toString(16)}`,
      '',
      '-1',
      '0x4',
      'fffffffffffffffff',
    ]);
    return `${size}${often('', [' ', ';a=b', ' ;a', ';a="b\\"c"', ';', '\t', ';=', ' x'])}${end()}${text}${end()}`;
  };
  const isChunked = below(3) === 0;
  const trailers = often('', [`X: y${end()}`, `X y${end()}`, ` x${end()}`]);
  const chunks = `${page === '' ? '' : chunk(page)}${below(4) === 0 ? chunk('b 2\n') : ''}`;
  const body = isChunked ? `${chunks}0${often('', [' ', ';x'])}${end()}${trailers}${end()}` : page;
  const framing = isChunked
    ? often('Transfer-Encoding: chunked', [
        'Transfer-Encoding: Chunked ',
        'transfer-encoding:chunked',
        'Transfer-Encoding: gzip, chunked',
        'Transfer-Encoding: chunked, chunked',
        'Transfer-Encoding: identity',
        'Transfer-Encoding:',
        `Transfer-Encoding: chunked${eol}Transfer-Encoding: chunked`,
        `Transfer-Encoding: chunked${eol}Content-Length: ${body.length}`,
        `Content-Length: 3${eol}Transfer-Encoding: chunked`,
        `Transfer-Encoding:${eol} chunked`,
        'Transfer-Encoding : chunked',
        'Trailer: X',
      ])
    : often(`Content-Length: ${body.length}`, [
        `Content-Length: ${body.length}${eol}Content-Length: ${body.length}`,
        `Content-Length: ${body.length}${eol}content-length:  ${body.length} `,
        `Content-Length: ${body.length}, ${body.length}`,
        `Content-Length: ${body.length}${eol}Content-Length: 3`,
        `Content-Length: +${body.length}`,
        `Content-Length: 0${body.length}`,
        `Content-Length: ${body.length + 1}`,
        `Content-Length: ${Math.max(0, body.length - 1)}`,
        'Content-Length: ',
        'Content-Length: -1',
        'Content-Length: 99999999999999999999',
        `Content-Length : ${body.length}`,
        'Connection: close',
        'X: y',
      ]);
  const others = [
    ...['Content-Type: text/plain; version=0.0.4', `Content-Type: a${eol}Content-Type: b`],
    ...['content-type:\ttext/plain\t ', `X: a${eol}\tb`, `X: a${eol}  ${eol}Y: b`, 'X:', ': x', 'no colon'],
    ...[' X: y', 'X Y: z', 'X\x80: y', 'X: \x80\xff', 'X: a\x00b', 'X: a\rb', 'X: a\x7fb'],
    ...['Connection: keep-alive', 'Connection: close, keep-alive', 'Connection: Upgrade', 'Upgrade: h2c'],
    ...['Proxy-Connection: close', 'Keep-Alive: timeout=5, max=0', 'Trailer: X'],
    ...['Date: Sun, 06 Nov 1994 08:49:37 GMT', `X: ${'y'.repeat(100)}`],
  ];
  const fields = [framing, ...Array.from({ length: below(3) }, () => pick(others))];
  if (below(2) === 0) fields.reverse();
  const status = often('HTTP/1.1 200 OK', [
    ...['HTTP/1.0 200 OK', 'HTTP/1.1 200', 'HTTP/1.1 200 ', 'HTTP/1.1  200 OK', 'HTTP/1.1 200\tOK'],
    ...['HTTP/1.1 200 a\x80\x00b', 'HTTP/1.1 2000 OK', 'HTTP/1.1 20 OK', 'HTTP/1.1 404 Not Found'],
    ...['HTTP/1.1 204 No Content', 'HTTP/1.1 304 Not Modified', 'HTTP/1.1 503 No', 'HTTP/1.1 600 What'],
    ...['HTTP/1.2 200 OK', 'HTTP/2.0 200 OK', 'HTTP/0.9 200 OK', 'HTTP/1.10 200 OK', 'http/1.1 200 OK'],
    ...['ICY 200 OK', 'HTTP/1 200 OK', ''],
  ]);
  const interim = often('', ['HTTP/1.1 100 Continue', 'HTTP/1.1 103 Early Hints', 'HTTP/1.1 102 a\r\nX: y']);
  const before = interim === '' ? '' : `${interim}${end()}${end()}`.repeat(1 + below(3));
  const lines = [status, ...fields].map((line) => line + end()).join('');
  return mutate(`${before}${lines}${end()}${body}`, below);
}

/** Three of four as they are; else some bytes are taken out, doubled, put in, or the end is cut off. */
function mutate(text: string, below: (count: number) => number): string {
  if (below(4) > 0) return text;
  const at = below(text.length + 1);
  const to = at + 1 + below(4);
  switch (below(4)) {
    case 0:
      return text.slice(0, at) + text.slice(to);
    case 1:
      return text.slice(0, to) + text.slice(at);
    case 2:
      return (
        text.slice(0, at) + ['\r', '\n', ' ', '\t', ':', ';', '\0', '0', '\xe9', 'chunked'][below(10)] + text.slice(at)
      );
    default:
      return text.slice(0, at);
  }
}

/** How answers are sent, each over a connection of its own, which then ends. */
type Way = { readonly origin: URL; readonly dial?: Dial; readonly close: () => void };

/** Over loopback. `cut`: where the answer is sent in two pieces. */
async function openLoopback(answers: readonly string[], cut: (length: number) => number): Promise<Way> {
  const server = createServer({ noDelay: true }, (socket) => {
    socket.on('error', () => {});
    socket.once('data', (request) => {
      const answer = findAnswer(answers, request);
      const at = cut(answer.length);
      socket.write(answer.subarray(0, at));
      setImmediate(() => socket.end(answer.subarray(at)));
    });
  });
  return { origin: new URL(`http://127.0.0.1:${await listen(server)}`), close: () => server.close() };
}

/** From memory, which is ten times as fast. */
function openMemory(answers: readonly string[], cut: (length: number) => number): Way {
  const dial: Dial = async () => {
    const socket = new Duplex({
      read() {},
      write(request, _, done) {
        const answer = findAnswer(answers, request);
        const at = cut(answer.length);
        done();
        setImmediate(() => {
          for (const piece of [answer.subarray(0, at), answer.subarray(at)]) if (piece.length > 0) socket.push(piece);
          socket.push(null);
        });
      },
    });
    return { kind: 'open', socket: Object.assign(socket, { ref() {}, unref() {} }) as unknown as Socket };
  };
  return { origin: new URL('http://127.0.0.1'), dial, close() {} };
}

function findAnswer(answers: readonly string[], request: Buffer): Buffer {
  return Buffer.from(answers[Number(/\d+/.exec(request.toString())?.[0])] ?? '', 'latin1');
}

async function readAll(count: number, { origin, dial, close }: Way): Promise<readonly Reading[]> {
  const readings: Reading[] = [];
  let next = 0;
  async function readSome(): Promise<void> {
    for (let index = next++; index < count; index = next++) {
      const exchange = openExchange(origin, dial);
      const pieces: Buffer[] = [];
      const onBody = (piece: Uint8Array) => pieces.push(Buffer.from(piece)) > 0;
      const path = `/${index}`;
      const result = await exchange.send({ method: 'GET', path, headers: {}, timeoutMs: 60_000, onBody });
      await exchange.close();
      const status = 'status' in result ? result.status : null;
      if (status === null) readings[index] = 'none';
      else if (status !== 200) readings[index] = `status ${status}`;
      else if (result.kind === 'answered')
        readings[index] = `page ${result.contentType} ${Buffer.concat(pieces).toString('latin1')}`;
      else readings[index] = 'cut';
    }
  }
  await Promise.all(Array.from({ length: 16 }, readSome));
  close();
  return readings;
}

/** Where they differ, and why that stays. */
const DIFFERENCES: readonly {
  readonly why: string;
  readonly isSo: (answer: string, judged: Reading, ours: Reading) => boolean;
}[] = [
  {
    why: 'undici takes no blanks and no odd extension behind the size of a chunk, and no server is known to send them',
    isSo: (answer, judged, ours) => /\n[\da-f]+[\t ;]/i.test(answer) && judged.startsWith('page') && ours === 'cut',
  },
  {
    why: 'empty lines before an answer may be left of the one before, on the same connection',
    isSo: (answer, judged) => /(?:^|\n\r?\n)[\r\n]+HTTP/.test(answer) && judged === 'none',
  },
  {
    why: 'undici takes no line feed alone behind the last chunk',
    isSo: (answer, judged, ours) => /\n0\r\n\n/.test(answer) && judged.startsWith('page') && ours === 'cut',
  },
  { why: 'a 101 is a page for neither', isSo: (_, judged, ours) => judged === 'status 101' && ours === 'none' },
];

test('what Go reads of an answer is read, and no more, of 100,000 answers from memory and 1,000 over loopback', {
  skip,
}, async (context) => {
  const seed = Number(process.env['LASTSCRAPE_TEST_SEED'] ?? 20_261_123);
  context.diagnostic(`LASTSCRAPE_TEST_SEED=${seed}`);
  const below = openRandom(seed);
  const cut = (length: number) => (below(2) === 0 ? length : below(length + 1));
  const answers = Array.from({ length: 100_000 }, () => makeAnswer(below));
  const [verdicts, readings] = await Promise.all([
    askJudge<Verdict>(
      'http',
      answers.map((answer) => [Buffer.from(answer, 'latin1').toString('base64')]),
    ),
    readAll(answers.length, openMemory(answers, cut)),
  ]);
  const judged = verdicts.map(readVerdict);
  const differing = answers.flatMap((answer, index) => {
    const [wanted = '', got = ''] = [judged[index], readings[index]];
    if (wanted === got || DIFFERENCES.some(({ isSo }) => isSo(answer, wanted, got))) return [];
    return [{ answer, wanted, why: verdicts[index]?.error, got }];
  });
  assert.deepEqual(differing.slice(0, 5), [], `${differing.length} differ`);
  const counts = Map.groupBy(judged, (each) => each.replace(/ .*/s, ''));
  for (const kind of ['page', 'cut', 'none', 'status']) assert.ok((counts.get(kind)?.length ?? 0) > 1_000, kind);
  const some = answers.slice(0, 1_000);
  assert.deepEqual(await readAll(some.length, await openLoopback(some, cut)), readings.slice(0, 1_000));
});

/** Locations; all but the last four stay on the server. Bytes beyond ASCII, which are none of a URL, become others than Go's. */
const LOCATIONS =
  `/metrics/|/metrics/?a=b#c|?x|y|./y|../y|/a/../b|//127.0.0.1:8000/z|/%41%2f|/a b|#f||http://127.0.0.1:8000
HTTP://127.0.0.1:8000/a|http://127.0.0.1:8000/a?b=c%20d|/a;b=c
http://127.0.0.1:8001/|https://127.0.0.1:8000/|http://db:8000/|//db/`.split(/[|\n]/);

test('redirects to the same server are followed as Go follows them', { skip }, async () => {
  const moved = [301, 302, 303, 307, 308, 300, 304].flatMap((status) =>
    LOCATIONS.map((location) => `HTTP/1.1 ${status} a\r\nLocation: ${location}\r\nContent-Length: 0\r\n\r\n`),
  );
  const page = 'HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\na 1\n';
  const encode = (answer: string) => Buffer.from(answer, 'latin1').toString('base64');
  const verdicts = await askJudge<Verdict>('http', [
    ...moved.map((each) => [each, page].map(encode)),
    Array.from({ length: 20 }, () => encode(moved[0] as string)),
  ]);
  const limit = verdicts.at(-1)?.requests?.length;
  assert.equal(limit, 10);
  for (const [index, answer] of moved.entries()) {
    const requests: string[] = [];
    await using peer = await openPeer((socket, request) => {
      requests.push(`127.0.0.1:8000 ${request.split(' ')[1]}`);
      socket.write(requests.length === 1 ? answer.replaceAll('8000', String(peer.port)) : page, 'latin1');
    });
    const exchange = openExchange(peer.url);
    await exchange.send({ method: 'GET', path: '/metrics', headers: {}, timeoutMs: 60_000, followsRedirects: true });
    await exchange.close();
    const isAway = index % LOCATIONS.length >= LOCATIONS.length - 4;
    const wanted = verdicts[index]?.requests ?? [];
    assert.deepEqual(requests, isAway ? wanted.slice(0, 1) : wanted, answer);
  }
});
