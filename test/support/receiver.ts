// A receiver of pushes and webhooks: a real HTTP or HTTPS server on loopback, which keeps what came.

import { createServer as createHttpServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { createServer as createHttpsServer } from 'node:https';
import type { Server } from 'node:net';
import type { Certificate } from '../stand-in/authority.ts';
import { listen } from './listen.ts';

/** A request that came whole. */
export type Seen = {
  readonly method: string;
  readonly url: string;
  readonly headers: IncomingMessage['headers'];
  body: string;
};
/** What came so far, in its order. */
export type Receiver = AsyncDisposable & { readonly port: number; readonly seen: Seen[] };
/** Answers a request; `count`: how many came before it. */
export type Answer = (response: ServerResponse, seen: Seen, count: number) => void;

const OK: Answer = (response) => response.end('ok');

async function open(server: Server, seen: Seen[]): Promise<Receiver> {
  return {
    port: await listen(server),
    seen,
    async [Symbol.asyncDispose]() {
      (server as unknown as { closeAllConnections(): void }).closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

function takeRequests(seen: Seen[], answer: Answer) {
  return (request: IncomingMessage, response: ServerResponse) => {
    const one: Seen = { method: request.method ?? '', url: request.url ?? '', headers: request.headers, body: '' };
    request.setEncoding('utf8').on('data', (text: string) => {
      one.body += text;
    });
    request.on('end', () => {
      seen.push(one);
      answer(response, one, seen.length - 1);
    });
  };
}

export function openHttp(answer: Answer = OK): Promise<Receiver> {
  const seen: Seen[] = [];
  return open(createHttpServer(takeRequests(seen, answer)), seen);
}

export function openHttps(certificate: Certificate, answer: Answer = OK): Promise<Receiver> {
  const seen: Seen[] = [];
  return open(createHttpsServer(certificate, takeRequests(seen, answer)), seen);
}
