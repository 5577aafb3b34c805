// deploy/job/migration: lastscrape accepts its variables, and the pod has what they ask for.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { parse, parseAllDocuments } from 'yaml';
import { readConfig } from '../../src/config/config.ts';
import { KINDS } from '../../src/main.ts';
import { PRESETS } from '../../src/quit/programs.ts';
import { CONTEXT } from '../observe/condition-context.ts';

const ROOT = join(import.meta.dirname, '../..');
const text = readFileSync(join(ROOT, 'deploy/job/migration/job.yaml'), 'utf8');
const { spec } = parse(text).spec.template;
const [account, role, binding] = parseAllDocuments(
  readFileSync(join(ROOT, 'deploy/job/migration/account.yaml'), 'utf8'),
).map((document) => document.toJS());

type Container = { readonly name: string; readonly args?: readonly string[] };

test('lastscrape accepts the variables of the migration, and asks each target where its program takes it', () => {
  const { env } = spec.containers.at(-1) as { env: { name: string; value?: string }[] };
  const variables = Object.fromEntries(env.map(({ name, value }) => [name, value ?? 'from-a-field']));
  const result = readConfig(variables, KINDS, { pid: 7, kill: () => {}, pod: CONTEXT.pod });
  assert.ok('config' in result, JSON.stringify(result));
  const { conditions, targets } = result.config;
  const main: readonly Container[] = spec.containers.slice(0, 1);
  const texts = conditions.map((condition) => condition.text);
  assert.deepEqual(
    texts,
    main.map(({ name }) => `container:${name}`),
  );
  const names = targets.map(({ name }) => name);
  assert.deepEqual(names, ['cloud-sql-proxy', 'istio']);
  const proxy: Container | undefined = spec.containers.find(({ name }: Container) => name === 'cloud-sql-proxy');
  const flag = PRESETS.find(({ name }) => name === 'cloud-sql-proxy')?.flag;
  assert.ok(flag != null && proxy?.args?.includes(flag), `${flag}`);
});

test('the account of the migration may get pods, and nothing else', () => {
  assert.deepEqual([account.kind, account.metadata.name], ['ServiceAccount', spec.serviceAccountName]);
  assert.deepEqual(role.rules, [{ apiGroups: [''], resources: ['pods'], verbs: ['get'] }]);
  assert.deepEqual(binding.roleRef, { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: role.metadata.name });
  assert.deepEqual(binding.subjects, [{ kind: 'ServiceAccount', name: spec.serviceAccountName }]);
});
