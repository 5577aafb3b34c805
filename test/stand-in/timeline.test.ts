import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openTimeline, readLogEntry } from './timeline.ts';

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
    'T  lastscrape  warn: nobody has scraped (targets',
    '                     target a)',
    'T  lastscrape  not JSON',
    '',
  ]);
});

test('openTimeline() colours only when told', () => {
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
