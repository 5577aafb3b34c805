import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { readExitCode } from '../../src/run/end-process.ts';
import { gateNamespaces } from '../support/pid-namespace.ts';

const skip = gateNamespaces('test/run/end-process.test.ts');
const folder = mkdtempSync(join(tmpdir(), 'lastscrape-end-'));
after(() => rmSync(folder, { recursive: true }));
/** Nobody ever writes to it: a thread that opens it waits. */
const fifo = join(folder, 'fifo');
if (skip === false) execFileSync('mkfifo', [fifo]);

const INSIDE = [process.execPath, join(import.meta.dirname, 'end-process-inside.ts')];
const AS_FIRST = ['unshare', '--pid', '--fork', '--kill-child', '--mount-proc'];

for (const [name, starter] of [
  ['a process', []],
  ['PID 1', AS_FIRST],
] as const) {
  test(`endProcess() ends ${name} with its code while a thread hangs, and says nothing of its own`, { skip }, () => {
    for (const code of [0, 69, 130]) {
      const [program = '', ...args] = [...starter, ...INSIDE, fifo, String(code)];
      const { status, stdout, stderr } = spawnSync(program, args, {
        encoding: 'utf8',
        timeout: 10_000,
        killSignal: 'SIGKILL',
      });
      assert.deepEqual({ status, stdout, stderr }, { status: code, stdout: 'false true\n', stderr: '' });
    }
  });
}

test('readExitCode() takes what endProcess() gives, and nothing else', () => {
  assert.equal(readExitCode(['--exit-with', '0']), 0);
  assert.equal(readExitCode(['--exit-with', '130']), 130);
  assert.equal(readExitCode(['lastscrape', '--exit-with', '69']), 69, 'as the binary gets it');
  for (const argv of [
    [],
    ['--check'],
    ['--exit-with'],
    ['--exit-with', ''],
    ['--exit-with', 'x'],
    ['--exit-with', '1000'],
    ['--exit-with', '0', '0'],
    ['130'],
  ]) {
    assert.equal(readExitCode(argv), null, argv.join(' '));
  }
});
