// Locust's JSON, of every version and in every state of decay; nothing makes it throw.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isRunningState, readLocustStats } from '../../../src/front/locust/page.ts';
import { readRecordedText } from '../../support/recording.ts';

const RECORDED = readRecordedText('exporter-0.5.0-locust-2.47.0/13-odd-names.stats-requests.json');

test('readLocustStats() takes nothing but a JSON object for an answer of Locust', () => {
  for (const text of ['', '<!doctype html><form action="/login">', 'null', '7', '"x"', '[]', '{"state":"runn', 'NaN']) {
    assert.equal(readLocustStats(text), null, text);
  }
});

test('readLocustStats() reads what is there, whatever the rest is', () => {
  const empty = {
    state: null,
    rows: [],
    errors: [],
    workers: [],
    gauges: new Map(
      ['workers_count', 'workers_running_count', 'workers_hatching_count', 'workers_missing_count'].map((name) => [
        name,
        0,
      ]),
    ),
  };
  assert.deepEqual(readLocustStats('{}'), empty);
  assert.deepEqual(readLocustStats('{"state":7,"stats":null,"errors":"x","workers":{"a":1}}'), empty);
  const odd = readLocustStats(
    '{"state":"running","user_count":null,"fail_ratio":NaN,"stats":[null,7,{"name":"a","method":null,"num_requests":1.5,"min_response_time":"x"}],"errors":[{}],"workers":[[]]}',
  );
  assert.equal(odd?.gauges.get('users'), 0);
  assert.ok(Number.isNaN(odd?.gauges.get('requests_fail_ratio')));
  assert.deepEqual(
    odd?.rows.map(({ method, name, numbers }) => [
      method,
      name,
      numbers.get('num_requests'),
      numbers.get('min_response_time'),
    ]),
    [
      ['', '', 0, 0],
      ['', '', 0, 0],
      ['', 'a', 1.5, 0],
    ],
  );
  assert.deepEqual([odd?.errors.length, odd?.workers.length], [1, 1]);
});

test('readLocustStats() reads the numbers that are none, and leaves texts that look like them alone', () => {
  const stats = readLocustStats(
    '{"fail_ratio":-Infinity,"user_count":Infinity,"stats":[{"name":": NaN, \\"NaN","x":NaN}]}',
  );
  assert.equal(stats?.gauges.get('requests_fail_ratio'), Number.NEGATIVE_INFINITY);
  assert.equal(stats?.gauges.get('users'), Number.POSITIVE_INFINITY);
  assert.equal(stats?.rows[0]?.name, ': NaN, "NaN');
});

test('readLocustStats() finds the percentiles under the name of each version', () => {
  const read = (fields: object) => {
    const stats = readLocustStats(JSON.stringify(fields));
    return ['50', '95'].map((percent) => stats?.gauges.get(`requests_current_response_time_percentile_${percent}`));
  };
  assert.deepEqual(read({ current_response_time_percentile_50: 3, current_response_time_percentile_95: 9 }), [3, 9]);
  assert.deepEqual(read({ current_response_time_percentile_1: 3, current_response_time_percentile_2: null }), [3, 0]);
  const named = { 'response_time_percentile_0.5': 3, 'response_time_percentile_0.99': 9 };
  assert.deepEqual(read({ current_response_time_percentiles: named }), [3, undefined], 'of others nothing is made up');
  const row = {
    name: 'a',
    'response_time_percentile_0.95': 4,
    ninetieth_response_time: 2,
    response_time_percentile_x: 1,
  };
  const numbers = [...(readLocustStats(JSON.stringify({ stats: [row] }))?.rows[0]?.numbers ?? [])];
  const percentiles = numbers.filter(([name]) => name.startsWith('0.'));
  assert.deepEqual(percentiles, [
    ['0.95', 4],
    ['0.9', 2],
  ]);
});

test('readLocustStats() cuts a text that would make a line too long, and mends a lone surrogate', () => {
  const long = 'x'.repeat(2_000_000);
  const stats = readLocustStats(`{"stats":[{"name":"${long}"}],"errors":[{"error":"${long}","name":"\\ud800"}]}`);
  assert.equal(stats?.rows[0]?.name.length, 65_536);
  assert.equal(stats?.errors[0]?.error.length, 1_024);
  assert.equal(stats?.errors[0]?.name, '\ufffd');
});

test('readLocustStats() never throws on an answer that was cut or damaged anywhere', () => {
  for (let length = 0; length < RECORDED.length; length += 97) {
    assert.equal(readLocustStats(RECORDED.slice(0, length)), null);
    const damaged = `${RECORDED.slice(0, length)}NaN${RECORDED.slice(length + 3)}`;
    const stats = readLocustStats(damaged);
    assert.ok(stats === null || Array.isArray(stats.rows));
  }
});

test('isRunningState() is true for the states in which requests are made', () => {
  const states = ['ready', 'hatching', 'spawning', 'running', 'cleanup', 'stopping', 'stopped', 'missing', null];
  assert.deepEqual(states.filter(isRunningState), ['hatching', 'spawning', 'running']);
});

test('readLocustStats() reads the first 1,024 letters of an error, however they are written, and all else', () => {
  const letters = ['a', '"', '\\', '\n', 'ü', '€', '\u{1f600}', '\u0001', '\\"', '"error":"', '","'];
  for (const letter of letters) {
    for (const lead of [0, 1, 2, 3, 4, 5, 6]) {
      const long = 'x'.repeat(lead) + letter.repeat(2_000);
      const errors = [
        { method: 'GET', name: 'a', error: long, occurrences: 3 },
        { method: 'GET', name: 'b', error: 'short', occurrences: 4 },
        { method: 'GET', name: long, error: long, occurrences: 5 },
      ];
      const written = JSON.stringify({ errors, state: 'running' });
      const expected = errors.map((each) => ({ ...each, error: each.error.slice(0, 1_024).toWellFormed() }));
      const texts = [written, written.replaceAll('"error":', '"error": ').replaceAll(/[^ -~]/gu, escapeJson)];
      for (const text of texts) {
        assert.deepEqual(readLocustStats(text)?.errors, expected, JSON.stringify([letter, lead]));
      }
    }
  }
  const errors = readLocustStats('{"errors":[{"error":7,"occurrences":6},{"error":"","name":"\\"error\\":"}]}')?.errors;
  assert.deepEqual(
    errors?.map(({ name, error, occurrences }) => [name, error, occurrences]),
    [
      ['', '', 6],
      ['"error":', '', 0],
    ],
  );
});

function escapeJson(letter: string): string {
  return Array.from(
    { length: letter.length },
    (_, index) => `\\u${letter.charCodeAt(index).toString(16).padStart(4, '0')}`,
  ).join('');
}
