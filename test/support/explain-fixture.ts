// The fixtures of `lastscrape explain`: read as they are, and taken from a cluster without what only that cluster knows.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';

const FOLDER = join(import.meta.dirname, '../../fixtures/explain');

/** The text of fixtures/explain/NAME.json. */
export function readExplainFixture(name: string): string {
  return readFileSync(join(FOLDER, `${name}.json`), 'utf8');
}

/** What the API server or the kubelet adds to every pod, and nobody asks for. */
const NOISE = new Set([
  'managedFields',
  'resourceVersion',
  'uid',
  'generation',
  'observedGeneration',
  'containerID',
  'imageID',
  'hostIP',
  'hostIPs',
  'podIP',
  'podIPs',
  'allocatedResources',
  'selfLink',
  'controller-uid',
  'batch.kubernetes.io/controller-uid',
]);

/** An object without the noise, and without the token that each pod mounts; `names` are replaced wherever they stand. */
export function stripNoise(value: unknown, names: Readonly<Record<string, string>>): unknown {
  if (typeof value === 'string') {
    return Object.entries(names).reduce((text, [name, other]) => text.replaceAll(name, other), value);
  }
  if (Array.isArray(value)) {
    return value
      .filter((each) => !String((each as { name?: unknown } | null)?.name).startsWith('kube-api-access-'))
      .map((each) => stripNoise(each, names));
  }
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .filter(([key]) => !NOISE.has(key))
      .map(([key, each]) => [key, stripNoise(each, names)]),
  );
}
