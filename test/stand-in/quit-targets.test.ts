// The presets against the stand-ins, by the whole program: enabled, switched off, at a wrong port, gone.

import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { dial } from '../../src/base/net/dial.ts';
import { main } from '../../src/main.ts';
import { makeFolder } from '../support/folder.ts';
import { openHost } from '../support/host.ts';
import { findFreePort } from '../support/listen.ts';
import { until } from '../support/until.ts';
import { type Running, STAND_INS, type StandIn, startStandIn } from './quit-targets.ts';

const folder = makeFolder();

type Result = { readonly code: number; readonly result: string; readonly hint: string; readonly log: string };

/** Runs lastscrape without a main: it only quits. */
async function quit(entry: string, env: Readonly<Record<string, string>> = {}): Promise<Result> {
  const { host, out } = openHost(
    {
      LASTSCRAPE_TERMINATION_LOG: join(folder, 'message'),
      LASTSCRAPE_METRICS_URL: 'http://127.0.0.1:1/metrics',
      LASTSCRAPE_DONE_WHEN: 'port:1',
      LASTSCRAPE_START_TIMEOUT: '1ms',
      LASTSCRAPE_QUIT: entry,
      LASTSCRAPE_LOG_LEVEL: 'debug',
      ...env,
    },
    // Of its own: nothing else can be seen, so that nothing is signalled.
    { stderr: (text) => assert.fail(text), pid: process.pid },
  );
  const { code } = await main(host);
  const log = out.stdout;
  const [target] = JSON.parse(log.trimEnd().split('\n').at(-1) ?? '').targets;
  return { code, result: target.result, hint: target.hint ?? '', log };
}

function writeEntry({ preset, hasService }: StandIn, { quitPort, servicePort }: Running, wrongPort?: number): string {
  return `${preset}:${wrongPort ?? quitPort}${hasService || wrongPort !== undefined ? `:${servicePort}` : ''}`;
}

const ON = { isEnabled: true, token: null };

for (const standIn of STAND_INS) {
  const { preset } = standIn;

  test(`${preset}, enabled: it is asked once and stopped`, async () => {
    await using target = await startStandIn(standIn, ON);
    const { code, result } = await quit(writeEntry(standIn, target));
    assert.deepEqual([code, result], [0, 'stopped']);
    await target.ended;
    assert.equal(target.requests.length, 1);
  });

  test(`${preset} at a wrong port: the hint names the port that answers`, async () => {
    await using target = await startStandIn(standIn, ON);
    const wrong = writeEntry(standIn, target, await findFreePort());
    const { code, result, hint } = await quit(wrong, { LASTSCRAPE_QUIT_TIMEOUT: '1s' });
    assert.deepEqual([code, result], [69, 'failed']);
    assert.match(hint, /refuses while /);
    assert.deepEqual(target.requests, []);
  });

  test(`${preset}, already gone: nothing is waited for`, async () => {
    const target = await startStandIn(standIn, ON);
    await target[Symbol.asyncDispose]();
    const { code, result } = await quit(writeEntry(standIn, target));
    assert.deepEqual([code, result], [0, 'alreadyGone']);
  });
}

const OFF_HINTS: Readonly<Record<string, RegExp>> = {
  istio: /^pilot-agent refuses while its Envoy answers/,
  linkerd: /^it answered 404: quitting is switched off; .*proxy-admin-shutdown: enabled/,
  'consul-dataplane': /^its quit port refuses while \d+ answers: it needs .*enable-sidecar-proxy-lifecycle/,
  'vault-agent': /^it answered 404: quitting is switched off; .*enable_quit = true/,
};

for (const standIn of STAND_INS.filter(({ preset }) => preset in OFF_HINTS)) {
  test(`${standIn.preset}, switched off: it is not taken for gone, and the hint names what must be set`, async () => {
    await using target = await startStandIn(standIn, { ...ON, isEnabled: false });
    const { code, result, hint } = await quit(writeEntry(standIn, target), { LASTSCRAPE_QUIT_TIMEOUT: '1s' });
    assert.deepEqual([code, result], [69, 'failed']);
    assert.match(hint, OFF_HINTS[standIn.preset] as RegExp);
  });
}

