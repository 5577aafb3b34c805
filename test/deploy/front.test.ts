// deploy/job/front without the rules' unit tests: lastscrape accepts its variables, and Prometheus scrapes its port.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { parse, parseAllDocuments, stringify } from 'yaml';
import { readConfig } from '../../src/config/config.ts';
import { formatOwnFamilies } from '../../src/exposition/own-families.ts';
import { formatKeeperMetrics } from '../../src/keeper/metrics.ts';
import { KINDS } from '../../src/main.ts';
import { CONTEXT } from '../observe/condition-context.ts';
import { makeFolder } from '../support/folder.ts';
import { findPrograms, gate } from '../support/programs.ts';

const ROOT = join(import.meta.dirname, '../..');
const FOLDER = 'deploy/job/front';
const programs = findPrograms();

function readFile(path: string): string {
  return readFileSync(join(ROOT, path), 'utf8');
}

const CALLS = { pushes: { takenCount: 1, refusedCount: 1, droppedCount: 1 }, hookCallsCount: 1 };
const NOW = {
  isSourceUp: true,
  isMainEnded: true,
  mainEndSeconds: 1,
  snapshotSeconds: 1,
  scrapesCount: 1,
  missesSeconds: 0,
  ...CALLS,
};
const OWN_FAMILIES = [
  ...formatOwnFamilies(NOW, new Set())
    .toString()
    .matchAll(/^# TYPE (\w+)/gm),
].map(([, name = '']) => name);

const KEPT = { pages: 1, pages_listed: 1, bytes: 1, handed_over_total: 1, refused_total: { full: 0 } };
const ENDED = { withdrawn_total: 0, scraped_total: 0, expired_total: 0, corrupt_total: 0 };
const KEEPER_FAMILIES = formatKeeperMetrics({ ...KEPT, ...ENDED, oldest_page_timestamp_seconds: 1 });

const { spec } = parse(readFile(`${FOLDER}/job.yaml`)).spec.template;
const container = spec.initContainers.at(-1);
const env: Readonly<Record<string, string>> = Object.fromEntries(
  container.env.map(({ name, value }: { name: string; value: string }) => [name, value]),
);

function readConfigOf(variables: Readonly<Record<string, string>>) {
  const result = readConfig(variables, KINDS, { pid: 7, kill: () => {}, pod: CONTEXT.pod });
  assert.ok('config' in result, JSON.stringify(result));
  return result.config;
}

test('lastscrape accepts the variables: the signal is the end, every scraper is waited for, nothing is quit', () => {
  const { conditions, front, limits, targets } = readConfigOf(env);
  const texts = conditions.map(({ text }) => text);
  assert.deepEqual(texts, ['sigterm']);
  assert.equal(front?.host, null);
  assert.equal(limits.scrapesWantedCount, 'auto');
  assert.deepEqual(targets, []);
  assert.equal(limits.terminationGraceMs / 1_000 + 5, spec.terminationGracePeriodSeconds);
});

test('the container is the last native sidecar, without a probe', () => {
  const { restartPolicy, ports, startupProbe, livenessProbe } = container;
  assert.deepEqual([restartPolicy, startupProbe, livenessProbe], ['Always', undefined, undefined]);
  assert.deepEqual(ports, [{ name: 'lastscrape', containerPort: readConfigOf(env).front?.port }]);
});

test('the monitors scrape the port by its name', () => {
  const [endpoint] = parse(readFile(`${FOLDER}/podmonitor.yaml`)).spec.podMetricsEndpoints;
  const [config] = parse(readFile(`${FOLDER}/scrape-config.yaml`)).scrape_configs;
  const [rule] = config.relabel_configs;
  const [port] = container.ports;
  assert.deepEqual([endpoint.port, rule.regex], [port.name, port.name]);
  assert.deepEqual(rule.source_labels, ['__meta_kubernetes_pod_container_port_name']);
  assert.deepEqual([endpoint.interval, endpoint.scrapeTimeout], [config.scrape_interval, config.scrape_timeout]);
});

test('with a keeper, pods are scraped by the same rules', () => {
  const [plain] = parse(readFile(`${FOLDER}/scrape-config.yaml`)).scrape_configs;
  const [{ http_sd_configs: pages, ...both }] = parse(
    readFile('deploy/monitoring/keeper-scrape-config.yaml'),
  ).scrape_configs;
  assert.deepEqual(both, plain);
  const [{ url, refreshInterval }] = parseAllDocuments(readFile('deploy/monitoring/keeper.yaml'))
    .map((document) => document.toJS())
    .find(({ kind }) => kind === 'ScrapeConfig').spec.httpSDConfigs;
  assert.deepEqual(pages, [{ url, refresh_interval: refreshInterval }]);
});

test('the monitors say what keeps the labels of pushes', () => {
  assert.match(readFile(`${FOLDER}/podmonitor.yaml`), /# honorLabels: true keeps the job label that pushes bring/);
  assert.match(readFile(`${FOLDER}/scrape-config.yaml`), /# honor_labels: true keeps the job label that pushes bring/);
});

test('promtool reads the scrape config, and the rules go by families that there are', {
  skip: gate(programs, 'test/deploy/front.test.ts', ['promtool']),
}, () => {
  const [promtool = ''] = programs.promtool ?? [];
  // Debian's Prometheus has no Kubernetes discovery.
  const config = parse(readFile(`${FOLDER}/scrape-config.yaml`));
  for (const each of config.scrape_configs) delete each.kubernetes_sd_configs;
  const folder = makeFolder();
  const file = join(folder, 'prometheus.yml');
  writeFileSync(file, stringify(config));
  execFileSync(promtool, ['check', 'config', file], { stdio: 'pipe' });
  const names = [...readFile(`${FOLDER}/rules.yaml`).matchAll(/\blastscrape_\w+/g)].map(([name]) => name);
  assert.ok(names.length > 0);
  const known = `${OWN_FAMILIES.join(' ')} ${KEEPER_FAMILIES}`;
  for (const name of names) assert.match(known, new RegExp(`\\b${name}\\b`));
});

test('docs/front.md has every family of lastscrape', () => {
  const [, list = ''] =
    /<!-- own families -->\n([\s\S]*?)<!-- \/own families -->/.exec(readFile('docs/front.md')) ?? [];
  const names = [...list.matchAll(/^- `(\w+)/gm)].map(([, name]) => name);
  assert.deepEqual(names, OWN_FAMILIES);
});
