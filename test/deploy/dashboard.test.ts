// deploy/monitoring/dashboard.json: each query asked of a real Prometheus that holds recorded runs, and the
// file against Grafana's published types. No Grafana runs here: how it looks is not tested.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { makeFolder } from '../support/folder.ts';
import type { Network } from '../support/network.ts';
import { findPrograms, gate } from '../support/programs.ts';
import { BEGIN_SECONDS, openRecordedRuns } from './recorded-runs.ts';

const ROOT = join(import.meta.dirname, '../..');
const TEXT = readFileSync(join(ROOT, 'deploy/monitoring/dashboard.json'), 'utf8');
const programs = findPrograms();
const skip = gate(programs, 'test/deploy/dashboard.test.ts', ['prometheus', 'promtool']);

type Target = {
  readonly refId: string;
  readonly expr: string;
  readonly instant: boolean;
  readonly legendFormat?: string;
};
type Panel = {
  readonly title: string;
  readonly type: string;
  readonly gridPos: { readonly x: number; readonly y: number; readonly w: number; readonly h: number };
  readonly targets: readonly Target[];
  readonly transformations?: readonly {
    readonly id: string;
    readonly options: Record<string, Record<string, unknown>>;
  }[];
  readonly fieldConfig: { readonly overrides: readonly { readonly matcher: { readonly options: string } }[] };
};
type Variable = { readonly name: string; readonly query: { readonly query: string } | string };

const dashboard: {
  readonly panels: readonly Panel[];
  readonly templating: { readonly list: readonly Variable[] };
} = JSON.parse(TEXT);

const RANGE_SECONDS = 3_600;

/**
 * What each query answers: labels or legend, and the (last) value. `cart` was scraped at its end and held
 * for 30 s; `old` has percentiles that the exporter reads; `place` has lastscrape in the exporter's place.
 */
const EXPECTED: Readonly<Record<string, Readonly<Record<string, readonly string[]>>>> = {
  'Final totals by test': {
    requests: ['shop cart cart-master-a: 222', 'shop old old-master-b: 228', 'shop place place-master-c: 520'],
    failures: ['shop cart cart-master-a: 36', 'shop old old-master-b: 45', 'shop place place-master-c: 104'],
    failRatio: [
      'shop cart cart-master-a: 0.16216216216216217',
      'shop old old-master-b: 0.19736842105263158',
      'shop place place-master-c: 0.2',
    ],
    median: ['shop cart cart-master-a: 7', 'shop old old-master-b: 2', 'shop place place-master-c: 30'],
    mean: [
      'shop cart cart-master-a: 10.607671680174446',
      'shop old old-master-b: 1.8890843157869472',
      'shop place place-master-c: 30.25',
    ],
    p95: ['shop place place-master-c: 50'],
    p99: ['shop place place-master-c: 50'],
    max: ['shop cart cart-master-a: 173', 'shop old old-master-b: 8', 'shop place place-master-c: 50'],
    up: ['shop cart cart-master-a: 0', 'shop old old-master-b: 1', 'shop place place-master-c: 0'],
    held: ['shop cart cart-master-a: 30', 'shop place place-master-c: 15'],
  },
  'Held pods': { held: ['shop/cart-master-a: 1', 'shop/place-master-c: 1'] },
  'Ended, and scraped since': { ended: ['cart/cart-master-a: 1', 'place/place-master-c: 1'] },
  'Requests per second': {
    rps: ['cart/cart-master-a: 26.4', 'old/old-master-b: 15.2', 'place/place-master-c: 75'],
    failures: ['cart/cart-master-a failed: 4.8', 'old/old-master-b failed: 3.2', 'place/place-master-c failed: 15'],
  },
  Users: { users: ['cart/cart-master-a: 6', 'old/old-master-b: 6', 'place/place-master-c: 0'] },
  'Response times: median, mean, max': {
    median: ['cart/cart-master-a median: 7', 'old/old-master-b median: 2', 'place/place-master-c median: 30'],
    mean: [
      'cart/cart-master-a mean: 10.607671680174446',
      'old/old-master-b mean: 1.8890843157869472',
      'place/place-master-c mean: 30.25',
    ],
    max: ['cart/cart-master-a max: 173', 'old/old-master-b max: 8', 'place/place-master-c max: 50'],
  },
  'Response times: percentiles': {
    p50: ['old/old-master-b 50 %: 2', 'place/place-master-c 50 %: 30'],
    p95: ['old/old-master-b 95 %: 2', 'place/place-master-c 95 %: 50'],
  },
  'Final totals by request': {
    requests: [
      'shop cart cart-master-a GET /missing%20%22quoted%22: 36',
      'shop cart cart-master-a GET /ok: 186',
      'shop old old-master-b GET /locustfile.py: 183',
      'shop old old-master-b GET /missing "quoted": 45',
      'shop place place-master-c GET /ok: 104',
      'shop place place-master-c GET he said "hi", twice: 104',
      'shop place place-master-c GET line\nbreak: 104',
      'shop place place-master-c GET ünïcödé: 104',
    ],
    failures: [
      'shop cart cart-master-a GET /missing%20%22quoted%22: 36',
      'shop old old-master-b GET /missing "quoted": 45',
      'shop place place-master-c GET line\nbreak: 104',
    ],
    median: [
      'shop cart cart-master-a GET /missing%20%22quoted%22: 6',
      'shop cart cart-master-a GET /ok: 7',
      'shop old old-master-b GET /locustfile.py: 2',
      'shop old old-master-b GET /missing "quoted": 2',
      'shop place place-master-c GET /ok: 10.25',
      'shop place place-master-c GET he said "hi", twice: 20.25',
      'shop place place-master-c GET line\nbreak: 30.25',
      'shop place place-master-c GET ünïcödé: 40.25',
    ],
    p95: [
      'shop place place-master-c GET /ok: 10',
      'shop place place-master-c GET he said "hi", twice: 20',
      'shop place place-master-c GET line\nbreak: 30',
      'shop place place-master-c GET ünïcödé: 40',
    ],
  },
  Errors: {
    errors: [
      "shop cart cart-master-a HTTPError('404 Client Error: Not Found for url: /missing%20%22quoted%22') GET /missing%20%22quoted%22: 36",
      String.raw`shop old old-master-b &#x27;HTTPError(\&#x27;404 Client Error: File not found for url: /missing &quot;quoted&quot;\&#x27;)&#x27; GET /missing &quot;quoted&quot;: 45`,
      `shop place place-master-c Exception('no "luck"') GET line\nbreak: 104`,
    ],
  },
  'Keeper: pages': { kept: ['kept: 2'], listed: ['listed: 1'] },
  'Keeper: hand-overs per minute': {
    taken: ['taken: 4'],
    scraped: ['scraped: 2'],
    expired: ['expired: 1'],
    refused: ['refused: full: 3'],
  },
  'Keeper: oldest page that is not scraped': { oldest: ['oldest: 300'] },
  'Last numbers of all jobs behind a front': {
    stored: ['shop  exact: 1', 'shop  late: 1', 'shop  lost: 0', 'shop  never: 0'],
    mayMiss: ['shop  exact: 0', 'shop  late: 0.7'],
  },
};

