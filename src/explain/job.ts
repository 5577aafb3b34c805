// A Job as kubectl prints it → the facts that the reasons go by. Pure.

import { at, type Json, toNumber, toObjects, toText, toTexts } from '../base/json.ts';
import { quoteText, readTime } from './words.ts';

/** The facts of a Job. */
export type JobFacts = {
  readonly namespace: string;
  readonly name: string;
  /** A CronJob that makes it anew; null: none. */
  readonly cronJob: string | null;
  readonly spec: Json;
  readonly createdAtMs: number | null;
  readonly startedAtMs: number | null;
  readonly isDeleted: boolean;
  readonly deletedAtMs: number | null;
  readonly finalizers: readonly string[];
  readonly conditions: readonly Json[];
  readonly activeCount: number;
  readonly readyCount: number;
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
  const managedBy = toText(spec['managedBy']);
  return {
    namespace: quoteText(toText(metadata['namespace'])) || 'default',
    name: quoteText(toText(metadata['name'])) || '(no name)',
    cronJob: owner === undefined ? null : quoteText(toText(owner['name'])),
    spec,
    createdAtMs: readTime(metadata['creationTimestamp']),
    startedAtMs: readTime(status['startTime']),
    isDeleted: metadata['deletionTimestamp'] !== undefined && metadata['deletionTimestamp'] !== null,
    deletedAtMs: readTime(metadata['deletionTimestamp']),
    finalizers: toTexts(metadata['finalizers']),
    conditions: toObjects(status['conditions']),
    activeCount: toNumber(status['active'], 0),
    readyCount: toNumber(status['ready'], 0),
    terminatingCount: toNumber(status['terminating'], 0),
    failedCount: toNumber(status['failed'], 0),
    succeededCount: toNumber(status['succeeded'], 0),
    backoffLimit: toNumber(spec['backoffLimit'], 6),
    parallelism: toNumber(spec['parallelism'], 1),
    completions: typeof spec['completions'] === 'number' ? spec['completions'] : null,
    managedBy: ['', OWN_CONTROLLER].includes(managedBy) ? null : managedBy,
  };
}
