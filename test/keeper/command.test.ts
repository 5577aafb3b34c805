// `lastscrape keep` as a command: its arguments, and what it says where it cannot start.

import assert from 'node:assert/strict';
import { readdirSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { test } from 'node:test';
import { KEEP_VARIABLES } from '../../src/config/keep-variables.ts';
import { makeFolder } from '../support/folder.ts';
import { findFreePort, listen } from '../support/listen.ts';
import { runKeepOnce, startKeeper, talkTo } from './keeper.ts';

test('--help names every variable with its default', async () => {
  const { code, out } = await runKeepOnce('--help');
  assert.equal(code, 0);
  for (const { name, default: value } of KEEP_VARIABLES) assert.ok(out.includes(`  ${name}=${value}\n`), name);
});

test('--check says what it would do and what is kept, and takes nothing', async () => {
  const first = await startKeeper();
  assert.equal(await first.handOver(), '201 kept');
  await first[Symbol.asyncDispose]();
  const { code, out } = await runKeepOnce('--check', {}, { folder: first.folder });
  assert.equal(code, 0, out);
  assert.match(out, /^Takes hand-overs on port 127\.0\.0\.1:\d+, serves Prometheus on port /);
  assert.match(out, /: 1 now, \d+ bytes; at most 10000, 268435456 bytes\nBelieves pods who they are\n$/);
});

test('--check takes nothing of a pod that ends meanwhile: it is held', async () => {
  const ports = [await findFreePort(), await findFreePort()] as const;
  const folder = join(makeFolder(), 'pages');
  const checked = runKeepOnce('--check', {}, { ports, folder }).then(({ code }) => ({ code }));
  const answers: string[] = [];
  for (let result = null; result === null; ) {
    answers.push(
      await talkTo(ports)
        .handOver()
        .catch(() => 'nobody listens'),
    );
    result = await Promise.race([checked, new Promise<null>((resolve) => setImmediate(() => resolve(null)))]);
  }
  const taken = answers.filter(
    (answer) => answer !== 'nobody listens' && !answer.startsWith('503 the keeper is stopping'),
  );
  assert.deepEqual([taken, readdirSync(folder)], [[], []]);
});

test('--check fails where the API server cannot be asked about tokens', async () => {
  const { code, out } = await runKeepOnce('--check', { LASTSCRAPE_KEEPER_AUTH: 'token' });
  assert.equal(code, 78);
  assert.match(out, /Cannot check tokens: KUBERNETES_SERVICE_HOST is not set; .*LASTSCRAPE_KEEPER_AUTH=none\n$/);
});

for (const argument of [undefined, '--check']) {
  test(`a port that is taken, and a wrong value, are said${argument === undefined ? '' : ' by --check'}`, async () => {
    const taken = createServer();
    const port = await listen(taken);
    const { code, out } = await runKeepOnce(argument, {}, { ports: [await findFreePort(), port] });
    taken.close();
    assert.equal(code, 78);
    assert.ok(out.includes(`Cannot use LASTSCRAPE_KEEPER_SERVE: port ${port} is taken`), out);
    const wrong = await runKeepOnce(argument, { LASTSCRAPE_KEEPER_SIZE: '1' });
    assert.equal(wrong.code, 78);
    assert.match(wrong.out, /^Cannot read LASTSCRAPE_KEEPER_SIZE: /);
  });
}

test('a folder that cannot be used is said, and is no bug: a file in its place', async () => {
  const file = join(makeFolder(), 'file');
  writeFileSync(file, '');
  const { code, out } = await runKeepOnce(undefined, {}, { folder: file });
  assert.equal(code, 78);
  assert.ok(out.startsWith(`Cannot use LASTSCRAPE_KEEPER_FOLDER: ${file} gives EEXIST; must be`), out);
});
