import assert from 'node:assert/strict';
import { test } from 'node:test';
import { takesGzip } from '../../src/front/accept-encoding.ts';

test('takesGzip() goes by the weights', () => {
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
  for (const header of taken) assert.equal(takesGzip(header), true, header);
  const refused = [
    undefined,
    '',
    'identity',
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
  for (const header of refused) assert.equal(takesGzip(header), false, header);
});
