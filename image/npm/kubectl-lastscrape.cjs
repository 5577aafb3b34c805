#!/usr/bin/env node
// `kubectl lastscrape explain pod NAME`: asks kubectl for the JSON, and lastscrape what it says. Flags go to kubectl, but for --json.
const { spawnSync } = require('node:child_process');
const { join } = require('node:path');

const USAGE = 'Usage: kubectl lastscrape explain pod|job NAME [--json] [flags of kubectl get, such as --namespace]\n';
const [command, kind = '', name = '', ...rest] = process.argv.slice(2);

if (command === 'explain' && /^(pods?|po|jobs?)$/.test(kind) && name !== '' && !name.startsWith('-')) explain();
else {
  process.stderr.write(USAGE);
  process.exitCode = 64;
}

function explain() {
  const flags = rest.filter((flag) => flag !== '--json');
  const options = { encoding: 'utf8', maxBuffer: 2 ** 28 };
  const got = spawnSync('kubectl', ['get', kind, name, ...flags, '--output=json'], {
    ...options,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  if (got.error !== undefined) process.stderr.write(`Cannot run kubectl: ${got.error.message}\n`);
  // kubectl has said why.
  if (got.status !== 0) {
    process.exitCode = got.status ?? 1;
    return;
  }
  const json = rest.includes('--json') ? ['--json'] : [];
  const explained = spawnSync(process.execPath, [join(__dirname, 'lastscrape.cjs'), 'explain', ...json], {
    ...options,
    input: got.stdout,
    stdio: ['pipe', 'inherit', 'inherit'],
  });
  process.exitCode = explained.status ?? 1;
}
