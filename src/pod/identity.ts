// Whose numbers these are: namespace, pod and Job, as far as the container knows them.

import { hostname } from 'node:os';
import { prepareSmallFile } from '../base/mounted-file.ts';
import { type Environment, readVariable } from '../base/parse.ts';

/** What is known. `hostname`: of a pod whose name may be another one. */
export type Identity = {
  readonly namespace?: string;
  readonly pod?: string;
  readonly hostname?: string;
  readonly job?: string;
};

/** What a pod says of itself to a keeper: names, labels and annotations. */
export const HEAD_MAX_BYTES = 16_384;

const NAMESPACE_FILE = '/var/run/secrets/kubernetes.io/serviceaccount/namespace';
const FILE_TIMEOUT_MS = 1_000;

export type IdentitySources = ReturnType<typeof findIdentitySources>;

export function findIdentitySources(env: Environment) {
  const read = prepareSmallFile(NAMESPACE_FILE, 1024);
  return {
    env,
    /** The pod's name, but not in an Indexed Job, on the node's network, or with a hostname of its own. */
    hostname,
    /** The namespace mounted with the service account's token; null without a mount. */
    async readNamespace(): Promise<string | null> {
      const file = await read({ timeoutMs: FILE_TIMEOUT_MS });
      return 'text' in file ? file.text.trim() : null;
    },
  };
}

/** Finds the identity; POD_NAME and POD_NAMESPACE win. */
export async function findIdentity({ env, hostname: readHostname, readNamespace }: IdentitySources): Promise<Identity> {
  const isPod = readVariable(env, 'KUBERNETES_SERVICE_HOST') !== '';
  const host = isPod ? readHostname() : '';
  // A name that the controller of a Job made is no other's.
  const pod = readVariable(env, 'POD_NAME') || (findJob(host) === null ? '' : host);
  const namespace = readVariable(env, 'POD_NAMESPACE') || ((await readNamespace()) ?? '');
  const job = findJob(pod, host);
  return {
    ...(namespace === '' ? {} : { namespace }),
    ...(pod === '' ? {} : { pod }),
    ...(pod !== '' || host === '' ? {} : { hostname: host }),
    ...(job === null ? {} : { job }),
  };
}

/**
 * The Job of a pod, by its name; null: not a Job's. The controller appends five random letters and digits,
 * without vowels, 0, 1 and 3 (kubernetes/kubernetes, apiserver/pkg/storage/names/generate.go); in an Indexed
 * Job to the host name, which is the Job's name and the index (pkg/controller/job/indexed_job_utils.go).
 */
export function findJob(pod: string, host = ''): string | null {
  const owner = /^(.+)-[bcdfghjklmnpqrstvwxz2456789]{5}$/.exec(pod)?.[1] ?? null;
  return owner === host ? host.replace(/-\d+$/, '') : owner;
}
