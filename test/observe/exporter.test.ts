import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ExporterObservation } from '../../src/decide/model.ts';
import { BODY_MAX_BYTES } from '../../src/exposition/exposition.ts';
import type { ExporterReading } from '../../src/observe/condition-kind.ts';
import { openExporter } from '../../src/observe/exporter.ts';
import { findFreePort } from '../support/listen.ts';
import { usedBytes } from '../support/memory.ts';
import { type Answerer, answerWith, openPeer } from '../support/peer.ts';
import { readRecordedBody } from '../support/recording.ts';

const STOPPED = readRecordedBody('exporter-0.5.0-locust-2.47.0/07-stopped.11.txt').toString();
const NEVER = new AbortController().signal;

async function readOnce(answer: Answerer, signal: AbortSignal = NEVER): Promise<ExporterReading> {
  await using peer = await openPeer(answer);
  const exporter = openExporter(peer.url, ['locust_up']);
  const reading = await exporter.read(signal).ended;
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

// What both fetch is tested in test/front/sources/http.test.ts; here only what differs, and what a poll counts as a scrape.
const FAILURES: readonly (readonly [name: string, answer: Answerer, why: RegExp, mayCount: boolean])[] = [
  ['a 500', (s) => s.write(answerWith(STOPPED, '500 No')), /^HTTP 500$/, false],
  [
    'a redirect to another server',
    (s) => s.write(answerWith('', '302 Found', 'Location: https://me:secret@db/metrics?token=x\r\n')),
    /^HTTP 302 to https:\/\/db\/metrics, and redirects are followed to the same server only$/,
    false,
  ],
  ['a redirect to nowhere', (s) => s.write(answerWith('', '302 Found')), /^HTTP 302$/, false],
  ['no answer', (s) => s.end(), /^the connection was closed$/, true],
  ['a cut body of a 500', (s) => s.end('HTTP/1.1 500 No\r\nContent-Length: 9\r\n\r\na'), /^HTTP 500$/, false],
  ['a cut body', (s) => s.end('HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\nlocust_up 0\n'), /side closed/, true],
  [
    'an encoding',
    (s) => s.write(answerWith(STOPPED, '200 OK', 'Content-Encoding: gzip\r\n')),
    /^Content-Encoding gzip$/,
    true,
  ],
];

function assertUnread({ observation, metric, hasRequests }: ExporterReading, why: RegExp, mayCount: boolean) {
  assert.ok(observation.kind === 'failed', JSON.stringify(observation));
  assert.match(observation.why, why);
  assert.equal(observation.mayCount, mayCount, 'mayCount');
  assert.deepEqual(metric('locust_up'), { kind: 'unknown', why: observation.why });
  assert.equal(hasRequests, false);
}

for (const [name, answer, why, mayCount] of FAILURES) {
  test(`read() keeps nothing of ${name}, which ${mayCount ? 'may count' : 'does not count'}, and asks once`, async () => {
    let count = 0;
    const counted: Answerer = (...parts) => {
      count++;
      return answer(...parts);
    };
    assertUnread(await readOnce(counted), why, mayCount);
    assert.equal(count, 1);
  });
}

test('read() says where the exporter refuses', async () => {
  const exporter = openExporter(new URL(`http://localhost:${await findFreePort()}/metrics`), ['locust_up']);
  const { observation, metric } = await exporter.read(NEVER).ended;
  assert.deepEqual(observation, { kind: 'refused' } satisfies ExporterObservation);
  assert.deepEqual(metric('locust_up'), { kind: 'unknown', why: 'the exporter refuses connections' });
  await exporter.close();
});

for (const [name, piece] of Object.entries({
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

async function readJudged(answer: Answerer): Promise<readonly unknown[] | undefined> {
  await using peer = await openPeer(answer);
  const selectors = ['a', 'b'].map((name) => ({ name, labels: [] }));
  const exporter = openExporter(peer.url, [], selectors);
  const { observation } = await exporter.read(NEVER).ended;
  await exporter.close();
  return observation.kind === 'answered' ? observation.thresholds : undefined;
}

test('read() reads OpenMetrics where a program answers that to whatever it is asked', async () => {
  const page = '# TYPE a counter\na_total 1 # {trace_id="abc"} 1\n# EOF\n';
  const type = 'application/openmetrics-text; version=1.0.0';
  await using peer = await openPeer((socket) => socket.write(answerWith(page).replace('text/plain', type)));
  const exporter = openExporter(peer.url, ['a_total']);
  const { metric } = await exporter.read(NEVER).ended;
  await exporter.close();
  assert.deepEqual(metric('a_total'), { kind: 'value', value: 1 });
});

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
