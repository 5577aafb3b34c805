// README, docs/ and code say the same: variables, kinds, presets, exit codes, messages, measurements.

import assert from 'node:assert/strict';
import { existsSync, globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { VERSION } from '../src/base/version.ts';
import { listVariables } from '../src/config/config.ts';
import { EXIT } from '../src/decide/exit-codes.ts';
import { MESSAGES } from '../src/decide/messages.ts';
import { CONDITION_KINDS, TARGET_KINDS } from '../src/main.ts';
import { PRESETS } from '../src/quit/programs.ts';
import { FIGURE_PAGES, readRecorded } from './bench/draw-figures.ts';
import { drawFigures, fillPage } from './bench/figures.ts';
import { TARGET_PROGRAMS } from './pods/target-programs.ts';
import { STAND_INS } from './stand-in/quit-targets.ts';

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
    listVariables({ conditions: CONDITION_KINDS }).map(({ name, default: value, defaultOtherwise, meaning }) => [
      `\`${name}\``,
      `\`${value}\`${defaultOtherwise === undefined ? '' : ` (${defaultOtherwise})`}`,
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
  const page = readPage('docs/targets.md');
  assert.deepEqual(
    readRows('presets', page),
    PRESETS.map(({ name, path, port, servicePorts, flag }) => [
      `\`${name}\``,
      `\`POST ${path}\``,
      port === null ? 'that of `LASTSCRAPE_METRICS_URL`' : [port, ...servicePorts].join(', '),
      port === null ? 'nothing, from v0.5.0 on' : (flag ?? 'nothing'),
    ]),
  );
  assert.deepEqual(
    readRows('proven', page),
    PRESETS.map(({ name }) => [`\`${name}\``, provenOn(name)]),
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

test('docs/messages.md explains every warning and error of the table of messages', () => {
  const page = readPage('docs/messages.md');
  for (const { level, text } of Object.values(MESSAGES)) {
    if (level !== 'warn' && level !== 'error') continue;
    const start = text.split(':')[0] ?? text;
    assert.ok(page.includes(start), `docs/messages.md does not explain "${text}"`);
  }
});

/** The log entries and the report of a transcript, whose first observation is at 09:30:00. */
function readTranscript(name: string): { readonly log: Map<string, unknown>; readonly report: unknown } {
  const transcript = readPage(`fixtures/transcripts/${name}.txt`);
  const toTime = (seconds: string) => new Date(Date.UTC(2026, 10, 21, 9, 30) + Number(seconds) * 1000).toISOString();
  const log = new Map<string, unknown>();
  let seconds = '';
  let report: unknown;
  for (const line of transcript.split('\n')) {
    seconds = /^> ([\d.]+)s/.exec(line)?.[1] ?? seconds;
    const [, level = '', msg = '', rest = ''] = /^ {4}(info|warn|error) "([^"]*)"(.*)$/.exec(line) ?? [];
    if (msg !== '') {
      const fields = [...rest.matchAll(/ (\w+)=("[^"]*"|\S+)/g)].map(([, name, value = '']) => [
        name,
        JSON.parse(value),
      ]);
      log.set(msg, { time: toTime(seconds), level, msg, ...Object.fromEntries(fields) });
    }
    const [, text] = /^ {4}report (.*)$/.exec(line) ?? [];
    if (text !== undefined) {
      const { version: _, ...fields } = JSON.parse(text.replaceAll(/"\+([\d.]+)s"/g, (_, at) => `"${toTime(at)}"`));
      report = { ...fields, version: VERSION };
    }
  }
  return { log, report };
}

test('the log and the report that the pages show are those of their transcripts', () => {
  const pages = readme + readPage('docs/how-it-decides.md');
  const shown = [
    ...pages.matchAll(/<!-- (log|report): of fixtures\/transcripts\/(\S+)\.txt,[^>]*-->\n```json\n([\s\S]*?)```/g),
  ];
  assert.deepEqual(shown.map(([, what]) => what).toSorted(), ['log', 'report']);
  for (const [, what, name = '', text = ''] of shown) {
    const { log, report } = readTranscript(name);
    const wanted = what === 'log' ? [...log.values()] : [report];
    const lines = text.replaceAll('\n ', '').trim().split('\n');
    assert.deepEqual(
      lines,
      wanted.map((entry) => JSON.stringify(entry)),
      name,
    );
  }
});

test('the commands of the quick start are those of the guides, word by word', () => {
  const guides = ['deploy/README.md', 'docs/building.md'].map(readPage).join('\n');
  const [, quickStart = ''] = /^## Quick start\n([\s\S]*?)^## /m.exec(readme) ?? [];
  const blocks = [...quickStart.matchAll(/^```sh\n([\s\S]*?)^```$/gm)].map(([, block = '']) => block);
  assert.equal(blocks.length, 3);
  const commands = blocks.flatMap((block) => block.replaceAll('\\\n', '\\').split('\n')).filter(Boolean);
  for (const command of commands) assert.ok(guides.replaceAll('\\\n', '\\').includes(command), command);
});

test('the README names every preset', () => {
  for (const { name } of PRESETS) assert.ok(readme.includes(`\`${name}\``), name);
});

test('no line of a manifest or a sample of the README is too long for a page of 1,280 pixels', () => {
  const blocks = [...readme.matchAll(/^```\w*\n([\s\S]*?)^```$/gm)].map(([, block = '']) => block);
  const long = blocks.flatMap((block) => block.split('\n')).filter((line) => line.length > 100);
  assert.deepEqual(long, []);
});

test('every file and folder of the checkout that a page names is there', () => {
  for (const page of PAGES) {
    for (const [, path = ''] of readPage(page).matchAll(/`((?:src|test|fixtures|deploy|image|bin|\.ci)\/[\w./-]*)`/g)) {
      assert.ok(existsSync(join(ROOT, path)), `${page} names ${path}`);
    }
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

test('the figures, their alternative texts and the tables of the bench are what was recorded: else "npm run figures"', () => {
  const recorded = readRecorded();
  const figures = drawFigures(recorded);
  for (const [name, { svg }] of Object.entries(figures)) {
    assert.equal(readPage(`image/figures/${name}`), svg, name);
    assert.ok(
      FIGURE_PAGES.some((page) => readPage(page).includes(`image/figures/${name})`)),
      `no page shows ${name}`,
    );
  }
  for (const page of FIGURE_PAGES) assert.equal(fillPage(readPage(page), recorded, figures), readPage(page), page);
  assert.match(readPage('docs/measured.md'), /<!-- bench -->\n### Footprint\n[\s\S]*\n<!-- \/bench -->/);
  assert.match(
    readPage('docs/measured.md'),
    /<!-- front -->\n### A scrape through the front\n[\s\S]*\n<!-- \/front -->/,
  );
});
