// A keeper whose disk is full: a file system of its own in memory.

import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { mkdirSync } from 'node:fs';
import { test } from 'node:test';
import { makeFolder } from '../support/folder.ts';
import { gateNamespaces } from '../support/pid-namespace.ts';
import { readPages, startKeeper, TEXT } from './keeper.ts';

const skip = gateNamespaces('test/keeper/disk.test.ts');

test('where the disk is full a hand-over is refused, what is kept is served, and small pages are taken again', {
  skip,
}, async () => {
  const folder = `${makeFolder()}/pages`;
  mkdirSync(folder);
  const mount = `mount -t tmpfs -o size=128k tmpfs ${folder} && exec "$@"`;
  await using keeper = await startKeeper(
    {},
    { folder, wrap: ['/usr/bin/unshare', '--mount', '/bin/sh', '-c', mount, 'sh'] },
  );
  assert.equal(await keeper.handOver({ name: 'small' }), '201 kept');
  const large = `# ${randomBytes(200_000).toString('hex')}\na 1\n`;
  assert.equal(await keeper.handOver({ name: 'large', pages: [large] }), "507 the keeper's disk is full: ENOSPC");
  assert.equal(await keeper.handOver({ name: 'small', pages: [large] }), "507 the keeper's disk is full: ENOSPC");
  assert.deepEqual(await readPages(keeper), { small: TEXT }, 'what was there stays');
  assert.equal(await keeper.handOver({ name: 'next', pages: ['next 1\n'] }), '201 kept');
  assert.deepEqual(await readPages(keeper), { small: TEXT, next: 'next 1\n' });
});