function findStandIn(preset: string): StandIn {
  const found = STAND_INS.find((each) => each.preset === preset);
  assert.ok(found);
  return found;
}

test('istio: its status port closes at once; it is not gone before its Envoy is', async () => {
  const istio = { ...findStandIn('istio'), drainMs: 2_000 };
  await using target = await startStandIn(istio, ON);
  const { result, log } = await quit(writeEntry(istio, target));
  assert.equal(result, 'stopped');
  assert.equal(target.requests.length, 1, 'it needs 5 s: it was not asked again');
  assert.ok(!log.includes('"kind":"disabled"'));
  await target.ended;
});

test('istio already quitting: its Envoy still drains, and it counts as gone already', async () => {
  const istio = { ...findStandIn('istio'), drainMs: 1_500 };
  await using target = await startStandIn(istio, ON);
  await (await fetch(`http://127.0.0.1:${target.quitPort}/quitquitquit`, { method: 'POST' })).text();
  await until('the status port closed', 30_000, async () => {
    const dialled = await dial('127.0.0.1', target.quitPort, { timeoutMs: 1_000 });
    if (dialled.kind === 'open') dialled.socket.destroy();
    return dialled.kind === 'refused' ? true : undefined;
  });
  const { code, result } = await quit(writeEntry(istio, target));
  assert.deepEqual([code, result], [0, 'alreadyGone']);
});

test('consul-dataplane: a QUIT_TIMEOUT within its grace period is reported at the start', async () => {
  const standIn = findStandIn('consul-dataplane');
  const msg = 'LASTSCRAPE_QUIT_TIMEOUT is too short';
  for (const [timeout, isTold] of [
    ['30s', true],
    ['31s', false],
  ] as const) {
    await using target = await startStandIn(standIn, ON);
    const { log } = await quit(writeEntry(standIn, target), { LASTSCRAPE_QUIT_TIMEOUT: timeout });
    assert.equal(log.includes(msg), isTold, timeout);
  }
});

test('dapr with a token: DAPR_API_TOKEN opens it, and is never printed', async () => {
  const dapr = findStandIn('dapr');
  await using target = await startStandIn(dapr, { ...ON, token: 's3cret' });
  const entry = writeEntry(dapr, target);
  const without = await quit(entry, { LASTSCRAPE_QUIT_TIMEOUT: '1s' });
  assert.deepEqual([without.code, without.result], [69, 'failed']);
  assert.match(without.hint, /^it answered 401: .*DAPR_API_TOKEN/);
  const given = await quit(entry, { DAPR_API_TOKEN: 's3cret' });
  assert.deepEqual([given.code, given.result], [0, 'stopped']);
  assert.ok(!given.log.includes('s3cret'));
});

test('a mesh proxy listed before another target is warned of at the start, and still asked in that order', async () => {
  const linkerd = findStandIn('linkerd');
  await using proxy = await startStandIn(linkerd, ON);
  await using other = await startStandIn(findStandIn('vault-agent'), ON);
  const list = [`linkerd:${proxy.quitPort}`, `vault-agent:${other.quitPort}`];
  const { log } = await quit(list.join(','));
  const lines = log
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line));
  const warned = lines.findIndex(
    ({ msg }) => msg === 'a mesh proxy is not the last to quit: it carries scrapes and reports',
  );
  assert.deepEqual([lines[warned]?.target, lines[warned]?.before], list);
  assert.ok(warned < lines.findIndex(({ msg }) => msg === 'quitting'), 'before anything is done');
  const stopped = lines.filter(({ msg }) => msg === 'target stopped').map(({ target }) => target);
  assert.deepEqual(stopped, list);
});
