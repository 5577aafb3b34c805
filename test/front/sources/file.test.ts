import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import {
  appendFileSync,
  chmodSync,
  mkdirSync,
  readdirSync,
  renameSync,
  rmSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { pathToFileURL } from 'node:url';
import type { LogEntry } from '../../../src/decide/messages.ts';
import { BODY_MAX_BYTES } from '../../../src/exposition/exposition.ts';
import { openFileSource } from '../../../src/front/sources/file.ts';
import type { Source } from '../../../src/front/sources/source.ts';
import { makeFolder } from '../../support/folder.ts';
import { readPieces } from '../../support/pieces.ts';
import { readRecordedBody } from '../../support/recording.ts';

const NEVER = new AbortController().signal;

function openFolder() {
  const path = makeFolder();
  return {
    path,
    write: (name: string, text: string | Uint8Array): string => {
      writeFileSync(join(path, name), text);
      return join(path, name);
    },
  };
}

type Opened = { readonly source: Source; readonly warnings: readonly LogEntry[] };

/** The source at a path, which is a folder where it ends in a slash. */
function openSource(path: string): Opened {
  const warnings: LogEntry[] = [];
  const source = openFileSource(pathToFileURL(path), ['locust_up'], (entry) => warnings.push(entry));
  return { source, warnings };
}

/** The text of one answer, or how it failed. */
async function read(source: Source, signal: AbortSignal = NEVER): Promise<string> {
  const { begun, ended } = source.read(signal);
  const beginning = await begun;
  const { observation } = await ended;
  assert.equal(observation.kind, beginning.kind);
  if (beginning.kind !== 'answered') return beginning.kind === 'failed' ? `failed: ${beginning.why}` : beginning.kind;
  assert.equal((await beginning.body.ended).kind, 'whole');
  return String(await readPieces(beginning.body.read()));
}

test('a file is read afresh each time, byte for byte, and shown to the conditions', async () => {
  const folder = openFolder();
  const body = readRecordedBody('exporter-0.5.0-locust-2.47.0/07-stopped.11.txt').toString();
  const path = folder.write('a job.prom', body);
  const { source } = openSource(path);
  assert.equal(await read(source), body);
  const { metric } = await source.read(NEVER).ended;
  assert.deepEqual(metric('locust_up'), { kind: 'value', value: 1 });
  folder.write('a job.prom', 'b 1\n# no sample\n');
  assert.equal(await read(source), 'b 1\n# no sample\n');
  assert.equal(source.path, null);
  await source.close();
});

test('a file that is missing refuses, and one that is being written is no answer', async () => {
  const folder = openFolder();
  const path = join(folder.path, 'job.prom');
  const { source } = openSource(path);
  assert.equal(await read(source), 'refused');
  assert.equal(await read(openSource(join(folder.path, 'missing', 'job.prom')).source), 'refused');
  for (const [text, what] of [
    ['', 'is empty'],
    ['a 1', 'does not end with a line feed'],
    ['a 1\nb', 'does not end with a line feed'],
    ['a 1\n'.repeat(50_000).slice(0, -1), 'does not end with a line feed'],
  ] as const) {
    folder.write('job.prom', text);
    assert.equal(await read(source), `failed: ${path} ${what}`);
  }
  folder.write('job.prom', 'a 1\n');
  assert.equal(await read(source), 'a 1\n');
});

test('what is no file, or too long, or not for this user, is no answer', async () => {
  const folder = openFolder();
  const fifo = join(folder.path, 'fifo.prom');
  execFileSync('mkfifo', [fifo]);
  assert.equal(await read(openSource(fifo).source), `failed: ${fifo} is no file`);
  mkdirSync(join(folder.path, 'folder.prom'));
  const inner = join(folder.path, 'folder.prom');
  assert.equal(await read(openSource(inner).source), `failed: ${inner} is no file`);
  const path = folder.write('job.prom', 'a 1\n');
  assert.equal(await read(openSource(`${path}/`).source), `failed: ${path}/ cannot be read: ENOTDIR`);
  assert.equal(await read(openSource(join(path, 'x')).source), `failed: ${join(path, 'x')} cannot be read: ENOTDIR`);
  truncateSync(path, BODY_MAX_BYTES + 1);
  assert.equal(await read(openSource(path).source), `failed: ${path} is too long`);
});

test('a file that another user may read alone is no answer', { skip: process.getuid?.() !== 0 }, async (context) => {
  const folder = openFolder();
  const path = folder.write('job.prom', 'a 1\n');
  chmodSync(path, 0o600);
  chmodSync(folder.path, 0o755);
  process.seteuid?.(65_532);
  context.after(() => process.seteuid?.(0));
  try {
    // The threads that read have the user of the process.
    assert.equal(await read(openSource(path).source), `failed: ${path} cannot be read: EACCES`);
    assert.equal(await read(openSource(`${folder.path}/`).source), `failed: ${path} cannot be read: EACCES`);
  } finally {
    process.seteuid?.(0);
  }
});

test('a file that is renamed over while it is read is the one or the other, whole', async () => {
  const folder = openFolder();
  const bodies = [1, 2].map((value) => `a{b="${'x'.repeat(100)}"} ${value}\n`.repeat(20_000));
  const path = folder.write('job.prom', bodies[0] ?? '');
  const { source } = openSource(path);
  const seen = new Set<string>();
  for (let count = 0; count < 20; count++) {
    const reading = read(source);
    folder.write('job.prom.tmp', bodies[count % 2] ?? '');
    renameSync(join(folder.path, 'job.prom.tmp'), path);
    seen.add(await reading);
  }
  for (const each of seen) assert.ok(bodies.includes(each), each.slice(0, 200));
});

test('a file that is written in its place while it is read is no answer', async () => {
  const folder = openFolder();
  const body = 'a 1\n'.repeat(200_000);
  const long = new Date(0);
  for (const [change, changed] of [
    [(path: string) => appendFileSync(path, 'b 1\n'), `${body}b 1\n`],
    [(path: string) => writeFileSync(path, body.replaceAll('1', '2')), body.replaceAll('1', '2')],
    [(path: string) => truncateSync(path, 100_000), body.slice(0, 100_000)],
  ] as const) {
    let failedCount = 0;
    // At every moment of the read: before, between two of its pieces, and after.
    for (let turns = 0; turns < 30; turns++) {
      const path = folder.write('job.prom', body);
      utimesSync(path, long, long);
      const reading = read(openSource(path).source);
      for (let count = 0; count < turns; count++) await new Promise((resolve) => setImmediate(resolve));
      change(path);
      const text = await reading;
      if (text === `failed: ${path} is being written`) failedCount++;
      else assert.ok(text === body || text === changed, `${text.length} bytes: ${text.slice(0, 100)}`);
    }
    assert.ok(failedCount > 0, 'it was changed while it was read');
  }
});

test('a folder is all of its *.prom in the order of their names', async () => {
  const folder = openFolder();
  const { source, warnings } = openSource(`${folder.path}/`);
  assert.equal(await read(source), 'refused', 'empty');
  assert.equal(await read(openSource(`${join(folder.path, 'missing')}/`).source), 'refused');
  for (const other of ['a.prom.tmp', '.a.prom', 'aprom', 'a.PROM', '.prom']) folder.write(other, 'other 1\n');
  assert.equal(await read(source), 'refused', 'none of them');
  folder.write('0.prom', '');
  assert.equal(await read(source), `failed: ${folder.path}/ is empty`);
  folder.write('b.prom', '# B\n\n# TYPE b gauge\nb 1\n');
  folder.write('a.prom', 'a 1\n# HELP empty Nothing.\n# TYPE empty gauge\n');
  folder.write('B.prom', 'c 1\n');
  assert.equal(await read(source), 'c 1\na 1\n# B\n\n# TYPE b gauge\nb 1\n');
  assert.deepEqual(warnings, []);
});

test('an unfinished file of a folder is left out with a warning once nobody writes it, and is back when it is whole', async () => {
  const folder = openFolder();
  const { source, warnings } = openSource(`${folder.path}/`);
  const path = folder.write('a.prom', 'a 1');
  const why = `${path} does not end with a line feed`;
  folder.write('b.prom', 'b 1\n');
  const setAge = (seconds: number) => utimesSync(path, 0, Date.now() / 1_000 - seconds);
  setAge(-100);
  assert.equal(await read(source), `failed: ${why}`, 'its writer may be at work');
  setAge(2);
  assert.equal(await read(source), 'b 1\n');
  assert.equal(await read(source), 'b 1\n');
  assert.deepEqual(warnings, [{ id: 'fileLeftOut', fields: { why } }]);
  rmSync(join(folder.path, 'b.prom'));
  assert.equal(await read(source), `failed: ${why}`, 'it is the only one');
  folder.write('a.prom', 'a 1\n');
  assert.equal(await read(source), 'a 1\n');
});

const histogram = (worker: number, value: number) =>
  `# TYPE h histogram\nh_bucket{w="${worker}",le="+Inf"} ${value}\nh_sum{w="${worker}"} 1\nh_count{w="${worker}"} 1\n`;
const samplesOf = (text: string) => text.replace(/^#.*\n/gm, '');

test('a family of several files is one, with the headers of the first', async () => {
  const folder = openFolder();
  const { source, warnings } = openSource(`${folder.path}/`);
  const files = [1, 2, 3].map(
    (worker) =>
      `# HELP rows Of ${worker}.\n# TYPE rows counter\nrows{w="${worker}"} ${worker}\n${histogram(worker, 2)}# Other\n`,
  );
  for (const [index, text] of files.entries()) folder.write(`${index}.prom`, text);
  folder.write('4.prom', 'rows{w="5"} 5\nonly 1\n');
  const [first = '', ...others] = files;
  const text = `${first}${others.map((each) => `${samplesOf(each)}# Other\n`).join('')}rows{w="5"} 5\nonly 1\n`;
  assert.equal(await read(source), text);
  assert.equal(await read(source), text);
  assert.deepEqual(warnings, []);
});

test('a family is taken from the first of two files that contradict each other, with a warning that names both', async () => {
  for (const [one, other] of [
    ['# TYPE a counter\na{w="1"} 1\n', '# TYPE a gauge\na{w="2"} 2\n'],
    ['a 1\n', 'a 2\n'],
    ['a{b="c",d="e"} 1\na{b="f"} 1\n', 'a{d="e", b="c",} 1\na{b="g"} 1\n'],
    [histogram(1, 1).replace(/\bh(?=[ _])/g, 'a'), '# TYPE a gauge\na 1\n'],
  ] as const) {
    const folder = openFolder();
    const { source, warnings } = openSource(`${folder.path}/`);
    const [first, file] = [
      folder.write('1.prom', `# HELP later Has none yet.\n${one}`),
      folder.write('2.prom', `${other}b 2\n`),
    ];
    folder.write('3.prom', '# TYPE later gauge\nlater 2\n');
    const text = `${one}b 2\n# TYPE later gauge\nlater 2\n`;
    assert.equal(await read(source), text);
    assert.equal(await read(source), text);
    assert.deepEqual(warnings, [{ id: 'familyTwice', fields: { family: 'a', file, first } }]);
  }
});

test('a folder of 1,000 files is read while one is renamed over, one goes and one comes', async () => {
  const folder = openFolder();
  const name = (row: number) => `${String(row).padStart(4, '0')}.prom`;
  for (let row = 0; row < 1_000; row++) folder.write(name(row), `a${row} 1\n`);
  const { source, warnings } = openSource(`${folder.path}/`);
  const reading = read(source);
  await new Promise((resolve) => setImmediate(resolve));
  rmSync(join(folder.path, name(999)));
  folder.write('new', 'a500 2\n');
  renameSync(join(folder.path, 'new'), join(folder.path, name(500)));
  folder.write('9999.prom', 'late 1\n');
  const text = await reading;
  const rows = text.split('\n').slice(0, -1);
  const first = rows.slice(0, 500);
  assert.deepEqual(
    first,
    Array.from({ length: 500 }, (_, row) => `a${row} 1`),
  );
  assert.match(rows[500] ?? '', /^a500 [12]$/);
  assert.ok(rows.length >= 999 && rows.length <= 1_001, `${rows.length}`);
  assert.equal(
    await read(source),
    `${text.replace('a500 1', 'a500 2').replace('a999 1\n', '').replace('late 1\n', '')}late 1\n`,
  );
  // Of the future: on a busy machine a read of all of them takes longer than a writer may pause.
  utimesSync(folder.write(name(700), 'a700 2\nhalf'), 0, Date.now() / 1_000 + 100);
  assert.equal(await read(source), `failed: ${join(folder.path, name(700))} does not end with a line feed`);
  assert.deepEqual(warnings, []);
});

test('a folder has a bound of its own', async () => {
  const folder = openFolder();
  for (let row = 0; row < 3; row++) {
    folder.write(`${row}.prom`, `a${row}{b="${'x'.repeat(990)}"} 1\n`.repeat(25 * 1024));
  }
  assert.equal(await read(openSource(`${folder.path}/`).source), `failed: ${folder.path}/ has too much in it`);
});

test('a read is given up by its signal and leaves nothing open', async () => {
  const folder = openFolder();
  const path = folder.write('job.prom', 'a 1\n'.repeat(1_000_000));
  const { source } = openSource(path);
  const controller = new AbortController();
  const reading = read(source, controller.signal);
  await new Promise((resolve) => setImmediate(resolve));
  controller.abort('timed out');
  assert.equal(await reading, 'failed: timed out');
  assert.equal(await read(source, AbortSignal.abort('gone')), 'failed: gone');
  folder.write('job.prom', 'a 2\n');
  assert.equal(await read(source), 'a 2\n', 'the next one finds what is there now');
  const open = readdirSync('/proc/self/fd').length;
  for (let count = 0; count < 20; count++) await read(source);
  assert.ok(readdirSync('/proc/self/fd').length <= open);
});

test('a file that is no exposition is not served, and none of its text is shown', async () => {
  const folder = openFolder();
  for (const text of ['root:x:0:0\n', 'a 1\npassword: xyz\n', '{"token": "xyz"}\n']) {
    const path = folder.write('job.prom', text);
    const { source } = openSource(path);
    assert.equal(await read(source), `failed: ${path} cannot be served: a line that Prometheus refuses`);
    const all = openSource(`${folder.path}/`);
    assert.equal(await read(all.source), `failed: ${path} cannot be served: a line that Prometheus refuses`);
  }
});
