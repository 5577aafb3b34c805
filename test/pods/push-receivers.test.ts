// Expositions of real programs, pushed to real receivers: these have the series, values and types that a real
// Prometheus has of a scrape, but for what is listed here as renamed.
import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import { after, before, describe, it } from 'node:test';
import { otlp } from '../../src/tell/receivers/otlp.ts';
import { pushgateway } from '../../src/tell/receivers/pushgateway.ts';
import type { PushKind } from '../../src/tell/receivers/receiver.ts';
import { remoteWrite } from '../../src/tell/receivers/remote-write.ts';
import { makeFolder } from '../support/folder.ts';
import { readRecordedBody, readRecordedHeader } from '../support/recording.ts';
import { until } from '../support/until.ts';
import { gateFront } from './front-programs.ts';
import {
  deleteGroup,
  type Exposition,
  formatSeries,
  parseSeries,
  push,
  type Receiver,
  readGroup,
  readSamples,
  readSeriesValues,
  type SeriesValues,
  type Source,
  serveExpositions,
  startPrometheusReceiver,
  startPushgateway,
} from './push-receivers.ts';

const skip = gateFront('test/pods/push-receivers.test.ts', ['prometheus', 'prometheus3', 'pushgateway']);

const AWKWARD = [
  '# HELP awkward_bytes_total Lines\\nand \\\\ backslashes',
  '# TYPE awkward_bytes_total counter',
  'awkward_bytes_total{path="C:\\\\temp\\n\\"x\\"",empty="",umlaut="ä€😀"} 1.7976931348623157e+308',
  'awkward_bytes_total{job="own",instance="own",exported_job="taken"} 5e-324',
  'awkward_bytes_total{a="{}, =#",Zone="before __name__"} 9007199254740993',
  '# TYPE awkward_gauge gauge',
  'awkward_gauge{kind="nan"} NaN',
  'awkward_gauge{kind="inf"} +Inf',
  'awkward_gauge{kind="minus"} -Inf',
  'awkward_gauge{kind="zero"} 0',
  'untyped_without_a_type_line 12.5',
  '# TYPE awkward_seconds histogram',
  ...['a', 'b'].flatMap((name) => [
    `awkward_seconds_bucket{name="${name}",le="0.005"} 3`,
    `awkward_seconds_bucket{name="${name}",le="2.5"} 7`,
    `awkward_seconds_bucket{name="${name}",le="+Inf"} 11`,
    `awkward_seconds_sum{name="${name}"} 12.5`,
    `awkward_seconds_count{name="${name}"} 11`,
  ]),
  '# TYPE awkward_summary summary',
  'awkward_summary{quantile="0.5"} NaN',
  'awkward_summary{quantile="0.99"} 4',
  'awkward_summary_sum 12',
  'awkward_summary_count 3',
  ...['_awkward_start', 'awkward__twice', 'awkward_end_', 'awkward:colon', 'awkward_total', 'awkward_ratio'].flatMap(
    (name) => [`# TYPE ${name} gauge`, `${name}{_start="1",a__b="2",end_="3",A9="4"} 1`],
  ),
  ...[
    'awkward_total_twice_total',
    'awkward__counter',
    'awkward_end_counter_',
    'awkward:counter',
    '_awkward_started',
  ].flatMap((name) => [`# TYPE ${name} counter`, `${name} 1`]),
  '# TYPE many gauge',
  ...Array.from({ length: 4500 }, (_, index) => `many{number="${index}"} ${index / 7}`),
  '',
].join('\n');

const FOLDER = new URL('../../fixtures/recordings/expositions/', import.meta.url);
const EXPOSITIONS: readonly Exposition[] = [
  ...readdirSync(FOLDER)
    .filter((name) => name.endsWith('.txt'))
    // The other format, which lastscrape never asks for.
    .filter((name) => !readRecordedHeader(`expositions/${name}`, 'Content-Type').includes('openmetrics'))
    .map((name) => ({ job: name.replace('.txt', ''), body: readRecordedBody(`expositions/${name}`) })),
  ...['07-stopped.11.txt', '13-odd-names-stopped.txt', '14-nan-running.txt'].map((name) => ({
    job: `locust-${name.slice(0, 2)}`,
    body: readRecordedBody(`exporter-0.5.0-locust-2.47.0/${name}`),
  })),
  { job: 'awkward', body: Buffer.from(AWKWARD) },
];

/** A scrape a second, and what it found sent on within 5 s. */
const ACCEPTED_MS = 60_000;

/** What Prometheus adds to every scrape, and a Pushgateway to every group. */
const ADDED_BY_SCRAPES =
  /^(?:up|scrape_(?:duration_seconds|samples_scraped|samples_post_metric_relabeling|series_added))$/;
