// A program with its own /metrics, on loopback, that answers as a test says, byte for byte if need be; and one scrape of a front.

import { Agent, type IncomingHttpHeaders, request as openRequest } from 'node:http';
import type { Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { openPeer } from '../support/peer.ts';
import type { Watcher } from '../support/watcher.ts';

/** Answers one request; `number` counts from 1. */
export type Answer = (socket: Socket, number: number, accept?: string) => void;

/** A whole answer with its length; `headers`: further ones, or others. */
export function reply(body: string | Uint8Array, { status = 200, type = 'text/plain; version=0.0.4' } = {}): Answer {
  const bytes = Buffer.from(body);
  return (socket) => {
    const typeLine = type === '' ? '' : `Content-Type: ${type}\r\n`;
    const head = `HTTP/1.1 ${status} Status\r\n${typeLine}Content-Length: ${bytes.length}\r\n\r\n`;
    socket.write(Buffer.concat([Buffer.from(head), bytes]));
  };
}

export const hang: Answer = () => {};

export async function openSource(body: string | Uint8Array = 'job_rows_total 1\n') {
  const { requests, asked, ...peer } = await openPeer((socket, head, count) => {
    source.answer(socket, count + 1, /^accept: *(.*?)\r?$/im.exec(head)?.[1]);
  });
  const source = {
    ...peer,
    /** How the requests from now on are answered. */
    answer: reply(body),
    get requestsCount() {
      return requests.length;
    },
    /** Resolves when that many requests have come. */
    requests: asked,
  };
  return source;
}

/** What a client of the front got. `isWhole` false: the connection broke off. */
export type Scraped = {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly bytes: Buffer;
  readonly text: string;
  readonly isWhole: boolean;
};

export type ScrapeOptions = {
  readonly path?: string;
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** false: a person, whose scrapes do not count. */
  readonly isScraper?: boolean;
  /** Its connections; default: one that is closed after the answer. */
  readonly agent?: Agent;
  readonly signal?: AbortSignal;
};

/** A scrape as Prometheus sends it, over a connection of its own. Rejects where no answer begins. */
export function scrape(port: number, options: ScrapeOptions = {}): Promise<Scraped> {
  const { path = '/metrics', method = 'GET', headers = {}, agent = new Agent(), isScraper = true, signal } = options;
  const own = isScraper ? { 'user-agent': 'Prometheus/3.0', 'x-prometheus-scrape-timeout-seconds': '10' } : {};
  return new Promise((resolve, reject) => {
    const request = openRequest({
      host: '127.0.0.1',
      port,
      path,
      method,
      agent,
      headers: { ...own, ...headers },
      ...(signal === undefined ? {} : { signal }),
    });
    request.on('error', reject);
    request.on('response', (response) => {
      const pieces: Buffer[] = [];
      response.on('data', (piece: Buffer) => pieces.push(piece));
      response.on('error', () => {});
      response.on('close', () => {
        const bytes = Buffer.concat(pieces);
        const { statusCode: status = 0, complete: isWhole } = response;
        resolve({ status, headers: response.headers, bytes, text: bytes.toString(), isWhole });
      });
    });
    request.end();
  });
}

/** Scrapes as Prometheus does until that process ends: what comes late does not count. Returns what came first. */
export async function scrapeToTheEnd(port: number, { ended }: Watcher, timeoutSeconds = '10') {
  const ask = () => scrape(port, { headers: { 'x-prometheus-scrape-timeout-seconds': timeoutSeconds } });
  const first = await ask();
  while (!(await Promise.race([ended, delay(1_000)]))) await ask().catch(() => null);
  return { ...first, ...(await ended) };
}

/** The value of the one sample of a family that has no labels; undefined: it is missing. */
export function readValue(text: string, name: string): number | undefined {
  const found = new RegExp(`^${name} (\\S+)$`, 'm').exec(text);
  return found === null ? undefined : Number(found[1]);
}
