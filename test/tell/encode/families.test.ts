import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readFamilies } from '../../../src/tell/encode/families.ts';
import { readRecordedBody } from '../../support/recording.ts';

async function list(pieces: AsyncIterable<Uint8Array>): Promise<readonly string[]> {
  const samples: string[] = [];
  for await (const family of readFamilies(pieces)) samples.push(...family.samples.map((each) => JSON.stringify(each)));
  return samples;
}

test('readFamilies() reads the same from one piece and from many', async () => {
  const body = readRecordedBody('expositions/envoy-1.40.0-admin-stats.txt');
  const pieces = Array.from({ length: Math.ceil(body.length / 777) }, (_, index) =>
    body.subarray(index * 777, (index + 1) * 777),
  );
  const whole = await list(ReadableStream.from([body]));
  assert.equal(whole.length, 484);
  assert.deepEqual(await list(ReadableStream.from(pieces)), whole);
});

test('readFamilies() passes on that the body broke off', async () => {
  async function* breakOff(): AsyncGenerator<Uint8Array> {
    yield Buffer.from('a 1\n');
    throw new Error('it broke off');
  }
  await assert.rejects(list(breakOff()), /^Error: it broke off$/);
});
