// What a story cannot tell of formats (fixtures/transcripts/front/formats.txt): each length of a page, and a long header.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openReadableCheck } from '../../src/exposition/readable.ts';
import { ENDED, openWorld } from './front-world.ts';
import { ACCEPTS, END_LINE, TYPES, writeFamily } from './simulation/page.ts';
import { reply } from './source.ts';

for (const format of ['openMetrics', 'protobuf'] as const) {
  test(`${format}: a page that is cut anywhere is whole for no reader, never kept, and never counted`, async (t) => {
    const world = await openWorld(t);
    const { source, front, ask } = world;
    const messages = [writeFamily(format, 'rows_total', 1), writeFamily(format, 'users_total', 2)] as const;
    const end = format === 'openMetrics' ? END_LINE : '';
    const whole = Buffer.from(messages.join('') + end, 'latin1');
    source.answer = reply(whole, { type: TYPES[format] });
    await ask(ACCEPTS[format]);
    await world.post();
    // Without any bytes it is a page in each format.
    for (let length = 1; length < whole.length - 1; length++) {
      if (format === 'protobuf' && length === messages[0].length) continue;
      source.answer = reply(whole.subarray(0, length), { type: TYPES[format] });
      const cut = await ask(ACCEPTS[format]);
      const check = openReadableCheck(format);
      check.write(cut.bytes);
      assert.notEqual(check.end(), null, `${length} bytes`);
      assert.deepEqual(cut.bytes, whole.subarray(0, length));
      assert.equal((await world.post()).status, 503);
    }
    let countedCount = 0;
    for (let event = front.takeEvent(); event; event = front.takeEvent())
      countedCount += Number(event.kind === 'scraped');
    assert.equal(countedCount, 1);
    front.tell(ENDED);
    await source.stop();
    const last = (await ask(ACCEPTS[format])).bytes.toString('latin1');
    assert.ok(last.startsWith(messages.join('')) && last.endsWith(end), last);
  });
}

test('an Accept of 8 KB passes as it is; of ten different ones the newest four are kept', async (t) => {
  const world = await openWorld(t);
  const { source, front, ask } = world;
  const asked: string[] = [];
  source.answer = (socket, number, accept = '') => {
    asked.push(accept);
    reply('rows_total 1\n', { type: `text/plain; by=${accepts.indexOf(accept)}` })(socket, number, accept);
  };
  const long = `text/plain;version=0.0.4,\xe9,${'application/x;q=0.1,'.repeat(400)}*/*`;
  assert.ok(long.length > 8_000);
  const accepts = [long, ...Array.from({ length: 9 }, (_, index) => `text/plain;a=${index}`)];
  for (const accept of accepts) assert.equal((await ask(accept)).status, 200);
  assert.deepEqual(asked, accepts);
  asked.length = 0;
  assert.equal((await world.post()).status, 200);
  assert.deepEqual(asked.toSorted(), accepts.slice(-4).toSorted());
  front.tell(ENDED);
  await source.stop();
  const served = await Promise.all(accepts.map(async (accept) => (await ask(accept)).headers['content-type']));
  assert.deepEqual(new Set(served), new Set([6, 7, 8, 9].map((by) => `text/plain; by=${by}`)));
});
