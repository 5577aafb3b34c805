import assert from 'node:assert/strict';
import { test } from 'node:test';
import { locustExporterKind } from '../../src/act/locust-exporter.ts';
import type { Target } from '../../src/act/target.ts';
import { openPeer } from '../net/peer.ts';

function read(metricsUrl: string): Target {
  const parsed = locustExporterKind.read('locust-exporter', { metricsUrl: new URL(metricsUrl), version: '1.2.3' });
  assert.ok(parsed !== null && 'value' in parsed);
  return parsed.value;
}

test('read() takes its own name only', () => {
  const context = { metricsUrl: new URL('http://localhost:9646/metrics'), version: '1.2.3' };
  for (const entry of ['', 'none', 'locust', 'Locust-Exporter', 'http://localhost/']) {
    assert.equal(locustExporterKind.read(entry, context), null, entry);
  }
});

test('read() asks at the host and port of METRICS_URL, without its path and query', () => {
  for (const [metricsUrl, request] of [
    ['http://localhost:9646/metrics', 'POST http://localhost:9646/quitquitquit'],
    ['http://127.0.0.1:1/a/b?c=d', 'POST http://127.0.0.1:1/quitquitquit'],
    ['http://[::1]/metrics', 'POST http://[::1]/quitquitquit'],
  ] as const) {
    const target = read(metricsUrl);
    assert.equal(target.name, 'locust-exporter');
    assert.equal(target.request, request);
  }
});

test('ask() gets what the exporter gives: the end of the connection', async () => {
  await using peer = await openPeer((socket) => socket.end());
  const answer = await read(peer.url.href).ask(30_000, new AbortController().signal);
  assert.deepEqual(answer, { kind: 'dropped' });
  assert.equal(peer.requests[0]?.split('\r\n')[0], 'POST /quitquitquit HTTP/1.1');
});

test('hint() knows the exporter before v0.5.0', () => {
  const { hint } = read('http://localhost:9646/metrics');
  assert.match(hint({ kind: 'answered', status: 200, isHtml: true }), /before v0\.5\.0 has no \/quitquitquit$/);
  assert.match(hint({ kind: 'answered', status: 200, isHtml: false }), /lives on/);
  assert.match(hint({ kind: 'dropped' }), /listens again/);
});
