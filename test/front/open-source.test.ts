import assert from 'node:assert/strict';
import { test } from 'node:test';
import { findEndMetrics } from '../../src/front/open-source.ts';
import { REAL_CLOCK } from './front-server.ts';

test("findEndMetrics() has a program's metrics of conditions, and of Locust's page that it is up, by its name", () => {
  const parts = { metricNames: ['jobs_left'], clock: REAL_CLOCK, log: () => {} };
  const locust = { namespace: 'load', path: '/metrics', headersFile: null };
  const find = (url: string) => findEndMetrics({ ...parts, url: new URL(url), locust });
  assert.deepEqual(find('http://127.0.0.1:9646/metrics'), ['jobs_left']);
  assert.deepEqual(find('file:///metrics/'), ['jobs_left']);
  assert.deepEqual(find('locust+http://127.0.0.1:8089'), ['load_up']);
});
