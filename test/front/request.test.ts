import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readRequestPath } from '../../src/front/listen.ts';
import { chooseEncoding } from '../../src/front/send-answer.ts';
import { readScrapeDeadline, readScrapeTimeout } from '../../src/front/server.ts';

test('readRequestPath() writes a path in one way and leaves the query out', () => {
  for (const [target, expected] of [
    ['/metrics', '/metrics'],
    ['/metrics?collect[]=a#b', '/metrics'],
    ['/metrics?a=/x?y', '/metrics'],
    ['/%6Detrics', '/metrics'],
    ['/a%2fb', '/a%2Fb'],
    ['/a%20b', '/a%20b'],
    ['/%zz', '/%zz'],
    ['http://host:1/metrics?x', '/metrics'],
    ['HTTPS://host/metrics', '/metrics'],
    ['http://host', '/'],
    ['http://host?x', '/'],
  ] as const) {
    assert.equal(readRequestPath(target), expected, target);
  }
});

test('readRequestPath() makes nothing else a path of ours', () => {
  for (const target of [
    '//metrics',
    '/metrics/',
    '/x/../metrics',
    '/./metrics',
    '//host/metrics',
    '/metrics%00',
    '/METRICS',
    '/%2Fmetrics',
    '\\metrics',
    '/metrics;x',
    'http:/metrics',
    'ftp://host/metrics',
    'metrics',
    '?x',
    '*',
    'host:443',
    '',
  ]) {
    assert.notEqual(readRequestPath(target), '/metrics', target);
  }
  for (const target of ['*', 'metrics', '', '?x', 'host:443']) assert.equal(readRequestPath(target), null, target);
});

test('chooseEncoding() goes by the weights', () => {
  const taken = [
    'gzip',
    'GZIP',
    'deflate, gzip',
    'gzip;q=0.1',
    'gzip ; q=1.000',
    '*',
    'x-gzip',
    'gzip;q=0.5, identity;q=0.5',
    'br;q=1, gzip;q=0.001',
    '*;q=0, gzip',
  ];
  for (const header of taken) assert.equal(chooseEncoding(header, true), 'gzip', header);
  const refused = [
    '',
    'identity',
    'zstd;q=0',
    'zstd;q=0.5, identity',
    'br, deflate',
    'gzip;q=0',
    'gzip;q=0.000',
    '*;q=0',
    'gzip;q=0, *',
    'gzip;q=0.5, identity',
    'gzip;q=2',
    'gzip;q=-1',
    'gzip;q=x',
    'gzip;q=',
    'gzipped',
    ';q=1',
    ',,',
  ];
  for (const header of refused) assert.equal(chooseEncoding(header, true), null, header);
  for (const header of [
    'zstd',
    'ZSTD;q=0.2',
    'gzip, zstd',
    '*, zstd',
    'zstd, gzip;q=0.5',
    'identity;q=0.5, zstd;q=0.5',
  ]) {
    assert.equal(chooseEncoding(header, true), 'zstd', header);
    assert.equal(chooseEncoding(header, false), /gzip|\*/.test(header) ? 'gzip' : null, header);
  }
  for (const header of ['zstd;q=0.8, gzip', 'zstd;q=0, gzip;q=0.1', 'zstd;q=x, *']) {
    assert.equal(chooseEncoding(header, true), 'gzip', header);
  }
});

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

test('readScrapeTimeout() is unknown where it cannot be read', () => {
  for (const header of [undefined, '', '0', '0.0', '-1', '1e3', 'NaN', 'Infinity', '10s', ' 10', '10, 10']) {
    assert.equal(readScrapeTimeout(header), null, header);
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
