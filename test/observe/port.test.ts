import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ConditionObservation } from '../../src/decide/model.ts';
import { portKind } from '../../src/observe/port.ts';
import { findFreePort } from '../support/listen.ts';
import { openPeer } from '../support/peer.ts';
import { CONTEXT, UNDISTURBED } from './condition-context.ts';

async function observe(argument: string, signal = UNDISTURBED.signal): Promise<ConditionObservation> {
  const parsed = portKind.read(argument, CONTEXT);
  assert.ok('value' in parsed, argument);
  assert.equal(parsed.value.text, `port:${argument}`);
  assert.equal(parsed.value.metricName, null);
  return parsed.value.observe({ ...UNDISTURBED, signal });
}

test('observe() is alive where something listens, sends no byte, and closes', async () => {
  await using peer = await openPeer(() => {});
  assert.deepEqual(await observe(`${peer.port}`), { kind: 'alive', seen: `port ${peer.port} open` });
  const argument = `127.0.0.1:${peer.port}`;
  assert.deepEqual(await observe(argument), { kind: 'alive', seen: `port ${argument} open` });
  await peer.closed(2);
  assert.deepEqual(peer.requests, []);
});

test('observe() is done where connections are refused, which proves nothing about before', async () => {
  const port = await findFreePort();
  assert.deepEqual(await observe(`${port}`), { kind: 'done', seen: `port ${port} refused`, provesWasAlive: false });
});

test('observe() is unknown where it was cut short', async () => {
  assert.deepEqual(await observe('5557', AbortSignal.abort('SIGTERM')), {
    kind: 'unknown',
    why: 'port 5557 unknown: SIGTERM',
  });
});

test('read() takes a port, with or without a loopback host', () => {
  const right = ['1', '5557', '65535', 'localhost:5557', '127.0.0.1:1', '127.255.255.255:1', '[::1]:5557'];
  for (const argument of right) assert.ok('value' in portKind.read(argument, CONTEXT), argument);
  const foreign = (host: string) =>
    `; "${host}" is not loopback: the ports of another host never prove anything about main`;
  const wrong = [
    ...['', '0', '-1', 'x', '5557x', ':5557', '127.0.0.256:1', '127.0.0:1', '::1:5557', '0x10', ' 5557'],
    ...['65536', '[::1]:99999'],
  ];
  for (const [argument, advice] of [
    ...wrong.map((each) => [each, ''] as const),
    ['10.0.0.1:5557', foreign('10.0.0.1')],
    ['example.com:5557', foreign('example.com')],
    ['db:5432', foreign('db')],
    ['[::2]:1', foreign('[::2]')],
  ] as const) {
    const problem = `a port from 1 to 65535, with or without a loopback host before it, such as "5557" or "127.0.0.1:5557"${advice}`;
    assert.deepEqual(portKind.read(argument, CONTEXT), { problem }, argument);
  }
});
