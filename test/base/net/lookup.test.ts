import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { lookUp } from '../../../src/base/net/lookup.ts';
import { gateNamespaces } from '../../support/pid-namespace.ts';

const skip = gateNamespaces('test/base/net/lookup.test.ts');

test('lookUp() finds a name, and says why it does not', async () => {
  const found = await lookUp('localhost', { timeoutMs: 60_000 });
  assert.ok('addresses' in found && found.addresses.some(({ address }) => ['127.0.0.1', '::1'].includes(address)));
  const missing = await lookUp('no.such.name.invalid', { timeoutMs: 60_000 });
  assert.ok('code' in missing && ['ENOTFOUND', 'EAI_AGAIN'].includes(missing.code), JSON.stringify(missing));
});

test('dial() keeps to one lookup while it hangs, uses its late answer, and serves that again', { skip }, (context) => {
  const folder = mkdtempSync(join(tmpdir(), 'lastscrape-lookup-'));
  context.after(() => rmSync(folder, { recursive: true }));
  writeFileSync(join(folder, 'resolv.conf'), 'nameserver 127.0.0.1\noptions timeout:1 attempts:5\n');
  writeFileSync(join(folder, 'nsswitch.conf'), 'hosts: dns\n');
  const mounts = ['resolv.conf', 'nsswitch.conf'].map((file) => `mount --bind '${folder}/${file}' /etc/${file}`);
  const prepare = `ip link set lo up; ${mounts.join('; ')}; exec "$@"`;
  const inside = join(import.meta.dirname, 'lookup-inside.ts');
  const command = ['-n', '-m', 'sh', '-ec', prepare, 'sh', process.execPath, inside];
  const output = execFileSync('unshare', command, { encoding: 'utf8' });
  assert.deepEqual(output.trim().split('\n'), [
    'unknown timed out, 1 under way',
    'unknown interrupted, 1 under way',
    'unknown the time is up, 1 under way',
    'open, 0 under way',
    'open, 0 under way',
    'asked 0 times more',
  ]);
});
