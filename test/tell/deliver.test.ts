// Requests to real HTTP and TLS servers: what arrives, whom it trusts, what is said of a failure, and that no secret is.

import assert from 'node:assert/strict';
import { execFile, execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { VERSION } from '../../src/base/version.ts';
import { type DeliveryRequest, type Destination, openDelivery } from '../../src/tell/deliver.ts';
import { gateOpenssl, makeAuthority } from '../stand-in/authority.ts';
import { makeFolder } from '../support/folder.ts';
import { findFreePort } from '../support/listen.ts';
import { openPeer } from '../support/peer.ts';
import { openHttp, openHttps } from '../support/receiver.ts';

const skip = gateOpenssl('test/tell/deliver.test.ts');
const authority = makeAuthority();
const folder = makeFolder();
const caFile = join(folder, 'ca.pem');
writeFileSync(caFile, authority.ca);
const NEVER = new AbortController().signal;
const LIMIT_MS = 30_000;

function file(name: string, text: string): string {
  const path = join(folder, name);
  writeFileSync(path, text);
  return path;
}

function destination(url: string, more: Partial<Destination> = {}): Destination {
  return { url: new URL(url), headersFile: null, caFile: null, ...more };
}

const answered = (status: number, text: string) => ({ kind: 'answered', status, text, retryAfterMs: 0 }) as const;

const REQUEST: Omit<DeliveryRequest, 'path'> = {
  method: 'POST',
  headers: { 'content-type': 'text/plain' },
  body: Buffer.from('numbers'),
  timeoutMs: LIMIT_MS,
  signal: NEVER,
};

async function send(to: Destination, more: Partial<DeliveryRequest> = {}) {
  const delivery = openDelivery(to);
  try {
    return await delivery.send({ ...REQUEST, path: to.url.pathname + to.url.search, ...more });
  } finally {
    await delivery.close();
  }
}

test('send() hands over method, path, headers and body, and returns the answer', async () => {
  await using server = await openHttp((response) => {
    response.statusCode = 202;
    response.end('queued');
  });
  const headersFile = file('headers', 'Authorization: Bearer s3cret-token\nUser-Agent: mine\n');
  const to = destination(`http://localhost:${server.port}/push?db=1`, { headersFile });
  assert.deepEqual(await send(to), answered(202, 'queued'));
  const [{ method, url, headers, body } = assert.fail('nothing came')] = server.seen;
  assert.deepEqual([method, url, body], ['POST', '/push?db=1', 'numbers']);
  assert.equal(headers.authorization, 'Bearer s3cret-token');
  assert.equal(headers['user-agent'], 'mine', 'the file wins');
  assert.equal(headers['content-length'], '7');
});

test('send() streams a body whose length it does not know, and says who it is', async () => {
  await using server = await openHttp();
  async function* body() {
    for (let index = 0; index < 50; index++) yield Buffer.from('x'.repeat(10_000));
  }
  const result = await send(destination(`http://127.0.0.1:${server.port}/`), { method: 'PUT', body: body() });
  assert.equal(result.kind, 'answered');
  assert.equal(server.seen[0]?.body.length, 500_000);
  assert.equal(server.seen[0]?.headers['user-agent'], `lastscrape/${VERSION}`);
  assert.equal(server.seen[0]?.headers['transfer-encoding'], 'chunked');
});

test('send() fails where the body breaks off, and the server gets no whole one', async () => {
  await using server = await openHttp();
  async function* body() {
    yield Buffer.from('begun');
    throw new Error('the snapshot is gone');
  }
  const result = await send(destination(`http://127.0.0.1:${server.port}/`), { body: body() });
  assert.equal(result.kind, 'failed');
  assert.equal(server.seen.length, 0);
});

test('send() reads the headers file again each time', async () => {
  await using server = await openHttp();
  const headersFile = file('renewed', 'X-Token: first\n');
  const to = destination(`http://127.0.0.1:${server.port}/`, { headersFile });
  const delivery = openDelivery(to);
  await delivery.send({ ...REQUEST, path: '/' });
  writeFileSync(headersFile, 'X-Token: second\n');
  await delivery.send({ ...REQUEST, path: '/' });
  await delivery.close();
  const tokens = server.seen.map(({ headers }) => headers['x-token']);
  assert.deepEqual(tokens, ['first', 'second']);
});

/** Why a request fails; empty: it was answered. */
async function findFailure(...request: Parameters<typeof send>): Promise<string> {
  const result = await send(...request);
  return result.kind === 'failed' ? result.why : '';
}

const WRONG_FILES: readonly (readonly [name: string, path: string, why: RegExp])[] = [
  ['is missing', join(folder, 'nowhere'), /^the headers file \S+ cannot be read: ENOENT$/],
  ['is a folder', folder, /cannot be read: EISDIR$/],
  ['is too long', file('long', `A: ${'x'.repeat(70_000)}`), /cannot be read: it is longer than 64 KiB$/],
  ['is wrong', file('wrong', 'Bearer s3cret'), /cannot be used: line 1 is no header; must be "Name: value"$/],
];
for (const [name, headersFile, why] of WRONG_FILES) {
  test(`send() sends nothing where the headers file ${name}, which checkFiles() says beforehand`, async () => {
    await using server = await openHttp();
    const to = destination(`http://127.0.0.1:${server.port}/`, { headersFile });
    assert.match(await findFailure(to), why);
    const delivery = openDelivery(to);
    assert.match((await delivery.checkFiles(NEVER)) ?? '', why);
    await delivery.close();
    assert.equal(server.seen.length, 0);
    const url = new URL(`https://127.0.0.1:${server.port}/`);
    assert.match(await findFailure({ ...to, url, caFile: join(folder, 'nowhere') }), why, 'rather than the CA file');
  });
}

test('checkFiles() has nothing to say of files that can be used, and of none', { skip }, async () => {
  const more = [
    { headersFile: file('fine', 'A: b\n') },
    { caFile: file('fine.pem', authority.ca) },
    { caFile: join(folder, 'nowhere') },
    {},
  ];
  const found = await Promise.all(
    more.map((each) => openDelivery(destination('https://127.0.0.1:1/', each)).checkFiles(NEVER)),
  );
  assert.deepEqual(found, [null, null, `the CA file ${join(folder, 'nowhere')} cannot be used: ENOENT`, null]);
});

test('send() gives a headers file up that never opens', async () => {
  const path = join(folder, 'pipe');
  execFileSync('mkfifo', [path]);
  await using server = await openHttp();
  const why = await findFailure(destination(`http://127.0.0.1:${server.port}/`, { headersFile: path }));
  assert.match(why, /cannot be read: timed out$/);
  // Lets the thread go that waits for a writer.
  writeFileSync(path, '');
});

test('send() follows no redirect, and does not show where it leads', async () => {
  await using other = await openHttp();
  await using server = await openHttp((response) => {
    response.writeHead(302, { location: `http://127.0.0.1:${other.port}/` });
    response.end();
  });
  const result = await send(destination(`http://127.0.0.1:${server.port}/`));
  assert.deepEqual(result, answered(302, ''));
  assert.equal(other.seen.length, 0);
});

test("send() shows the receiver's own words, short and on one line, without the secrets that it repeats", async () => {
  const basic = Buffer.from('user:pa55word').toString('base64');
  await using server = await openHttp((response, { headers, url }) => {
    response.statusCode = 403;
    response.end(`no\n\tentry: ${headers.authorization}, pa55word at ${url}\u0007 ${'x'.repeat(300)}`);
  });
  const headersFile = file('echoed', `Authorization: Basic ${basic}\n`);
  const to = destination(`http://127.0.0.1:${server.port}/services/T000/B0000000/tok3nT0ken?key=s3cretKey`, {
    headersFile,
  });
  const result = await send(to);
  assert.equal(result.kind === 'answered' && result.text.length, 200);
  assert.match(
    result.kind === 'answered' ? result.text : '',
    /^no entry: \*\*\*, \*\*\* at \/\*\*\*\/T000\/\*\*\*\/\*\*\*\?key=\*\*\* x+…$/,
  );
  for (const secret of [basic, 'pa55word', 'tok3nT0ken', 's3cretKey', 'B0000000']) {
    assert.ok(!JSON.stringify(result).includes(secret), secret);
  }
});

test('send() shows the status alone where the answer repeats a header in another notation', async () => {
  for (const repeated of ['s3cret\\/t0ken', 's3cret%2Ft0ken', 's3cret&#x2F;t0ken', `s3cret%${'25'.repeat(9)}2Ft0ken`]) {
    await using server = await openHttp((response) => response.writeHead(403).end(`"${repeated}"`));
    const headersFile = file('spelled', 'Authorization: Bearer s3cret/t0ken\n');
    const result = await send(destination(`http://127.0.0.1:${server.port}/`, { headersFile }));
    assert.equal(result.kind === 'answered' ? result.text : result.why, '', repeated);
  }
});

test('send() knows the status where the rest of the answer hangs or is endless', async () => {
  await using slow = await openHttp((response) => {
    response.writeHead(400, { 'content-length': '1000' });
    response.write('out of order sample');
  });
  const result = await send(destination(`http://127.0.0.1:${slow.port}/`), { timeoutMs: 1_000 });
  assert.deepEqual(result, answered(400, ''));
});

test('send() shows nothing of an answer that ends with a part of a header', async () => {
  const headersFile = file('cut', 'Authorization: Bearer s3cret-t0ken\n');
  await using broken = await openHttp((response) => {
    response.writeHead(403, { 'content-length': '1000' });
    response.write('not Bearer s3cret-t0', () => response.destroy());
  });
  const result = await send(destination(`http://127.0.0.1:${broken.port}/`, { headersFile }));
  assert.deepEqual(result, answered(403, ''));
});

test('send() gives up a server that accepts and never answers, and one that answers a byte at a time', async () => {
  await using silent = await openPeer(() => {});
  const to = destination(`http://127.0.0.1:${silent.port}/`);
  assert.equal(await findFailure(to, { timeoutMs: 200 }), `127.0.0.1:${silent.port} did not answer in time`);
  const signal = AbortSignal.abort('no time is left');
  assert.equal(await findFailure(to, { signal }), `127.0.0.1:${silent.port} did not answer in the time that was left`);
  await using dripping = await openPeer((socket) => {
    const timer = setInterval(() => socket.write('H'), 20);
    socket.on('close', () => clearInterval(timer)).on('error', () => {});
  });
  const why = await findFailure(destination(`http://127.0.0.1:${dripping.port}/`), { timeoutMs: 200 });
  assert.match(why, /did not answer in time|is not HTTP/);
});

test('send() returns a refusal, a reset, an unknown name', async () => {
  const port = await findFreePort();
  assert.deepEqual(await send(destination(`http://localhost:${port}/`)), {
    kind: 'failed',
    why: `localhost:${port} refuses connections`,
  });
  await using rude = await openPeer((socket) => socket.resetAndDestroy());
  const reset = await send(destination(`http://127.0.0.1:${rude.port}/`));
  assert.match(reset.kind === 'failed' ? reset.why : '', /closed the connection without an answer|ECONNRESET/);
  const unknown = await send(destination('http://nobody.invalid/'));
  const why = unknown.kind === 'failed' ? unknown.why : '';
  assert.match(why, /^(nobody.invalid:80 cannot be resolved|no name server answered for nobody.invalid:80)/);
});

// TLS.

test('send() trusts the authorities of the CA file in addition to the usual ones', { skip }, async () => {
  await using server = await openHttps(authority.sign(['DNS:localhost']));
  const url = `https://localhost:${server.port}/hook`;
  assert.deepEqual(await send(destination(url, { caFile })), answered(200, 'ok'));
  assert.deepEqual(await send(destination(url)), {
    kind: 'failed',
    why: `localhost:${server.port} is not trusted: its certificate is signed by an untrusted authority (UNABLE_TO_VERIFY_LEAF_SIGNATURE): set LASTSCRAPE_CA_FILE`,
  });
  assert.equal(server.seen.length, 1, 'nothing is sent to a stranger');
});

test("send() trusts the system's authorities", { skip }, async () => {
  await using server = await openHttps(authority.sign(['DNS:localhost']));
  const program = `
    import { openDelivery } from ${JSON.stringify(join(import.meta.dirname, '../../src/tell/deliver.ts'))};
    const url = new URL('https://localhost:${server.port}/');
    const delivery = openDelivery({ url, headersFile: null, caFile: null });
    const request = { method: 'POST', path: '/', headers: {}, body: Buffer.of(), timeoutMs: 30000, signal: new AbortController().signal };
    console.log(JSON.stringify(await delivery.send(request)));
    await delivery.close();`;
  // OpenSSL's own variable for where the system keeps them.
  const child = await runChild(program, { SSL_CERT_FILE: caFile });
  assert.deepEqual(JSON.parse(child), answered(200, 'ok'));
});

const BROKEN = `${authority.ca}-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n`;
/** What is wrong with the certificate, or with the file of authorities. */
const UNTRUSTED: readonly (readonly [
  what: string,
  why: RegExp,
  more: { name?: string; when?: 'expired'; ca?: string },
])[] = [
  ['a certificate for another name', /is for another name \(ERR_TLS_CERT_ALTNAME_INVALID\)$/, { name: 'DNS:b.test' }],
  ['one for an address only', /its certificate is for another name/, { name: 'IP:127.0.0.1' }],
  ['one that has expired', /has expired \(CERT_HAS_EXPIRED\)$/, { when: 'expired' }],
  ['a CA file that is missing', /^the CA file \S+ cannot be used: ENOENT$/, { ca: join(folder, 'nowhere.pem') }],
  ['a CA file of none', /cannot be used: it has no certificate in PEM form$/, { ca: file('none.pem', 'hello') }],
  [
    'a CA file with a broken one',
    /cannot be used: its certificate 2 of 2 cannot be read$/,
    { ca: file('broken.pem', BROKEN) },
  ],
];
for (const [what, why, { name = 'DNS:localhost', when, ca = caFile }] of UNTRUSTED) {
  test(`send() sends nothing with ${what}`, { skip }, async () => {
    await using server = await openHttps(authority.sign([name], when));
    assert.match(await findFailure(destination(`https://localhost:${server.port}/`, { caFile: ca })), why);
    assert.equal(server.seen.length, 0);
  });
}

test('send() says that a server does not speak TLS', { skip }, async () => {
  await using server = await openHttp();
  const why = await findFailure(destination(`https://localhost:${server.port}/`));
  assert.match(why, /does not speak TLS \(\w+\): is it http:\?$|EPROTO/);
});

test('tryConnect() finds what keeps a request from arriving, and sends none', { skip }, async () => {
  await using server = await openHttps(authority.sign(['DNS:localhost']));
  const url = `https://localhost:${server.port}/`;
  const check = async (more: Partial<Destination>) => openDelivery(destination(url, more)).tryConnect(LIMIT_MS, NEVER);
  assert.deepEqual(await check({ caFile }), []);
  const [untrusted = ''] = await check({});
  assert.match(untrusted, /is not trusted: /);
  const both = await check({ headersFile: join(folder, 'nowhere') });
  const texts = both.map((problem) => problem.replace(/:.*/, ''));
  assert.deepEqual(texts, [`the headers file ${join(folder, 'nowhere')} cannot be read`, 'localhost']);
  assert.equal(server.seen.length, 0);
  const port = await findFreePort();
  assert.deepEqual(await openDelivery(destination(`http://localhost:${port}/`)).tryConnect(LIMIT_MS, NEVER), [
    `localhost:${port} refuses connections`,
  ]);
});

async function runChild(program: string, env: Readonly<Record<string, string>>): Promise<string> {
  const args = ['--input-type=module', '--eval', program];
  return (await promisify(execFile)(process.execPath, args, { env: { ...process.env, ...env } })).stdout;
}
