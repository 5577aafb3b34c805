// A stand-in for Prometheus: scrapes one target at a fixed interval, over one kept-alive connection and with
// the headers of the recording exporter-0.5/15-prometheus-scrape-request, and remembers the
// last sample of each series. A scrape that fails in any way stores nothing but up 0.

import { Agent, request } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { gunzipSync } from 'node:zlib';

/** What a series has last. */
export type StoredSample = {
  readonly value: number;
  /** When its scrape began, on the clock of `performance.now()`. */
  readonly atMs: number;
};

/** The end of one scrape. */
export type ScrapeResult = {
  /** From 1. */
  readonly number: number;
  readonly atMs: number;
  readonly tookMs: number;
  /** Why nothing was stored, in Prometheus's words where it has some; absent if all went well. */
  readonly failure?: string;
};

export type PrometheusOptions = {
  /** The target with its path: `http://127.0.0.1:9646/metrics`. */
  readonly url: string;
  /**
   * From the start of a scrape to the start of the next, and its time limit. A late scrape is skipped.
   */
  readonly intervalMs: number;
  /** When the first scrape begins, from now; default 0. A real one chooses its own phase. */
  readonly offsetMs?: number;
  readonly onScrape?: (result: ScrapeResult) => void;
};

export type Prometheus = AsyncDisposable & {
  /**
   * The newest sample of the series with exactly these labels; `undefined` if there was never one. `up` is
   * Prometheus's own.
   */
  lastSample(name: string, labels?: Readonly<Record<string, string>>): StoredSample | undefined;
  /** Stops scraping and cuts what is in flight. */
  close(): Promise<void>;
};

/** As recorded. */
const USER_AGENT = 'Prometheus/2.42.0+ds';
const ACCEPT =
  'application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,' +
  'text/plain;version=0.0.4;q=0.5,*/*;q=0.1';

/** Starts scraping and returns at once. */
export function openPrometheus(options: PrometheusOptions): Prometheus {
  const { url, intervalMs, offsetMs = 0, onScrape } = options;
  const closes = new AbortController();
  const series = new Map<string, StoredSample>();
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const openedMs = performance.now();

  async function scrapeForever(): Promise<void> {
    for (let turn = 0, number = 1; ; number += 1) {
      await sleep(Math.max(0, openedMs + offsetMs + turn * intervalMs - performance.now()), undefined, {
        signal: closes.signal,
      });
      const atMs = performance.now();
      const failure = await scrapeOnce(atMs);
      if (closes.signal.aborted) return;
      series.set(seriesKey('up', {}), { value: failure === undefined ? 1 : 0, atMs });
      const nowMs = performance.now();
      onScrape?.({ number, atMs, tookMs: nowMs - atMs, ...(failure === undefined ? {} : { failure }) });
      turn = Math.max(turn + 1, Math.ceil((nowMs - openedMs - offsetMs) / intervalMs));
    }
  }

  /** Stores what it read; returns why it could not. */
  async function scrapeOnce(atMs: number): Promise<string | undefined> {
    try {
      const signal = AbortSignal.any([closes.signal, AbortSignal.timeout(intervalMs)]);
      const text = await readTarget(new URL(url), agent, signal, intervalMs);
      for (const { name, labels, value } of readSamples(text)) series.set(seriesKey(name, labels), { value, atMs });
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
    lastSample: (name, labels = {}) => series.get(seriesKey(name, labels)),
    close,
    [Symbol.asyncDispose]: close,
  };
}

/** One line of an exposition. */
export type ExposedSample = {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
};

/**
 * Reads the sample lines of the text format 0.0.4: lines end at a line feed only, comments are left out.
 * @throws at the first line that is neither, or at a missing final line feed, as Prometheus refuses the whole
 * body.
 */
export function readSamples(text: string): ExposedSample[] {
  if (!text.endsWith('\n')) throw new Error('unexpected EOF');
  const lines = text.slice(0, -1).split('\n');
  return lines.filter((line) => line !== '' && !line.startsWith('#')).map(readSample);
}

const LABEL = /([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\]|\\.)*)",?/sy;

function readSample(line: string): ExposedSample {
  const name = /^[a-zA-Z_:][a-zA-Z0-9_:]*/.exec(line)?.[0] ?? '';
  const labels: Record<string, string> = {};
  let at = name.length;
  if (line[at] === '{') {
    at += 1;
    while (line[at] !== '}') {
      LABEL.lastIndex = at;
      const match = LABEL.exec(line);
      if (match === null) throw new Error(`expected label at ${at}`);
      labels[match[1] ?? ''] = unescapeLabelValue(match[2] ?? '');
      at = LABEL.lastIndex;
    }
    at += 1;
  }
  const value = readGoFloat(line.slice(at).trim().split(' ')[0] ?? '');
  if (name === '' || value === undefined) throw new Error('expected a sample');
  return { name, labels, value };
}

function unescapeLabelValue(text: string): string {
  return text.replace(/\\(.)/gs, (_, char: string) => (char === 'n' ? '\n' : char));
}

function readGoFloat(text: string): number | undefined {
  if (text === 'NaN') return Number.NaN;
  if (text === '+Inf') return Number.POSITIVE_INFINITY;
  if (text === '-Inf') return Number.NEGATIVE_INFINITY;
  return /^[-+]?\d+(\.\d+)?(e[-+]?\d+)?$/i.test(text) ? Number(text) : undefined;
}

function seriesKey(name: string, labels: Readonly<Record<string, string>>): string {
  return JSON.stringify([name, Object.entries(labels).toSorted(([a], [b]) => (a < b ? -1 : 1))]);
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
