// A front whose source is Locust's page: its paths, what a program of the pod that calls /quitquitquit gets, and Locust's end.

import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { test } from 'node:test';
import { openFront } from '../../src/front/front.ts';
import { listen } from '../support/listen.ts';
import { until } from '../support/until.ts';
import { REAL_CLOCK } from './front-server.ts';

const RUNNING = '{"state":"running","user_count":7,"stats":[{"method":"","name":"Aggregated","num_requests":10}]}';
const CSV = 'Type,Name,Request Count\r\n,Aggregated,14\r\n';

async function openPair(metricNames = ['load_test_up']) {
  const requests: string[] = [];
  const locustState = { isCut: false };
  const locust = createServer({ keepAliveTimeout: 0 }, ({ url = '' }, response) => {
    requests.push(url);
    if (locustState.isCut) response.writeHead(200, { 'content-length': 1_000 }).end(RUNNING, () => response.destroy());
    else response.end(url.endsWith('/csv') ? CSV : RUNNING);
  });
  await listen(locust);
  const opened = await openFront({
    at: { host: '127.0.0.1', port: 0 },
    url: new URL(`locust+http://127.0.0.1:${(locust.address() as AddressInfo).port}/base`),
    locust: { namespace: 'load_test', path: '/numbers', headersFile: null },
    metricNames,
    pollMs: 1_000,
    clock: REAL_CLOCK,
    toUnixSeconds: () => 1,
    log: () => assert.fail('nothing is odd'),
  });
  assert.ok(opened.kind === 'open');
  const { front } = opened;
  const close = async () => {
    locust.closeAllConnections();
    locust.close();
  };
  return {
    requests,
    locustState,
    front,
    close,
    ask: (path: string, method = 'GET') => fetch(`http://127.0.0.1:${front.port}${path}`, { method }),
    async [Symbol.asyncDispose]() {
      await front.close();
      await close();
    },
  };
}

const TOTAL = /^load_test_requests_num_requests\{method="",name="Aggregated"\} (\d+)$/m;

test('a front of Locust serves its families under its prefix and its path, and when Locust is gone that it is', async () => {
  await using pair = await openPair();
  for (const path of ['/metrics', '/numbers?x=1']) {
    const text = await (await pair.ask(path)).text();
    assert.match(text, /^load_test_up 1$/m);
    assert.equal(TOTAL.exec(text)?.[1], '10');
    assert.match(text, /^lastscrape_source_up 1$/m);
    assert.doesNotMatch(text, /^(# \w+ )?locust_/m);
  }
  assert.deepEqual([...new Set(pair.requests)], ['/base/stats/requests']);
  const reading = await pair.front.readExporter(new AbortController().signal);
  assert.deepEqual(reading.metric('load_test_up'), { kind: 'value', value: 1 });
  await pair.close();
  pair.front.expectEnd();
  assert.match(await (await pair.ask('/metrics')).text(), /^lastscrape_source_up 0$/m, 'before the end is known');
  pair.front.tell({ main: 'ended', wasAlive: true, endedAtMs: 0 });
  const response = await pair.ask('/metrics');
  const text = await response.text();
  assert.equal(response.status, 200);
  assert.match(text, /^load_test_up 0$/m);
  assert.match(text, /^lastscrape_source_up 0$/m);
  assert.equal(TOTAL.exec(text)?.[1], '10');
});

test('/quitquitquit keeps the newest numbers and ends nothing', async () => {
  await using pair = await openPair();
  await pair.ask('/metrics');
  const response = await pair.ask('/quitquitquit', 'POST');
  assert.deepEqual([response.status, await response.text()], [200, 'kept\n']);
  assert.equal(pair.requests.at(-1), '/base/stats/requests/csv', 'although Locust says that it runs');
  assert.equal(TOTAL.exec(await (await pair.ask('/metrics')).text())?.[1], '14');
});

test('a Locust that answers half, and then is gone, leaves its last gauges as well, whatever shows its end', async () => {
  for (const metricNames of [['load_test_up'], []]) {
    await using pair = await openPair(metricNames);
    await (await pair.ask('/metrics')).text();
    pair.front.tell({ main: 'living', wasAlive: true, endedAtMs: null });
    const askUntilDown = () =>
      until('locust_up 0', 60_000, async () => {
        const text = await (await pair.ask('/metrics')).text();
        return text.includes('load_test_up 0') ? text : undefined;
      });
    pair.locustState.isCut = true;
    assert.doesNotMatch(await askUntilDown(), /^load_test_users/m);
    await pair.close();
    await askUntilDown();
    pair.front.tell({ main: 'ended', wasAlive: true, endedAtMs: 0 });
    assert.match(await (await pair.ask('/metrics')).text(), /^load_test_users 7$/m);
  }
});
