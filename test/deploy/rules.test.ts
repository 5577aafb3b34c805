// The rules of deploy/: promtool's unit tests of them pass, and each change of a rule makes one of them fail.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { copyFileSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { parse } from 'yaml';
import { makeFolder } from '../support/folder.ts';
import { findPrograms, gate } from '../support/programs.ts';

const DEPLOY = join(import.meta.dirname, '../../deploy');
const [LOCUST, JOBS] = ['monitoring', 'job/front'] as const;
const RULES = readFileSync(join(DEPLOY, LOCUST, 'rules.yaml'), 'utf8');

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
    ['up{locust_test!=""} or ', ''],
    [' or up{instance=~".+:9646",pod=~".+-master-.+"}', ''],
    ['instance=~".+:9646",', ''],
    [',pod=~".+-master-.+"', ''],
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
    ['unless on (namespace, pod) (up{locust_test!=""} or up{instance=~".+:9646"}) == 1', ''],
    ['up{locust_test!=""} or ', ''],
    [' or up{instance=~".+:9646"}', ''],
    ['unless on (namespace, pod)', 'unless on (pod)'],
    ['9646"}) == 1', '9646"})'],
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

/** Of the first place in the rules of Jobs. */
const JOB_CHANGES: readonly Change[] = [
  ['lastscrape_source_up == 0 and lastscrape_main_ended == 0', 'lastscrape_source_up == 0'],
  ['lastscrape_source_up == 0 and ', ''],
  ['for: 1m', 'for: 2m'],
  ['for: 1m', 'for: 15s'],
  ['(up{job=~".*lastscrape-front"} or up{instance=~".+:9469"}) == 0', 'up == 0'],
  [' or up{instance=~".+:9469"}) == 0', ') == 0'],
  ['(up{job=~".*lastscrape-front"} or up{instance=~".+:9469"}) == 0', 'up{instance=~".+:9469"} == 0'],
  ['for: 3m', 'for: 5m'],
  ['for: 3m', 'for: 1m'],
  ['{container="lastscrape"} == 1', ' == 1'],
  ['max by (namespace, pod) (kube_pod_container_status_terminated) == 1', 'up'],
  ['unless on (namespace, pod) max by (namespace, pod) (kube_pod_container_status_running) == 1', ''],
  ['unless on (namespace, pod) (up{job=~".*lastscrape-front"} or up{instance=~".+:9469"}) == 1', ''],
  [' or up{instance=~".+:9469"}) == 1', ') == 1'],
  ['for: 75s', 'for: 15s'],
  ['for: 75s', 'for: 3m'],
  ['last_over_time(lastscrape_pushes_refused_total[10m]) > 0', 'lastscrape_pushes_refused_total > 0'],
  ['[10m]) > 0', '[10m]) >= 0'],
  ['[10m]) + last_over_time(lastscrape_pushes_refused_total[10m]) == 0', '[10m]) == 0'],
  ['lastscrape_hook_calls_total[10m]) == 0', 'lastscrape_hook_calls_total[10m]) >= 0'],
  ['last_over_time(lastscrape_pushes_total[10m]) + ', ''],
  ['last_over_time(lastscrape_hook_calls_total[10m]) == 0 and', ''],
  ['timestamp_seconds > 300', 'timestamp_seconds > 500'],
  ['for: 2m', 'for: 1m'],
  ['increase(lastscrape_keeper_refused_total[10m])', 'lastscrape_keeper_refused_total'],
  ['increase(lastscrape_keeper_refused_total[10m]) > 0', 'increase(lastscrape_keeper_refused_total[10m]) > 5'],
];

describe('promtool', { skip }, () => {
  for (const folder of [LOCUST, JOBS]) {
    test(`finds the rules of ${folder} valid, and their unit tests pass`, () => {
      const { check, unit } = runPromtool(folder, readFileSync(join(DEPLOY, folder, 'rules.yaml'), 'utf8'));
      assert.equal(check.code, 0, check.text);
      assert.equal(unit.code, 0, unit.text);
    });
  }

  test('every rule is changed below', () => {
    const names = (parse(RULES) as Rules).groups.flatMap(({ rules }) =>
      rules.map(({ record, alert }) => record ?? alert),
    );
    assert.deepEqual(names, Object.keys(CHANGES));
  });

  function checkNoticed(what: string, folder: string, change: () => string): void {
    test(`notices ${what}`, () => {
      const { check, unit } = runPromtool(folder, change());
      assert.equal(check.code, 0, `the change must leave rules that can be read: ${check.text}`);
      assert.equal(unit.code, 1, unit.text);
      assert.match(unit.text, /FAILED/);
    });
  }
  const describeChange = ([from, to]: Change) => (to === '' ? `no ${from}` : `${to} for ${from}`);
  for (const [name, changes] of Object.entries(CHANGES)) {
    for (const change of changes)
      checkNoticed(`${name} with ${describeChange(change)}`, LOCUST, () => changeRule(name, ...change));
  }
  const jobRules = readFileSync(join(DEPLOY, JOBS, 'rules.yaml'), 'utf8');
  for (const change of JOB_CHANGES) {
    checkNoticed(describeChange(change), JOBS, () => {
      assert.ok(jobRules.includes(change[0]));
      return jobRules.replace(...change);
    });
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

function runPromtool(folder: string, rules: string): { check: Ended; unit: Ended } {
  const [promtool = ''] = programs.promtool ?? [];
  const cwd = makeFolder();
  writeFileSync(join(cwd, 'rules.yaml'), rules);
  copyFileSync(join(DEPLOY, folder, 'rules.test.yaml'), join(cwd, 'rules.test.yaml'));
  const run = (...args: readonly string[]) => {
    const { status, stdout, stderr } = spawnSync(promtool, args, { cwd, encoding: 'utf8' });
    return { code: status, text: `${stdout}${stderr}` };
  };
  return { check: run('check', 'rules', 'rules.yaml'), unit: run('test', 'rules', 'rules.test.yaml') };
}
