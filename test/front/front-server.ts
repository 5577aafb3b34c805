// The front's server on a free port of loopback, with answers that a test gives and a clock that it may turn.
import type { Clock } from '../../src/base/waits.ts';
import type { ScraperRequest } from '../../src/decide/serve/scrapers.ts';
import { SERVER_LIMITS, type ServerLimits } from '../../src/front/listen.ts';
import {
  openServer,
  type ScrapeAnswer,
  type ScrapeRequest,
  type Served,
  type Server,
  type ServerParts,
  type Unavailable,
} from '../../src/front/server.ts';
import { openRawClient, type RawClient } from './raw-client.ts';

export const REAL_CLOCK: Clock = {
  nowMs: () => performance.now(),
  after(ms, callback) {
    const timer = setTimeout(callback, ms);
    return () => clearTimeout(timer);
  },
};

export type FrontServer = Server & {
  /** A connection to it, on which `text` is sent. */
  readonly dial: (text?: string, options?: Parameters<typeof openRawClient>[1]) => Promise<RawClient>;
  /** The requests of scrapers that it announced. */
  readonly seen: readonly ScraperRequest[];
  readonly served: readonly Served[];
  readonly requests: readonly ScrapeRequest[];
  readonly servedCount: (count: number) => Promise<void>;
  readonly requestedCount: (count: number) => Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
};

type ServerAnswer = ScrapeAnswer | Unavailable;

export function answerOf(pieces: readonly (string | Uint8Array)[], sizeBytes: number | null = null) {
  async function* read() {
    for (const piece of pieces) yield typeof piece === 'string' ? Buffer.from(piece) : piece;
  }
  return { kind: 'body', body: { read, sizeBytes } } as const;
}

export async function openFrontServer(
  answer: (request: ScrapeRequest, count: number) => ServerAnswer | Promise<ServerAnswer>,
  options: Partial<Pick<ServerParts, 'clock' | 'snapshot' | 'paths' | 'quitPath'>> & {
    readonly limits?: Partial<ServerLimits>;
    readonly host?: string | null;
  } = {},
): Promise<FrontServer> {
  const seen: ScraperRequest[] = [];
  const served: Served[] = [];
  const requests: ScrapeRequest[] = [];
  const events = new EventTarget();
  async function reach(list: readonly unknown[], count: number): Promise<void> {
    while (list.length < count)
      await new Promise((resolve) => events.addEventListener('event', resolve, { once: true }));
  }
  const opened = await openServer(
    { host: options.host === undefined ? '127.0.0.1' : options.host, port: 0 },
    {
      paths: options.paths ?? ['/metrics'],
      ...(options.quitPath === undefined ? {} : { quitPath: options.quitPath }),
      clock: options.clock ?? REAL_CLOCK,
      snapshot: options.snapshot ?? (async () => ({ kind: 'kept' })),
      async answer(request) {
        requests.push(request);
        events.dispatchEvent(new Event('event'));
        return answer(request, requests.length - 1);
      },
      onRequest(each) {
        seen.push(each);
      },
      onServed(each) {
        served.push(each);
        events.dispatchEvent(new Event('event'));
      },
    },
    { ...SERVER_LIMITS, ...options.limits },
  );
  if (opened.kind === 'failed') throw new Error(opened.problem);
  const { server } = opened;
  return {
    port: server.port,
    async dial(text = '', options = {}) {
      const client = await openRawClient(server.port, options);
      client.send(text);
      return client;
    },
    inFlightCount: server.inFlightCount,
    settle: server.settle,
    retire: server.retire,
    close: server.close,
    seen,
    served,
    requests,
    servedCount: (count) => reach(served, count),
    requestedCount: (count) => reach(requests, count),
    [Symbol.asyncDispose]: server.close,
  };
}

/** Resolves when a request was given up. */
export async function aborted(signal: AbortSignal | undefined): Promise<void> {
  if (signal?.aborted) return;
  await new Promise((resolve) => signal?.addEventListener('abort', resolve));
}

/** The head of a scrape by Prometheus, with further header lines. */
export function scrapeHead(...lines: readonly string[]): string {
  return ['GET /metrics HTTP/1.1', 'Host: x', 'User-Agent: Prometheus/3.0', ...lines, `${TIMEOUT_LINE}\r\n\r\n`].join(
    '\r\n',
  );
}

const TIMEOUT_LINE = 'X-Prometheus-Scrape-Timeout-Seconds: 10';
