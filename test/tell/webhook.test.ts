// The webhook against a real server: three tries, what ends them, and what it gets.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Report } from '../../src/decide/report/report-fields.ts';
import { openDelivery } from '../../src/tell/deliver.ts';
import { buildMessage, sendWebhook } from '../../src/tell/webhook.ts';
import { openHttp } from '../support/receiver.ts';

const NEVER = new AbortController().signal;

async function tell(port: number) {
  const url = new URL(`http://127.0.0.1:${port}/hook?x=1`);
  const delivery = openDelivery({ url, headersFile: null, caFile: null });
  const retries: string[] = [];
  const onRetry = (why: string) => retries.push(why);
  const message = { text: 'well', exitCode: 0 };
  const result = await sendWebhook({ delivery, url, message, signal: NEVER, onRetry, pausesMs: [1] });
  await delivery.close();
  return { result, retries };
}

test('sendWebhook() posts JSON once where it is taken', async () => {
  await using server = await openHttp((response) => response.writeHead(204).end());
  const { result, retries } = await tell(server.port);
  assert.deepEqual([result, retries], [{ kind: 'accepted', status: 204, tries: 1 }, []]);
  const [{ method, url, headers, body } = assert.fail('nothing came')] = server.seen;
  assert.deepEqual([method, url, JSON.parse(body)], ['POST', '/hook?x=1', { text: 'well', exitCode: 0 }]);
  assert.equal(headers['content-type'], 'application/json; charset=utf-8');
});

test('sendWebhook() tries three times where the server has trouble, and reports its words', async () => {
  await using server = await openHttp((response) => response.writeHead(503).end('no workers'));
  const { result, retries } = await tell(server.port);
  assert.deepEqual(result, { kind: 'failed', why: 'HTTP 503: no workers', tries: 3 });
  assert.deepEqual([server.seen.length, retries.length], [3, 2]);
});

test('sendWebhook() does not try again after a redirect', async () => {
  await using server = await openHttp((response) => response.writeHead(302).end());
  const { result } = await tell(server.port);
  assert.deepEqual(result, { kind: 'failed', why: 'HTTP 302: it redirects, and no redirect is followed', tries: 1 });
  assert.equal(server.seen.length, 1);
});

const REPORT: Report = {
  summary: 'Not scraped within 90 s after main ended; locust-exporter still runs',
  outcome: 'expired',
  hint: 'nothing has scraped this exporter: NetworkPolicy, mesh mTLS, PodMonitor?',
  targets: [{ target: 'locust-exporter', result: 'failed', seconds: 30, hint: 'has no /quitquitquit' }],
  exitCode: 69,
  version: '0.1.0',
};

test('buildMessage() has the report, whose it is, and a text by which a person can act', () => {
  const message = buildMessage(REPORT, { namespace: 'load', pod: 'checkout-abcde', job: 'checkout' });
  assert.deepEqual(message, {
    text: [
      'Job checkout, namespace load, pod checkout-abcde: Not scraped within 90 s after main ended; locust-exporter still runs',
      'nothing has scraped this exporter: NetworkPolicy, mesh mTLS, PodMonitor?',
      'has no /quitquitquit',
      'kubectl describe pod -n load checkout-abcde',
    ].join('\n'),
    namespace: 'load',
    pod: 'checkout-abcde',
    job: 'checkout',
    ...REPORT,
  });
});

test('buildMessage() has one line where all is well, and what is not known is not there', () => {
  const report: Report = {
    summary: 'Scraped once 3.0 s after main ended',
    outcome: 'scraped',
    exitCode: 0,
    version: '0.1.0',
  };
  assert.deepEqual(buildMessage(report, {}), { text: report.summary, ...report });
  const { text } = buildMessage(report, { pod: 'checkout-abcde' });
  assert.equal(text, 'pod checkout-abcde: Scraped once 3.0 s after main ended');
  const hinted = buildMessage({ ...REPORT, hint: undefined } as never, {})['text'];
  assert.equal(hinted, `${REPORT.summary}\nhas no /quitquitquit`);
});

test('buildMessage() says the hostname where the name of the pod is not known', () => {
  const { text, hostname, pod } = buildMessage(REPORT, { namespace: 'load', hostname: 'render-3' });
  const lines = String(text).split('\n');
  assert.match(lines[0] ?? '', /^namespace load, hostname render-3: Not scraped/);
  assert.equal(lines.at(-1), "kubectl get pods -n load (the pod's name is not known: set POD_NAME by fieldRef)");
  assert.deepEqual([hostname, pod], ['render-3', undefined]);
});

test('buildMessage() says where to look unless all went well', () => {
  const well: Report = { summary: 'It ran', outcome: 'scraped', exitCode: 0, version: '0.1.0' };
  const parts: readonly (readonly [Partial<Report>, boolean])[] = [
    [{}, false],
    [{ outcome: 'released' }, false],
    [{ outcome: 'expired' }, true],
    [{ exitCode: 1 }, true],
    [{ hint: 'look' }, true],
  ];
  for (const [part, isShown] of parts) {
    const { text } = buildMessage({ ...well, ...part }, { pod: 'a' });
    assert.equal(String(text).endsWith('\nkubectl describe pod a'), isShown, JSON.stringify(part));
  }
});
