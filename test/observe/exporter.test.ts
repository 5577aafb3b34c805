import assert from 'node:assert/strict';
import { test } from 'node:test';
import { VERSION } from '../../src/base/version.ts';
import type { ExporterObservation } from '../../src/decide/model.ts';
import { BODY_MAX_BYTES } from '../../src/exposition/exposition.ts';
import type { ExporterReading } from '../../src/observe/condition.ts';
import { NOT_READ, openExporter } from '../../src/observe/exporter.ts';
import { usedBytes } from '../support/memory.ts';
import { type Answerer, answerWith, closedPort, openPeer } from '../support/peer.ts';
import { readRecordedBody } from '../support/recording.ts';

const STOPPED = readRecordedBody('exporter-0.5.0-locust-2.47.0/07-stopped.11.txt').toString();
const NEVER = new AbortController().signal;

/** One observation at an exporter that answers so. */
async function readOnce(answer: Answerer, signal: AbortSignal = NEVER): Promise<ExporterReading> {
  await using peer = await openPeer(answer);
  const exporter = openExporter(peer.url, ['locust_up']);
  const reading = await exporter.read(signal);
  await exporter.close();
  return reading;
}

test('read() reads a recorded exposition', async () => {
  const { observation, metric, hasRequests } = await readOnce((socket) => socket.write(answerWith(STOPPED)));
  assert.deepEqual(observation, {
    kind: 'answered',
    scrapes: { finishedCount: 55, inFlightCount: 1 },
    totals: { requests: 222, failures: 36, users: 0 },
  });
  assert.deepEqual(metric('locust_up'), { kind: 'value', value: 1 });
  assert.deepEqual(metric('other'), { kind: 'unknown', why: 'not asked for' });
  assert.equal(hasRequests, true);
});

test('read() uses one connection for many polls and starts each afresh', async () => {
  await using peer = await openPeer((socket, _, count) => {
    socket.write(answerWith(count % 2 === 0 ? STOPPED : `locust_up ${count}\n`));
  });
  const exporter = openExporter(peer.url, ['locust_up']);
  for (let count = 0; count < 40; count++) {
    const { observation, metric, hasRequests } = await exporter.read(NEVER);
    assert.deepEqual(metric('locust_up'), { kind: 'value', value: count % 2 === 0 ? 1 : count });
    assert.equal(hasRequests, count % 2 === 0);
    assert.equal(observation.kind === 'answered' && observation.scrapes !== null, count % 2 === 0);
  }
  assert.equal(peer.connectionsCount(), 1);
  await exporter.close();
});

test('read() asks for the text format and names itself', async () => {
  await using peer = await openPeer((socket) => socket.write(answerWith('')), '/m?a=b');
  const exporter = openExporter(peer.url, []);
  await exporter.read(NEVER);
  await exporter.close();
  const lines = peer.requests[0]?.split('\r\n') ?? [];
  assert.equal(lines[0], 'GET /m?a=b HTTP/1.1');
  assert.ok(lines.includes('accept: text/plain;version=0.0.4'), lines.join());
  assert.ok(lines.includes(`user-agent: lastscrape/${VERSION}`), lines.join());
  assert.ok(!lines.some((line) => /encoding|content-length/i.test(line)), lines.join());
});

type Failure = { readonly name: string; readonly answer: Answerer; readonly why: RegExp; readonly mayCount: boolean };

