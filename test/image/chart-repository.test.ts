// .ci/chart-repository: a repository on loopback gets a second version, and helm finds both.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { cpSync, existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { makeFolder } from '../support/folder.ts';
import { listen } from '../support/listen.ts';
import { baseEnv } from '../support/network.ts';
import { findPrograms, gate } from '../support/programs.ts';
import { ROOT } from './dist.ts';

const skip = gate(findPrograms(), 'test/image/chart-repository.test.ts', ['helm']);

test('.ci/chart-repository adds a version to what is there, and never changes one', { skip }, async (t) => {
  const directory = makeFolder();
  const site = join(directory, 'site');
  let status = 404;
  const server = createServer(({ url = '' }, response) => {
    const path = join(site, url);
    const isThere = status === 200 && existsSync(path);
    response.writeHead(isThere ? 200 : status === 200 ? 404 : status);
    response.end(isThere ? readFileSync(path) : '');
  });
  const url = `http://127.0.0.1:${await listen(server)}`;
  t.after(() => server.close());
  const run = (name: string, args: readonly string[], cwd = directory) =>
    promisify(execFile)(name, args, { cwd, env: baseEnv(directory) });
  const checkout = join(directory, 'checkout');
  for (const path of ['.ci', 'deploy/chart']) cpSync(join(ROOT, path), join(checkout, path), { recursive: true });
  const release = (version: string, folder: string) => {
    const chart = join(checkout, 'deploy/chart/Chart.yaml');
    const text = readFileSync(chart, 'utf8').replaceAll(/^(version|appVersion): .*$/gm, `$1: ${version}`);
    writeFileSync(chart, text);
    return run('.ci/chart-repository', [`${url}/`, folder], checkout);
  };

  await release('1.0.0', site);
  assert.deepEqual(readdirSync(site).toSorted(), ['index.yaml', 'lastscrape-1.0.0.tgz']);
  status = 200;
  const first = readFileSync(join(site, 'lastscrape-1.0.0.tgz'));
  const next = join(directory, 'next');
  await release('1.1.0', next);
  cpSync(next, site, { recursive: true });
  assert.deepEqual(readFileSync(join(site, 'lastscrape-1.0.0.tgz')), first, 'the one that is there already');
  await run('helm', ['repo', 'add', 'lastscrape', url]);
  const { stdout } = await run('helm', ['search', 'repo', 'lastscrape', '--versions', '--output', 'json']);
  assert.deepEqual(
    JSON.parse(stdout).map(({ version }: { version: string }) => version),
    ['1.1.0', '1.0.0'],
  );
  for (const version of ['1.0.0', '1.1.0']) {
    await run('helm', ['pull', 'lastscrape/lastscrape', '--version', version]);
    assert.ok(
      readFileSync(join(site, `lastscrape-${version}.tgz`)).equals(
        readFileSync(join(directory, `lastscrape-${version}.tgz`)),
      ),
    );
  }
  status = 500;
  await assert.rejects(
    release('1.2.0', join(directory, 'none')),
    /Cannot read http:.+: HTTP 500; must be 200, or 404 before/,
  );
});
