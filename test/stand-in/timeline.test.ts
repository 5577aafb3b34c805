import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openTimeline, readLogEntry, readTerminal } from './timeline.ts';

const SPEAKERS = { Locust: 'green', lastscrape: 'cyan' } as const;

test("openTimeline() writes who in a column, and the watcher's log as entries", () => {
  let written = '';
  const write = (text: string) => {
    written += text;
  };
  const timeline = openTimeline({ write, speakers: SPEAKERS, width: 60 });
  timeline.say('Locust', 'starts');
  timeline.log('lastscrape', '{"time":"T","level":"info","msg":"main ended","scrapesWanted":1,"hint":null}');
  timeline.log('lastscrape', '{"time":"T","level":"warn","msg":"nobody has scraped","targets":[{"target":"a"}]}');
  timeline.log('lastscrape', 'not JSON');
  assert.deepEqual(written.replaceAll(/^ +\d+\.\d s/gm, 'T').split('\n'), [
    'T  Locust      starts',
    'T  lastscrape  main ended (scrapes wanted 1)',
    'T  lastscrape  warn: nobody has scraped (targets target',
    '                    a)',
    'T  lastscrape  not JSON',
    '',
  ]);
});

test('openTimeline() marks pods, shows chosen fields, and rounds what a person reads as seconds', () => {
  let written = '';
  const write = (text: string) => {
    written += text;
  };
  const shownFields = ['heldSeconds'];
  const timeline = openTimeline({ write, speakers: SPEAKERS, pods: ['A', 'B', 'A+B'], shownFields });
  timeline.say('Locust', 'starts', undefined, 'A+B');
  timeline.log('lastscrape', '{"time":"T","level":"info","msg":"quitting","heldSeconds":3.003,"seen":"x"}', 'B');
  timeline.log('lastscrape', '{"time":"T","level":"error","msg":"quitting","seen":"x"}', 'B');
  timeline.fields({
    heldSeconds: 12.345,
    seconds: 0.0312,
    failRatio: 0.0004,
    targets: [{ target: 'a', seconds: 2.049 }],
  });
  assert.deepEqual(written.replaceAll(/^ +\d+\.\d s/gm, 'T').split('\n'), [
    'T  A+B  Locust      starts',
    'T  B    lastscrape  quitting (held seconds 3)',
    'T  B    lastscrape  error: quitting (seen x)',
    '  held seconds  12.3',
    '  seconds       0.03',
    '  fail ratio    0',
    '  targets       target a, seconds 2',
    '',
  ]);
});

test('openTimeline() wraps at the width of the terminal, and not without one', () => {
  const text = 'word '.repeat(60).trim();
  for (const [width, longest] of [
    [undefined, 320],
    [0, 320],
    [30, 42],
    [60, 60],
    [400, 320],
  ] as const) {
    const lines: string[] = [];
    const write = (line: string) => {
      lines.push(...line.trimEnd().split('\n'));
    };
    const timeline = openTimeline({ write, speakers: SPEAKERS, ...(width === undefined ? {} : { width }) });
    timeline.say('Locust', text);
    assert.ok(Math.max(...lines.map((line) => line.length)) <= longest, `${width}`);
    assert.equal(lines.length > 1, width === 30 || width === 60, `${width}`);
    lines.length = 0;
    timeline.fields({ name: text });
    assert.equal(lines.length > 1, width === 30 || width === 60, `${width}`);
  }
});

test('readTerminal() takes a pipe, a width of 0 and NO_COLOR', () => {
  assert.deepEqual(readTerminal({}, undefined), { hasColor: false, width: 0 });
  assert.deepEqual(readTerminal({ isTTY: true, columns: 0 }, ''), { hasColor: true, width: 0 });
  assert.deepEqual(readTerminal({ isTTY: true, columns: 60 }, '1'), { hasColor: false, width: 60 });
});

test('openTimeline() colours on request only', () => {
  const written: string[] = [];
  for (const hasColor of [false, true]) {
    openTimeline({ write: (text) => written.push(text), speakers: SPEAKERS, hasColor }).text('well', 'green');
  }
  assert.deepEqual(written, ['well\n', '\u001b[32mwell\u001b[0m\n']);
});

test('readLogEntry() takes no line that is not an entry', () => {
  for (const line of ['', '{', 'null', '[]', '{"msg":"x"}', '{"level":"info"}', '{"level":1,"msg":"x"}']) {
    assert.equal(readLogEntry(line), undefined, line);
  }
  assert.deepEqual(readLogEntry('{"time":"T","level":"info","msg":"x","n":1}'), {
    level: 'info',
    msg: 'x',
    fields: { n: 1 },
  });
});
