import assert from 'node:assert/strict';
import { Agent, get } from 'node:http';
import { connect, createServer } from 'node:net';
import { describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import {
  findFreePort,
  type Locust,
  type LocustEvent,
  type LocustEventKind,
  type LocustOptions,
  openLocust,
} from './locust.ts';

/** Every phase is over at once, but for those that a test gives time. */
const QUICK: LocustOptions = { scale: 0.002, cacheMs: 0 };
const LONG_MS = 60_000;

describe('openLocust()', () => {
  test('goes through the recorded phases in the recorded order, and ends with the whole total', async () => {
    const { events, onEvent } = listen();
    await using locust = await openLocust({ ...QUICK, finalRequests: 500, onEvent });
    await locust.exited;
    assert.deepEqual(
      events.map(({ kind }) => kind),
      ['masterPortOpened', 'webPortOpened', 'spawning', 'running', 'stopped', 'autoquit', 'webPortClosed', 'exited'],
    );
    assert.deepEqual([events.at(-1)?.requests, locust.requests], [500, 500]);
  });

  test('rejects its end when a port is taken, and leaves nothing open', async () => {
    const other = createServer();
    const webPort = await findFreePort();
    await new Promise<void>((resolve) => other.listen(webPort, '127.0.0.1', resolve));
    const locust = await openLocust({ ...QUICK, webPort });
    await assert.rejects(locust.exited, { code: 'EADDRINUSE' });
    assert.equal(await probe(locust.masterPort), 'ECONNREFUSED');
    other.close();
  });

  test('shows totals that rise with the reports of the worker, Aggregated being the sum of the rows', async () => {
    const { seen, onEvent } = listen();
    await using locust = await openLocust({ ...QUICK, runMs: 400, reportMs: 50, autoquitMs: LONG_MS, onEvent });
    const totals: number[] = [];
    await seen('running');
    do {
      const { stats, state } = await readStats(locust);
      const counts = stats.map((row) => row.num_requests);
      const total = counts.at(-1) ?? 0;
      assert.equal(
        counts.slice(0, -1).reduce((sum, count) => sum + count, 0),
        total,
      );
      totals.push(total);
      if (state === 'stopped') break;
      await sleep(10);
    } while (totals.length < 1_000);
    assert.equal(totals.at(-1), 219);
    assert.deepEqual(
      totals,
      totals.toSorted((a, b) => a - b),
    );
    assert.ok(new Set(totals).size > 2);
  });

  test('after the web port closed, a kept connection is served until the exit closes the master port too', async () => {
    const { seen, onEvent } = listen();
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    await using locust = await openLocust({ ...QUICK, autoquitMs: 500, exitMs: LONG_MS, onEvent });
    await seen('stopped');
    await readStats(locust, agent);
    await seen('webPortClosed');
    assert.deepEqual([await probe(locust.webPort), await probe(locust.masterPort)], ['ECONNREFUSED', 'open']);
    assert.equal((await readStats(locust, agent)).state, 'stopped');
    await locust.kill();
    assert.equal(await probe(locust.masterPort), 'ECONNREFUSED');
    await assert.rejects(readStats(locust, agent));
  });

  test('neverStarts: opens no port at all', async () => {
    const { events, onEvent } = listen();
    await using locust = await openLocust({ ...QUICK, neverStarts: true, onEvent });
    await locust.exited;
    assert.deepEqual(events, [{ kind: 'exited', requests: 0 }]);
  });

  test('headless: the master port opens, the web port never', async () => {
    const { seen, onEvent } = listen();
    await using locust = await openLocust({ ...QUICK, headless: true, autoquitMs: LONG_MS, onEvent });
    await seen('stopped');
    assert.deepEqual([await probe(locust.masterPort), await probe(locust.webPort)], ['open', 'ECONNREFUSED']);
  });

  test('blink() refuses for as long as it is told, with the web page up', async () => {
    const { seen, onEvent } = listen();
    await using locust = await openLocust({ ...QUICK, runMs: LONG_MS, onEvent });
    await seen('running');
    const blinking = locust.blink(300);
    assert.deepEqual([await probe(locust.masterPort), await probe(locust.webPort)], ['ECONNREFUSED', 'open']);
    await blinking;
    assert.equal(await probe(locust.masterPort), 'open');
  });

  test('freeze() holds the answers back, thaw() gives them', async () => {
    const { seen, onEvent } = listen();
    await using locust = await openLocust({ ...QUICK, runMs: LONG_MS, onEvent });
    await seen('running');
    locust.freeze();
    let isAnswered = false;
    const asked = readStats(locust).finally(() => {
      isAnswered = true;
    });
    await sleep(50);
    assert.equal(isAnswered, false);
    locust.thaw();
    assert.equal((await asked).state, 'running');
  });

  test('terminate() closes both ports together; restart() runs again from the beginning on the same ones', async () => {
    const { events, seen, onEvent } = listen();
    await using locust = await openLocust({ ...QUICK, runMs: LONG_MS, onEvent });
    await seen('running');
    await locust.terminate();
    assert.deepEqual([await probe(locust.masterPort), await probe(locust.webPort)], ['ECONNREFUSED', 'ECONNREFUSED']);
    events.length = 0;
    await locust.restart();
    await seen('running');
    assert.equal((await readStats(locust)).state, 'running');
  });
});

type Listener = {
  readonly events: LocustEvent[];
  seen(kind: LocustEventKind): Promise<void>;
  onEvent(event: LocustEvent): void;
};

function listen(): Listener {
  const events: LocustEvent[] = [];
  const waiting: { kind: LocustEventKind; resolve: () => void }[] = [];
  return {
    events,
    seen(kind) {
      if (events.some((event) => event.kind === kind)) return Promise.resolve();
      return new Promise((resolve) => waiting.push({ kind, resolve }));
    },
    onEvent(event) {
      events.push(event);
      for (const { kind, resolve } of waiting) if (kind === event.kind) resolve();
    },
  };
}

type Stats = { readonly state: string; readonly stats: readonly { readonly num_requests: number }[] };

function readStats(locust: Locust, agent = new Agent()): Promise<Stats> {
  return new Promise((resolve, reject) => {
    const asking = get(`${locust.webUrl}/stats/requests`, { agent }, async (response) => {
      let text = '';
      for await (const chunk of response) text += chunk;
      resolve(JSON.parse(text));
    });
    asking.on('error', reject);
  });
}

function probe(port: number): Promise<string> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => {
      socket.destroy();
      resolve('open');
    });
    socket.on('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message));
  });
}
