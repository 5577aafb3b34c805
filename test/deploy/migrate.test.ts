// deploy/migrate.md says what is so: it links every manifest, its tables have every setting of the tools that
// people come from, its names exist. lastscrape accepts each manifest, and deploy/job/migration.

import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { parseAllDocuments } from 'yaml';
import { readConfig } from '../../src/config/config.ts';
import { VARIABLES } from '../../src/config/variables.ts';
import { KINDS } from '../../src/main.ts';
import { PRESETS } from '../../src/quit/programs.ts';
import { CONTEXT } from '../observe/condition-context.ts';

const DEPLOY = join(import.meta.dirname, '../../deploy');
const page = readFileSync(join(DEPLOY, 'migrate.md'), 'utf8');

/** Every setting of a tool, from its public source (2026); of forks, too. The page has a row for each. */
const SETTINGS: Readonly<Record<string, readonly string[]>> = {
  // karlkfi/kubexit, and what its open pull requests and its fork by cortexlabs add.
  kubexit: [
    ...['KUBEXIT_NAME', 'KUBEXIT_GRAVEYARD', 'KUBEXIT_BIRTH_DEPS', 'KUBEXIT_DEATH_DEPS', 'KUBEXIT_BIRTH_TIMEOUT'],
    ...['KUBEXIT_GRACE_PERIOD', 'KUBEXIT_POD_NAME', 'KUBEXIT_NAMESPACE'],
    ...['KUBEXIT_EXIT_CODE_OVERRIDE', 'KUBEXIT_IGNORE_CODE_ON_DEATH_DEPS', 'KUBEXIT_SUPPRESS_STOPPED_EXITCODE'],
    ...['KUBEXIT_STOPSIGNAL', 'KUBEXIT_LOG_DATETIME', 'KUBEXIT_CUSTOM_EXIT_CODE'],
  ],
  // redboxllc/scuttle and kvij/scuttle.
  scuttle: [
    ...['ENVOY_ADMIN_API', 'ISTIO_QUIT_API', 'START_WITHOUT_ENVOY', 'WAIT_FOR_ENVOY_TIMEOUT'],
    ...['QUIT_WITHOUT_ENVOY_TIMEOUT', 'NEVER_KILL_ISTIO', 'NEVER_KILL_ISTIO_ON_FAILURE', 'GENERIC_QUIT_ENDPOINTS'],
    ...['SCUTTLE_LOGGING', 'ISTIO_FALLBACK_PKILL', 'GENERIC_QUIT_ONLY', 'QUIT_REQUEST_TIMEOUT'],
  ],
  // linkerd/linkerd-await.
  'linkerd-await': [
    ...['-S', '--shutdown', '-p', '--port', '-b', '--backoff', '-t', '--timeout', 'LINKERD_AWAIT_DISABLED'],
  ],
  // nrmitchi/k8s-controller-sidecars and its forks.
  'k8s-controller-sidecars': [
    ...['nrmitchi.com/sidecars', 'lemonade.com/sidecars', 'riskified.com/sidecars', 'pod.kubernetes.io/sidecars'],
    'riskified.com/main_sidecars',
  ],
  pkill: ['pkill NAME', 'pkill -INT NAME', 'pkill -f PATTERN'],
  sleep: ['sleep 90', 'time.sleep(90)', '--linger', 'containerPort: 8000'],
  pushgateway: ['PUSHGATEWAY_URL', 'honor_labels', 'push_time_seconds', 'DELETE'],
};

/** A migration of a database, whose account is a file of its own. */
const MIGRATION = 'job/migration';

const files = readdirSync(join(DEPLOY, 'migrate')).map((file) => file.replace(/\.yaml$/, ''));

type Container = {
  readonly name: string;
  readonly image: string;
  readonly restartPolicy?: string;
  readonly env?: readonly { readonly name: string; readonly value?: string }[];
};
type PodSpec = {
  readonly shareProcessNamespace?: boolean;
  readonly terminationGracePeriodSeconds?: number;
  readonly serviceAccountName?: string;
  readonly containers: readonly Container[];
  readonly initContainers?: readonly Container[];
};
type Document = {
  readonly kind: string;
  readonly spec: { readonly template: { readonly spec: PodSpec } };
  readonly metadata: { readonly name: string };
  readonly rules: unknown;
  readonly roleRef: { readonly kind: string; readonly name: string };
  readonly subjects: unknown;
};

function readText(name: string): string {
  const paths = name === MIGRATION ? [`${name}/account.yaml`, `${name}/job.yaml`] : [`migrate/${name}.yaml`];
  return paths.map((path) => readFileSync(join(DEPLOY, path), 'utf8')).join('---\n');
}

function readDocuments(name: string): readonly Document[] {
  return parseAllDocuments(readText(name)).map((document) => document.toJS());
}

function readSpec(name: string): PodSpec {
  const job = readDocuments(name).find(({ kind }) => kind === 'Job');
  assert.ok(job, `${name}.yaml has a Job`);
  return job.spec.template.spec;
}

function readOwnEnv(name: string): Readonly<Record<string, string>> {
  const { containers, initContainers = [] } = readSpec(name);
  const { env = [] } = [...containers, ...initContainers].find((each) => each.name === 'lastscrape') ?? {};
  return Object.fromEntries(env.map(({ name: variable, value }) => [variable, value ?? 'from-a-field']));
}

function readRows(name: string): readonly string[] {
  const [, table = ''] = new RegExp(`<!-- variables: ${name} -->\n((?:\\|.*\n)+)`).exec(page) ?? [];
  return table
    .split('\n')
    .slice(2, -1)
    .map((row) => row.split(' | ')[0] ?? '');
}

