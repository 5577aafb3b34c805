import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readRequestPath } from '../../src/front/request-path.ts';

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
