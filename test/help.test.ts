// What --help and --check print: that nothing is missing in it, and its shape. The words are the README's (readme.test.ts).

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { type Environment, readConfig } from '../src/config.ts';
import { EXIT } from '../src/decide/report.ts';
import { formatHelp, formatPlan } from '../src/help.ts';
import { KINDS } from '../src/main.ts';
import { CONTEXT } from './support/condition-context.ts';

/** Where what is printed is broken. */
const WIDTH = 100;
const HELP = formatHelp(KINDS);
const lines = HELP.split('\n');

/** The lines below one that begins so, until the next empty one. */
function readBlock(start: string): string[] {
  const from = lines.findIndex((line) => line.startsWith(start)) + 1;
  assert.notEqual(from, 0, `there is "${start}"`);
  return lines.slice(from, lines.indexOf('', from));
}

test('formatHelp() has every variable of the README with its default, in its order, and what it means below it', () => {
  const readme = readFileSync(join(import.meta.dirname, '../README.md'), 'utf8');
  const rows = [...readme.matchAll(/^\| `(LASTSCRAPE_\w+|[A-Z_]+)` \| `([^`]*)` \| (.*) \|$/gm)];
  assert.ok(rows.length >= 15, `only ${rows.length} variables`);
  const block = readBlock('Variables, ');
  assert.deepEqual(
    block.filter((line) => /^ {2}\S/.test(line)),
    rows.map(([, name, value]) => `  ${name}=${value}`),
  );
  const plain = (text: string) => text.replaceAll('`', '').replaceAll(/\s+/g, ' ').trim();
  const meanings = block.map((line) => (/^ {2}\S/.test(line) ? '\n' : line)).join(' ');
  assert.deepEqual(
    meanings.split('\n').slice(1).map(plain),
    rows.map(([, , , meaning = '']) => plain(meaning)),
  );
});

test('formatHelp() has every kind of condition and of target', () => {
  const listUsages = (start: string) =>
    readBlock(start).flatMap((line) => /^ {2}(\S+(?: \S+)*) {2,}\S/.exec(line)?.[1] ?? []);
  assert.deepEqual(
    listUsages('LASTSCRAPE_DONE_WHEN'),
    KINDS.conditions.map(({ usage }) => usage),
  );
  assert.deepEqual(listUsages('LASTSCRAPE_QUIT'), [...KINDS.targets.map(({ usage }) => usage), 'none']);
});

test('formatHelp() has every exit code', () => {
  const line = lines.find((each) => each.startsWith('Exit codes: ')) ?? '';
  const codes = [...line.matchAll(/(?:: |, )(\d+) /g)].map(([, code]) => Number(code));
  assert.deepEqual(codes, Object.values(EXIT));
});

test('formatHelp() breaks what is long, and prints no mark of Markdown', () => {
  const wrapped = ['Variables, ', 'LASTSCRAPE_DONE_WHEN', 'LASTSCRAPE_QUIT']
    .flatMap(readBlock)
    .filter((line) => !line.startsWith('  A name with'));
  assert.deepEqual(
    wrapped.filter((line) => line.length > WIDTH),
    [],
  );
  assert.ok(wrapped.some((line) => line.length > WIDTH - 10));
  assert.deepEqual(
    lines.filter((line) => line.includes('`') || line !== line.trimEnd()),
    [],
  );
  assert.ok(HELP.endsWith('\n') && !HELP.endsWith('\n\n'));
});

function plan(env: Environment, found: readonly string[] = []): string {
  const result = readConfig(env, KINDS, {
    version: '0.1.0',
    pid: 1,
    kill: () => assert.fail('no signal'),
    pod: CONTEXT.pod,
  });
  if (!('config' in result)) assert.fail(result.problems.join('\n'));
  return formatPlan(result.config, found);
}

const PLANS: Readonly<Record<string, readonly [Environment, readonly RegExp[]]>> = {
  'the defaults': [
    {},
    [
      /^1\. Watch +every 1s, reading http:\/\/localhost:9646\/metrics\.$/m,
      /^ {14}metric:locust_up$/m,
      /^ {14}port:5557$/m,
      /not seen alive for 10m /,
      /runs is watched without limit/,
      /^2\. Hold +until others have scraped once since main ended, for 1m30s at most\.$/m,
      /^3\. Quit +in this order, each within 30s:$/m,
      /^ {14}locust-exporter: POST http:\/\/localhost:9646\/quitquitquit$/m,
      /^4\. Report +in the log and in \/dev\/termination-log, where that exists; then exit\.$/m,
      /^After SIGTERM all of this has 25s; /m,
    ],
  ],
  'limits of their own': [
    {
      LASTSCRAPE_START_TIMEOUT: '0',
      LASTSCRAPE_RUN_TIMEOUT: '2h',
      LASTSCRAPE_SCRAPES: '3',
      LASTSCRAPE_EXIT_ZERO: 'true',
    },
    [
      /never seen alive is waited for without limit/,
      /runs for 2h is treated as done/,
      /scraped 3 times /,
      /exit 0, always\.$/m,
    ],
  ],
  'no hold': [{ LASTSCRAPE_SCRAPES: '0' }, [/^2\. Hold +not at all /m]],
  'no hold by its time': [{ LASTSCRAPE_TTL: '0' }, [/^2\. Hold +not at all /m]],
  'no target': [{ LASTSCRAPE_QUIT: 'none' }, [/^3\. Quit +nothing \(LASTSCRAPE_QUIT is none\)\.$/m]],
  'no exporter': [{ LASTSCRAPE_DONE_WHEN: 'port:80', LASTSCRAPE_SCRAPES: '0' }, [/^1\. Watch +every 1s/m]],
  'a dry run': [
    { LASTSCRAPE_DRY_RUN: 'true', LASTSCRAPE_TOMBSTONE: '/graveyard/main' },
    [
      /^3\. Quit +nothing, but say so \(LASTSCRAPE_DRY_RUN\); else in this order/m,
      /write \/graveyard\/main, .*\(not in a dry run\)\.$/m,
    ],
  ],
  'a termination log of its own': [
    { LASTSCRAPE_TERMINATION_LOG: '/log' },
    [/^4\. Report +in the log and in \/log; then exit\.$/m],
  ],
};

for (const [name, [env, patterns]] of Object.entries(PLANS)) {
  test(`formatPlan() shows ${name}`, () => {
    const text = plan(env);
    for (const pattern of patterns) assert.match(text, pattern);
    assert.deepEqual(
      [...text.matchAll(/^(\d)\. /gm)].map(([, number]) => number),
      ['1', '2', '3', '4'],
    );
    assert.ok(!text.includes('This is what the pod shows now'));
  });
}

test('formatPlan() ends with what the pod shows, and no secret of a URL', () => {
  const text = plan({ LASTSCRAPE_METRICS_URL: 'http://localhost:9646/metrics?token=secret' }, [
    'port:5557: refused',
    'b',
  ]);
  assert.match(text, /\nThis is what the pod shows now:\n\n {2}port:5557: refused\n {2}b\n$/);
  assert.ok(!text.includes('secret'));
});