type Row = { readonly metric: Readonly<Record<string, string>>; readonly value: string };

/** Asks as Grafana would, with every variable on "All". */
async function ask(network: Network, { expr, instant }: Target): Promise<readonly Row[]> {
  const query = expr.replaceAll(/\$(namespace|locust_test)\b/g, '.+').replaceAll('$__range', `${RANGE_SECONDS}s`);
  assert.doesNotMatch(query, /\$/, 'a variable that the test does not know');
  const parameters = instant
    ? { query, time: String(BEGIN_SECONDS + RANGE_SECONDS) }
    : { query, start: String(BEGIN_SECONDS), end: String(BEGIN_SECONDS + 300), step: '15' };
  const path = `/api/v1/${instant ? 'query' : 'query_range'}?${new URLSearchParams(parameters)}`;
  const { status, body } = await network.get(network.ports.prometheus, path);
  assert.equal(status, 200, `${query}: ${body}`);
  const {
    data,
  }: { data: { result: { metric: Row['metric']; value?: [number, string]; values?: [number, string][] }[] } } =
    JSON.parse(body);
  return data.result.map(({ metric, value, values }) => ({ metric, value: (value ?? values?.at(-1))?.[1] ?? '' }));
}

describe('the dashboard', { skip }, () => {
  test('each query finds in a real Prometheus what the recordings hold', async () => {
    await using runs = await openRecordedRuns(programs);
    const answers: Record<string, Record<string, readonly string[]>> = {};
    for (const { title, targets } of dashboard.panels) {
      answers[title] = {};
      for (const target of targets) {
        const rows = await ask(runs.network, target);
        answers[title][target.refId] = rows.map((row) => `${nameRow(target, row)}: ${row.value}`).toSorted();
      }
    }
    assert.deepEqual(answers, EXPECTED);
    for (const variable of dashboard.templating.list) {
      if (typeof variable.query === 'string') continue;
      const [, selector = '', label = ''] = /^label_values\((.+), (\w+)\)$/.exec(variable.query.query) ?? [];
      const match = selector.replace('$namespace', '.+');
      const path = `/api/v1/label/${label}/values?${new URLSearchParams({ 'match[]': match })}`;
      const { body } = await runs.network.get(runs.network.ports.prometheus, path);
      const values = JSON.parse(body).data;
      assert.deepEqual(values, variable.name === 'namespace' ? ['shop'] : ['cart', 'old', 'place'], path);
    }
  });
});

