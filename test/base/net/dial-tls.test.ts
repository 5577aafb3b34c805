import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { test } from 'node:test';
import { createServer, type TLSSocket } from 'node:tls';
import { dialTls, type Trust } from '../../../src/base/net/dial-tls.ts';
import { type Certificate, gateOpenssl, makeAuthority } from '../../stand-in/authority.ts';
import { findFreePort, listen } from '../../support/listen.ts';
import { openPeer } from '../../support/peer.ts';

const skip = gateOpenssl('test/base/net/dial-tls.test.ts');
const [authority, stranger] = [makeAuthority(), makeAuthority()];
const LIMIT_MS = 30_000;

async function dialTo(certificate: Certificate, hostname: string, authorities: string) {
  const server = createServer(certificate);
  server.on('tlsClientError', () => {});
  let sni = '';
  server.on('secureConnection', (socket: TLSSocket & { readonly servername?: string | false }) => {
    sni = String(socket.servername);
    // One that is not read never learns that the peer is gone.
    socket.on('error', () => {}).resume();
  });
  await listen(server);
  const trust: Trust = { authorities, distrust: null };
  const result = await dialTls(trust)(hostname, (server.address() as AddressInfo).port, { timeoutMs: LIMIT_MS });
  if (result.kind === 'open') {
    // TLS 1.3: the client may be done before the server has its last message.
    result.socket.write('x');
    if (sni === '') await once(server, 'secureConnection');
    result.socket.destroy();
  }
  await new Promise((resolve) => server.close(resolve));
  return { kind: result.kind, why: result.kind === 'unknown' ? result.why : '', distrust: trust.distrust, sni };
}

const trusted = authority.ca;

test('dialTls() opens where the authority signed a certificate for the address, and names no server (SNI)', {
  skip,
}, async () => {
  const outcome = await dialTo(authority.sign(['IP:127.0.0.1']), '127.0.0.1', trusted);
  assert.deepEqual(outcome, { kind: 'open', why: '', distrust: null, sni: 'false' });
});

test('dialTls() opens where the certificate is for the name, and asks for it (SNI)', { skip }, async () => {
  const outcome = await dialTo(authority.sign(['DNS:localhost']), 'localhost', trusted);
  assert.deepEqual(outcome, { kind: 'open', why: '', distrust: null, sni: 'localhost' });
});

const broken = trusted.replace(/\n[^-\n]+\n/, '\n!\n');
const UNSIGNED = 'UNABLE_TO_VERIFY_LEAF_SIGNATURE';
const MISNAMED = 'ERR_TLS_CERT_ALTNAME_INVALID';
const DISTRUSTED: readonly (readonly [string, () => Certificate, hostname: string, authorities: string, string])[] = [
  ['another authority', () => stranger.sign(['IP:127.0.0.1']), '127.0.0.1', trusted, UNSIGNED],
  ['another address', () => authority.sign(['IP:127.0.0.2']), '127.0.0.1', trusted, MISNAMED],
  ['a name where an address was dialled', () => authority.sign(['DNS:localhost']), '127.0.0.1', trusted, MISNAMED],
  ['another name', () => authority.sign(['DNS:example.test']), 'localhost', trusted, MISNAMED],
  ['no authority at all', () => authority.sign(['IP:127.0.0.1']), '127.0.0.1', 'garbage', UNSIGNED],
  ['a broken authority', () => authority.sign(['IP:127.0.0.1']), '127.0.0.1', broken, UNSIGNED],
];

for (const [name, certificate, hostname, authorities, code] of DISTRUSTED) {
  test(`dialTls() does not trust a certificate of ${name}`, { skip }, async () => {
    const outcome = await dialTo(certificate(), hostname, authorities);
    assert.deepEqual(outcome, { kind: 'unknown', why: code, distrust: code, sni: '' });
  });
}

test('dialTls() is refused where nothing listens', async () => {
  const dial = dialTls({ authorities: trusted, distrust: null });
  assert.deepEqual(await dial('localhost', await findFreePort(), { timeoutMs: LIMIT_MS }), { kind: 'refused' });
});

test('dialTls() ends where the peer says nothing: at its time limit, or when it is aborted', async () => {
  const trust: Trust = { authorities: trusted, distrust: null };
  const dial = dialTls(trust);
  await using silent = await openPeer(() => {});
  assert.deepEqual(await dial('127.0.0.1', silent.port, { timeoutMs: 50 }), { kind: 'unknown', why: 'timed out' });
  await silent.closed(1);
  const signal = AbortSignal.abort('interrupted');
  const options = { timeoutMs: LIMIT_MS, signal };
  assert.deepEqual(await dial('127.0.0.1', silent.port, options), { kind: 'unknown', why: 'interrupted' });
  assert.equal(trust.distrust, null);
});
