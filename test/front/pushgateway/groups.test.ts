import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { test } from 'node:test';
import {
  dropTaken,
  EMPTY_STORE,
  GROUPS_MAX_COUNT,
  listFamilies,
  type PushStore,
  readGrouping,
  takePush,
} from '../../../src/front/pushgateway/groups.ts';
import { readPushedText, writePushedFamilies } from '../../../src/front/pushgateway/pushed-families.ts';
import { J, K, label, messages, normalizePage, type PushCaseRequest, value } from './push-cases.ts';

const writePage = (store: PushStore) => [...writePushedFamilies(listFamilies(store))].join('');

/** A request of text without HTTP. `takenAtMs`: default: everything was taken. */
function send(store: PushStore, [method, path, text = '']: PushCaseRequest, atMs: number, takenAtMs = Infinity) {
  const grouping = readGrouping(path);
  assert.ok(grouping !== null && typeof grouping !== 'string');
  const read = method === 'DELETE' ? null : readPushedText(Buffer.from(text), 'text', grouping);
  if (read?.kind === 'unreadable') return { store, status: 400, droppedCount: 0 };
  return takePush(store, { grouping, body: read, isReplaced: method === 'PUT', atMs, seconds: 1, takenAtMs });
}

/** Families of the page that are not times. */
const listSamples = (store: PushStore) =>
  normalizePage(writePage(store)).flatMap((line) => (/^[#p]/.test(line) ? [] : line.replace(/instance="",|,$/g, '')));

const TWICE = '# TYPE h histogram\nh_bucket{le="1"} 1\nh_bucket{le="1"} 2\n';
const points = (labels: string) => [`h_count{${labels}} 0`, `h_sum{${labels}} 0`];

/** A story: at each line a request at that millisecond, and what every living scraper has taken until then. */
const LEFTOVERS: Readonly<
  Record<string, readonly (readonly [atMs: number, takenAtMs: number, request: PushCaseRequest | null, ...string[]])[]>
> = {
  'a deleted group stays until it was taken': [
    [1, -Infinity, ['PUT', J, 'a 1\n'], 'a{job="j"} 1'],
    [2, -Infinity, ['DELETE', J], 'a{job="j"} 1'],
    [3, 1, null, 'a{job="j"} 1'],
    [4, 1.5, null],
  ],
  'what was taken before goes at once': [
    [1, 0, ['PUT', J, 'a 1\n'], 'a{job="j"} 1'],
    [3, 2, ['DELETE', J]],
  ],
  'a replaced series stays, and one that comes again is the new one': [
    [1, 0, ['PUT', J, 'a{x="1"} 1\na{x="2"} 1\n'], 'a{job="j",x="1"} 1', 'a{job="j",x="2"} 1'],
    [2, 0, ['POST', J, 'a{x="2"} 2\n'], 'a{job="j",x="1"} 1', 'a{job="j",x="2"} 2'],
    [3, 0, ['PUT', J, 'a{x="1"} 3\n'], 'a{job="j",x="1"} 3', 'a{job="j",x="2"} 2'],
    [4, 2.5, null, 'a{job="j",x="1"} 3'],
  ],
  'a type that contradicts goes at once, since a page cannot have both': [
    [1, 0, ['PUT', J, '# TYPE a gauge\na{x="1"} 1\n'], 'a{job="j",x="1"} 1'],
    [2, 0, ['DELETE', J], 'a{job="j",x="1"} 1'],
    [3, 0, ['PUT', K, '# TYPE a counter\na 1\n'], 'a{job="k"} 1'],
  ],
  'the page is what Prometheus reads: quoted names, the first of a bound, no bucket with a label "le"': [
    [1, 0, ['PUT', J, '{"a.b","c d"="1"} 1\n'], '{"a.b","c d"="1",job="j"} 1'],
    [2, 2, ['PUT', J, TWICE], 'h_bucket{job="j",le="+Inf"} 0', 'h_bucket{job="j",le="1"} 1', ...points('job="j"')],
    [3, 3, ['DELETE', J]],
    [4, 4, ['PUT', `${J}/le/x`, TWICE], ...points('job="j",le="x"')],
  ],
};

for (const [name, steps] of Object.entries(LEFTOVERS)) {
  test(`takePush(): ${name}`, () => {
    let store = EMPTY_STORE;
    for (const [atMs, takenAtMs, request, ...page] of steps) {
      store = request === null ? dropTaken(store, takenAtMs) : send(store, request, atMs, takenAtMs).store;
      assert.deepEqual(listSamples(store), page, `at ${atMs} ms`);
    }
    assert.equal(dropTaken(store, -Infinity), store);
  });
}

test('takePush() keeps 1,000 groups, and what workers deleted as long as there is room', () => {
  let store = EMPTY_STORE;
  for (let index = 0; index < GROUPS_MAX_COUNT; index++) ({ store } = send(store, ['PUT', `/metrics/job/${index}`], 1));
  const full = send(store, ['PUT', '/metrics/job/more', 'a 1\n'], 1);
  assert.deepEqual([full.status, full.store], [400, store]);
  assert.equal(send(store, ['PUT', '/metrics/job/7', 'a 1\n'], 1).status, 200);
  let left = EMPTY_STORE;
  const body = Array.from({ length: 50 }, (_, index) => `a${index} 1\n`).join('');
  for (let index = 0; index < 150; index++) {
    ({ store: left } = send(left, ['PUT', `/metrics/job/${index}`, body], index, 0));
    ({ store: left } = send(left, ['DELETE', `/metrics/job/${index}`], index, 0));
  }
  for (const [job, name] of [
    [0, 'a0'],
    [149, 'a49'],
  ] as const) {
    assert.ok(writePage(left).includes(`${name}{instance="",job="${job}"} 1`));
  }
});

test('readPushedText() says of a body that is cut what it must end with', () => {
  const readWhy = (text: string, format: 'text' | 'openMetrics') => {
    const body = readPushedText(Buffer.from(text), format, new Map());
    return body.kind === 'unreadable' && body.why;
  };
  const hint = 'the body does not end with a line feed, which curl --data cuts off and --data-binary keeps';
  assert.equal(readWhy('a 1', 'text'), hint);
  assert.equal(readWhy('# TYPE a gauge\na 1', 'openMetrics'), hint);
});

test('readPushedText() keeps the name of a counter of OpenMetrics that is announced with its suffix', () => {
  for (const name of ['foo', 'foo_total']) {
    const read = readPushedText(Buffer.from(`# TYPE ${name} counter\nfoo_total 1\n# EOF\n`), 'openMetrics', new Map());
    const found = read.kind === 'read' ? read.families.map(({ name: own, type }) => [own, type]) : read;
    assert.deepEqual(found, [['foo_total', 'counter']], name);
  }
});

test('takePush() keeps 6 million letters of series, the newest leftovers among them, and no more', () => {
  const makeBody = (name: string, count: number) =>
    Array.from({ length: count }, (_, index) => `${name}{row="${index}"} 1\n`).join('');
  const [half, most] = [makeBody('a', 40_000), makeBody('b', 60_000)];
  const first = send(EMPTY_STORE, ['PUT', '/metrics/job/j', most], 1, 0);
  const second = send(first.store, ['PUT', '/metrics/job/k', half], 2, 0);
  assert.deepEqual([first.status, second.status], [200, 400]);
  assert.match(JSON.stringify(second), /more than 6000000 letters of series in all groups/);
  assert.equal(send(EMPTY_STORE, ['PUT', '/metrics/job/j', makeBody('a', 90_000)], 1).status, 400);
  const { store } = send(first.store, ['DELETE', J], 2, 0);
  const deleted = send(store, ['PUT', K, half], 3, 0);
  const left = [deleted.status, deleted.store.leftovers.map(({ name }) => name), deleted.droppedCount];
  assert.deepEqual(left, [200, ['push_time_seconds', 'push_failure_time_seconds'], 1]);
});

test('readPushedMessages() reads 60,000 series within the heap of the binary', () => {
  const code = `
    const { readPushedMessages } = await import('${new URL('../../../src/front/pushgateway/pushed-messages.ts', import.meta.url)}');
    console.log(readPushedMessages((await import('node:fs')).readFileSync(0), new Map()).kind)`;
  const rows = Array.from({ length: 60_000 }, (_, row) => label('row', `r${row}`) + value(2, 1));
  const input = messages(['a', 1, ...rows]);
  const flags = ['--max-old-space-size=48', '--input-type=module', '--eval', code];
  const { stdout, stderr } = spawnSync(process.execPath, flags, { input, encoding: 'utf8' });
  assert.equal(stdout, 'read\n', stderr);
});

test('readGrouping() says why a path names no group', () => {
  assert.equal(readGrouping('/metrics/job/j/a%zz'), 'the path is not percent-encoded UTF-8');
  assert.equal(readGrouping('/metrics'), null);
});