function quotedIn(text: string): readonly string[] {
  return [...text.matchAll(/`([^`]+)`/g)].map(([, quoted = '']) => quoted);
}

describe('deploy/migrate.md', () => {
  test('links every file', () => {
    const linked = [...page.matchAll(/\]\(migrate\/([^)]*)\.yaml\)/g)].map(([, file = '']) => file);
    assert.deepEqual([...new Set(linked)].toSorted(), files.toSorted());
  });

  test('has each setting of each tool in a row of its table, and no other', () => {
    for (const [name, settings] of Object.entries(SETTINGS)) {
      const found = readRows(name).flatMap(quotedIn);
      assert.deepEqual(found.toSorted(), settings.toSorted(), name);
    }
  });

  test('names variables, presets and conditions that exist', () => {
    const variables: readonly string[] = VARIABLES.map(({ name }) => name);
    for (const [name] of page.matchAll(/LASTSCRAPE_[A-Z_]+/g)) assert.ok(variables.includes(name), name);
    const conditions = KINDS.conditions.map(({ name }) => `${name}:`);
    const known = [...conditions, 'signal:'];
    for (const quoted of quotedIn(page.replaceAll(/```[\s\S]*?```/g, ''))) {
      const [kind] = /^[a-z]+:(?=$|[A-Za-z*/])/.exec(quoted) ?? [];
      if (kind !== undefined && !/^(restartPolicy|shareProcessNamespace)/.test(quoted)) {
        const isPreset = PRESETS.some(({ name }) => `${name}:` === kind);
        assert.ok(known.includes(kind) || isPreset, quoted);
      }
    }
    for (const preset of ['istio', 'linkerd', 'cloud-sql-proxy']) {
      assert.ok(PRESETS.some(({ name }) => name === preset) && page.includes(`\`${preset}\``), preset);
    }
  });
});

describe('deploy/migrate/*.yaml and deploy/job/migration', () => {
  for (const name of [...files, MIGRATION]) {
    test(`${name}: lastscrape accepts its variables, and the pod has what they ask for`, () => {
      const env = readOwnEnv(name);
      const result = readConfig(env, KINDS, { pid: 7, kill: () => {}, pod: CONTEXT.pod });
      assert.ok('config' in result, JSON.stringify(result));
      const { conditions, targets, tombstonePath, limits } = result.config;
      const spec = readSpec(name);
      const isNative = conditions.some(({ isSignal }) => isSignal);
      const own = isNative ? spec.initContainers?.at(-1) : spec.containers.at(-1);
      assert.equal(own?.name, 'lastscrape', 'the last of its list');
      assert.equal(own?.restartPolicy, isNative ? 'Always' : undefined);
      const { terminationGracePeriodSeconds: podSeconds = 30 } = spec;
      assert.ok(limits.terminationGraceMs / 1_000 + 5 <= podSeconds, `${podSeconds} s`);

      const entries = [...conditions.map(({ text }) => text), ...targets.map((each) => each.name)];
      const isShared = entries.some((entry) => /^(process|signal):/.test(entry));
      assert.equal(spec.shareProcessNamespace ?? false, isShared, 'shared only where it is needed');

      const documents = readDocuments(name);
      const isAsking = entries.some((entry) => entry.startsWith('container:'));
      const rules = documents.filter(({ kind }) => kind === 'Role').map((role) => role.rules);
      assert.deepEqual(rules, isAsking ? [[{ apiGroups: [''], resources: ['pods'], verbs: ['get'] }]] : []);
      const bindings = documents.filter(({ kind }) => kind === 'RoleBinding');
      const subjects = bindings.map((binding) => binding.subjects);
      for (const { roleRef } of bindings)
        assert.ok(documents.some(({ kind, metadata }) => kind === roleRef.kind && metadata.name === roleRef.name));
      assert.deepEqual(subjects, isAsking ? [[{ kind: 'ServiceAccount', name: spec.serviceAccountName }]] : []);

      const names = [...spec.containers, ...(spec.initContainers ?? [])].map((each) => each.name);
      for (const entry of entries) {
        const [, main = '*'] = /^container:(.*)/.exec(entry) ?? [];
        assert.ok(main === '*' || names.includes(main), entry);
      }
      for (const sidecar of (env['LASTSCRAPE_SIDECARS'] ?? '').split(',')) {
        if (sidecar !== '') assert.ok(names.includes(sidecar.trim()), sidecar);
      }
      const isChain = name === 'kubexit-chain';
      assert.equal(tombstonePath, isChain ? '/graveyard/lastscrape' : null);
      assert.equal(/KUBEXIT_|kubexit\//.test(readText(name)), isChain, 'nothing of the old tool is left');
      assert.doesNotMatch(readText(name), /command: \[(scuttle|linkerd-await|sh)\b|ENVOY_ADMIN_API|\/sidecars/);
    });

    test(`${name}: each preset is asked where its program has quitting switched on`, () => {
      const text = readText(name);
      const { LASTSCRAPE_QUIT: quit = '' } = readOwnEnv(name);
      for (const entry of quit.split(',')) {
        const preset = PRESETS.find((each) => each.name === entry.trim());
        if (preset?.flag?.startsWith('--')) assert.ok(text.includes(`[${preset.flag}`), preset.flag);
        if (preset?.flag?.startsWith('the annotation')) {
          assert.ok(text.includes(preset.flag.replace('the annotation ', '')), preset.flag);
        }
      }
    });
  }
});
