// The shell script of docs/verdict.md as the page has it, with the real Locust: its exit code is the verdict.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { startChild } from '../support/child.ts';
import { makeFolder } from '../support/folder.ts';
import { baseEnv, openNetwork } from '../support/network.ts';
import { locustfile, START_MS } from '../support/pod.ts';
import { findPrograms, gate } from '../support/programs.ts';

const FILE = 'test/pods/verdict-script.test.ts';
const programs = findPrograms();
const skip = gate(programs, FILE, ['locust']);

const PAGE = readFileSync(join(import.meta.dirname, '../../docs/verdict.md'), 'utf8');
const [, SCRIPT = ''] = new RegExp(`<!-- run by ${FILE} -->\n\`\`\`sh\n([\\s\\S]*?)^\`\`\`$`, 'm').exec(PAGE) ?? [];

/** A run of 20 s, after the start. */
const RUN_MS = START_MS + 60_000;

type Ran = { readonly code: number | null; readonly text: string; readonly report: { readonly verdict?: string } };

/**
 * Runs it with programs on the PATH that add the test's users, its short run and free ports. `whenRunning`: what a
 * shell does to Locust, `$1`, once lastscrape has seen it run.
 */
async function runScript(users: 'steady' | 'failing', script = SCRIPT, whenRunning?: string): Promise<Ran> {
  const directory = makeFolder();
  await using stack = new AsyncDisposableStack();
  const network = stack.use(await openNetwork(directory));
  const { target } = network.ports;
  const bin = join(directory, 'bin');
  mkdirSync(bin);
  const addProgram = (name: string, line: string) => {
    writeFileSync(join(bin, name), `#!/bin/sh\n${line}\n`);
    chmodSync(join(bin, name), 0o755);
  };
  const quote = (words: readonly string[]) => words.map((word) => `'${word}'`).join(' ');
  const more = [
    `--locustfile=${locustfile(users)}`,
    `--host=http://127.0.0.1:${target}`,
    // It must not be over before its failures are seen, nor before it is killed.
    `--run-time=${whenRunning === undefined ? '20s' : '10m'}`,
  ];
  // A slow machine passes too.
  const page = script
    .replace('>= 500', '>= 60000')
    .replace('< 20', '< 1')
    .replace('START_TIMEOUT=1m', 'START_TIMEOUT=5m');
  addProgram(
    'locust',
    `echo $$ >locust.pid; PYTHONDONTWRITEBYTECODE=1 exec ${quote(programs.locust ?? [])} "$@" ${quote(more)}`,
  );
  addProgram('lastscrape', `exec env ${quote(programs.watcher)} "$@"`);
  const env = baseEnv(directory);
  const command = network.wrap(['sh', '-c', page]);
  const child = startChild({
    name: 'the script',
    command,
    env: { ...env, PATH: `${bin}:${env['PATH']}` },
    cwd: directory,
  });
  stack.use(child);
  if (whenRunning !== undefined) {
    await child.waitForLine(/"msg":"main is running"/, START_MS);
    const pid = readFileSync(join(directory, 'locust.pid'), 'utf8').trim();
    execFileSync('sh', ['-c', whenRunning, 'sh', pid]);
  }
  const { code } = await child.waitForExit(RUN_MS);
  const text = child.lines.map(({ text }) => text).join('\n');
  return { code, text, report: JSON.parse(readFileSync(join(directory, 'report.json'), 'utf8')) };
}

describe('the shell script of docs/verdict.md', { concurrency: 2, skip }, () => {
  it('goes on after a test within its thresholds', async () => {
    const { code, text, report } = await runScript('steady');
    assert.deepEqual([code, report.verdict], [0, 'passed'], text);
    assert.match(text, /\nwithin the thresholds$/);
  });

  it('does not pass a Locust that was killed', async () => {
    const { code, text } = await runScript(
      'steady',
      SCRIPT.replace('"Aggregated"} < 20', '"Aggregated"} < 0'),
      'kill -9 $1',
    );
    assert.equal(code, 2, text);
    assert.match(text, /\nLocust ended with 137: see locust.log$/);
  });

  it('stops Locust where lastscrape cannot read its settings, and ends with 78', async () => {
    const { code, text, report } = await runScript('steady', SCRIPT.replace('START_TIMEOUT=1m', 'START_TIMEOUT=1mm'));
    assert.deepEqual([code, report.verdict], [78, undefined], text);
    assert.match(text, /\nnot judged: see report.json$/);
  });

  it('ends with 1 after a test whose requests fail', async () => {
    const { code, text } = await runScript('failing');
    assert.equal(code, 1, text);
    assert.match(text, /"msg":"a threshold fails this run","entry":"locust_requests_fail_ratio > 0\.01","seen":0\.\d+/);
    assert.doesNotMatch(text, /within the thresholds/);
  });
});
