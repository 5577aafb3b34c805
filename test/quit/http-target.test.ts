import assert from 'node:assert/strict';
import { type AddressInfo, createServer } from 'node:net';
import { test } from 'node:test';
import { VERSION } from '../../src/base/version.ts';
import type { Answer } from '../../src/decide/quit/quit-target.ts';
import { findForgottenMesh, type HttpTargetOptions, httpTarget, urlKind } from '../../src/quit/http-target.ts';
import { PRESETS, type Preset } from '../../src/quit/programs.ts';
import { freezePort } from '../base/net/frozen-port.ts';
import { findFreePort, listen } from '../support/listen.ts';
import { type Answerer, answerWith, openPeer } from '../support/peer.ts';

const NEVER = new AbortController().signal;
const LIMIT_MS = 30_000;

const SENDER = { pid: 1, kill: () => assert.fail('no signal') };

/** A target at a URL; its quit port and those of its service are on the same host. */
function make(url: URL | string, more: Partial<HttpTargetOptions> = {}) {
  return httpTarget({ method: 'POST', url: new URL(url), sender: SENDER, ...more });
}

type Asked = { readonly answer: Answer; readonly requests: readonly string[]; readonly connectionsCount: number };

async function ask(answer: Answerer, options: Partial<Omit<HttpTargetOptions, 'url'>> = {}): Promise<Asked> {
  await using peer = await openPeer(answer);
  const url = new URL(`http://user:pass@127.0.0.1:${peer.port}/quit?token=s3cret`);
  const target = make(url, options);
  const answered = await target.ask(LIMIT_MS, NEVER);
  return { answer: answered, requests: [...peer.requests], connectionsCount: peer.connectionsCount() };
}

const ANSWERS: readonly (readonly [name: string, answer: Answerer, expected: Answer])[] = [
  ['200', (s) => s.write(answerWith('OK')), { kind: 'answered', status: 200, isHtml: false }],
  ['403', (s) => s.write(answerWith('', '403 No')), { kind: 'answered', status: 403, isHtml: false }],
  [
    'a page of HTML',
    (s) => s.write('HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: 0\r\n\r\n'),
    { kind: 'answered', status: 200, isHtml: true },
  ],
  ['the end of the connection', (s) => s.end(), { kind: 'dropped' }],
];

for (const [name, answer, expected] of ANSWERS) {
  test(`ask() says what the answer was: ${name}`, async () => {
    const asked = await ask(answer);
    assert.deepEqual(asked.answer, expected);
    assert.equal(asked.requests.length, 1);
  });
}

test('ask() says that it was refused, or got no answer', async () => {
  const target = make(`http://localhost:${await findFreePort()}/`);
  assert.deepEqual(await target.ask(LIMIT_MS, NEVER), { kind: 'refused' });
  assert.deepEqual(await target.ask(LIMIT_MS, AbortSignal.abort('interrupted')), {
    kind: 'failed',
    why: 'interrupted',
    wasSent: false,
  });
  const asked = new AbortController();
  await using peer = await openPeer(() => asked.abort('interrupted'));
  const silent = make(peer.url);
  const interrupted = await silent.ask(LIMIT_MS, asked.signal);
  assert.deepEqual(interrupted, { kind: 'failed', why: 'interrupted', wasSent: true });
  const late = await silent.ask(20, NEVER);
  assert.ok(late.kind === 'failed' && late.why === 'timed out', 'sent or not, on a busy machine');
  await peer.closed(2);
});

test('ask() takes a connection of its own each time and leaves none behind', async () => {
  await using peer = await openPeer((socket) => socket.write(answerWith('OK')));
  const target = make(peer.url);
  await target.ask(LIMIT_MS, NEVER);
  await target.ask(LIMIT_MS, NEVER);
  assert.equal(peer.connectionsCount(), 2);
  await peer.closed(2);
});

