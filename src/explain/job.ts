// A Job as kubectl prints it → the facts that the reasons use. Pure.

import { at, type Json, toNumber, toObjects } from '../base/json.ts';
import type { Since } from './finding.ts';
import { type PodFacts, readMetadata } from './pod.ts';
import { readName, readTime } from './words.ts';

/** The facts of a Job. */
export type JobFacts = Pick<PodFacts, 'namespace' | 'name' | 'spec' | 'created' | 'finalizers' | 'conditions'> & {
  /** The CronJob that makes it again and again; null: none. */
  readonly cronJob: string | null;
  readonly started: Since;
  /** null: it is not being deleted. */
  readonly deletedAtMs: number | null;
  readonly activeCount: number;
  readonly terminatingCount: number;
  readonly failedCount: number;
  readonly succeededCount: number;
  readonly backoffLimit: number;
  readonly parallelism: number;
  /** null: as many as succeed. */
  readonly completions: number | null;
  /** Another program runs it (spec.managedBy); null: Kubernetes does. */
  readonly managedBy: string | null;
};

/** The controller of Kubernetes itself. */
const OWN_CONTROLLER = 'kubernetes.io/job-controller';

/** The facts of an object of kind Job. */
export function readJobFacts(root: Json): JobFacts {
  const metadata = at(root, 'metadata');
  const spec = at(root, 'spec');
  const status = at(root, 'status');
  const owner = toObjects(metadata['ownerReferences']).find(({ kind }) => kind === 'CronJob');
  const managedBy = readName(spec['managedBy']);
  const startedAtMs = readTime(status['startTime']);
  const common = readMetadata(metadata);
  return {
    ...common,
    cronJob: owner === undefined ? null : readName(owner['name']),
    spec,
    started: startedAtMs === null ? common.created : { atMs: startedAtMs, what: 'it was started' },
    deletedAtMs: readTime(metadata['deletionTimestamp']),
    conditions: toObjects(status['conditions']),
    activeCount: toNumber(status['active'], 0),
    terminatingCount: toNumber(status['terminating'], 0),
    failedCount: toNumber(status['failed'], 0),
    succeededCount: toNumber(status['succeeded'], 0),
    backoffLimit: toNumber(spec['backoffLimit'], 6),
    parallelism: toNumber(spec['parallelism'], 1),
    completions: typeof spec['completions'] === 'number' ? spec['completions'] : null,
    managedBy: ['', OWN_CONTROLLER].includes(managedBy) ? null : managedBy,
  };
}
