// The stand-in for Kubernetes' API server: TLS, bearer tokens, one pod, and every fault that a test wants.
// Its errors are recorded (fixtures/recordings/kubernetes-1.36.3).

import { writeFileSync } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer } from 'node:https';
import type { Socket } from 'node:net';
import { join } from 'node:path';
import type { PodEnvironment } from '../../src/pod/pod-reader.ts';
import { makeFolder } from '../support/folder.ts';
import { listen } from '../support/listen.ts';
import { readRecordedBody } from '../support/recording.ts';
import type { Authority, Certificate } from './authority.ts';

/** Answers one request that has a right token; `count` is how many came before it. */
export type ApiAnswerer = (request: IncomingMessage, response: ServerResponse, count: number) => void;

export type ApiServer = Awaited<ReturnType<typeof openApiServer>>;

type ApiServerOptions = {
  readonly authority: Authority;
  /** Default: one of the authority for 127.0.0.1. */
  readonly certificate?: Certificate;
  readonly answer: ApiAnswerer;
};

/** A token as the kubelet mounts it, as far as a client may look into it: the subject of a JWT. */
export function makeToken(name: string): string {
  const payload = { sub: 'system:serviceaccount:load-tests:watcher', jti: name };
  return `e30.${Buffer.from(JSON.stringify(payload)).toString('base64url')}.${name}`;
}

/** Opens the stand-in, with `makeToken('first')`; disposing destroys its connections and the account. */
export async function openApiServer({ authority, certificate, answer }: ApiServerOptions) {
  const accountFolder = makeFolder();
  const mount = (token: string) => writeFileSync(join(accountFolder, 'token'), `${token}\n`);
  let taken = makeToken('first');
  mount(taken);
  writeFileSync(join(accountFolder, 'ca.crt'), authority.ca);
  writeFileSync(join(accountFolder, 'namespace'), 'load-tests');
  const requests: string[] = [];
  const sockets = new Set<Socket>();
  let openedCount = 0;
  const server = createServer(certificate ?? authority.sign(['IP:127.0.0.1']), (request, response) => {
    const token = (request.headers.authorization ?? '').replace('Bearer ', '');
    requests.push(`${request.method} ${request.url} ${token.split('.').at(-1)}`);
    if (token !== taken) refuse(response, 401);
    else answer(request, response, requests.length - 1);
  });
  server.on('secureConnection', (socket) => {
    openedCount++;
    sockets.add(socket);
    socket.on('error', () => {});
    socket.on('close', () => sockets.delete(socket));
  });
  // A client that does not trust this server ends the handshake.
  server.on('tlsClientError', () => {});
  const port = await listen(server);
  return {
    env: { KUBERNETES_SERVICE_HOST: '127.0.0.1', KUBERNETES_SERVICE_PORT: `${port}`, HOSTNAME: 'load-x7k2p' },
    /** A service account as it is mounted: token, ca.crt, namespace. */
    accountFolder,
    /** `GET /path`, with the token's last word, of each request so far, refused ones too. */
    requests,
    connectionsCount: () => openedCount,
    /** Lets the server take this token, and no other; `isMounted`: the kubelet has brought it, too. */
    rotate(token: string, isMounted: boolean): void {
      taken = token;
      if (isMounted) mount(token);
    },
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** What a reader of the pod finds around it, with a clock that the test moves; no jitter, unless asked for. */
export function makePodEnvironment(accountFolder: string, jitter = 0) {
  let now = 1_000_000;
  const environment: PodEnvironment = {
    accountFolder,
    mountInfoPath: join(accountFolder, 'mountinfo'),
    nowMs: () => now,
    pause: async (ms) => {
      now += ms;
    },
    jitter: () => jitter,
  };
  return { environment, advance: (ms: number) => (now += ms), now: () => now };
}

/** Answers with a pod, or with anything else under 200. */
export function give(response: ServerResponse, body: string): void {
  response.writeHead(200, { 'content-type': 'application/json' }).end(body);
}

/** Answers as the real server refuses: with a Status. */
export function refuse(response: ServerResponse, status: 401 | 403 | 404): void {
  const body = readRecordedBody(`kubernetes-1.36.3/${status}.txt`);
  response.writeHead(status, { 'content-type': 'application/json', 'content-length': body.length }).end(body);
}
