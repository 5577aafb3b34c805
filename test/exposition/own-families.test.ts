import assert from 'node:assert/strict';
import { test } from 'node:test';
import { VERSION } from '../../src/base/version.ts';
import { openFamilyScan } from '../../src/exposition/families.ts';
import type { Format } from '../../src/exposition/format.ts';
import { formatOwnFamilies, OWN_PREFIX, type OwnValues, openPageEnd } from '../../src/exposition/own-families.ts';
import { openReadableCheck } from '../../src/exposition/readable.ts';

const VALUES: OwnValues = {
  isSourceUp: true,
  isMainEnded: false,
  mainEndSeconds: null,
  snapshotSeconds: null,
  missesSeconds: null,
  scrapesCount: 3,
};
const NONE: ReadonlySet<string> = new Set();

function listSamples(text: string): string[] {
  return text.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
}

test('formatOwnFamilies() writes HELP, TYPE and one sample of each family', () => {
  const calls = { pushes: { takenCount: 4, refusedCount: 5, droppedCount: 7 }, hookCallsCount: 6 };
  const text = formatOwnFamilies(
    { ...VALUES, ...calls, isMainEnded: true, mainEndSeconds: 12.5, snapshotSeconds: 11, missesSeconds: 1.5 },
    NONE,
  ).toString();
  assert.deepEqual(listSamples(text), [
    'lastscrape_source_up 1',
    'lastscrape_main_ended 1',
    'lastscrape_main_end_timestamp_seconds 12.5',
    'lastscrape_snapshot_timestamp_seconds 11',
    'lastscrape_may_miss_seconds 1.5',
    'lastscrape_scrapes_total 3',
    'lastscrape_pushes_total 4',
    'lastscrape_pushes_refused_total 5',
    'lastscrape_pushed_families_dropped_total 7',
    'lastscrape_hook_calls_total 6',
    `lastscrape_build_info{version="${VERSION}"} 1`,
  ]);
  for (const block of text.trimEnd().split(/\n(?=# HELP)/)) {
    const [help, type, sample] = block.split('\n') as [string, string, string];
    const [name = ''] = /^[a-z_]+/.exec(sample) ?? [];
    assert.match(help, new RegExp(`^# HELP ${name} [A-Z].*\\.$`));
    assert.match(type, new RegExp(`^# TYPE ${name} (gauge|counter)$`));
    assert.ok(name.startsWith(OWN_PREFIX), name);
  }
});

test('formatOwnFamilies() leaves out what is not known, and what the source has itself', () => {
  const text = formatOwnFamilies(
    { ...VALUES, isSourceUp: false },
    new Set(['lastscrape_build_info', 'other']),
  ).toString();
  assert.deepEqual(listSamples(text), [
    'lastscrape_source_up 0',
    'lastscrape_main_ended 0',
    'lastscrape_scrapes_total 3',
  ]);
  assert.doesNotMatch(text, /build_info|timestamp/);
});

const EVERY: OwnValues = { ...VALUES, mainEndSeconds: 12.5, snapshotSeconds: 11, missesSeconds: 1.5 };

test('formatOwnFamilies() writes OpenMetrics, where a counter has its suffix only in its sample', () => {
  const text = formatOwnFamilies(EVERY, NONE, 'openMetrics').toString();
  assert.match(text, /^# TYPE lastscrape_scrapes counter\nlastscrape_scrapes_total 3$/m);
  const readable = openReadableCheck('openMetrics');
  readable.write(Buffer.from(`${text}# EOF\n`));
  assert.equal(readable.end(), null);
  const names = scanNames(Buffer.from(text), 'openMetrics');
  assert.deepEqual([names.length, formatOwnFamilies(EVERY, new Set(names), 'openMetrics').length], [7, 0]);
});

test('formatOwnFamilies() writes messages', () => {
  const bytes = formatOwnFamilies(EVERY, NONE, 'protobuf');
  const names = scanNames(bytes, 'protobuf');
  assert.deepEqual(names, scanNames(formatOwnFamilies(EVERY, NONE), 'text'));
  const others = names.filter((name) => name !== 'lastscrape_build_info' && name !== 'lastscrape_scrapes_total');
  const help = 'The version of lastscrape; always 1.';
  const build = formatOwnFamilies(EVERY, new Set([...others, 'lastscrape_scrapes_total']), 'protobuf');
  // As client_golang marshals it: name, help, type, then a metric with its label before its gauge.
  const label = `\x0a${String.fromCharCode(11 + VERSION.length)}\x0a\x07version\x12${String.fromCharCode(VERSION.length)}${VERSION}`;
  const metric = `${label}\x12\x09\x09\0\0\0\0\0\0\xf0\x3f`;
  const message = `\x0a\x15lastscrape_build_info\x12${String.fromCharCode(help.length)}${help}\x18\x01\x22${String.fromCharCode(metric.length)}${metric}`;
  assert.equal(build.toString('latin1'), String.fromCharCode(message.length) + message);
  const scrapes = formatOwnFamilies(EVERY, new Set([...others, 'lastscrape_build_info']), 'protobuf').toString(
    'latin1',
  );
  assert.ok(scrapes.endsWith('\x18\0\x22\x0b\x1a\x09\x09\0\0\0\0\0\0\x08\x40'), JSON.stringify(scrapes));
});

function scanNames(body: Uint8Array, format: Format): string[] {
  const scan = openFamilyScan(format);
  scan.write(body);
  return [...scan.end()];
}

function cut(pieces: readonly Uint8Array[]) {
  const cutter = openPageEnd('openMetrics');
  const passed = pieces.flatMap((piece) => [...cutter.write(piece)]);
  const { isWhole, rest } = cutter.end();
  return { passed: Buffer.concat(passed).toString(), isWhole, rest: Buffer.from(rest).toString() };
}

const TABLE: readonly (readonly [body: string, passed: string, rest: string])[] = [
  // Prometheus takes an empty page: its end comes after our families.
  ['', '', '# EOF\n'],
  ['a 1\n', 'a 1\n', ''],
  ['a 1\n# EOF\n', 'a 1\n', '# EOF\n'],
  ['a 1\n# EOF', 'a 1\n', '# EOF'],
  ['a 1\n# EO', 'a 1\n', '# EO'],
  ['# EOF\n', '', '# EOF\n'],
  ['#', '', '#'],
  ['a 1# EOF\n', 'a 1# EOF\n', ''],
  ['a 1\n# EOF\n\n', 'a 1\n# EOF\n\n', ''],
  ['a 1\n# EOF\n# EOF\n', 'a 1\n# EOF\n', '# EOF\n'],
  ['a 1\n# EOF\r\n', 'a 1\n# EOF\r\n', ''],
  ['a 1\n# EOG\n', 'a 1\n# EOG\n', ''],
  ['a 1\n## EOF\n', 'a 1\n## EOF\n', ''],
];

test('openPageEnd() keeps the last line back if it is # EOF, and nothing else, cut anywhere', () => {
  for (const [body, passed, rest] of TABLE) {
    const wanted = { passed, isWhole: rest.startsWith('# EOF'), rest };
    const bytes = Buffer.from(body);
    for (let at = 0; at <= bytes.length; at++) {
      const pieces = cut([bytes.subarray(0, at), bytes.subarray(at)]);
      assert.deepEqual(pieces, wanted, `${JSON.stringify(body)} cut at ${at}`);
    }
    assert.deepEqual(cut(Array.from(bytes, (byte) => Uint8Array.of(byte))), wanted, body);
  }
});

test('openPageEnd() passes what is no end at once, as it is, and all of text', () => {
  const piece = Buffer.from('a 1\nb');
  const [passed] = openPageEnd('openMetrics').write(piece);
  assert.equal(passed?.buffer, piece.buffer);
  assert.equal(passed.byteOffset, piece.byteOffset);
  const page = openPageEnd('text');
  assert.deepEqual(
    [page.write(Buffer.from('# EOF')), page.end()],
    [[Buffer.from('# EOF')], { isWhole: true, rest: Buffer.alloc(0) }],
  );
});
