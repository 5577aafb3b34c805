// The fixtures of `lastscrape explain`: from a cluster, without what only that cluster knows.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { main } from '../../src/main.ts';
import { openHost } from '../support/host.ts';
import { type ExplainState, listExplainStates } from './states.ts';

const FOLDER = join(import.meta.dirname, '../../fixtures/explain');

/** The text of fixtures/explain/NAME.json. */
export function readExplainFixture(name: string): string {
  return readFileSync(join(FOLDER, `${name}.json`), 'utf8');
}

/** The states; the images only matter to a cluster. */
export const EXPLAIN_STATES: readonly ExplainState[] = listExplainStates({
  lastscrape: 'lastscrape',
  exporter: 'exporter',
  busybox: 'busybox',
  mesh: 'mesh',
});

/** When a fixture is explained: some time after the newest moment in it. */
export function readMoment(name: string): number {
  const { afterSeconds = 60 } = EXPLAIN_STATES.find((each) => each.name === name) ?? assert.fail(`no state ${name}`);
  const moments = readExplainFixture(name).match(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ/g) ?? [];
  return Math.max(...moments.map((moment) => Date.parse(moment))) + afterSeconds * 1_000;
}

type ExplainRun = { readonly code: number; readonly stdout: string; readonly stderr: string };

/** Runs `lastscrape explain` on a text, or on pieces of bytes. */
export async function runExplain(
  input: string | readonly (string | Uint8Array)[],
  { nowMs = 0, argv = ['explain'], isTTY = false }: { nowMs?: number; argv?: readonly string[]; isTTY?: boolean } = {},
): Promise<ExplainRun> {
  const pieces = typeof input === 'string' ? [input] : input;
  async function* read() {
    yield* pieces;
  }
  const unused = () => assert.fail('explain needs neither signals nor clocks');
  const { host, out } = openHost(
    {},
    {
      argv,
      stdin: () => Object.assign(read(), { isTTY }),
      onSignal: unused,
      nowMs: unused,
      wallMs: () => nowMs,
    },
  );
  const { code } = await main(host);
  return { code, ...out };
}

/** The text for a person of one fixture, at its moment. */
export async function playExplain(name: string): Promise<string> {
  return (await runExplain(readExplainFixture(name), { nowMs: readMoment(name) })).stdout;
}

/** JSON whose parts that fit stand on one line. */
export function formatFixture(value: unknown, indent = ''): string {
  const line = JSON.stringify(value);
  if (line.length + indent.length <= 120 || typeof value !== 'object' || value === null) return line;
  const inner = `${indent} `;
  const [open, close] = Array.isArray(value) ? '[]' : '{}';
  const parts = Object.entries(value).map(([key, each]) => {
    const text = formatFixture(each, inner);
    return `${inner}${Array.isArray(value) ? '' : `${JSON.stringify(key)}: `}${text}`;
  });
  return `${open}\n${parts.join(',\n')}\n${indent}${close}`;
}

/** What the API server or the kubelet adds to every pod, and no reason needs. */
const NOISE = new Set([
  ...['managedFields', 'resourceVersion', 'uid', 'generation', 'observedGeneration', 'containerID', 'imageID'],
  ...['hostIP', 'hostIPs', 'podIP', 'podIPs', 'allocatedResources', 'selfLink', 'lastProbeTime', 'qosClass'],
  // Defaults of the API server.
  ...['terminationMessagePath', 'terminationMessagePolicy', 'dnsPolicy', 'enableServiceLinks', 'preemptionPolicy'],
  ...['priority', 'schedulerName', 'serviceAccount', 'tolerations', 'imagePullPolicy', 'securityContext'],
  ...['controller-uid', 'batch.kubernetes.io/controller-uid'],
]);

/** An object without the noise and the token that each pod mounts; `names` are replaced everywhere. */
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
      .map(([key, each]) => [key, stripNoise(each, names)])
      .filter(([, each]) => JSON.stringify(each) !== '{}' && JSON.stringify(each) !== '[]'),
  );
}