function readHeaders(request: string | undefined): Readonly<Record<string, string>> {
  const lines = request?.split('\r\n').slice(1) ?? [];
  return Object.fromEntries(
    lines.map((line) => [line.slice(0, line.indexOf(':')).toLowerCase(), line.slice(line.indexOf(':') + 2)]),
  );
}

test('ask() sends method, path, query and its name, and says that there is no body only where one may be expected', async () => {
  for (const [method, length] of [
    ['POST', '0'],
    ['PUT', '0'],
    ['DELETE', undefined],
    ['PATCH', '0'],
    ['GET', undefined],
    ['HEAD', undefined],
  ] as const) {
    const { requests, answer } = await ask((socket) => socket.write(answerWith('')), { method });
    assert.deepEqual(answer, { kind: 'answered', status: 200, isHtml: false }, method);
    assert.equal(requests[0]?.split('\r\n')[0], `${method} /quit?token=s3cret HTTP/1.1`);
    const headers = readHeaders(requests[0]);
    assert.equal(headers['user-agent'], `lastscrape/${VERSION}`);
    assert.equal(headers['content-length'], length, method);
    assert.equal(headers['transfer-encoding'], undefined);
    assert.equal(headers['authorization'], undefined);
  }
});

test('httpTarget() names itself without secrets', () => {
  const url = new URL('http://user:pass@localhost:1/quit?token=s3cret');
  const target = make(url);
  assert.equal(target.name, 'POST http://***@localhost:1/quit?***');
  assert.equal(target.request, 'POST http://***@localhost:1/quit?***');
  assert.equal(make(url, { name: 'a' }).name, 'a');
});

test('probe() sees whether the port is open, and sends nothing', async () => {
  await using peer = await openPeer(() => {});
  assert.equal(await make(peer.url).probe(LIMIT_MS, NEVER), 'open');
  await peer.closed(1);
  assert.deepEqual(peer.requests, []);
  const closed = make(`http://localhost:${await findFreePort()}/`);
  assert.equal(await closed.probe(LIMIT_MS, NEVER), 'refused');
  assert.equal(await closed.probe(LIMIT_MS, AbortSignal.abort('SIGTERM')), 'unknown');
});

test('ask() says that nothing was sent where the request cannot be made', async () => {
  await using peer = await openPeer(() => {});
  const target = make(peer.url, { headers: { token: 'a\nb' } });
  const answer = await target.ask(LIMIT_MS, NEVER);
  assert.deepEqual(answer, { kind: 'failed', why: 'invalid token header (UND_ERR_INVALID_ARG)', wasSent: false });
  assert.equal(peer.connectionsCount(), 0);
});

test('probe() keeps its time over all addresses and ports together', async (context) => {
  const server = createServer((socket) => socket.destroy());
  await listen(server, '::1');
  context.after(() => server.close());
  const { port } = server.address() as AddressInfo;
  const target = make(`http://localhost:${port}/`);
  assert.equal(await target.probe(1_000, NEVER), 'open');
  // The time is up while 127.0.0.1 is asked: ::1 is not asked any more.
  context.mock.timers.enable({ apis: ['setTimeout'] });
  const probing = target.probe(1_000, NEVER);
  context.mock.timers.tick(1_001);
  assert.equal(await probing, 'unknown');
});

