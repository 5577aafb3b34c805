// Labelled pods (fixtures/pods/jobs), and what they are with lastscrape (fixtures/injected/jobs).
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import type { Container, Pod } from './injected.ts';

const FIXTURES = join(import.meta.dirname, '..', '..', 'fixtures');

/** The pods of fixtures/pods/jobs that get the container; each has a golden of the same name. */
export const JOBS_INJECTED = [
  'annotated',
  'earlier-sidecar',
  'guaranteed',
  'hooked',
  'http-metrics',
  'named-port',
  'own-url',
  'pushed',
  'scrape-ports',
  'wrong-hook',
  'wrong-ttl',
] as const;

/** The one that has it already, with a native sidecar behind it. It has a golden as well. */
export const JOB_NOT_LAST = 'not-last';

/** Every one that has a golden. */
export const JOBS_GOLDEN = [...JOBS_INJECTED, JOB_NOT_LAST] as const;

const PUSHES =
  'lastscrape.dev/pushgateway must list NAME:PORT, such as pushgateway.monitoring.svc:9091, all with one port that is free in this pod';
const READ = 'the pod reads its own annotation prometheus.io/port, which would change';

/** Those that stay as they are, each with the reason that kubectl warns of; null: none. */
export const JOBS_UNTOUCHED = {
  'by-hand': null,
  'by-hand-regular': null,
  'front-low': 'port 1023 is for root, which it is not; take one from 1024 on, or set the sysctl net.ipv4.',
  'file-elsewhere': 'lastscrape.dev/metrics-url is a file, and no container mounts a volume where that is',
  'front-is-source': 'port 9469 is in use in this pod; set lastscrape.dev/front to the number of a free one',
  'host-network': 'with hostNetwork localhost is the node',
  https: 'nothing says where the metrics are',
  master: null,
  'mount-taken': 'lastscrape.dev/hook needs a volume lastscrape-hooks',
  'name-taken': 'the container lastscrape is taken for it',
  'no-label': null,
  'no-metrics': 'nothing says where the metrics are',
  'opted-out': null,
  'other-arch': 'its image is for Linux on amd64 and arm64',
  'path-read': 'the pod reads its own annotation prometheus.io/path, which would change',
  'own-variable': 'the container main is taken for it',
  'pod-resources': 'the pod sets resources as a whole',
  'port-read': READ,
  'port-read-volume': READ,
  'port-too-high': 'nothing says where the metrics are',
  'port-zero': 'nothing says where the metrics are',
  'port-in-use': 'port 9469 is in use in this pod; set lastscrape.dev/front to the number of a free one',
  'push-address': PUSHES,
  'push-https': PUSHES,
  'push-low': 'port 80 is for root, which it is not; take one from 81 on',
  'push-ports': PUSHES,
  'push-taken': PUSHES,
  static: 'it is a static pod',
  'url-is-front': "lastscrape.dev/metrics-url is lastscrape's own port, 9469",
  'volume-taken': 'lastscrape.dev/hook needs a volume lastscrape-hooks',
  'windows-selector': 'its image is for Linux on amd64 and arm64',
  'windows-affinity': 'its image is for Linux on amd64 and arm64',
  windows: 'its image is for Linux on amd64 and arm64',
  'wrong-front': 'lastscrape.dev/front must be the number of a port, 1 to 65535',
  'wrong-port': 'nothing says where the metrics are',
} as const;

export const JOBS_UNTOUCHED_NAMES = Object.keys(JOBS_UNTOUCHED) as readonly (keyof typeof JOBS_UNTOUCHED)[];

/** The name of a file in fixtures/pods/jobs, without its ending. */
export type JobPodName = (typeof JOBS_GOLDEN)[number] | keyof typeof JOBS_UNTOUCHED;

/** The pod as it is applied, or as the controller of a Job makes it. */
export function readJobPod(name: JobPodName): Pod {
  return parse(readFileSync(join(FIXTURES, 'pods', 'jobs', `${name}.yaml`), 'utf8'));
}

/** The pod that a real API server made of it with deploy/jobs-policy.yaml applied, normalised. */
export function readJobGolden(name: (typeof JOBS_GOLDEN)[number]): Pod {
  return parse(readFileSync(join(FIXTURES, 'injected', 'jobs', `${name}.yaml`), 'utf8'));
}

/** The container lastscrape. @throws unless it is there once */
export function findSidecar({ spec: { containers, initContainers = [] } }: Pod): Container {
  const [found, again] = [...containers, ...initContainers].filter(({ name }) => name === 'lastscrape');
  if (found === undefined || again !== undefined)
    throw new Error('Cannot find lastscrape in the pod: must be there once');
  return found;
}
