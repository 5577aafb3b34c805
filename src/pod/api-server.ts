// The API server, as a container finds it and asks it: over one TLS connection, with the account's token,
// which is read for each request since the kubelet renews it. Imported only where it is asked: TLS comes with
// it.

import { readFileSync } from 'node:fs';
import { dialTls, type Trust } from '../base/net/dial-tls.ts';
import { type Exchange, type ExchangeResult, openAnswer, openExchange } from '../base/net/exchange.ts';
import { type Environment, orNull, readVariable } from '../base/parse.ts';
import { USER_AGENT } from '../base/version.ts';

/** Of token, ca.crt and namespace (documentation, "Accessing the Kubernetes API from a Pod"). */
export const ACCOUNT_FOLDER = '/var/run/secrets/kubernetes.io/serviceaccount';

/** Kubernetes's objective is 99 % of such requests within 1 s (kubernetes/community, "API call latency"). */
const REQUEST_TIMEOUT_MS = 3_000;
/** A pod has about ten KB, with many containers and managers a hundred; etcd takes 1.5 MB at most. */
export const BODY_MAX_BYTES = 1024 * 1024;

/** Where the server is, with which token to ask it, and whom to trust. */
export type ApiServer = {
  /** Such as `https://10.96.0.1:443`. */
  readonly origin: string;
  readonly token: string;
  readonly tokenPath: string;
  /** The certificate authorities of the server, as PEM. */
  readonly ca: string;
};

/** `why`: what is; `problem`: what is; what to do. */
export type AddressProblem = { readonly why: string; readonly problem: string };

/** Reads where the server is, for each request: the kubelet renews the token. */
export function findApiServer(env: Environment, accountFolder: string): ApiServer | AddressProblem {
  const host = readVariable(env, 'KUBERNETES_SERVICE_HOST');
  if (host === '') return toProblem('KUBERNETES_SERVICE_HOST is not set', 'this must run in a pod of Kubernetes');
  const port = readVariable(env, 'KUBERNETES_SERVICE_PORT') || '443';
  const url = URL.parse(`https://${host.includes(':') ? `[${host}]` : host}:${port}`);
  if (url === null) {
    return toProblem(`KUBERNETES_SERVICE_HOST and _PORT are "${host}" and "${port}"`, 'must be a host and a port');
  }
  const tokenPath = `${accountFolder}/token`;
  const token = readToken(tokenPath);
  const ca = readText(`${accountFolder}/ca.crt`);
  if (token !== '' && ca !== null) return { origin: url.origin, token, tokenPath, ca };
  const advice = 'remove automountServiceAccountToken: false from the pod or its account';
  return toProblem(`no service account is mounted at ${accountFolder}`, advice);
}

export function toProblem(why: string, advice: string): AddressProblem {
  return { why, problem: `${why}; ${advice}` };
}

/** What the server answered. */
export type ApiAnswer = {
  readonly result: ExchangeResult;
  readonly body: string;
  /** From the header Retry-After; 0 without one. */
  readonly retryAfterMs: number;
  /** Node's code, if the server's certificate was rejected. */
  readonly distrust: string | null;
};

/** A request; `body`: JSON. */
type ApiRequest = { readonly method: 'GET' | 'POST'; readonly path: string; readonly body?: string };

/** Opens a client of the server: one request at a time over one TLS connection. */
export function openApiClient() {
  let exchange: Exchange | null = null;
  const trust: Trust = { authorities: '', distrust: null };
  const dial = dialTls(trust);

  async function send({ origin, ca, token }: ApiServer, { method, path, body }: ApiRequest, signal?: AbortSignal) {
    trust.authorities = ca;
    trust.distrust = null;
    exchange ??= openExchange(new URL(origin), dial);
    const answer = openAnswer(BODY_MAX_BYTES);
    const result = await exchange.send({
      method,
      path,
      headers: {
        accept: 'application/json',
        authorization: `Bearer ${token}`,
        'user-agent': USER_AGENT,
        ...(body !== undefined && { 'content-type': 'application/json' }),
      },
      ...(body !== undefined && { body: Buffer.from(body) }),
      timeoutMs: REQUEST_TIMEOUT_MS,
      signal,
      ...answer.callbacks,
    });
    const { text, retryAfterMs } = answer.end();
    return { result, body: text, retryAfterMs, distrust: trust.distrust };
  }

  return {
    /** Asks once, and again if the kept connection had ended or the token was just renewed; never rejects. */
    async ask(address: ApiServer, request: ApiRequest, signal?: AbortSignal): Promise<ApiAnswer> {
      const answer = await send(address, request, signal);
      if (answer.result.kind === 'dropped') return send(address, request, signal);
      if (answer.result.kind !== 'answered' || answer.result.status !== 401) return answer;
      const token = readToken(address.tokenPath);
      return token === '' || token === address.token ? answer : send({ ...address, token }, request, signal);
    },
    close: async () => exchange?.close(),
  };
}

/** The token as mounted now; blank if it cannot be read. */
function readToken(tokenPath: string): string {
  return readText(tokenPath)?.trim() ?? '';
}

/** The text of a file; null if it cannot be read. */
export function readText(path: string): string | null {
  return orNull(() => readFileSync(path, 'utf8'));
}
