// Who a pod is, by its token: asks the API server (TokenReview), and remembers the newest answers. Decides
// nothing else.

import { createHash } from 'node:crypto';
import { at, parseObject, toText, toTexts } from '../base/json.ts';
import type { Environment } from '../base/parse.ts';
import { ACCOUNT_FOLDER, findApiServer, openApiClient } from '../pod/api-server.ts';
import { readStatusMessage } from '../pod/pod-status.ts';
import { type ProvenPod, Refused } from './request.ts';

/** What a token must be for: no other service can use it, and no other's token is taken. */
export const AUDIENCE = 'lastscrape';

/** How long an answer is believed: a pod that is refused tries again. */
const CACHED_MS = 10_000;
const CACHED_MAX_COUNT = 1_000;
/** Longer ones are no tokens of service accounts. */
const TOKEN_MAX_LENGTH = 8_192;
const SERVER_TIMEOUT_MS = 1_500;

export type Review = ReturnType<typeof openReview>;

/** Opens it; each that is asked at a time has a connection. `accountFolder`: for tests. */
export function openReview(env: Environment, nowMs: () => number, accountFolder = ACCOUNT_FOLDER) {
  const idle: ReturnType<typeof openApiClient>[] = [];
  const cache = new Map<string, { readonly atMs: number; readonly answer: Promise<ProvenPod | Refused> }>();

  async function ask(token: string): Promise<ProvenPod | Refused> {
    const server = findApiServer(env, accountFolder);
    if ('problem' in server) return new Refused('unchecked', server.why);
    const kind = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenReview' };
    const body = JSON.stringify({ ...kind, spec: { token, audiences: [AUDIENCE] } });
    const request = { method: 'POST', path: '/apis/authentication.k8s.io/v1/tokenreviews', body } as const;
    const client = idle.pop() ?? openApiClient();
    const { result, distrust, ...answer } = await client.ask(server, request, AbortSignal.timeout(SERVER_TIMEOUT_MS));
    idle.push(client);
    if (result.kind === 'answered' && result.status === 201) return readReview(answer.body);
    const status = result.kind === 'answered' ? `HTTP ${result.status} ${readStatusMessage(answer.body)}` : result.kind;
    return new Refused('unchecked', `the API server: ${distrust ?? status}`.trim().slice(0, 200));
  }

  return {
    /** The pod that the token is of. @throws Refused */
    async prove(token: string): Promise<ProvenPod> {
      if (!isForKeeper(token)) throw new Refused('anonymous', `for the audience "${AUDIENCE}"`);
      const key = createHash('sha256').update(token).digest('base64');
      const known = cache.get(key);
      const isNew = known === undefined || nowMs() - known.atMs > CACHED_MS;
      const own = isNew ? { atMs: nowMs(), answer: ask(token) } : known;
      cache.set(key, own);
      const [oldest = ''] = cache.keys();
      if (cache.size > CACHED_MAX_COUNT) cache.delete(oldest);
      const answer = await own.answer;
      if (!(answer instanceof Refused)) return answer;
      // The server may answer the next time.
      if (answer.reason === 'unchecked') cache.delete(key);
      throw answer;
    },
    /** Whether the server can be asked at all: why not, or null. Asks it about a token that is none. */
    async findProblem(): Promise<string | null> {
      const found = await ask('none');
      return found instanceof Refused && found.reason === 'unchecked' ? found.message : null;
    },
    close: async () => void (await Promise.all(idle.map(({ close }) => close()))),
  };
}

/** Whether it says that it is for a keeper: what does not is not shown to the API server. */
function isForKeeper(token: string): boolean {
  if (token.length > TOKEN_MAX_LENGTH || !/^[\w-]+\.[\w-]+\.[\w-]+$/.test(token)) return false;
  const payload = parseObject(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString('utf8'));
  const audiences = payload?.['aud'];
  return audiences === AUDIENCE || toTexts(audiences).includes(AUDIENCE);
}

/**
 * What the server says of a token (k8s.io/api/authentication/v1, TokenReviewStatus; the names of `extra`:
 * k8s.io/apiserver/pkg/authentication/serviceaccount/util.go).
 */
function readReview(body: string): ProvenPod | Refused {
  const status = at(parseObject(body) ?? {}, 'status');
  const isProven = status['authenticated'] === true && toTexts(status['audiences']).includes(AUDIENCE);
  const why = toText(status['error']).slice(0, 200) || 'the API server does not take it';
  if (!isProven) return new Refused('unproven', why);
  const user = at(status, 'user');
  const extra = (name: string) => toTexts(at(user, 'extra')[`authentication.kubernetes.io/${name}`])[0] ?? '';
  const [, namespace] = /^system:serviceaccount:([a-z0-9-]+):[a-z0-9.-]+$/.exec(toText(user['username'])) ?? [];
  const pod = { name: extra('pod-name'), uid: extra('pod-uid'), node: extra('node-name') };
  const isPod = namespace !== undefined && pod.name !== '' && pod.uid !== '';
  return isPod ? { namespace, ...pod } : new Refused('unproven', 'it is not the token of a pod');
}
