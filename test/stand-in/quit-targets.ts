// Stand-ins for the targets that no registry has: what their quit endpoints do, a row each, from the source
// that it cites; dapr plays recordings. One "ends" by closing its ports as the original does.
import { readFileSync } from 'node:fs';
import { createServer, type IncomingMessage } from 'node:http';
import type { Server } from 'node:net';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { listen } from '../support/listen.ts';

/** What it answers; `ends`: the request makes it end. */
type Said = { readonly status: number; readonly body?: string; readonly ends?: boolean };

type Setup = {
  readonly isEnabled: boolean;
  /** Of dapr; null: no token is wanted. */
  readonly token: string | null;
};

export type StandIn = {
  readonly preset: string;
  /** What the row was written from, as the README names it. */
  readonly from: string;
  /** Its quit port is closed where quitting is switched off. */
  readonly isPortClosedWhenOff: boolean;
  /** It has a second port that closes last. */
  readonly hasService: boolean;
  /** From the request to the end of its service, shortened: the order counts. */
  readonly drainMs: number;
  readonly answer: (request: IncomingMessage, setup: Setup, isEnding: boolean) => Said;
};

const RECORDINGS = join(import.meta.dirname, '../../fixtures/recordings/quit-endpoints');

function recorded(file: string): Said {
  const text = readFileSync(join(RECORDINGS, file), 'latin1');
  const [head = '', ...body] = text.split('\r\n\r\n');
  return { status: Number(/^HTTP\/1\.1 (\d+)/.exec(head)?.[1]), body: body.join('\r\n\r\n') };
}

export const STAND_INS: readonly StandIn[] = [
  {
    // istio/istio, pilot/cmd/pilot-agent/status/server.go (handleQuit): 405 but for POST, 200 "OK", then the
    // status server closes; pkg/envoy/agent.go (terminate): Envoy drains for 5 s and is ended.
    preset: 'istio',
    from: 'the source of pilot-agent',
    isPortClosedWhenOff: true,
    hasService: true,
    drainMs: 300,
    answer({ method, url }) {
      if (url !== '/quitquitquit') return { status: 404, body: '404 page not found\n' };
      if (method !== 'POST') return { status: 405, body: 'Method Not Allowed\n' };
      return { status: 200, body: 'OK', ends: true };
    },
  },
  {
    // linkerd/linkerd2-proxy, linkerd/app/admin/src/server.rs (shutdown): 405, 404 with a text where it is
    // off, 200, 500 for a second request; stack.rs: takes no more connections once it drains.
    preset: 'linkerd',
    from: 'the source of linkerd2-proxy',
    isPortClosedWhenOff: false,
    hasService: false,
    drainMs: 0,
    answer({ method, url }, { isEnabled }, isEnding) {
      if (url !== '/shutdown') return { status: 404 };
      if (method !== 'POST') return { status: 405 };
      if (!isEnabled) return { status: 404, body: 'shutdown endpoint is not enabled\n' };
      if (isEnding) return { status: 500, body: 'shutdown listener dropped\n' };
      return { status: 200, body: 'shutdown\n', ends: true };
    },
  },
  {
    // hashicorp/consul-dataplane, pkg/consuldp/lifecycle.go (gracefulShutdownHandler): any method, 200 at
    // once, then the grace period, then Envoy ends, and the process with its lifecycle server.
    preset: 'consul-dataplane',
    from: 'the source of consul-dataplane',
    isPortClosedWhenOff: true,
    hasService: true,
    drainMs: 300,
    answer: ({ url }) =>
      url === '/graceful_shutdown' ? { status: 200, ends: true } : { status: 404, body: '404 page not found\n' },
  },
  {
    // hashicorp/vault, command/agent.go (handleQuit, verifyRequestHeader): 412 without X-Vault-Request, 404
    // where it is off, 405, else an empty 200.
    preset: 'vault-agent',
    from: 'the source of Vault Agent',
    isPortClosedWhenOff: false,
    hasService: false,
    drainMs: 0,
    answer({ method, url, headers }, { isEnabled }) {
      if (headers['x-vault-request'] !== 'true') return { status: 412, body: '{"errors":["missing header"]}\n' };
      if (url !== '/agent/v1/quit' || !isEnabled) return { status: 404 };
      return method === 'POST' ? { status: 200, ends: true } : { status: 405 };
    },
  },
  {
    // fixtures/recordings/quit-endpoints/daprd: dapr 1.14.0.
    preset: 'dapr',
    from: 'recordings of dapr 1.14.0',
    isPortClosedWhenOff: false,
    hasService: false,
    drainMs: 0,
    answer({ method, url, headers }, { token }) {
      if (token !== null && headers['dapr-api-token'] !== token) return recorded('daprd/token-missing.txt');
      if (url !== '/v1.0/shutdown') return recorded('daprd/wrong-path-quitquitquit.txt');
      if (method !== 'POST') return recorded('daprd/get-wrong-method.txt');
      return { ...recorded('daprd/post-shutdown.txt'), ends: true };
    },
  },
];

export type Running = Awaited<ReturnType<typeof startStandIn>>;

/**
 * Starts a stand-in on loopback; disposing of it closes what is still open. Ports: of its quit endpoint and of
 * its service; default: free ones.
 */
export async function startStandIn(standIn: StandIn, setup: Setup, ports: readonly [number, number] = [0, 0]) {
  const requests: string[] = [];
  const { promise: ended, resolve: onEnd } = Promise.withResolvers<void>();
  const stop = new AbortController();
  let isEnding = false;
  const service = createServer((_, response) => response.end());
  const quit = createServer((request, response) => {
    requests.push(`${request.method} ${request.url}`);
    const said = standIn.answer(request, setup, isEnding);
    response.writeHead(said.status, { connection: 'close' });
    response.end(said.body);
    if (said.ends !== true || isEnding) return;
    isEnding = true;
    response.once('close', () => void end());
  });
  const servers: Server[] = standIn.hasService ? [quit, service] : [quit];
  // pilot-agent's status port closes first, consul-dataplane's together with the rest.
  async function end(): Promise<void> {
    if (standIn.preset === 'istio') await close(quit);
    await delay(standIn.drainMs, undefined, { signal: stop.signal }).catch(() => {});
    await Promise.all(servers.map(close));
    onEnd();
  }
  const isQuitOpen = setup.isEnabled || !standIn.isPortClosedWhenOff;
  const [quitPort = 0, servicePort = quitPort] = await Promise.all(
    servers.map((server, index) => listen(server, '127.0.0.1', ports[index])),
  );
  if (!isQuitOpen) await close(quit);
  return {
    quitPort,
    /** The same as the quit port where it has no other. */
    servicePort,
    /** Method and path of the requests to its quit port, in order. */
    requests,
    ended,
    async [Symbol.asyncDispose]() {
      stop.abort();
      await Promise.all(servers.map(close));
    },
  };
}

function close(server: Server): Promise<void> {
  if (!server.listening) return Promise.resolve();
  return new Promise((resolve) => server.close(() => resolve()));
}
