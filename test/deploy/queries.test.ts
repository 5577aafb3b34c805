// deploy/monitoring/queries.md: each query asked of a real Prometheus, with the exporter and in its place.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { findPrograms, gate } from '../support/programs.ts';
import { BEGIN_SECONDS, openRecordedRuns } from './recorded-runs.ts';

const PAGE = readFileSync(join(import.meta.dirname, '../../deploy/monitoring/queries.md'), 'utf8');
const programs = findPrograms();
const skip = gate(programs, 'test/deploy/queries.test.ts', ['prometheus', 'promtool']);

const QUERIES = new Map(
  [...PAGE.matchAll(/^<!-- query: (.+) -->\n```promql\n([\s\S]*?)```$/gm)].map(([, what = '', text = '']) => [
    what,
    text,
  ]),
);

/** When it is asked, in seconds after the first sample: both run, `cart` idle; or both are over. */
const RUNNING_SECONDS = 45;
const OVER_SECONDS = 1_800;

/** What each query answers, to six digits; the run `cart` has the exporter, `place` lastscrape. */
const EXPECTED: Readonly<Record<string, Readonly<Record<'cart' | 'place', readonly string[]>>>> = {
  'requests per second': { cart: ['Aggregated 0'], place: ['Aggregated 2.66667'] },
  "requests per second, by Locust's own count of its last 10 s": { cart: ['Aggregated 0'], place: ['Aggregated 75'] },
  'requests per second by request': {
    cart: ['GET /missing%20%22quoted%22 0', 'GET /ok 0'],
    place: ['GET /ok 0.533333', 'GET he said "hi", twice 0.533333', 'GET line\nbreak 0.533333', 'GET ünïcödé 0.533333'],
  },
  'failures per second': { cart: ['Aggregated 0'], place: ['Aggregated 0.533333'] },
  'failures in percent of the requests of the last minute': { cart: ['Aggregated NaN'], place: ['Aggregated 20'] },
  'failures in percent since the start': { cart: ['18.8406'], place: ['20'] },
  '95th percentile of the last 10 s, in ms': { cart: [], place: ['50'] },
  'requests of a run': { cart: ['222'], place: ['520'] },
  'failures of a run': { cart: ['36'], place: ['104'] },
  "percentiles of a run, in ms: lastscrape in the exporter's place": {
    cart: [],
    place: ['0.5 30', '0.95 50', '0.99 50'],
  },
  "95th percentile of each request of a run, in ms: lastscrape in the exporter's place": {
    cart: [],
    place: ['GET /ok 10', 'GET he said "hi", twice 20', 'GET line\nbreak 30', 'GET ünïcödé 40'],
  },
  'pods of the last hour whose last numbers are missing': both('lost 1', 'never 1'),
  'pods of the last hour that may miss their last changes, and for how many seconds before the end': both('late 0.7'),
};

/** Of a query that asks for no run. */
function both(...answers: readonly string[]) {
  return { cart: answers, place: answers };
}

describe('the queries', { skip }, () => {
  test('each finds what the recordings hold', async () => {
    assert.equal(QUERIES.size, PAGE.match(/```promql/g)?.length, 'a query without its marker');
    await using runs = await openRecordedRuns(programs);
    const { network } = runs;
    const over = PAGE.indexOf('## When it is over');
    const answers: Record<string, Record<string, string[]>> = {};
    for (const [what, text] of QUERIES) {
      const isOver = PAGE.indexOf(`<!-- query: ${what} -->`) > over;
      answers[what] = {};
      for (const run of ['cart', 'place']) {
        const time = String(BEGIN_SECONDS + (isOver ? OVER_SECONDS : RUNNING_SECONDS));
        const query = text.replaceAll('checkout-load', run);
        const path = `/api/v1/query?${new URLSearchParams({ query, time })}`;
        const { status, body } = await network.get(network.ports.prometheus, path);
        assert.equal(status, 200, `${query}: ${body}`);
        const { data }: { data: { result: { metric: Record<string, string>; value: [number, string] }[] } } =
          JSON.parse(body);
        answers[what][run] = data.result
          .map(({ metric: { pod, method, name, quantile, error }, value }) =>
            [query === text ? pod : '', error, method, name, quantile, String(Number(Number(value[1]).toPrecision(6)))]
              .filter((part) => part !== undefined && part !== '')
              .join(' '),
          )
          .toSorted();
      }
    }
    assert.deepEqual(answers, EXPECTED);
  });
});