// Only a 200 counts (promhttp's code="200"); one that was cut off, or may yet come, may have been counted.
const FAILURES: readonly Failure[] = [
  { name: 'a 500', answer: (s) => s.write(answerWith(STOPPED, '500 No')), why: /^HTTP 500$/, mayCount: false },
  { name: 'a 204', answer: (s) => s.write('HTTP/1.1 204 None\r\n\r\n'), why: /^HTTP 204$/, mayCount: false },
  {
    name: 'a redirect',
    answer: (s) => s.write(answerWith(STOPPED, '302 Found', 'Location: /metrics\r\n')),
    why: /^HTTP 302$/,
    mayCount: false,
  },
  { name: 'no answer', answer: (s) => s.end(), why: /^the connection was closed$/, mayCount: true },
  { name: 'a reset', answer: (s) => s.resetAndDestroy(), why: /^the connection was closed$/, mayCount: true },
  {
    name: 'a cut body',
    answer: (s) => s.end('HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\nlocust_up 0\nlocust_users 6'),
    why: /other side closed/,
    mayCount: true,
  },
  {
    name: 'a cut body of a 500',
    answer: (s) => s.end('HTTP/1.1 500 No\r\nContent-Length: 99\r\n\r\nlocust_up 0\n'),
    why: /^HTTP 500$/,
    mayCount: false,
  },
  {
    name: 'a reset in the body',
    answer: (s) => s.write('HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\nlocust_up 0\n', () => s.resetAndDestroy()),
    why: /ECONNRESET/,
    mayCount: true,
  },
  {
    name: 'a 103 and then the end',
    answer: (s) => s.end('HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n'),
    why: /^the connection was closed$/,
    mayCount: true,
  },
  {
    name: '100 KB of headers',
    answer: (s) => s.write(answerWith('', '200 OK', `X: ${'x'.repeat(100_000)}\r\n`)),
    why: /Headers Overflow/i,
    mayCount: true,
  },
];

function assertUnread({ observation, metric, hasRequests }: ExporterReading, why: RegExp, mayCount: boolean) {
  assert.ok(observation.kind === 'failed', JSON.stringify(observation));
  assert.match(observation.why, why);
  assert.equal(observation.mayCount, mayCount, 'mayCount');
  assert.deepEqual(metric('locust_up'), { kind: 'unknown', why: observation.why });
  assert.equal(hasRequests, false);
}

for (const { name, answer, why, mayCount } of FAILURES) {
  test(`read() keeps nothing of ${name}, which ${mayCount ? 'may count' : 'does not count'}`, async () => {
    assertUnread(await readOnce(answer), why, mayCount);
  });
}

test('read() says where the exporter refuses', async () => {
  const exporter = openExporter(new URL(`http://localhost:${await closedPort()}/metrics`), ['locust_up']);
  const { observation, metric } = await exporter.read(NEVER);
  assert.deepEqual(observation, { kind: 'refused' } satisfies ExporterObservation);
  assert.deepEqual(metric('locust_up'), { kind: 'unknown', why: 'the exporter refuses connections' });
  await exporter.close();
});

test('read() knows nothing from a page of HTML', async () => {
  const html = readRecordedBody('exporter-0.5.0-locust-2.47.0/01b-root.txt').toString();
  const { observation, metric } = await readOnce((socket) => socket.write(answerWith(html)));
  assert.deepEqual(observation, {
    kind: 'answered',
    scrapes: null,
    totals: { requests: null, failures: null, users: null },
  });
  assert.deepEqual(metric('locust_up'), { kind: 'unknown', why: 'not in the exposition' });
});

test('read() reads an answer without an encoding only, and what counts may count', async () => {
  for (const encoding of ['gzip', 'br', 'x'.repeat(40), 'gzip, identity']) {
    // The body is a plain one all the same: what it declares decides.
    const answer = answerWith(STOPPED, '200 OK', `Content-Encoding: ${encoding}\r\n`);
    const reading = await readOnce((socket) => socket.write(answer));
    assertUnread(reading, new RegExp(`^Content-Encoding ${encoding}$`), true);
  }
  for (const encoding of ['identity', 'Identity', '']) {
    const answer = answerWith(STOPPED, '200 OK', `Content-Encoding: ${encoding}\r\n`);
    const { metric } = await readOnce((socket) => socket.write(answer));
    assert.deepEqual(metric('locust_up'), { kind: 'value', value: 1 }, encoding);
  }
});

