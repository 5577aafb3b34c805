// README, docs/ and code say the same; pages are as short and as narrow as they are meant to be.

import assert from 'node:assert/strict';
import { existsSync, globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { isDeepStrictEqual } from 'node:util';
import { VERSION } from '../src/base/version.ts';
import { VARIABLES } from '../src/config/variables.ts';
import { MESSAGES } from '../src/decide/messages.ts';
import { EXIT } from '../src/decide/quit/exit-codes.ts';
import { FIGURE_PAGES, readRecorded } from './bench/draw-figures.ts';
import { drawFigures, fillPage } from './bench/figures.ts';
import { fillReference, shorten } from './tools/reference.ts';
import { CAUSES } from './tools/reference-texts.ts';

const ROOT = join(import.meta.dirname, '..');
const PAGES = globSync(['*.md', 'docs/*.md', 'deploy/**/*.md'], { cwd: ROOT }).toSorted();
/** What a user reads; the others are for contributors. */
const READ = PAGES.filter((page) => /^(README|docs|deploy)/.test(page));

function readPage(path: string): string {
  return readFileSync(join(ROOT, path), 'utf8');
}

const readme = readPage('README.md');

test('docs/reference.md has what the code says: else "npm run reference"', () => {
  const page = readPage('docs/reference.md');
  assert.equal(fillReference(page), page);
  const causes: Readonly<Record<string, string | null | undefined>> = CAUSES;
  for (const [id, { level, text }] of Object.entries(MESSAGES)) {
    if (level !== 'warn' && level !== 'error') continue;
    assert.ok(causes[id] === null || flat(page).includes(`\`${shorten(text)}\``), text);
  }
});

test('the last lines of code that the README gives wait for lastscrape 20 s at most, whatever became of it', () => {
  const lines = readme.split('\n').filter((line) => line.includes('localhost:9469/-/snapshot'));
  assert.equal(lines.length, 4);
  for (const line of lines) assert.match(line, /, 20\)|20 \* time\.Second|timeout\(20_000\)|curl -m 20 /);
});

test('the README has ten variables, each with the default of the code', () => {
  const rows = [...readme.matchAll(/^\| `(LASTSCRAPE_\w+)` \| `([^`]*)` \|/gm)].map(([, name, value]) => [name, value]);
  const variables = VARIABLES.map(({ name, default: value }) => [name, value]);
  assert.equal(rows.length, 10);
  for (const row of rows)
    assert.ok(
      variables.some((each) => isDeepStrictEqual(each, row)),
      `${row}`,
    );
});

test('the README has exit codes that there are', () => {
  const [, list = ''] = /\*\*Exit codes\*\*: ([\s\S]*?) \(\[all\]/.exec(readme) ?? [];
  const codes = list.split('; ').map((each) => Number.parseInt(each.trim(), 10));
  assert.deepEqual(codes, [EXIT.done, EXIT.thresholdFailed, EXIT.targetRuns, EXIT.misconfigured]);
});

test('the README says of cost and gain what the bench recorded', () => {
  const { bench, main } = readRecorded();
  const rows = [...main.matchAll(/^\| (?!.*place)[^|]+\| [\d.]+ \| [\d.]+ \| [^|]+ \| ([\d.]+)/gm)];
  const ownSeconds = rows.map(([, seconds]) => Number(seconds));
  const most = Number(/with the label − alone[^|]*\| [\d.]+ \| ([\d.]+)/.exec(main)?.[1]);
  assert.ok(
    readme.includes(
      `with the label ${Math.min(...ownSeconds).toFixed(1)} to ${Math.max(...ownSeconds).toFixed(1)} s, and ${most.toFixed(1)} % of a core of your program`,
    ),
  );
  const first = (row: string) => Number(new RegExp(`^\\| ${row}[^|]*\\| ([\\d.]+)`, 'm').exec(bench)?.[1]);
  assert.ok(
    readme.includes(
      `${first('resident memory').toFixed(0)} MB of resident memory, a ${first('compressed image layer').toFixed(0)} MB image layer, ` +
        `${first('CPU seconds a minute, a poll every 1 s').toFixed(1)} s of CPU a minute`,
    ),
  );
  assert.ok(
    readme.includes(
      `with \`--autoquit 0\` it kept ${first('exporter kept for')} of 22 final totals, lastscrape ${first('lastscrape, no variable set')}`,
    ),
  );
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

