import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Exporter, type ExporterFaults, openExporter, type ScrapeEvent } from './exporter.ts';
import { findFreePort } from './locust.ts';
import { readSamples } from './prometheus.ts';

// Nothing listens there: what is tested here does not depend on Locust.
const locustUrl = `http://127.0.0.1:${await findFreePort()}`;

describe('exporter faults', () => {
  test("statusCode 500 answers promhttp's text and counts on its own line", async () => {
    await using exporter = await openExporter({ locustUrl, faults: { statusCode: 500 } });
    const answer = await fetch(`${exporter.url}/metrics`);
    assert.equal(answer.status, 500);
    assert.match(await answer.text(), /^An error has occurred while serving metrics:\n\n/);
    exporter.faults.statusCode = 200;
    assert.deepEqual(await readCounts(exporter), { 200: 0, 500: 1, 503: 0 });
  });

  test('dropsCounters leaves both promhttp families out, and counts on', async () => {
    await using exporter = await openExporter({ locustUrl, faults: { dropsCounters: true } });
    assert.ok(!(await readBody(exporter)).includes('promhttp_'));
    exporter.faults.dropsCounters = false;
    assert.deepEqual(await readCounts(exporter), { 200: 1, 500: 0, 503: 0 });
  });

  test('delayMs keeps a scrape in flight and uncounted, and others are served meanwhile', async () => {
    await using exporter = await openExporter({ locustUrl, faults: { delayMs: 60_000 } });
    const slow = fetch(`${exporter.url}/metrics`).catch(() => 'cut');
    // The page takes no lock: its answer proves that the scrape before it was read.
    await fetch(`${exporter.url}/`);
    exporter.faults.delayMs = 0;
    assert.equal(inFlight(await readBody(exporter)), 2);
    assert.deepEqual(await readCounts(exporter), { 200: 1, 500: 0, 503: 0 });
    await exporter.close();
    assert.equal(await slow, 'cut');
  });

  test('hangs answers nobody, and close() cuts those who wait', async () => {
    await using exporter = await openExporter({ locustUrl, faults: { hangs: true } });
    const hung = fetch(`${exporter.url}/metrics`);
    await fetch(`${exporter.url}/`);
    await exporter.close();
    await assert.rejects(hung);
  });

  test('resetCounters() begins again at 0; restart() comes back on the same port', async () => {
    await using exporter = await openExporter({ locustUrl });
    await readBody(exporter);
    exporter.resetCounters();
    assert.deepEqual(await readCounts(exporter), { 200: 0, 500: 0, 503: 0 });
    const restarting = exporter.restart(20);
    await assert.rejects(fetch(`${exporter.url}/`));
    assert.equal(exporter.isOpen, false);
    await restarting;
    assert.deepEqual(await readCounts(exporter), { 200: 0, 500: 0, 503: 0 });
  });

  const livingQuits: [quit: ExporterFaults['quit'], status: number | undefined][] = [
    [{ kind: 'lives', statusCode: 200 }, 200],
    [{ kind: 'lives', statusCode: 403 }, 403],
    [{ kind: 'drops' }, undefined],
  ];
  for (const [quit, status] of livingQuits) {
    test(`quit ${JSON.stringify(quit)}: lives on`, async () => {
      await using exporter = await openExporter({ locustUrl, faults: { quit }, onQuit: () => assert.fail() });
      assert.equal(await quitStatus(exporter), status);
      assert.equal((await fetch(`${exporter.url}/metrics`)).status, 200);
    });
  }

  test('quit hangs: no answer, lives on', async () => {
    await using exporter = await openExporter({ locustUrl, faults: { quit: { kind: 'hangs' } } });
    const hung = quitStatus(exporter);
    assert.equal((await fetch(`${exporter.url}/metrics`)).status, 200);
    await exporter.close();
    assert.equal(await hung, undefined);
  });

  test('quit exitsLate: serves on without answering, then exits once', async () => {
    const quits: string[] = [];
    await using exporter = await openExporter({
      locustUrl,
      faults: { quit: { kind: 'exitsLate', afterMs: 50 } },
      onQuit: (method) => quits.push(method),
    });
    const quitting = quitStatus(exporter);
    assert.equal((await fetch(`${exporter.url}/metrics`)).status, 200);
    assert.equal(await quitting, undefined);
    assert.equal(exporter.isOpen, false);
    assert.deepEqual(quits, ['POST']);
  });
});

test('onScrape tells who scraped, and what the answer was', async () => {
  const scrapes: ScrapeEvent[] = [];
  await using exporter = await openExporter({ locustUrl, onScrape: (scrape) => scrapes.push(scrape) });
  await fetch(`${exporter.url}/metrics`, { headers: { 'User-Agent': 'somebody/1' } });
  const seen = scrapes.map(({ tookMs: _, ...rest }) => rest);
  assert.deepEqual(seen, [{ method: 'GET', userAgent: 'somebody/1', statusCode: 200, isLocustUp: false }]);
});

test('a scrape that the exit cut is told to nobody', async () => {
  const scrapes: ScrapeEvent[] = [];
  const onScrape = (scrape: ScrapeEvent) => scrapes.push(scrape);
  await using exporter = await openExporter({ locustUrl, faults: { delayMs: 30 }, onScrape });
  const cut = readBody(exporter);
  await fetch(`${exporter.url}/`);
  await exporter.close();
  await assert.rejects(cut);
  await sleep(60);
  assert.deepEqual(scrapes, []);
});

async function readBody(exporter: Exporter): Promise<string> {
  return (await fetch(`${exporter.url}/metrics`)).text();
}

async function readCounts(exporter: Exporter): Promise<Record<string, number>> {
  const samples = readSamples(await readBody(exporter));
  const total = samples.filter(({ name }) => name === 'promhttp_metric_handler_requests_total');
  return Object.fromEntries(total.map(({ labels: { code = '' }, value }) => [code, value]));
}

function inFlight(body: string): number {
  const samples = readSamples(body);
  return samples.find(({ name }) => name === 'promhttp_metric_handler_requests_in_flight')?.value ?? Number.NaN;
}

/** The status of the answer; `undefined` if there was none. */
async function quitStatus(exporter: Exporter): Promise<number | undefined> {
  try {
    return (await fetch(`${exporter.url}/quitquitquit`, { method: 'POST' })).status;
  } catch {
    return undefined;
  }
}
