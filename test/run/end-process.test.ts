import assert from 'node:assert/strict';
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { test } from 'node:test';
import { readExitCode } from '../../src/run/end-process.ts';
import { makeFolder } from '../support/folder.ts';
import { gateNamespaces } from '../support/pid-namespace.ts';
import { COMMAND } from '../support/watcher.ts';

const skip = gateNamespaces('test/run/end-process.test.ts');
const folder = makeFolder();
/** Without a writer: a thread that opens it waits. */
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
        timeout: 60_000,
        killSignal: 'SIGKILL',
      });
      assert.deepEqual({ status, stdout, stderr }, { status: code, stdout: 'false true\n', stderr: '' });
    }
  });
}

test('a signal after the report does not take the place of the exit code', async () => {
  const [program = '', ...args] = COMMAND;
  const env = {
    LASTSCRAPE_DONE_WHEN: `file:${folder}`,
    LASTSCRAPE_FAIL_IF: 'a > 1',
    LASTSCRAPE_METRICS_URL: 'http://127.0.0.1:1/metrics',
    LASTSCRAPE_SCRAPES: '0',
    LASTSCRAPE_SETTLE: '0',
    LASTSCRAPE_POLL: '100ms',
    LASTSCRAPE_QUIT: 'none',
  };
  for (let count = 0; count < 4; count++) {
    const child = spawn(program, args, { env, stdio: ['ignore', 'pipe', 'inherit'] });
    let timer: NodeJS.Timeout | undefined;
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      if (text.includes('"report"')) timer ??= setInterval(() => child.kill(), 1);
    });
    const ended = await once(child, 'exit');
    clearInterval(timer);
    assert.deepEqual(ended, [1, null]);
  }
});

test('readExitCode() takes what endProcess() gives, and nothing else', () => {
  assert.deepEqual([readExitCode(['--exit-with', '0']), readExitCode(['--exit-with', '130'])], [0, 130]);
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
