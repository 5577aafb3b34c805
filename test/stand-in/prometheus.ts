// A stand-in for Prometheus: scrapes one target at an interval over a kept connection, with the headers of
// exporter-0.5/15-prometheus-scrape-request, and keeps each series' last value. A failure stores only up 0.

import { Agent, request } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { gunzipSync } from 'node:zlib';

export type ScrapeResult = {
  /** From 1. */
  readonly number: number;
  /** Why nothing was stored, in Prometheus's words where it has some; absent if all went well. */
  readonly failure?: string;
};

type PrometheusOptions = {
  /** The target with its path, such as `http://127.0.0.1:9646/metrics`; asked for before each scrape. */
  readonly url: string | (() => string);
  /** From the start of a scrape to the next, and its time limit. A late scrape is skipped. */
  readonly intervalMs: number;
  /** When the first scrape begins, from now; default 0. A real one chooses its own phase. */
  readonly offsetMs?: number;
  readonly onScrape?: (result: ScrapeResult) => void;
};

export type Prometheus = ReturnType<typeof openPrometheus>;

/** As recorded. */
const USER_AGENT = 'Prometheus/2.42.0+ds';
const ACCEPT =
  'application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,' +
  'text/plain;version=0.0.4;q=0.5,*/*;q=0.1';

/** Starts scraping and returns at once. */
export function openPrometheus(options: PrometheusOptions) {
  const { url, intervalMs, offsetMs = 0, onScrape } = options;
  const closes = new AbortController();
  const series = new Map<string, number>();
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const openedMs = performance.now();

  async function scrapeForever(): Promise<void> {
    for (let turn = 0, number = 1; ; number += 1) {
      await sleep(Math.max(0, openedMs + offsetMs + turn * intervalMs - performance.now()), undefined, {
        signal: closes.signal,
      });
      const failure = await scrapeOnce();
      if (closes.signal.aborted) return;
      series.set('up', failure === undefined ? 1 : 0);
      onScrape?.({ number, ...(failure === undefined ? {} : { failure }) });
      turn = Math.max(turn + 1, Math.ceil((performance.now() - openedMs - offsetMs) / intervalMs));
    }
  }

  /** Stores what it read; returns why it could not. */
  async function scrapeOnce(): Promise<string | undefined> {
    try {
      const signal = AbortSignal.any([closes.signal, AbortSignal.timeout(intervalMs)]);
      const text = await readTarget(new URL(typeof url === 'string' ? url : url()), agent, signal, intervalMs);
      for (const [name, value] of readSamples(text)) series.set(name, value);
      return undefined;
    } catch (error) {
      if (!(error instanceof Error)) return String(error);
      return error.name === 'AbortError' ? 'context deadline exceeded' : error.message || String(error);
    }
  }

  scrapeForever().catch((error: unknown) => {
    if (!closes.signal.aborted) throw error;
  });

  async function close(): Promise<void> {
    closes.abort();
    agent.destroy();
  }

  return {
    /** The newest value of the series that the target writes like this; `up` is Prometheus's own. */
    last: (name: string): number | undefined => series.get(name),
    /** Stops scraping and cuts what is in flight. */
    close,
    [Symbol.asyncDispose]: close,
  };
}

/** The last value of each series. @throws at a line that is neither a sample nor a comment: the body is refused */
function readSamples(text: string): [series: string, value: number][] {
  if (!text.endsWith('\n')) throw new Error('unexpected EOF');
  const lines = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
  return lines.map((line) => {
    const [, series, value] = /^([a-zA-Z_:][\w:]*(?:\{.*\})?) ([-+.\w]+)$/.exec(line) ?? [];
    if (series === undefined) throw new Error(`expected a sample: ${line}`);
    return [series, Number(value)];
  });
}

function readTarget(url: URL, agent: Agent, signal: AbortSignal, timeoutMs: number): Promise<string> {
  return new Promise((resolve, reject) => {
    const scrape = request(url, {
      agent,
      signal,
      setHost: false,
      headers: {
        Host: url.host,
        'User-Agent': USER_AGENT,
        Accept: ACCEPT,
        'Accept-Encoding': 'gzip',
        'X-Prometheus-Scrape-Timeout-Seconds': String(timeoutMs / 1_000),
      },
    });
    // Go keeps the connection without saying so.
    scrape.removeHeader('Connection');
    scrape.on('error', (error: NodeJS.ErrnoException) => {
      if (scrape.reusedSocket && error.code === 'ECONNRESET') {
        readTarget(url, agent, signal, timeoutMs).then(resolve, reject);
      } else reject(error);
    });
    scrape.on('response', (response) => {
      const chunks: Buffer[] = [];
      response.on('error', () => reject(new Error('unexpected EOF')));
      response.on('end', () => {
        if (response.statusCode !== 200) {
          return reject(new Error(`server returned HTTP status ${response.statusCode} ${response.statusMessage}`));
        }
        try {
          const bytes = Buffer.concat(chunks);
          resolve(String(response.headers['content-encoding'] === 'gzip' ? gunzipSync(bytes) : bytes));
        } catch (error) {
          reject(error);
        }
      });
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
    });
    scrape.end();
  });
}
