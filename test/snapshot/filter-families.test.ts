import assert from 'node:assert/strict';
import { test } from 'node:test';
import { BrokenBody, openBody } from '../../src/snapshot/body.ts';
import { filterFamilies } from '../../src/snapshot/filter-families.ts';

async function join(pieces: AsyncIterable<Uint8Array>): Promise<string> {
  const all: Uint8Array[] = [];
  for await (const piece of pieces) all.push(piece);
  return Buffer.concat(all).toString();
}

test('filterFamilies() filters what comes, its last line without a line feed included', async () => {
  const { body, push, end } = openBody();
  const filtered = join(filterFamilies(body.read(), (family) => family === 'b'));
  for (const text of ['# A comment.\n# TYPE a gau', 'ge\na 1\nb', ' 1\na 2\nb 2']) push(Buffer.from(text));
  end();
  assert.equal(await filtered, '# A comment.\nb 1\nb 2');
  const others = filterFamilies([Buffer.from('# A comment.\na 1\n')], () => true, { keepsOther: false });
  assert.equal(await join(others), 'a 1\n');
});

test('filterFamilies() breaks off as its source does', async () => {
  const { body, push, breakOff } = openBody();
  const filtered = join(filterFamilies(body.read(), () => true));
  push(Buffer.from('a 1\n'));
  breakOff('reset');
  await assert.rejects(filtered, BrokenBody);
});