function nameRow({ legendFormat }: Target, { metric }: Row): string {
  if (legendFormat !== undefined) return legendFormat.replaceAll(/\{\{(\w+)\}\}/g, (_, name) => metric[name] ?? '?');
  const { namespace, locust_test, pod, ...others } = metric;
  return [namespace, locust_test, pod, ...Object.values(others)].join(' ');
}

test('every column of a table has a title, and every title that a unit is for is a column', () => {
  for (const { title, targets, transformations = [], fieldConfig } of dashboard.panels) {
    const organize = transformations.find(({ id }) => id === 'organize')?.options;
    if (organize === undefined) continue;
    const titles = organize['renameByName'] ?? {};
    for (const { refId } of targets) {
      // A table of one query calls its column "Value", one of several "Value #" and the query's name.
      assert.ok((targets.length === 1 ? 'Value' : `Value #${refId}`) in titles, `${title}: ${refId}`);
    }
    for (const { matcher } of fieldConfig.overrides) {
      assert.ok(Object.values(titles).includes(matcher.options), `${title}: ${matcher.options}`);
    }
  }
});

test('no two panels lie on each other, and none is wider than the page', () => {
  const cells = dashboard.panels.flatMap(({ title, gridPos: { x, y, w, h } }) =>
    Array.from({ length: w * h }, (_, i) => [`${x + (i % w)} ${y + Math.floor(i / w)}`, title] as const),
  );
  const taken = new Map<string, string>();
  for (const [cell, title] of cells) {
    assert.ok(Number(cell.split(' ')[0]) < 24, title);
    assert.equal(taken.get(cell), undefined, `${title} is at ${cell}`);
    taken.set(cell, title);
  }
});

/** The types of a panel's options and of its own settings of a field, in @grafana/schema. */
const PANEL_TYPES: Readonly<Record<string, string>> = {
  table: 'table/panelcfg/x/TablePanelCfg_types.gen',
  'state-timeline': 'statetimeline/panelcfg/x/StateTimelinePanelCfg_types.gen',
  timeseries: 'timeseries/panelcfg/x/TimeSeriesPanelCfg_types.gen',
};

/** The file as a TypeScript program that only compiles where each value has its type. */
function writeProgram(text: string): string {
  const { panels, ...rest }: { panels: readonly { type: string }[] } = JSON.parse(text);
  const lines = panels.map(({ type, ...panel }, i) => {
    const module = `@grafana/schema/dist/esm/raw/composable/${PANEL_TYPES[type] ?? assert.fail(type)}`;
    const types = `Plain<import('${module}').Options>, Plain<import('${module}').FieldConfig>`;
    return `export const panel${i}: Typed<${types}> = ${JSON.stringify({ type, ...panel })};`;
  });
  return `import type { Dashboard, FieldConfig, Panel } from '@grafana/schema';
// An enumeration of strings as the strings that JSON has.
type Plain<T> = T extends string ? \`\${T}\` : T extends object ? { [K in keyof T]: Plain<T[K]> } : T;
type Typed<Options, Custom> = Omit<Plain<Panel>, 'options' | 'fieldConfig' | 'targets'> & {
  options: Options;
  targets: { refId: string; datasource: object; expr: string; instant: boolean; range: boolean; format: 'table' | 'time_series'; legendFormat?: string; editorMode: 'code' | 'builder' }[];
  fieldConfig: Omit<Plain<NonNullable<Panel['fieldConfig']>>, 'defaults'> & { defaults: Omit<Plain<FieldConfig>, 'custom'> & { custom?: Custom } };
};
export const dashboard: Omit<Plain<Dashboard>, 'panels'> = ${JSON.stringify(rest)};
${lines.join('\n')}
`;
}

function compile(text: string): string {
  const folder = makeFolder();
  symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'));
  writeFileSync(join(folder, 'dashboard.ts'), writeProgram(text));
  const options = ['--noEmit', '--strict', '--exactOptionalPropertyTypes', '--skipLibCheck', '--types', ''];
  const modules = ['--module', 'nodenext', '--moduleResolution', 'nodenext', '--target', 'es2024'];
  const tsc = join(ROOT, 'node_modules/.bin/tsc');
  return spawnSync(tsc, [...options, ...modules, 'dashboard.ts'], { cwd: folder, encoding: 'utf8' }).stdout;
}

test('the file has the types of @grafana/schema, which refuse what they do not know', () => {
  assert.equal(compile(TEXT), '');
  for (const [from, to] of [
    ['"graphTooltip": 1', '"graphTooltip": "1"'],
    ['"timezone": "browser"', '"timeZone": "browser"'],
    ['"showHeader": true', '"showHeaders": true'],
    ['"drawStyle": "line"', '"drawStyle": "lines"'],
    ['"mergeValues": true', '"mergeValues": "true"'],
    ['"refresh": 2', '"refresh": 3'],
  ] as const) {
    assert.ok(TEXT.includes(from), from);
    assert.match(compile(TEXT.replace(from, to)), /error TS/, to);
  }
});
