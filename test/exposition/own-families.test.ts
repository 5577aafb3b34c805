import assert from 'node:assert/strict';
import { test } from 'node:test';
import { VERSION } from '../../src/base/version.ts';
import { formatOwnFamilies, OWN_PREFIX, type OwnValues } from '../../src/exposition/own-families.ts';

const VALUES: OwnValues = {
  isSourceUp: true,
  isMainEnded: false,
  mainEndSeconds: null,
  snapshotSeconds: null,
  scrapesCount: 3,
};
const NONE: ReadonlySet<string> = new Set();

function listSamples(text: string): string[] {
  return text.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
}

test('formatOwnFamilies() writes HELP, TYPE and one sample of each family', () => {
  const text = formatOwnFamilies({ ...VALUES, isMainEnded: true, mainEndSeconds: 12.5, snapshotSeconds: 11 }, NONE);
  assert.deepEqual(listSamples(text), [
    'lastscrape_source_up 1',
    'lastscrape_main_ended 1',
    'lastscrape_main_end_timestamp_seconds 12.5',
    'lastscrape_snapshot_timestamp_seconds 11',
    'lastscrape_scrapes_total 3',
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
  const text = formatOwnFamilies({ ...VALUES, isSourceUp: false }, new Set(['lastscrape_build_info', 'other']));
  assert.deepEqual(listSamples(text), [
    'lastscrape_source_up 0',
    'lastscrape_main_ended 0',
    'lastscrape_scrapes_total 3',
  ]);
  assert.doesNotMatch(text, /build_info|timestamp/);
});