test('read() is ended at once by its signal: a silent exporter, and one that drips', async () => {
  for (const head of ['', 'HTTP/1.1 200 OK\r\nContent-Length: 99999\r\n\r\nlocust_up 0\n']) {
    const controller = new AbortController();
    const reading = await readOnce((socket) => {
      // A byte a turn, for ever; the signal comes after some.
      let left = 20;
      const drip = () => {
        if (socket.destroyed) return;
        if (head !== '') socket.write('x');
        if (left-- === 0) controller.abort('SIGTERM');
        setImmediate(drip);
      };
      socket.write(head);
      drip();
    }, controller.signal);
    assertUnread(reading, /^SIGTERM$/, true);
  }
});

test('read() sends nothing where its signal came before', async () => {
  const reading = await readOnce(() => assert.fail('asked'), AbortSignal.abort('SIGTERM'));
  assertUnread(reading, /^SIGTERM$/, false);
});

for (const [name, piece] of Object.entries({
  'other lines': Buffer.from('go_goroutines 9\n'.repeat(4_096)),
  'one line without end': Buffer.alloc(65_536, 'x'),
  'one wanted line without end': Buffer.from(`locust_users{a="${'x'.repeat(65_000)}`),
})) {
  test(`read() stops at BODY_MAX_BYTES and keeps nothing: ${name}`, async () => {
    const chunk = Buffer.concat([Buffer.from(`${piece.length.toString(16)}\r\n`), piece, Buffer.from('\r\n')]);
    const before = usedBytes();
    let sentBytes = 0;
    let grownBytes = 0;
    const reading = await readOnce((socket) => {
      // As fast as it is read, for ever; three quarters through, what the reader holds is measured.
      const more = () => {
        let isAccepted = true;
        while (!socket.destroyed && isAccepted) {
          isAccepted = socket.write(chunk);
          sentBytes += chunk.length;
          if (grownBytes === 0 && sentBytes > BODY_MAX_BYTES * 0.75) grownBytes = usedBytes() - before;
        }
      };
      socket.on('drain', more);
      socket.write('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nc\r\nlocust_up 0\n\r\n');
      more();
    });
    assertUnread(reading, /^the body is too long$/, true);
    assert.ok(sentBytes > BODY_MAX_BYTES, 'it read as far as it may');
    assert.ok(grownBytes < BODY_MAX_BYTES / 4, `${grownBytes} bytes more in use`);
  });
}

test('NOT_READ says that it was not read', () => {
  assert.deepEqual(NOT_READ.observation, { kind: 'none' });
  assert.deepEqual(NOT_READ.metric('locust_up'), { kind: 'unknown', why: 'the exporter was not read' });
  assert.equal(NOT_READ.hasRequests, false);
});

/** What is judged of one answer, `a` and `b`. */
async function readJudged(answer: Answerer): Promise<readonly unknown[] | undefined> {
  await using peer = await openPeer(answer);
  const selectors = ['a', 'b'].map((name) => ({ name, labels: [] }));
  const exporter = openExporter(peer.url, [], selectors);
  const { observation } = await exporter.read(NEVER);
  await exporter.close();
  return observation.kind === 'answered' ? observation.thresholds : undefined;
}

test('read() reads what is judged, and nothing of a body that may be cut', async () => {
  const [a, b] = [
    { kind: 'value', value: 1 },
    { kind: 'value', value: 25 },
  ];
  const body = 'a 1\nb 25';
  assert.deepEqual(await readJudged((socket) => socket.write(answerWith(body))), [a, b]);
  const chunked = `HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`;
  assert.deepEqual(await readJudged((socket) => socket.write(chunked)), [a, b]);
  const closed = (text: string) => `HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n${text}`;
  assert.deepEqual(await readJudged((socket) => socket.end(closed(`${body}\n`))), [a, b]);
  assert.equal(await readJudged((socket) => socket.end(closed(body))), undefined, '25 may have been 250');
  assert.equal(await readJudged((socket) => socket.end(answerWith('a 1\n').replace(': 4', ': 40'))), undefined);
  assert.deepEqual(await readJudged((socket) => socket.write(answerWith('c 1\n'))), [
    { kind: 'none' },
    { kind: 'none' },
  ]);
});
