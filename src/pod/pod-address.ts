// Where the API server is, which pod this is and whose token it has, from what Kubernetes puts into every
// container (documentation, "Accessing the Kubernetes API from a Pod"). Sends no request.

import { readFileSync } from 'node:fs';
import type { PodRequest } from './pod-request.ts';

/** Variables, as `process.env` gives them. */
export type Variables = Readonly<Record<string, string | undefined>>;

/** The pod, where to ask for it, with which token, and whom to trust. */
export type PodAddress = PodRequest & {
  readonly token: string;
  /** The certificate authorities of the API server, as PEM. */
  readonly ca: string;
};

/** The names of objects (documentation, "Object Names and IDs"): nothing that could end a path. */
const OBJECT_NAME = /^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$/;

/** Reads the address, for each request: the kubelet renews the token. A problem is `what is; what to do`. */
export function findPodAddress(env: Variables, accountFolder: string): PodAddress | { readonly problem: string } {
  const host = readVariable(env, 'KUBERNETES_SERVICE_HOST');
  if (host === '') return { problem: 'KUBERNETES_SERVICE_HOST is not set; this must run in a pod of Kubernetes' };
  const port = readVariable(env, 'KUBERNETES_SERVICE_PORT') || '443';
  const url = URL.parse(`https://${host.includes(':') ? `[${host}]` : host}:${port}`);
  if (url === null) {
    return { problem: `KUBERNETES_SERVICE_HOST and _PORT are "${host}" and "${port}"; must be a host and a port` };
  }
  const tokenPath = `${accountFolder}/token`;
  const token = readToken(tokenPath);
  const ca = readText(`${accountFolder}/ca.crt`);
  if (token === '' || ca === null) {
    return {
      problem: `no service account is mounted at ${accountFolder}; remove automountServiceAccountToken: false from the pod or its account`,
    };
  }
  const namespace = readVariable(env, 'POD_NAMESPACE') || (readText(`${accountFolder}/namespace`)?.trim() ?? '');
  if (!OBJECT_NAME.test(namespace)) return { problem: describeBadName('POD_NAMESPACE', namespace, 'namespace') };
  const pod = readVariable(env, 'POD_NAME') || readVariable(env, 'HOSTNAME');
  if (!OBJECT_NAME.test(pod)) return { problem: describeBadName('POD_NAME', pod, 'name') };
  return { origin: url.origin, namespace, pod, token, tokenPath, ca, account: readAccount(token) };
}

/** The token as mounted now; blank if it cannot be read. */
export function readToken(tokenPath: string): string {
  return readText(tokenPath)?.trim() ?? '';
}

/** The text of a file; null if it cannot be read. */
export function readText(path: string): string | null {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return null;
  }
}

function describeBadName(variable: string, text: string, field: string): string {
  return `${variable} is "${text}"; set it from metadata.${field} by fieldRef`;
}

/** `NAMESPACE:NAME` from the subject of a JWT, which is no secret; null if it cannot be read. */
function readAccount(token: string): string | null {
  const payload = Buffer.from(token.split('.')[1] ?? '', 'base64url').toString('utf8');
  return /"sub"\s*:\s*"system:serviceaccount:([a-z0-9.-]+:[a-z0-9.-]+)"/.exec(payload)?.[1] ?? null;
}

function readVariable(env: Variables, name: string): string {
  return env[name]?.trim() ?? '';
}
