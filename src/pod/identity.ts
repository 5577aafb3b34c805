// Whose numbers these are: namespace, pod and Job, as far as the container knows them by itself.

import { hostname } from 'node:os';
import { prepareSmallFile } from '../base/small-file.ts';

/** What is known. */
export type Identity = { readonly namespace?: string; readonly pod?: string; readonly job?: string };

type Environment = Readonly<Record<string, string | undefined>>;

const NAMESPACE_FILE = '/var/run/secrets/kubernetes.io/serviceaccount/namespace';
const FILE_TIMEOUT_MS = 1_000;

/** What identifies goes by. */
export type IdentitySources = {
  readonly env: Environment;
  /** The name of the host: the pod's in Kubernetes, unless it has the network of its node. */
  readonly hostname: () => string;
  /** The namespace that the kubelet mounts with a service account's token; null: none is mounted. */
  readonly readNamespace: () => Promise<string | null>;
};

/** The sources of this very process. */
export function findIdentitySources(env: Environment): IdentitySources {
  const read = prepareSmallFile(NAMESPACE_FILE, 1024);
  return {
    env,
    hostname,
    async readNamespace() {
      const file = await read({ timeoutMs: FILE_TIMEOUT_MS });
      return 'text' in file ? file.text.trim() : null;
    },
  };
}

/** Finds out what is known: POD_NAME and POD_NAMESPACE come first. */
export async function findIdentity({ env, hostname: readHostname, readNamespace }: IdentitySources): Promise<Identity> {
  const isPod = (env['KUBERNETES_SERVICE_HOST'] ?? '') !== '';
  const pod = (env['POD_NAME'] ?? '').trim() || (isPod ? readHostname() : '');
  const namespace = (env['POD_NAMESPACE'] ?? '').trim() || ((await readNamespace()) ?? '');
  const job = findJob(pod);
  return {
    ...(namespace === '' ? {} : { namespace }),
    ...(pod === '' ? {} : { pod }),
    ...(job === null ? {} : { job }),
  };
}

/**
 * The Job of a pod, by its name: the controller appends five random letters and digits (kubernetes/kubernetes,
 * apiserver/pkg/storage/names/generate.go and apimachinery/pkg/util/rand: neither vowels nor 0, 1, 3). null: it is none of a Job.
 */
export function findJob(pod: string): string | null {
  return /^(.+)-[bcdfghjklmnpqrstvwxz2456789]{5}$/.exec(pod)?.[1] ?? null;
}
