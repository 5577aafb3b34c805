import assert from 'node:assert/strict';
import { test } from 'node:test';
import { urlKind } from '../../src/quit/http-target.ts';
import { answerWith, openPeer } from '../support/peer.ts';

const CONTEXT = {
  metricsUrl: new URL('http://localhost:9646/metrics'),
  env: {},
  pid: 1,
  kill: () => {},
};

/** The request of the target, the problem, or null where the entry is of another kind. */
function read(entry: string): string | null {
  const parsed = urlKind.read(entry, CONTEXT);
  if (parsed === null) return null;
  return 'problem' in parsed ? parsed.problem : parsed.value.request;
}

const NO_URL = 'an http: URL such as "http://localhost:9646/quitquitquit"';
const NO_METHOD = 'a method of GET, POST, PUT, DELETE, PATCH, HEAD before the URL';

const NO_ENCODING = 'a URL whose user and password are percent-encoded UTF-8: a "%" is "%25"';

const TABLE: readonly (readonly [entry: string, read: string | null])[] = [
  ['http://localhost:15020/quitquitquit', 'POST http://localhost:15020/quitquitquit'],
  ['POST http://localhost:1/a', 'POST http://localhost:1/a'],
  ['get   http://localhost:1/a', 'GET http://localhost:1/a'],
  ['PUT http://localhost:1', 'PUT http://localhost:1/'],
  ['DELETE http://localhost:1/', 'DELETE http://localhost:1/'],
  ['PATCH http://localhost:1/', 'PATCH http://localhost:1/'],
  ['HEAD http://localhost:1/', 'HEAD http://localhost:1/'],
  ['HTTP://LOCALHOST:1/A', 'POST http://localhost:1/A'],
  ['http://[::1]:1/a', 'POST http://[::1]:1/a'],
  ['http://u:p@localhost:1/a?b=c', 'POST http://***@localhost:1/a?***'],
  ['http://u:50%@localhost:1/', NO_ENCODING],
  ['http://u%ff:p@localhost:1/', NO_ENCODING],
  ['http://u:50%25@localhost:1/', 'POST http://***@localhost:1/'],
  ['https://localhost:1/', NO_URL],
  ['POST https://localhost:1/', NO_URL],
  ['ftp://localhost/', NO_URL],
  ['unix:///run/a.sock', NO_URL],
  ['http://', NO_URL],
  ['http://localhost:99999/', `${NO_URL}; 99999 is above the highest port, 65535`],
  ['https://localhost:1/99999', NO_URL],
  ['http://a b/', NO_URL],
  ['CONNECT http://localhost:1/', NO_METHOD],
  ['BREW http://localhost:1/', NO_METHOD],
  ['locust-exporter', null],
  ['none', null],
  ['', null],
  ['localhost:9646/quit', null],
  ['POST', null],
  ['POST /quit', null],
];

for (const [entry, expected] of TABLE) {
  test(`read() takes ${JSON.stringify(entry)} for ${JSON.stringify(expected)}`, () =>
    assert.equal(read(entry), expected));
}

test("a target makes a Basic authorization of its URL's user and password", async () => {
  for (const [credentials, expected] of [
    ['', undefined],
    ['user:pass@', 'user:pass'],
    ['user@', 'user:'],
    [':pass@', ':pass'],
    ['us%40er:p%3A%C3%BC%2C@', 'us@er:p:ü,'],
  ] as const) {
    await using peer = await openPeer((socket) => socket.write(answerWith('')));
    const parsed = urlKind.read(`http://${credentials}127.0.0.1:${peer.port}/quit`, CONTEXT);
    assert.ok(parsed !== null && 'value' in parsed);
    await parsed.value.ask(30_000, new AbortController().signal);
    const [, authorization] = /^authorization: (.*)$/im.exec(peer.requests[0] ?? '') ?? [];
    const wanted = expected === undefined ? undefined : `Basic ${Buffer.from(expected).toString('base64')}`;
    assert.equal(authorization, wanted, credentials);
  }
});
