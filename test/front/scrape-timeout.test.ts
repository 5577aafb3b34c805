import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readScrapeDeadline, readScrapeTimeout } from '../../src/front/scrape-timeout.ts';

test('readScrapeTimeout() keeps 500 ms back, and half of less than a second', () => {
  for (const [header, expectedMs] of [
    ['10', 9_500],
    ['10.000', 9_500],
    ['1', 500],
    ['0.5', 250],
    ['0.001', 0.5],
    ['120', 119_500],
    ['121', 119_500],
    ['9'.repeat(400), 119_500],
  ] as const) {
    assert.equal(readScrapeTimeout(header), expectedMs, header);
  }
});

test('readScrapeTimeout() is 15 s where it cannot be read', () => {
  for (const header of [undefined, '', '0', '0.0', '-1', '1e3', 'NaN', 'Infinity', '10s', ' 10', '10, 10']) {
    assert.equal(readScrapeTimeout(header), 15_000, header);
  }
});

test('readScrapeDeadline() is the whole time, and none where it cannot be read', () => {
  for (const [header, expectedMs] of [
    ['10', 10_000],
    ['0.5', 500],
    ['3600', 3_600_000],
    ['0', Number.POSITIVE_INFINITY],
    ['10s', Number.POSITIVE_INFINITY],
    [undefined, Number.POSITIVE_INFINITY],
  ] as const) {
    assert.equal(readScrapeDeadline(header), expectedMs, header);
  }
});
