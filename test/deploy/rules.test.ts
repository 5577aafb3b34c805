// deploy/monitoring/rules.yaml: promtool's unit tests of it pass, and each change of a rule makes one of them fail.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { parse } from 'yaml';
import { makeFolder } from '../support/folder.ts';
import { findPrograms, gate } from '../support/programs.ts';

const MONITORING = join(import.meta.dirname, '../../deploy/monitoring');
const RULES = readFileSync(join(MONITORING, 'rules.yaml'), 'utf8');
const UNIT_TESTS = readFileSync(join(MONITORING, 'rules.test.yaml'), 'utf8');

const programs = findPrograms();
const skip = gate(programs, 'test/deploy/rules.test.ts', ['promtool']);

type Rule = { readonly record?: string; readonly alert?: string; readonly for?: string };
type Rules = { readonly groups: readonly { readonly interval: string; readonly rules: readonly Rule[] }[] };

/** What is changed in a rule: from, to. Each change must break a unit test. */
type Change = readonly [from: string, to: string];

const TOTALS: readonly Change[] = [
  ['max by', 'sum by'],
  ['max by (namespace, locust_test, pod)', 'max by (locust_test, pod)'],
  ['max by (namespace, locust_test, pod)', 'max by (namespace, pod)'],
  ['max by (namespace, locust_test, pod)', 'max by (namespace, locust_test)'],
  ['last_over_time', 'max_over_time'],
  ['locust_test!="",', ''],
  ['method="",', ''],
  [',name="Aggregated"', ''],
  ['[1h]', '[58m]'],
  ['[1h]', '[62m]'],
];

const CHANGES: Readonly<Record<string, readonly Change[]>> = {
  'locust_test:requests:last1h': [...TOTALS, ['num_requests', 'num_failures']],
  'locust_test:failures:last1h': [...TOTALS, ['num_failures', 'num_requests']],
  LocustTargetDown: [
    ['{locust_test!=""}', ''],
    [' == 0', ''],
    ['for: 3m', 'for: 165s'],
    ['for: 3m', 'for: 195s'],
    ['severity: warning', 'severity: info'],
    ['$labels.instance', '$labels.pod'],
  ],
  LocustPodHeldUnscraped: [
    ['max by (namespace, pod) ', ''],
    ['{container="lastscrape"}', ''],
    ['status_running{container="lastscrape"} == 1', 'status_running{container="lastscrape"}'],
    ['container="locust-metrics-exporter"} == 1', 'container="locust-metrics-exporter"}'],
    ['_(init_)?container_status_running', '_init_container_status_running'],
    ['_(init_)?container_status_running', '_container_status_running'],
    ['_(init_)?container_info', '_init_container_info'],
    ['_(init_)?container_info', '_container_info'],
    ['container="locust-metrics-exporter",image', 'image'],
    [',image=~".*lastscrape.*"', ''],
    ['and on (namespace, pod) {__name__', 'and on (pod) {__name__'],
    ['and on (namespace, pod) kube_pod_container_status_terminated{container=~".+-master"} == 1', ''],
    ['and on (namespace, pod)', 'and on (pod)'],
    ['{container=~".+-master"}', ''],
    ['{container=~".+-master"} == 1', '{container=~".+-master"}'],
    ['unless on (namespace, pod) up{locust_test!=""} == 1', ''],
    ['unless on (namespace, pod)', 'unless on (pod)'],
    ['up{locust_test!=""} == 1', 'up{locust_test!=""}'],
    ['for: 75s', 'for: 60s'],
    ['for: 75s', 'for: 90s'],
    ['keep_firing_for: 10m', 'keep_firing_for: 9m'],
    ['keep_firing_for: 10m', 'keep_firing_for: 11m'],
    ['severity: warning', 'severity: info'],
  ],
  LocustPodHeldThoughScraped: [
    ['locust_up{locust_test!=""} == 0', 'locust_up == 0'],
    ['locust_up{locust_test!=""} == 0', 'locust_up{locust_test!=""}'],
    ['and on (namespace, pod) max_over_time(locust_up[1h]) == 1', ''],
    ['and on (namespace, pod)', 'and on (pod)'],
    ['[1h]) == 1', '[1h])'],
    ['[1h]', '[45s]'],
    ['unless on (namespace, pod) kube_pod_container_status_running{container=~".+-master"} == 1', ''],
    ['unless on (namespace, pod)', 'unless on (pod)'],
    ['kube_pod_container_status_running{container=~".+-master"}', 'kube_pod_container_status_running'],
    ['{container=~".+-master"} == 1', '{container=~".+-master"}'],
    ['for: 45s', 'for: 30s'],
    ['for: 45s', 'for: 60s'],
    ['keep_firing_for: 10m', 'keep_firing_for: 9m'],
    ['keep_firing_for: 10m', 'keep_firing_for: 11m'],
    ['severity: warning', 'severity: info'],
  ],
};

describe('promtool', { skip }, () => {
  test('finds the rules valid, and their unit tests pass', () => {
    const { check, unit } = runPromtool(RULES);
    assert.equal(check.code, 0, check.text);
    assert.equal(unit.code, 0, unit.text);
  });

  test('every rule is changed below', () => {
    const names = (parse(RULES) as Rules).groups.flatMap(({ rules }) =>
      rules.map(({ record, alert }) => record ?? alert),
    );
    assert.deepEqual(names, Object.keys(CHANGES));
  });

  for (const [name, changes] of Object.entries(CHANGES)) {
    for (const [from, to] of changes) {
      test(`notices ${name} with ${to === '' ? `no ${from}` : `${to} for ${from}`}`, () => {
        const { check, unit } = runPromtool(changeRule(name, from, to));
        assert.equal(check.code, 0, `the change must leave rules that can be read: ${check.text}`);
        assert.equal(unit.code, 1, unit.text);
        assert.match(unit.text, /FAILED/);
      });
    }
  }
});

// One rule's text, from its name to the next rule's.
function changeRule(name: string, from: string, to: string): string {
  const begin = RULES.search(new RegExp(`- (record|alert): ${name}$`, 'm'));
  const length = RULES.slice(begin + 1).search(/\n {6}- (record|alert): |$(?![\s\S])/);
  const rule = RULES.slice(begin, begin + 1 + length);
  assert.ok(begin >= 0 && rule.includes(from), `${name} has no ${from}`);
  return RULES.slice(0, begin) + rule.replace(from, () => to) + RULES.slice(begin + 1 + length);
}

type Ended = { readonly code: number | null; readonly text: string };

function runPromtool(rules: string): { check: Ended; unit: Ended } {
  const [promtool = ''] = programs.promtool ?? [];
  const cwd = makeFolder();
  writeFileSync(join(cwd, 'rules.yaml'), rules);
  writeFileSync(join(cwd, 'rules.test.yaml'), UNIT_TESTS);
  const run = (...args: readonly string[]) => {
    const { status, stdout, stderr } = spawnSync(promtool, args, { cwd, encoding: 'utf8' });
    return { code: status, text: `${stdout}${stderr}` };
  };
  return { check: run('check', 'rules', 'rules.yaml'), unit: run('test', 'rules', 'rules.test.yaml') };
}