test('hint() says what an answer usually means', () => {
  const { hint } = make('http://localhost:1/');
  const answered = (status: number, isHtml = false): Answer => ({ kind: 'answered', status, isHtml });
  const table: readonly (readonly [answer: Answer | null, hint: RegExp])[] = [
    [null, /^no request could be made$/],
    [{ kind: 'dropped' }, /closed the connection and listens again/],
    [{ kind: 'disabled', port: 5432 }, /^its quit port refuses while 5432 answers: quitting may be switched off$/],
    [{ kind: 'refused' }, /refused our request and listens again/],
    [{ kind: 'failed', why: 'timed out', wasSent: true }, /^no answer \(timed out\): is it overloaded/],
    [answered(401), /^it answered 401: it wants credentials/],
    [answered(403), /^it answered 403: it wants credentials, or quitting is switched off$/],
    [answered(404, true), /^it answered 404: no such path/],
    [answered(405), /^it answered 405: it wants another method$/],
    [answered(200, true), /^it answered 200 with a page of HTML: it has no quit endpoint at this path$/],
    [answered(200), /^it answered 200 and lives on: .*LASTSCRAPE_QUIT_TIMEOUT/],
    [answered(299, true), /^it answered 299 with a page of HTML/],
    [answered(299), /^it answered 299 and lives on/],
    [answered(300, true), /^it answered 300: look into its log$/],
    [answered(300), /^it answered 300: look into its log$/],
    [answered(302), /^it answered 302: look into its log$/],
    [answered(500), /^it answered 500: look into its log$/],
  ];
  for (const [answer, expected] of table) assert.match(hint(answer), expected);
});

const OWN: Preset = { ...(PRESETS[0] as Preset), hints: { dropped: 'own words', disabled: 'own words' } };

test("hint() prefers the program's own words", () => {
  const { hint } = make('http://localhost:1/', { preset: OWN });
  assert.equal(hint({ kind: 'dropped' }), 'own words');
  assert.match(hint({ kind: 'refused' }), /listens again/);
  assert.equal(hint(null), 'no request could be made');
});

/** A target whose quit port is closed and whose service listens on `servicePorts`. */
function behind(quitPort: number, servicePorts: readonly number[], more: Partial<HttpTargetOptions> = {}) {
  return make(`http://127.0.0.1:${quitPort}/quit`, { servicePorts, ...more });
}

test('ask() takes a refused quit port for disabled while its service answers on any port, and sends the service nothing', async () => {
  await using service = await openPeer(() => {});
  const [quitPort, otherPort] = [await findFreePort(), await findFreePort()];
  const answer = await behind(quitPort, [otherPort, service.port]).ask(LIMIT_MS, NEVER);
  assert.deepEqual(answer, { kind: 'disabled', port: service.port });
  await service.closed(1);
  assert.deepEqual(service.requests, []);
  assert.deepEqual(await behind(quitPort, [otherPort]).ask(LIMIT_MS, NEVER), { kind: 'refused' });
});

test('probe() takes a target for gone when its quit port and all ports of its service refuse', async () => {
  await using service = await openPeer(() => {});
  const [quitPort, otherPort] = [await findFreePort(), await findFreePort()];
  assert.equal(await behind(quitPort, [otherPort, service.port]).probe(LIMIT_MS, NEVER), 'open');
  assert.equal(await behind(service.port, [otherPort]).probe(LIMIT_MS, NEVER), 'open');
  assert.equal(await behind(quitPort, [otherPort]).probe(LIMIT_MS, NEVER), 'refused');
});

test('inspect() uses port 80 for a URL without one', async () => {
  const { inspect } = make('http://localhost/quit');
  assert.match((await inspect?.())?.[0] ?? '', / on 80(:|$)/);
});

test('probe() gives up when its time is over or it is aborted, also before it began', async () => {
  using frozen = await freezePort();
  const target = behind(frozen.port, []);
  assert.equal(await target.probe(10, NEVER), 'unknown');
  const controller = new AbortController();
  const first = Promise.race([
    target.probe(600_000, NEVER).then(() => 'the time limit of a single probe'),
    target.probe(600_000, controller.signal).then((probe) => `${probe}, aborted`),
  ]);
  setImmediate(() => controller.abort());
  assert.equal(await first, 'unknown, aborted');
  assert.equal(await target.probe(600_000, AbortSignal.abort()), 'unknown');
});

test('ask() sends the headers of its own', async () => {
  const { requests } = await ask((socket) => socket.write(answerWith('')), { headers: { 'x-vault-request': 'true' } });
  assert.equal(readHeaders(requests[0])['x-vault-request'], 'true');
});

