import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { test } from 'node:test';
import { openExpositionGetter } from '../../src/observe/get-exposition.ts';
import { listen } from '../support/listen.ts';
import { VirtualClock } from '../support/virtual-clock.ts';

test('get() lets a server of Node go that is closed while it answers, and learns within 5 s that it is gone', async (t) => {
  const clock = new VirtualClock();
  const server = createServer({ keepAliveTimeout: 0 }, ({ socket }, response) => {
    connections.add(socket);
    if (connections.size === 2) server.close();
    response.end('a 1\n');
  });
  t.after(() => server.close().closeAllConnections());
  const connections = new Set();
  const gone = once(server, 'close');
  const url = new URL(`http://127.0.0.1:${await listen(server)}/metrics`);
  const { get, close } = openExpositionGetter({ url, isForServing: true, clock });
  const ask = async () => (await get({ timeoutMs: 10_000 }, { write: () => {} })).kind;
  for (const [afterMs, kind, count] of [
    [0, 'answered', 1],
    [4_999, 'answered', 1],
    [1, 'answered', 2],
    [4_999, 'answered', 2],
    [1, 'refused', 2],
  ] as const) {
    clock.advance(afterMs);
    assert.deepEqual([await ask(), connections.size], [kind, count]);
  }
  await gone;
  await close();
});
