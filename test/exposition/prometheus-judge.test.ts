import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { openReadableCheck } from '../../src/exposition/readable.ts';
import { askJudge, gateJudge, OLD_JUDGE } from '../judges/judges.ts';
import { readTestVariable } from '../support/programs.ts';
import { openRandom } from '../support/random.ts';
import { generatePage, type Page } from './page-generator.ts';

const skip = gateJudge('test/exposition/prometheus-judge.test.ts');

const isFull = readTestVariable('CI') === 'true';
const PAGES_COUNT = Number(readTestVariable('LASTSCRAPE_TEST_PAGES') ?? (isFull ? 100_000 : 10_000));

/** Absent: it is taken. */
type Judgement = { readonly why?: string };

/** Where the two differ, and why that is left so. `isIt`: what such a page has; in 10,000 of them there are few. */
const DIFFERENCES: readonly {
  readonly why: string;
  readonly own: 'taken' | 'refused' | 'either';
  readonly isIt: (page: Page) => boolean;
  readonly perTenThousand: number;
}[] = [
  {
    why: 'NUL outside of label values: its lexer passes over some, ends the page at others; no program writes any',
    own: 'either',
    isIt: ({ format, body }) => format !== 'protobuf' && body.includes(0),
    perTenThousand: 10,
  },
  {
    why: 'a name that is not UTF-8, of an exemplar or of a label without a value: it looks at neither',
    own: 'refused',
    isIt: ({ format, body }) => format !== 'protobuf' && body.toString().includes('\ufffd'),
    perTenThousand: 5,
  },
  {
    why: 'within a metric of protobuf: no encoder writes a wrong one, and a look at each costs more than the rest',
    own: 'taken',
    isIt: ({ format }) => format === 'protobuf',
    perTenThousand: 30,
  },
];

test('openReadableCheck() takes the pages that Prometheus takes, and no others', { skip }, async (context) => {
  const seed = Number(readTestVariable('LASTSCRAPE_TEST_SEED') ?? 20_261_124);
  context.diagnostic(`LASTSCRAPE_TEST_SEED=${seed}, ${PAGES_COUNT} pages`);
  const random = openRandom(seed);
  const pages = Array.from({ length: PAGES_COUNT }, () => generatePage(random));
  const questions = pages.map(({ format, body }) => ({ format, body: body.toString('base64') }));
  const judgements = await askJudge<Judgement>('exposition', questions);
  assert.equal(judgements.length, PAGES_COUNT);
  const counts = new Map<string, number>();
  const differences = new Map<string, number>();
  const wrong: string[] = [];
  for (const [index, page] of pages.entries()) {
    const own = check(page, random(page.body.length + 1));
    const { why: reason = null } = judgements[index] as Judgement;
    const key = `${page.format} ${reason === null ? 'taken' : 'refused'}`;
    counts.set(key, (counts.get(key) ?? 0) + 1);
    if ((own === null) === (reason === null)) continue;
    const kind = own === null ? 'taken' : 'refused';
    const why = DIFFERENCES.find((each) => (each.own === kind || each.own === 'either') && each.isIt(page))?.why;
    if (why === undefined) wrong.push(`${JSON.stringify(page.body.toString('latin1'))}: ${own ?? reason}`);
    else differences.set(why, (differences.get(why) ?? 0) + 1);
  }
  context.diagnostic(JSON.stringify(Object.fromEntries([...counts, ...differences])));
  assert.deepEqual(wrong, []);
  for (const { why, perTenThousand } of DIFFERENCES) {
    const count = differences.get(why) ?? 0;
    assert.ok(count <= (perTenThousand * PAGES_COUNT) / 10_000, `${count} of ${PAGES_COUNT}: ${why}`);
  }
  // Pages of every kind, or the judge was asked little.
  assert.equal(counts.size, 6);
  for (const [key, count] of counts) assert.ok(count > PAGES_COUNT / 50, `${key}: only ${count}`);
});

/** What Prometheus 2.42 refuses and 3.16 takes: the rows of docs/front.md, and an empty page, to which we add an end. */
const OLD_REFUSES: readonly ((page: Page) => boolean)[] = [
  ({ body }) => /(?:^|[\n{,])[ \t]*"|#[ \t]*(?:HELP|TYPE|UNIT)[ \t]*"/.test(body.toString('latin1')),
  ({ format, body }) => format === 'openMetrics' && /,[ \t]*\}/.test(body.toString('latin1')),
  ({ format, body }) => format === 'openMetrics' && /# *\{/.test(body.toString('latin1')),
  ({ format, body }) => format === 'openMetrics' && body.length === 0,
];

const skipOld = skip || gateJudge('test/exposition/prometheus-judge.test.ts', OLD_JUDGE);

test('Prometheus 2.42 takes what 3.16 takes, but for what docs/front.md names', { skip: skipOld }, async () => {
  const random = openRandom(20_261_125);
  const generated = Array.from({ length: 10_000 }, () => generatePage(random));
  const table = readFileSync(new URL('../../docs/front.md', import.meta.url), 'utf8');
  const [, rows = ''] = /<!-- prometheus 2\.42: .* -->\n(.*?)<!-- \/prometheus 2\.42 -->/s.exec(table) ?? [];
  const examples = [...rows.matchAll(/^\| (OpenMetrics)?[^|]*\| `(.*)` \|$/gm)].map(([, isOpen, line = '']): Page => {
    return { format: isOpen ? 'openMetrics' : 'text', body: Buffer.from(`${line}\n${isOpen ? '# EOF\n' : ''}`) };
  });
  const pages = [...examples, ...generated.filter(({ format }) => format !== 'protobuf')];
  const questions = pages.map(({ format, body }) => ({ format, body: body.toString('base64') }));
  const now = await askJudge<Judgement>('exposition', questions);
  const old = await askJudge<Judgement>('exposition-2.42', questions);
  const kinds = pages.map((page, at): number | 'same' | 'wrong' => {
    if ((now[at]?.why === undefined) === (old[at]?.why === undefined)) return 'same';
    const kind = OLD_REFUSES.findIndex((isIt) => isIt(page));
    return now[at]?.why !== undefined || kind === -1 ? 'wrong' : kind;
  });
  assert.deepEqual(
    pages.filter((_, at) => kinds[at] === 'wrong').map(({ body }) => body.toString('latin1')),
    [],
  );
  assert.deepEqual(kinds.slice(0, examples.length), [0, 1, 2]);
});

function check({ format, body }: Page, cutAt: number): string | null {
  const readable = openReadableCheck(format);
  readable.write(body.subarray(0, cutAt));
  readable.write(body.subarray(cutAt));
  return readable.end();
}