test('the commands of the README that make the image are those of docs/building.md', () => {
  const [, steps = ''] = /^## What it costs, and the image\n[\s\S]*?^```sh\n([\s\S]*?)^```$/m.exec(readme) ?? [];
  const commands = steps.split('\n').filter(Boolean);
  assert.equal(commands.length, 2);
  for (const command of commands) assert.ok(readPage('docs/building.md').includes(command), command);
});

/** What a page of 880 pixels shows in a line, in characters. */
const TABLE_WIDTH = 110;
/** Of a line of Markdown, and of one in a block, which is not wrapped. */
const LINE_WIDTH = 160;
const BLOCK_WIDTH = 130;

test('no line of a page is too long, and no table is cut', () => {
  for (const page of READ) {
    const lines = readPage(page).split('\n');
    const isBlock = lines.map(
      (_, index) => lines.slice(0, index).filter((line) => /^\s*(> )?```/.test(line)).length % 2 === 1,
    );
    const long = lines.filter((line, index) => line.length > (isBlock[index] ? BLOCK_WIDTH : LINE_WIDTH));
    assert.deepEqual(long, [], page);
    for (const table of readPage(page).matchAll(/(?:^\|.*\n)+/gm)) {
      const rows = table[0]
        .trim()
        .split('\n')
        .map((row) => row.slice(2, -2).split(' | ').map(findWidest));
      const widths = rows[0]?.map((_, column) => Math.max(...rows.map((row) => row[column] ?? 0))) ?? [];
      const width = widths.reduce((sum, each) => sum + each + 3, 0);
      assert.ok(width <= TABLE_WIDTH, `${page} has a table of ${width} characters: ${table[0].slice(0, 200)}`);
    }
  }
});

/** The length of the longest part of a cell that is not broken. */
function findWidest(cell: string): number {
  const shown = cell.replaceAll(/\]\([^)]*\)/g, '').replaceAll(/[[`*]/g, '');
  return Math.max(...shown.split(/[ \-/]/).map((word) => word.length));
}

/** A text as it reads, without the breaks of its lines. */
function flat(text: string): string {
  return text.replaceAll(/\s+/g, ' ');
}

test('what a page shows of a manifest is in it, word by word', () => {
  const marked = /^<!-- of (deploy\/\S+\.yaml)[^>]*-->\n```yaml\n([\s\S]*?)^```$/gm;
  const shown = PAGES.flatMap((page) => [...readPage(page).matchAll(marked)]);
  const files = ['job/front/job', 'job/front/rules', 'job/migration/job', 'monitoring/keeper-scrape-config'].map(
    (name) => `deploy/${name}.yaml`,
  );
  assert.deepEqual(shown.map(([, file]) => file).toSorted(), files);
  for (const [, file = '', text = ''] of shown) assert.ok(readPage(file).includes(text), `${file} has\n${text}`);
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
    const isShown = FIGURE_PAGES.some((page) => readPage(page).includes(`image/figures/${name})`));
    assert.ok(isShown, `no page shows ${name}`);
  }
  for (const page of FIGURE_PAGES) assert.equal(fillPage(readPage(page), recorded, figures), readPage(page), page);
  const tables = readPage('docs/measured.md').match(/^<!-- [\w-]+: table \d, \d columns -->\n\|.*\|\n\|---/gm) ?? [];
  assert.equal(tables.length, 5);
});
