// deploy/chart: it renders the manifests of deploy/, goes by what a cluster has, and refuses what cannot work.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { parseAllDocuments } from 'yaml';
import { VERSION } from '../../src/base/version.ts';
import { findPrograms, gate } from '../support/programs.ts';
import {
  CHART,
  DERIVED,
  deriveManifest,
  RENDERED,
  ROOT,
  renderManifest,
  renderParts,
  runHelm,
  template,
} from './chart.ts';

const skip = gate(findPrograms(), 'test/deploy/chart.test.ts', ['helm']);
const IMAGE = 'image=registry.example.com/lastscrape:0.1.0';

type Rendered = { readonly apiVersion: string; readonly kind: string; readonly metadata: { readonly name: string } };

function render(values: readonly string[], cluster?: Parameters<typeof template>[1]): readonly Rendered[] {
  const { stdout, stderr, status } = template(values, cluster);
  assert.equal(status, 0, stderr);
  return parseAllDocuments(stdout).map((document) => document.toJS());
}

const list = (rendered: readonly Rendered[]) => rendered.map(({ kind, metadata }) => `${kind} ${metadata.name}`);

describe('deploy/chart', { skip }, () => {
  for (const file of Object.keys(RENDERED)) {
    test(`${file} is what it renders; if not: npm exec -- node test/tools/make-manifests.ts`, () => {
      assert.equal(readFileSync(join(ROOT, file), 'utf8'), renderManifest(file));
    });
  }

  test('every other lastscrape in deploy/ has the container of the chart; if not: the same command', () => {
    const parts = renderParts();
    const stale = DERIVED.filter((file) => readFileSync(join(ROOT, file), 'utf8') !== deriveManifest(file, parts));
    assert.deepEqual(stale, []);
    assert.ok(DERIVED.length > 10);
  });

  test('it passes helm lint, and has the version of the program', () => {
    const values = `${IMAGE},engine=kyverno,jobs.enabled=false,locustTests.enabled=false`;
    const { stdout, status } = runHelm('lint', CHART, '--strict', '--set', values);
    assert.equal(status, 0, stdout);
    const chart = readFileSync(join(CHART, 'Chart.yaml'), 'utf8');
    assert.deepEqual(chart.match(/^(app)?[vV]ersion: .*$/gm), [`version: ${VERSION}`, `appVersion: ${VERSION}`]);
  });

  test('with nothing but an image, or as a dependency: both policies, their warnings, and a test', () => {
    assert.deepEqual(list(render([IMAGE, 'enabled=true'])).toSorted(), [
      'MutatingAdmissionPolicy lastscrape',
      'MutatingAdmissionPolicy lastscrape-jobs',
      'MutatingAdmissionPolicy lastscrape-limits',
      'MutatingAdmissionPolicyBinding lastscrape',
      'MutatingAdmissionPolicyBinding lastscrape-jobs',
      'MutatingAdmissionPolicyBinding lastscrape-limits',
      'Pod lastscrape-test-front',
      'Pod lastscrape-test-image',
      'ValidatingAdmissionPolicy lastscrape-annotations',
      'ValidatingAdmissionPolicy lastscrape-jobs',
      'ValidatingAdmissionPolicyBinding lastscrape-annotations',
      'ValidatingAdmissionPolicyBinding lastscrape-jobs',
    ]);
  });

  test('the keeper: what it needs, and the policy names it; with a claim, without rights, and its monitors', () => {
    const read = (...values: readonly string[]) => {
      const known = new Set(list(render([IMAGE, 'monitors.enabled=true'])));
      return list(render([IMAGE, 'monitors.enabled=true', 'keeper.enabled=true', ...values]))
        .filter((each) => !known.has(each))
        .toSorted();
    };
    const always = [
      'Deployment lastscrape-keeper',
      'NetworkPolicy lastscrape-keeper',
      'Pod lastscrape-test-hand-over',
      'Pod lastscrape-test-targets',
      'PodMonitor lastscrape-keeper',
      'ScrapeConfig lastscrape-keeper-pages',
      'Service lastscrape-keeper',
      'ServiceAccount lastscrape-keeper',
    ];
    const rights = ['ClusterRole lastscrape-keeper', 'ClusterRoleBinding lastscrape-keeper'];
    assert.deepEqual(read(), [...rights, ...always]);
    const claim = 'PersistentVolumeClaim lastscrape-keeper';
    assert.deepEqual(read('keeper.auth=none', 'keeper.storage=1Gi'), [...always, claim].toSorted());
    const policy = (...values: readonly string[]) => template([IMAGE, ...values], { only: ['jobs-policy'] }).stdout;
    const url =
      "variables.handOverText == '' ? 'http://lastscrape-keeper.monitoring.svc:9470' : variables.handOverText";
    assert.equal(policy('keeper.enabled=true').replace(url, url.replace(/http:[^']*/, '')), policy());
  });

  test('everything, with Kyverno', () => {
    const monitoring = ['monitors', 'rules', 'dashboard', 'keeper'].map((part) => `${part}.enabled=true`);
    const values = ['engine=kyverno', ...monitoring];
    const rendered = render([IMAGE, ...values, 'warnings.enabled=false', 'networkPolicy.namespaces={shop,bank}']);
    assert.deepEqual(list(rendered).toSorted(), [
      'ClusterRole lastscrape-keeper',
      'ClusterRoleBinding lastscrape-keeper',
      'ConfigMap lastscrape-dashboard',
      'Deployment lastscrape-keeper',
      'MutatingPolicy lastscrape',
      'MutatingPolicy lastscrape-jobs',
      'NetworkPolicy lastscrape-keeper',
      'NetworkPolicy locust-exporter',
      'NetworkPolicy locust-exporter',
      'Pod lastscrape-test-front',
      'Pod lastscrape-test-hand-over',
      'Pod lastscrape-test-image',
      'Pod lastscrape-test-targets',
      'PodMonitor lastscrape-front',
      'PodMonitor lastscrape-keeper',
      'PodMonitor locust-master',
      'PrometheusRule lastscrape',
      'PrometheusRule lastscrape-jobs',
      'ScrapeConfig lastscrape-keeper-pages',
      'Service lastscrape-keeper',
      'ServiceAccount lastscrape-keeper',
    ]);
  });

  for (const version of ['v1', 'v1beta1', 'v1alpha1']) {
    test(`a cluster that has MutatingAdmissionPolicy ${version} gets that`, () => {
      const apis = [`admissionregistration.k8s.io/${version}/MutatingAdmissionPolicy`] as never;
      const found = render([IMAGE], { apis }).filter(({ kind }) => kind.startsWith('Mutating'));
      const versions = new Set(found.map(({ apiVersion }) => apiVersion));
      assert.deepEqual(versions, new Set([`admissionregistration.k8s.io/${version}`]));
    });
  }

  test('container restart rules are for Kubernetes 1.35 and later', () => {
    for (const [version, has] of [
      ['1.34.9', false],
      ['1.35.0', true],
    ] as const) {
      const { stdout } = template([IMAGE], { version, only: ['policy'] });
      assert.equal(stdout.includes('restartPolicyRules'), has, version);
    }
  });

  test('Kyverno gets what the API server gets, the keeper included', () => {
    const read = (engine: string) => {
      const values = [IMAGE, `engine=${engine}`, 'keeper.enabled=true'];
      const { stdout } = template(values, { only: ['policy', 'jobs-policy'] });
      assert.match(stdout, /'http:\/\/lastscrape-keeper\.monitoring\.svc:9470'/);
      const found = parseAllDocuments(stdout).map((document) => document.toJS());
      return found.filter(({ kind }) => !kind.endsWith('Binding'));
    };
    const pods = { podControllers: { controllers: [] } };
    const kyverno = read('policy').map((policy) => ({
      ...policy,
      apiVersion: 'policies.kyverno.io/v1',
      kind: 'MutatingPolicy',
      spec: { ...policy.spec, autogen: pods },
    }));
    assert.deepEqual(read('kyverno'), kyverno);
    assert.equal(kyverno.length, 2);
  });

  test('quantities stay what they are: not rounded, and strings for CEL as well; BestEffort takes neither CPU nor memory', () => {
    const limits = ['resources.limits.cpu=1', 'resources.limits.memory=134217728'];
    const values = ['resources.requests.cpu=0.5', 'resources.requests.ephemeral-storage=1Mi', ...limits];
    const { stdout } = template([IMAGE, ...values], { only: ['policy', 'jobs-policy'] });
    const line =
      /isBestEffort \? \S+resources\{requests: \{'ephemeral-storage': '1Mi'\}\}[^?]*\?[^?]*: \S+resources\{\s+limits: \{'cpu': '1', 'memory': '134217728'\},\s+requests: \{'cpu': '0\.5', 'ephemeral-storage': '1Mi', 'memory': '64Mi'\}/g;
    assert.equal(stdout.match(line)?.length, 2, stdout);
  });

  test('without resources the policies set none', () => {
    const values = ['requests', 'limits', 'guaranteed'].map((name) => `resources.${name}=null`);
    const { stdout } = template([IMAGE, ...values], { only: ['policy', 'jobs-policy'] });
    assert.doesNotMatch(stdout, /limits: |requests: /);
  });

  test('the security context: another user, none, and nothing at all', () => {
    const read = (...values: readonly string[]) =>
      template([IMAGE, ...values], { only: ['jobs-policy'] }).stdout.match(/securityContext\{[\s\S]*?\}\}/)?.[0];
    const { stdout } = template([IMAGE, 'securityContext.runAsUser=1000'], { only: ['jobs-policy'] });
    assert.match(stdout, /variables\.users\[0\] : 1000"$/m);
    const level = read('securityContext.seLinuxOptions.level=s0:c1\\,c2') ?? '';
    assert.match(level, /seLinuxOptions\{level: 's0:c1,c2'\}/);
    const none = read('securityContext.runAsUser=null', 'securityContext.runAsGroup=null') ?? '';
    assert.match(none, /runAsNonRoot: true/);
    assert.doesNotMatch(none, /runAsUser|runAsGroup/);
    assert.equal(read('securityContext=null'), undefined);
  });

  test('the version of a cluster suffices, without its list of APIs, as in CI or GitOps', () => {
    for (const engine of ['policy', 'kyverno']) {
      const values = [IMAGE, `engine=${engine}`, 'monitors.enabled=true', 'rules.enabled=true', 'keeper.enabled=true'];
      const { stdout, stderr } = template(values, { apis: [] });
      assert.equal(stderr, '', engine);
      assert.equal(stdout, template(values).stdout, engine);
      assert.match(stdout, engine === 'kyverno' ? /^kind: MutatingPolicy$/m : /^kind: MutatingAdmissionPolicy$/m);
    }
  });

  test('names of digits alone, which are valid, are strings', () => {
    const apis = '--api-versions policies.kyverno.io/v1/MutatingPolicy';
    const cluster = `--kube-version 1.36.0 ${apis} --namespace 42`.split(' ');
    const digits = ['--set-string', 'name=1e3,networkPolicy.from=7,networkPolicy.namespaces={8}'];
    const others = ['--set', `${IMAGE},engine=kyverno,monitors.enabled=true`];
    const { stdout } = runHelm('template', 'lastscrape', CHART, ...cluster, ...others, ...digits);
    const found = parseAllDocuments(stdout).map((document) => document.toJS().metadata);
    const names = found.flatMap(({ name, namespace = '' }) => [name, namespace]);
    assert.deepEqual(
      [names.filter((name) => typeof name !== 'string'), new Set(names).has('1e3'), new Set(names).has('42')],
      [[], true, true],
      stdout,
    );
    assert.match(stdout, /metadata.name: "7"/);
  });

  for (const [what, value, said, version] of [
    ['no image', '', /image is not set: helm … --set image=HOST\/lastscrape:VERSION/],
    ['no policies', IMAGE, /this cluster has no MutatingAdmissionPolicy: .* set engine=kyverno/, '1.35.0'],
    ['an unknown way to prove pods', 'keeper.auth=maybe', /auth/],
    ['a claim without a unit', 'keeper.storage=10', /storage/],
    ['an unknown engine', 'engine=webhook', /engine/],
    [
      'a request above the limit',
      'resources.requests.memory=128Mi',
      /is 128Mi, more than resources.limits.memory, 64Mi/,
    ],
    ['a CPU request above the limit', 'resources.requests.cpu=2', /resources.requests.cpu is 2, more/],
    // The API server would refuse every pod, by which a policy's failurePolicy does not go.
    ...(
      [
        ['resources.requests.cpu', 'lots'],
        ['resources.guaranteed.cpu', ''],
        ['securityContext.runAsUser', ''],
        ['securityContext.runAsNonRoot', '1'],
        ['securityContext.capabilities.drop', 'ALL'],
        ['securityContext.seccompProfile.type', 'Localhost'],
      ] as const
    ).map(
      ([name, value]) => [`${name} as "${value}"`, `${name}=${value}`, /at '.resources|at '.securityContext/] as const,
    ),
    ['a field of a pod', 'securityContext.fsGroup=5', /additional properties 'fsGroup'/],
    ['no resource', 'resources.limits.mem=64Mi', /invalid propertyName 'mem'/],
    ['a misspelt value', 'job.enabled=false', /job/],
    ['a quote in the image', "image=a'b", /image/],
  ] as const) {
    test(`refused: ${what}`, () => {
      const values = value === '' ? [] : [IMAGE, value];
      const { stderr, status } = template(values, version && { version, apis: [] });
      assert.equal(status, 1);
      assert.match(stderr, said);
    });
  }
});