const ADDED_TO_GROUPS = /^push_(?:failure_)?time_seconds$/;

type Labels = Readonly<Record<string, string>>;

function withoutAdded(values: SeriesValues, added: RegExp): SeriesValues {
  const isAdded = ({ __name__: name = '', ...others }: Labels) => added.test(name) && Object.keys(others).length === 0;
  return new Map([...values].filter(([series]) => !isAdded(parseSeries(series))));
}

function rename(values: SeriesValues, renameOne: (labels: Labels) => Labels): SeriesValues {
  return new Map([...values].map(([series, value]) => [formatSeries(renameOne(parseSeries(series))), value]));
}

/** A bound is a number for every receiver but remote write's, and written as one. */
function writeBounds(labels: Labels): Labels {
  const write = (name: string) => {
    const value = labels[name];
    return value === undefined || value === '+Inf' ? {} : { [name]: String(Number(value)) };
  };
  return { ...labels, ...write('le'), ...write('quantile') };
}

/** By the exposition's TYPE lines. */
function readTypes(body: Buffer): ReadonlyMap<string, string> {
  return new Map(
    [...body.toString().matchAll(/^# TYPE (\S+) (\S+)$/gm)].map(([, name = '', type = '']) => [name, type]),
  );
}

function listPushLabels(job: string, instance = 'pushed') {
  return [
    ['job', job],
    ['instance', instance],
  ] as const;
}

/** What a Prometheus stored of its scrape; `undefined` before the first. */
async function readScraped(receiver: Receiver, job: string): Promise<SeriesValues> {
  return until(`a scrape of ${job}`, ACCEPTED_MS, async () => {
    const values = await readSeriesValues(receiver, `{job="${job}",instance="scraped"}`);
    return values.get(formatSeries({ __name__: 'up' })) === 1 ? withoutAdded(values, ADDED_BY_SCRAPES) : undefined;
  });
}

async function readPushed(receiver: Receiver, job: string, instance = 'pushed'): Promise<SeriesValues> {
  return readSeriesValues(receiver, `{job="${job}",instance="${instance}"}`);
}

type PushLabels = ReturnType<typeof listPushLabels>;

async function pushAll(kind: PushKind, url: URL, body: Buffer, labels: PushLabels): Promise<void> {
  for (const result of await push(kind, url, body, labels)) {
    assert.equal(result.judgement, 'accepted', JSON.stringify(result));
  }
}

/** With what differs in the message, not with all of it. */
function assertSame(actual: SeriesValues, expected: SeriesValues): void {
  const differs = (left: SeriesValues, right: SeriesValues) =>
    [...left].filter(([series, value]) => !Object.is(right.get(series) ?? null, value)).map((each) => each.join(' '));
  const differences = { wrong: differs(actual, expected), missing: differs(expected, actual) };
  assert.deepEqual(differences, { wrong: [], missing: [] });
}

describe('real receivers of pushes', { skip }, () => {
  const directory = makeFolder();
  let source: Source;
  let gateway: Receiver;
  let old: Receiver;
  let young: Receiver;
  let plain: Receiver;

  before(async () => {
    source = await serveExpositions(EXPOSITIONS);
    const untranslated = 'otlp:\n  translation_strategy: NoTranslation\n';
    [gateway, old, young, plain] = await Promise.all([
      startPushgateway(directory),
      startPrometheusReceiver(directory, 'prometheus', { source }),
      startPrometheusReceiver(directory, 'prometheus3'),
      startPrometheusReceiver(directory, 'prometheus3', { settings: untranslated, folder: 'untranslated' }),
    ]);
  });
  after(async () => {
    await Promise.all([gateway, old, young, plain].map((receiver) => receiver?.[Symbol.asyncDispose]()));
    await source?.[Symbol.asyncDispose]();
  });

  for (const { job, body } of EXPOSITIONS) {
    const types = readTypes(body);

    it(`remote write brings ${job} to Prometheus 2.42 and 3 as 2.42 scrapes it`, async () => {
      const expected = await readScraped(old, job);
      for (const receiver of [old, young]) {
        await pushAll(remoteWrite, receiver.url, body, listPushLabels(job));
        assertSame(await readPushed(receiver, job), expected);
      }
    });

    it(`OTLP brings ${job} to Prometheus 3 without translation as it was, but for how bounds are written`, async () => {
      const expected = await readScraped(old, job);
      await pushAll(otlp, new URL('/api/v1/otlp/v1/metrics', plain.url), body, listPushLabels(job, 'otlp'));
      assertSame(await readPushed(plain, job, 'otlp'), rename(expected, writeBounds));
    });

    it(`a Pushgateway shows ${job} as 2.42 scrapes it, with its types`, async () => {
      const expected = await readScraped(old, job);
      await pushAll(pushgateway, gateway.url, body, listPushLabels(job));
      const group = await readGroup(gateway, job);
      // Pushed families of its own names are dropped.
      const isShown = ([series]: readonly [string, number]) =>
        !ADDED_TO_GROUPS.test(parseSeries(series)['__name__'] ?? '');
      const shown = rename(new Map([...group.values].filter(isShown)), writeBounds);
      assertSame(shown, rename(new Map([...expected].filter(isShown)), writeBounds));
      for (const [name, type] of group.types) {
        if (!ADDED_TO_GROUPS.test(name)) assert.equal(type, types.get(name) ?? 'untyped', name);
      }
      await deleteGroup(gateway, pushgateway.findPath(gateway.url, listPushLabels(job)));
    });
  }

  it('a Pushgateway has nothing of an earlier push of the same group, and other groups stay', async () => {
    const labels = listPushLabels('twice', '../a b/c');
    const other = listPushLabels('other');
    await pushAll(pushgateway, gateway.url, Buffer.from('first 1\nboth 1\n'), labels);
    await pushAll(pushgateway, gateway.url, Buffer.from('first 1\n'), other);
    await pushAll(pushgateway, gateway.url, Buffer.from('both 2\n'), labels);
    const group = withoutAdded((await readGroup(gateway, 'twice')).values, ADDED_TO_GROUPS);
    assertSame(group, new Map([[formatSeries({ __name__: 'both' }), 2]]));
    const rest = withoutAdded((await readGroup(gateway, 'other')).values, ADDED_TO_GROUPS);
    assertSame(rest, new Map([[formatSeries({ __name__: 'first' }), 1]]));
  });

  it('a Pushgateway refuses a type that another group has otherwise, in its own words', async () => {
    await pushAll(
      pushgateway,
      gateway.url,
      Buffer.from('# TYPE contested counter\ncontested 1\n'),
      listPushLabels('a'),
    );
    const gauge = Buffer.from('# TYPE contested gauge\ncontested 1\n');
    const [result] = await push(pushgateway, gateway.url, gauge, listPushLabels('b'));
    assert.equal(result?.judgement, 'refused');
    // Of which group it complains depends on the order of a map.
    assert.match(result?.text ?? '', /collected metric "contested" .* is not a (COUNTER|GAUGE)/);
  });

  it('every kind brings the labels of the push, and what a sample has under the same name as exported', async () => {
    const body = Buffer.from('labelled{pod="own",job="own"} 1\n');
    const labels = [...listPushLabels('labelled'), ['pod', 'job-1-abc'], ['namespace', 'load']] as const;
    const expected = new Map([
      [
        formatSeries({
          __name__: 'labelled',
          exported_job: 'own',
          exported_pod: 'own',
          pod: 'job-1-abc',
          namespace: 'load',
        }),
        1,
      ],
    ]);
    for (const [kind, url, receiver] of [
      [remoteWrite, old.url, old],
      [otlp, new URL('/api/v1/otlp', young.url), young],
    ] as const) {
      const [result] = await push(kind, url, body, labels);
      assert.equal(result?.judgement, 'accepted', result?.text);
      assertSame(await readPushed(receiver, 'labelled'), expected);
    }
    await push(pushgateway, gateway.url, body, labels);
    const group = rename((await readGroup(gateway, 'labelled')).values, (all) => all);
    assert.equal(group.get([...expected.keys()][0] ?? ''), 1, [...group.keys()].join('\n'));
  });

  it('a sample keeps its timestamp, and the others get the time of the push', async () => {
    const nowMs = Date.now();
    const ownMs = nowMs - 90_000;
    const body = Buffer.from(`timed{own="yes"} 1 ${ownMs}\ntimed{own="no"} 2\n`);
    for (const [kind, url, receiver] of [
      [remoteWrite, young.url, young],
      [otlp, new URL('/api/v1/otlp', young.url), young],
    ] as const) {
      await pushAll(kind, url, body, listPushLabels('timed', kind.name));
      const read = (own: string) => readSamples(receiver, `timed{instance="${kind.name}",own="${own}"}`);
      assert.deepEqual(await read('yes'), [{ atMs: ownMs, value: 1 }]);
      const [other] = await read('no');
      assert.ok(other !== undefined && other.atMs >= nowMs, 'the time of the push');
    }
    // It has no times: it would refuse them.
    await pushAll(pushgateway, gateway.url, body, listPushLabels('timed'));
  });

  it('a time that a receiver does not take costs the others nothing', async () => {
    const others = Array.from({ length: 3000 }, (_, index) => `recent{n="${index}"} 1\n`).join('');
    const body = Buffer.from(`ancient 1 1000\n${others}`);
    for (const [kind, url, receiver] of [
      [remoteWrite, old.url, old],
      [otlp, new URL('/api/v1/otlp', young.url), young],
    ] as const) {
      const results = await push(kind, url, body, listPushLabels('ancient'));
      const judgements = results.map(({ judgement }) => judgement);
      assert.deepEqual(judgements, ['accepted', 'accepted', 'refused'], kind.name);
      assert.match(results.at(-1)?.text ?? '', /out of bounds/);
      assert.equal((await readPushed(receiver, 'ancient')).size, 3000, kind.name);
    }
  });

  it('a push is taken again and later, and refused where something later is stored', async () => {
    const nowMs = Date.now();
    const body = Buffer.from('repeated 1\nonce_more NaN\n# TYPE h histogram\nh_count 1\n');
    for (const [kind, url] of [
      [remoteWrite, old.url],
      [remoteWrite, young.url],
      [otlp, new URL('/api/v1/otlp', young.url)],
    ] as const) {
      const labels = listPushLabels('repeated', kind.name);
      const pushAt = async (atMs: number) => (await push(kind, url, body, labels, atMs))[0];
      for (const atMs of [nowMs, nowMs, nowMs + 1])
        assert.equal((await pushAt(atMs))?.judgement, 'accepted', kind.name);
      const late = await pushAt(nowMs - 60_000);
      assert.equal(late?.judgement, 'refused', kind.name);
      assert.match(late?.text ?? '', /out of order/);
    }
  });

  it('names beyond the old rules reach every Prometheus, and a Pushgateway refuses the whole for them', async () => {
    const body = Buffer.from('{"odd.name","label.name"="ä"} 1\nplain 1\n');
    const odd = [formatSeries({ __name__: 'odd.name', 'label.name': 'ä' }), 1] as const;
    const plainSeries = [formatSeries({ __name__: 'plain' }), 1] as const;
    const labels = listPushLabels('odd');
    for (const receiver of [old, young]) {
      await pushAll(remoteWrite, receiver.url, body, labels);
      assertSame(await readPushed(receiver, 'odd'), new Map([odd, plainSeries]));
    }
    await pushAll(otlp, new URL('/api/v1/otlp', plain.url), body, labels);
    assertSame(await readPushed(plain, 'odd'), new Map([odd, plainSeries]));
    const translated = formatSeries({ __name__: 'odd_name', label_name: 'ä' });
    await pushAll(otlp, new URL('/api/v1/otlp', young.url), body, listPushLabels('odd', 'otlp'));
    assertSame(await readPushed(young, 'odd', 'otlp'), new Map([[translated, 1], plainSeries]));
    const [refused] = await push(pushgateway, gateway.url, body, labels);
    assert.equal(refused?.judgement, 'refused');
    assert.match(refused?.text ?? '', /invalid metric name/);
  });

  it('of a series that is there twice the first is kept, and a Pushgateway refuses the whole', async () => {
    const body = Buffer.from('twice 1\ntwice 2\nother 3\n');
    const expected = new Map([
      [formatSeries({ __name__: 'twice' }), 1],
      [formatSeries({ __name__: 'other' }), 3],
    ]);
    for (const [kind, url, receiver] of [
      [remoteWrite, old.url, old],
      [remoteWrite, young.url, young],
      [otlp, new URL('/api/v1/otlp', plain.url), plain],
    ] as const) {
      await pushAll(kind, url, body, listPushLabels('repetition'));
      assertSame(await readPushed(receiver, 'repetition'), expected);
    }
    const [refused] = await push(pushgateway, gateway.url, body, listPushLabels('repetition'));
    assert.equal(refused?.judgement, 'refused');
    assert.match(refused?.text ?? '', /collected before with the same name and label values/);
  });

  it('Prometheus shows no types of what was pushed, neither by remote write nor by OTLP', async () => {
    const body = Buffer.from('# HELP typed Its help.\n# TYPE typed gauge\ntyped 1\n');
    await pushAll(remoteWrite, young.url, body, listPushLabels('typed'));
    await pushAll(otlp, new URL('/api/v1/otlp', young.url), body, listPushLabels('typed', 'otlp'));
    const answer = await fetch(new URL('/api/v1/metadata', young.url));
    assert.deepEqual(await answer.json(), { status: 'success', data: {} });
  });

  it('an unknown path and a disabled receiver refuse', async () => {
    const body = Buffer.from('a 1\n');
    for (const [kind, url] of [
      [remoteWrite, new URL('/nowhere', old.url)],
      [otlp, new URL('/api/v1/otlp', old.url)],
      [pushgateway, new URL('/nowhere', gateway.url)],
    ] as const) {
      const [result] = await push(kind, url, body, listPushLabels('refused'));
      assert.equal(result?.judgement, 'refused', kind.name);
    }
  });
});
