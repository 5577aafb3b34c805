// deploy/job/migration on a real Kubernetes: as it is written, with other images alone, and with the proxy
// that Istio's webhook would put into the pod.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseAllDocuments } from 'yaml';
import { VERSION } from '../../src/base/version.ts';
import type { Container, Manifest } from './cluster.ts';
import { IMAGES } from './images.ts';
import type { PodSpec } from './locust-test.ts';
import { END_MS, readEnd, runScenarioIn } from './scenario.ts';

const FOLDER = join(import.meta.dirname, '../../deploy/job/migration');

/** The Job, and its main container. */
const MAIN = 'migrate';

/** The image of the test for each that the manifest names. */
const REPLACED: Readonly<Record<string, string>> = {
  [`registry.example.com/lastscrape:${VERSION}`]: IMAGES.lastscrape,
  'registry.example.com/migrate:1': IMAGES.report,
  'gcr.io/cloud-sql-connectors/cloud-sql-proxy:2.27.0': IMAGES.cloudSqlProxy,
};

/** Registers the scenarios. */
export function runJobScenarios(): void {
  runScenarioIn('job: a migration, then its database proxy, then the mesh', {}, async (namespace) => {
    const documents: readonly Manifest[] = ['account.yaml', 'job.yaml'].flatMap((file) =>
      parseAllDocuments(readFileSync(join(FOLDER, file), 'utf8')).map((document) => document.toJS()),
    );
    await namespace.apply(...documents.map((each) => (each.kind === 'Job' ? prepareJob(each) : each)));

    assert.equal(await namespace.untilJobEnded(MAIN, END_MS), 'Complete');
    const pod = namespace.events.at(-1)?.pod;
    assert.ok(pod, 'there is a pod');
    const statuses = pod.status.containerStatuses ?? [];
    assert.deepEqual(Object.fromEntries(statuses.map(({ name, state }) => [name, state.terminated?.exitCode])), {
      [MAIN]: 0,
      'cloud-sql-proxy': 0,
      'istio-proxy': 0,
      lastscrape: 0,
    });
    const { outcome, targets, mainExitCodes } = readEnd(pod).report;
    assert.deepEqual(
      [outcome, ...targets.map(({ target, result }) => `${target} ${result}`)],
      ['released', 'cloud-sql-proxy stopped', 'istio stopped'],
    );
    assert.deepEqual(mainExitCodes, { [MAIN]: 0 });
  });
}

/** The Job with the images of the test, and with Istio's proxy (a stand-in, quit-targets.ts). */
function prepareJob(job: Manifest): Manifest {
  const { template, ...rest } = job['spec'] as { template: { spec: PodSpec } };
  const replace = (container: Container): Container => {
    const image = REPLACED[container.image ?? ''];
    assert.ok(image, `an image of the test for ${container.image}`);
    return { ...container, image };
  };
  const istio: Container = {
    name: 'istio-proxy',
    image: IMAGES.mesh,
    args: ['istio'],
    env: [{ name: 'LASTSCRAPE_TEST_QUIT', value: 'on' }],
  };
  const containers = [...template.spec.containers.map(replace), istio];
  return { ...job, spec: { ...rest, template: { ...template, spec: { ...template.spec, containers } } } };
}