test('inspect() says what its ports show now, and sends nothing', async () => {
  await using open = await openPeer(() => {});
  const [closed, other] = [await findFreePort(), await findFreePort()];
  const table = [
    [behind(open.port, []), `answers on ${open.port}`],
    [
      behind(open.port, [], { preset: { ...OWN, flag: '--quit', offStatus: 404 } }),
      `answers on ${open.port}; it quits only with --quit`,
    ],
    [behind(closed, []), `refuses on ${closed}: not started yet, or on another port`],
    [behind(closed, [other]), `refuses on ${closed}, ${other}: not started yet, or on another port`],
    [behind(closed, [open.port], { preset: OWN }), `refuses on ${closed}: own words`],
  ] as const;
  for (const [target, line] of table) assert.deepEqual(await target.inspect?.(), [line]);
  assert.deepEqual(open.requests, []);
});

const CONTEXT = { ...SENDER, metricsUrl: new URL('http://localhost:9646/metrics'), env: {} };

/** The request of the target, the problem, or null where the entry is of another kind. */
function readUrl(entry: string): string | null {
  const parsed = urlKind.read(entry, CONTEXT);
  if (parsed === null) return null;
  return 'problem' in parsed ? parsed.problem : parsed.value.request;
}

const NO_URL = 'an http: URL such as "http://localhost:9646/quitquitquit"';
const NO_METHOD = 'a method of GET, POST, PUT, DELETE, PATCH, HEAD before the URL';

const NO_ENCODING = 'a URL whose user and password are percent-encoded UTF-8: a "%" is "%25"';

const ENTRIES: readonly (readonly [entry: string, read: string | null])[] = [
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
  ['http://localhost:99999/', NO_URL],
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

for (const [entry, expected] of ENTRIES) {
  test(`read() takes ${JSON.stringify(entry)} for ${JSON.stringify(expected)}`, () =>
    assert.equal(readUrl(entry), expected));
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
    await parsed.value.ask(LIMIT_MS, NEVER);
    const { authorization } = readHeaders(peer.requests[0]);
    const wanted = expected === undefined ? undefined : `Basic ${Buffer.from(expected).toString('base64')}`;
    assert.equal(authorization, wanted, credentials);
  }
});

const APP = make('http://localhost:1/');

function presetsFoundBy(...ports: readonly number[]): readonly Preset[] {
  return ports.map((foundBy, index) => ({ ...OWN, name: `mesh${index}`, foundBy }));
}

test('findForgottenMesh() names the proxy that answers although it was not listed, and sends it nothing', async () => {
  await using proxy = await openPeer(() => {});
  const [entry, ...more] = await findForgottenMesh([APP], presetsFoundBy(await findFreePort(), proxy.port));
  assert.deepEqual(more, []);
  assert.equal(entry?.id, 'meshForgotten');
  assert.deepEqual(entry?.fields, { port: proxy.port, add: 'mesh1, as the last entry of LASTSCRAPE_QUIT' });
  await proxy.closed(1);
  assert.deepEqual(proxy.requests, []);
});

test('findForgottenMesh() connects to nothing where nothing is to be stopped, or a proxy was listed', async () => {
  await using proxy = await openPeer(() => {});
  assert.deepEqual(await findForgottenMesh([], presetsFoundBy(proxy.port)), []);
  assert.deepEqual(await findForgottenMesh([APP, { ...APP, isMesh: true }], presetsFoundBy(proxy.port)), []);
  assert.equal(proxy.connectionsCount(), 0);
});

test('findForgottenMesh() tries two ports by default: Istio and Linkerd', () => {
  const ports = PRESETS.flatMap(({ name, foundBy }) => (foundBy === undefined ? [] : [[name, foundBy]]));
  assert.deepEqual(ports, [
    ['istio', 15021],
    ['linkerd', 4191],
  ]);
});
