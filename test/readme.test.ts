// README, docs/ and code say the same: variables, kinds, presets, exit codes, messages, measurements.

import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { PRESETS } from '../src/act/presets.ts';
import { listVariables } from '../src/config.ts';
import { MESSAGES } from '../src/decide/messages.ts';
import { EXIT } from '../src/decide/report.ts';
import { CONDITION_KINDS, TARGET_KINDS } from '../src/main.ts';
import { STAND_INS } from './stand-in/quit-targets.ts';
import { TARGET_PROGRAMS } from './support/target-programs.ts';

const ROOT = join(import.meta.dirname, '..');
const PAGES = globSync(['*.md', 'docs/*.md', 'deploy/*.md'], { cwd: ROOT }).toSorted();

function readPage(path: string): string {
  return readFileSync(join(ROOT, path), 'utf8');
}

const readme = readPage('README.md');

/** The rows of the table behind a marker of a page, cell by cell, without its head. */
function readRows(marker: string, page = readme): string[][] {
  const [, table = ''] = new RegExp(`<!-- ${marker}[^>]*-->\n([\\s\\S]*?)<!-- /${marker} -->`).exec(page) ?? [];
  return table
    .trim()
    .split('\n')
    .slice(2)
    .map((row) => row.slice(2, -2).split(' | '));
}

test('the README has every variable with its default and meaning, in the order of the code', () => {
  assert.deepEqual(
    readRows('variables'),
    listVariables({ conditions: CONDITION_KINDS }).map(({ name, default: value, meaning }) => [
      `\`${name}\``,
      `\`${value}\``,
      meaning,
    ]),
  );
});

test('the README has every kind of condition and of target', () => {
  assert.deepEqual(
    readRows('conditions').map(([entry, meaning]) => [entry, meaning]),
    CONDITION_KINDS.map(({ usage, meaning }) => [`\`${usage}\``, meaning]),
  );
  const presets: readonly string[] = PRESETS.map(({ name }) => name);
  assert.deepEqual(readRows('targets'), [
    ['`PRESET[:PORT[:SERVICE_PORT]]`', 'a program that is known by name: the table of presets'],
    ...TARGET_KINDS.filter(({ usage }) => !presets.includes(usage)).map(({ usage, meaning }) => [
      `\`${usage}\``,
      meaning,
    ]),
    ['`none`', 'stops nothing'],
  ]);
});

test('docs/targets.md has every preset: its request, its ports, what must be set, and what proved it', () => {
  assert.deepEqual(
    readRows('presets', readPage('docs/targets.md')),
    PRESETS.map(({ name, method, path, port, servicePorts, flag }) => [
      `\`${name}\``,
      `\`${method} ${path}\``,
      port === null ? 'that of `LASTSCRAPE_METRICS_URL`' : [port, ...servicePorts].join(', '),
      port === null ? 'nothing, from v0.5.0 on' : (flag ?? 'nothing'),
      provenOn(name),
    ]),
  );
});

/** The real program that test/pods stops, or what a stand-in was written from. */
function provenOn(preset: string): string {
  const program = TARGET_PROGRAMS.find(({ entry }) => entry === preset);
  if (program !== undefined) return program.name;
  const standIn = STAND_INS.find((each) => each.preset === preset);
  if (standIn !== undefined) return `a stand-in from ${standIn.from}`;
  assert.equal(preset, 'locust-exporter', 'a preset needs a test that stops it');
  return 'a stand-in compared with recordings of locust_exporter 0.4.3, 0.5.0 and 0.5.2';
}

test('the README has every exit code', () => {
  assert.deepEqual(
    readRows('exit codes').map(([code]) => Number(code)),
    Object.values(EXIT).toSorted((one, other) => one - other),
  );
});

test('the README explains every warning and error of the table of messages', () => {
  for (const { level, text } of Object.values(MESSAGES)) {
    if (level !== 'warn' && level !== 'error') continue;
    const start = text.split(':')[0] ?? text;
    assert.ok(readme.includes(start), `README does not explain "${text}"`);
  }
});

test('the README names its two commands at the top, and every script that a page mentions is there', () => {
  for (const [command, before] of [
    ['npm ci && npm run demo', 200],
    ['npm ci && npm test', 300],
  ] as const) {
    const at = readme.indexOf(command);
    assert.ok(at >= 0 && at < before, command);
  }
  const { scripts } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));
  for (const page of PAGES) {
    for (const [, name = ''] of readPage(page).matchAll(/npm run ([a-z:]+)/g)) {
      assert.ok(name in scripts, `${page}: npm run ${name}`);
    }
  }
});

test('docs/measured.md has the tables that npm run bench wrote, word by word', () => {
  const [, quoted = ''] = /<!-- bench -->\n([\s\S]*?)\n<!-- \/bench -->/.exec(readPage('docs/measured.md')) ?? [];
  const written = readFileSync(join(ROOT, 'image/figures/bench.md'), 'utf8');
  assert.equal(quoted.trim(), written.trim());
});
