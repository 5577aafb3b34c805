// What cutting does to a Node that can still be asked: stripped, most of ICU blanked, no program inside.

import assert from 'node:assert/strict';
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { basePath, makeBase } from '../../image/binary.ts';
import { blankIcu } from '../../image/icu.ts';
import { makeFolder } from '../support/folder.ts';
import { gateDist, ROOT, run } from './dist.ts';

const arch = process.arch === 'arm64' ? 'arm64' : 'x64';
const image = join(ROOT, 'image');
const skip = existsSync(basePath(image, arch))
  ? false
  : gateDist('test/image/node.test.ts') || 'image/ has no packages';

/** What V8 and Node can come to without naming a locale, or would with one: the answer of the blanked Node. */
const ANSWERS: readonly (readonly [string, string])[] = [
  ['new Date(0).toString()', 'Wed Dec 31 1969 19:00:00 GMT-0500 (Eastern Standard Time)'],
  ['new Date(0).toLocaleString("de-DE")', '12/31/1969, 7:00:00 PM'],
  ['(1234.5).toLocaleString("fr")', '1,234.5'],
  ['"b".localeCompare("a")', '1'],
  ['"\\ufb01".normalize("NFKC")', 'fi'],
  ['/\\p{Lu}/u.test("\\u00c9")', 'true'],
  ['"\\u0391\\u03a3".toLowerCase()', '\u03b1\u03c2'],
  ['new URL("http://b\\u00fccher.example").host', 'xn--bcher-kva.example'],
  ['new TextDecoder("utf-16le").decode(Buffer.from("a", "utf16le"))', 'a'],
  [
    '(d => d.decode(Buffer.from([0xe2, 0x82]), {stream: true}) + d.decode(Buffer.from([0xac])))(new TextDecoder())',
    '\u20ac',
  ],
  ['Intl.DateTimeFormat().resolvedOptions().timeZone', 'America/New_York'],
];

describe('Node without its unloaded sections and most of ICU', { skip }, () => {
  test('answers in English what it has no other data for', () => {
    const path = join(makeFolder(), 'node');
    writeFileSync(path, makeBase(image, arch), { mode: 0o755 });
    const script = `console.log(JSON.stringify([${ANSWERS.map(([question]) => `String(${question})`).join(',')}]))`;
    const answers = JSON.parse(run([path, '-e', script], { TZ: 'America/New_York' }));
    assert.deepEqual(
      answers,
      ANSWERS.map(([, answer]) => answer),
    );
  });

  test('blankIcu() refuses a file that it has blanked before, and one without ICU', () => {
    assert.throws(() => blankIcu(makeBase(image, arch)), /the table has \d+ items/);
    assert.throws(() => blankIcu(Buffer.alloc(4096)), /its signature must be there exactly once/);
  });
});
