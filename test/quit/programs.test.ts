// The table of programs: names that stand for one program each, and the images of the policies.

import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import {
  findProgram,
  LASTSCRAPE_IMAGE,
  LASTSCRAPE_IN_PLACE_IMAGE,
  PRESETS,
  PROGRAMS,
} from '../../src/quit/programs.ts';

const DEPLOY = join(import.meta.dirname, '../../deploy');

test('every name stands for one program, and a preset has a name that its ports can follow', () => {
  const all = PROGRAMS.flatMap(({ names }) => names);
  assert.equal(new Set(all).size, all.length);
  const names = PRESETS.map(({ name }) => name);
  assert.equal(new Set(names).size, names.length);
  for (const name of names) assert.match(name, /^[a-z][a-z-]*[a-z]$/);
});

test('every preset has the processes that it is, and the flag that it needs is what enables it', () => {
  assert.deepEqual(Object.fromEntries(PRESETS.map(({ name, programs }) => [name, programs.join(' ')])), {
    'locust-exporter': 'locust_exporter',
    istio: 'pilot-agent envoy',
    envoy: 'envoy',
    linkerd: 'linkerd2-proxy',
    'cloud-sql-proxy': 'cloud-sql-proxy',
    'alloydb-proxy': 'alloydb-auth-proxy',
    dapr: 'daprd',
    'consul-dataplane': 'consul-dataplane envoy',
    'vault-agent': 'vault',
    prometheus: 'prometheus',
    pushgateway: 'pushgateway',
    'statsd-exporter': 'statsd_exporter',
  });
  for (const { name, flag, enable } of PROGRAMS) {
    if (enable === null) continue;
    assert.ok(flag?.includes('argument' in enable ? enable.argument : enable.annotation[0]), `${name}: ${flag}`);
  }
});

test('the proxies of a mesh are known as such; dapr is not one: scrapes go past it', () => {
  const meshes = PRESETS.filter(({ kind }) => kind === 'mesh').map(({ name }) => name);
  assert.deepEqual(meshes, ['istio', 'envoy', 'linkerd', 'consul-dataplane']);
});

test('findProgram() knows a helper by its container and by its image, wherever that comes from', () => {
  const find = (name: string, image: string, variables: readonly string[] = []) =>
    findProgram({ name, image, variables })?.what ?? null;
  for (const [name, image, what] of [
    ['cache', 'x/cloud-sql-proxy:2', "Cloud SQL's proxy"],
    ['proxy', 'registry.example.com:5000/a/pgbouncer@sha256:00', 'PgBouncer, a database proxy'],
    ['redis-exporter', 'x:1', 'an exporter'],
    ['metrics', 'quay.io/oliver006/redis_exporter', 'an exporter'],
    ['metrics', 'prom/mysqld-exporter:v1', 'an exporter'],
    ['istio-proxy', 'x:1', "Istio's proxy"],
    ['envoy', 'x:1', "Envoy, a mesh's proxy"],
    ['fluent-bit', 'x:1', 'a log shipper'],
    ['exporters', 'x:1', null],
    ['exporter', 'x:1', 'an exporter'],
    ['vault', 'x:1', null],
    ['lastscrape', 'x:1', 'lastscrape'],
    ['a', 'x/lastscrape@sha256:00', 'lastscrape'],
    ['locust-metrics-exporter', 'x/lastscrape:1', 'lastscrape'],
    ['locust-metrics-exporter', 'x/tools/locust-lastscrape:1', 'lastscrape'],
    ['locust-metrics-exporter', 'x/lastscrape/exporter:1', "Locust's exporter"],
    ['main', 'x/locust-lastscrape:1', null],
  ] as const) {
    assert.equal(find(name, image), what, `${name} ${image}`);
  }
  assert.equal(find('watcher', 'x:1', ['A', 'LASTSCRAPE_TTL']), 'lastscrape');
  assert.equal(find('main', 'x:1', ['LASTSCRAPE_SNAPSHOT_URL']), null);
  assert.equal(find('locust-metrics-exporter', 'x:1', ['LASTSCRAPE_TTL']), 'lastscrape');
});

test('the policies know lastscrape by the same images', () => {
  const found = globSync('*.yaml', { cwd: DEPLOY }).map((file) => {
    const text = readFileSync(join(DEPLOY, file), 'utf8');
    const patterns = [...text.matchAll(/'(?!\^\/)([^'\n]*lastscrape(?!-hooks)[^'\n]*\$\)?)'/g)];
    return [file, new Set(patterns.map(([, pattern]) => pattern))] as const;
  });
  assert.deepEqual(Object.fromEntries(found.filter(([, { size }]) => size > 0)), {
    'annotations-policy.yaml': new Set([LASTSCRAPE_IMAGE]),
    'jobs-policy.yaml': new Set([LASTSCRAPE_IMAGE]),
    'jobs-warnings.yaml': new Set([LASTSCRAPE_IMAGE]),
    'policy.yaml': new Set([LASTSCRAPE_IMAGE, LASTSCRAPE_IN_PLACE_IMAGE]),
  });
});
