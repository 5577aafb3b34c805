// Scrapers of the front, with what Node would show the server of their connections. A scraper knows by itself
// what it took.

import { EventEmitter } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { readPageType } from '../../../src/exposition/format.ts';
import type { FrontAnswer } from '../../../src/front/answers.ts';
import { openRoutes, type openServer, settleConnections } from '../../../src/front/server.ts';
import { type Page, readPageBytes } from './page.ts';
import type { Random, World } from './world.ts';

export type ScraperPlan = {
  readonly address: string;
  readonly agent: string;
  /** The formats that it asks for; absent: any. */
  readonly accept?: string | undefined;
  /** It sends how long it waits. */
  readonly hasHeader: boolean;
  readonly timeoutMs: number;
  readonly intervalMs: number;
  readonly firstMs: number;
  /** It is gone from here on. */
  readonly untilMs: number;
  readonly keeps: boolean;
  /** How often a scrape is reset, or its answer not read. */
  readonly faultsProbability: number;
};

/** One scrape, as the scraper saw it. */
export type Scrape = {
  readonly plan: ScraperPlan;
  readonly sentAtMs: number;
  /** When the server saw it; null: never. */
  arrivedAtMs: number | null;
  /** When it ended for the scraper; null: not yet. */
  endedAtMs: number | null;
  /** `closed`: the front reset it. */
  end: 'whole' | 'timedOut' | 'reset' | 'refused' | 'closed' | null;
  status: number;
  /** What it got whole, and could read. */
  page: Page | null;
  /** It does not read, or resets: nothing can be expected of it. */
  readonly isFaulty: boolean;
};

type Serving = Pick<ReturnType<typeof openRoutes>, 'connections' | 'onRequest'>;

/** Where the scrapers connect to. */
export type Port = { serving: Serving | null };

/** Starts to scrape at its time; every scrape is added to `scrapes`. */
export function startScraper(world: World, random: Random, port: Port, plan: ScraperPlan, scrapes: Scrape[]): void {
  let socket: VirtualSocket | null = null;
  let current: Scrape | null = null;

  function scrape(): void {
    if (world.nowMs() >= plan.untilMs) return;
    world.outside(world.nowMs() + plan.intervalMs, scrape);
    if (current !== null && current.end === null) return;
    const fault = random.chance(plan.faultsProbability) ? random.pick(['reset', 'deaf'] as const) : null;
    current = {
      plan,
      sentAtMs: world.nowMs(),
      arrivedAtMs: null,
      endedAtMs: null,
      end: null,
      status: 0,
      page: null,
      isFaulty: fault !== null,
    };
    scrapes.push(current);
    send(current, fault);
  }

  function send(now: Scrape, fault: 'reset' | 'deaf' | null): void {
    const { serving } = port;
    const end = (how: Scrape['end'], text = how) => {
      if (now.end !== null) return;
      now.end = how;
      now.endedAtMs = world.nowMs();
      for (const cancel of cancels) cancel();
      world.tell(() => `${plan.address} ${plan.agent}: ${text}`);
    };
    const cancels: (() => void)[] = [];
    if (serving === null) {
      end('refused');
      return;
    }
    const isLost = world.isCutOff();
    const isNew = socket === null || socket.destroyed || !plan.keeps;
    const used: VirtualSocket = socket === null || isNew ? new VirtualSocket(plan.address) : socket;
    socket = used;
    if (isNew && !isLost) connect(used, serving);
    else if (isLost) used.on('error', () => {});
    used.onReset = () => end('closed');
    const response = new VirtualResponse(world, used, fault === 'deaf', (status, type, bytes) => {
      now.status = status;
      if (status === 200) now.page = readPageBytes(readPageType(type)?.format ?? 'text', bytes);
      end('whole', `got ${status} ${status === 200 ? type : bytes}`.trim() as 'whole');
      if (!plan.keeps) used.hangUp(world, false);
    });
    world.deliver(() => {
      if (used.destroyed || isLost) return;
      now.arrivedAtMs = world.nowMs();
      const headers = {
        'user-agent': plan.agent,
        ...(plan.accept !== undefined && { accept: plan.accept }),
        ...(plan.hasHeader && { 'x-prometheus-scrape-timeout-seconds': String(plan.timeoutMs / 1000) }),
      };
      serving.onRequest(buildRequest(used, 'GET', '/metrics', headers), response as unknown as ServerResponse);
    });
    cancels.push(
      world.outside(now.sentAtMs + (fault === 'reset' ? random.between(0, 50) : plan.timeoutMs), () => {
        used.hangUp(world, fault === 'reset');
        end(fault === 'reset' ? 'reset' : 'timedOut');
      }),
    );
  }

  function connect(opened: VirtualSocket, serving: Serving): void {
    world.deliver(() => {
      // In the backlog of a server that has closed.
      if (port.serving === null) opened.destroy();
      else serving.connections.accept(opened as unknown as Socket);
    });
  }

  world.outside(plan.firstMs, scrape);
}

function buildRequest(socket: VirtualSocket, method: string, url: string, headers: Readonly<Record<string, string>>) {
  const request = { method, url, httpVersion: '1.1', headers, socket, resume() {}, on() {} };
  return request as unknown as IncomingMessage;
}

/** Main's last word: a call of /-/snapshot. */
export function callSnapshot(world: World, { serving }: Port): void {
  if (serving === null) return;
  const call = { method: 'POST', path: '/-/snapshot', headers: {} };
  sendRequest(world, serving, call, (status) => world.tell(() => `the snapshot: ${status}`));
}

/** One request from loopback, over a connection of its own. @returns the connection */
export function sendRequest(
  world: World,
  serving: Serving,
  { method, path, headers }: { method: string; path: string; headers: Readonly<Record<string, string>> },
  onWhole: OnWhole,
): VirtualSocket {
  const socket = new VirtualSocket('127.0.0.1');
  const response = new VirtualResponse(world, socket, false, onWhole);
  world.deliver(() => {
    serving.connections.accept(socket as unknown as Socket);
    serving.onRequest(buildRequest(socket, method, path, headers), response as unknown as ServerResponse);
  });
  return socket;
}

/** What listens on a virtual port, for a front. */
export function listenOn(port: Port): typeof openServer<FrontAnswer> {
  return async (at, parts) => {
    const serving = openRoutes(parts);
    port.serving = serving;
    return {
      kind: 'listening',
      server: {
        port: at.port,
        inFlightCount: serving.inFlightCount,
        settle: () => settleConnections(serving.connections),
        retire() {
          port.serving = null;
          serving.connections.closeAll('the front closes');
        },
        close: async () => {},
      },
    };
  };
}

class VirtualSocket extends EventEmitter {
  readonly remoteAddress: string;
  destroyed = false;
  errored: Error | null = null;
  readonly writableEnded = false;
  isGone = false;
  onReset = () => {};

  constructor(address: string) {
    super();
    this.remoteAddress = address;
  }

  /** By the server. */
  destroy(): void {
    if (this.destroyed) return;
    this.destroyed = true;
    if (!this.isGone) this.onReset();
    this.emit('close');
  }

  resetAndDestroy(): void {
    this.destroy();
  }

  /** By the client. */
  hangUp(world: World, isReset: boolean): void {
    this.isGone = true;
    world.deliver(() => {
      if (this.destroyed) return;
      this.destroyed = true;
      if (isReset) {
        this.errored = new Error('ECONNRESET');
        this.emit('error', this.errored);
      } else this.emit('end');
      this.emit('close');
    });
  }
}

type OnWhole = (status: number, type: string, bytes: Buffer) => void;

/** An answer on its way to the client, which has it whole when the kernel has it, unless it hung up. */
class VirtualResponse extends EventEmitter {
  readonly #pieces: Uint8Array[] = [];
  #status = 0;
  #headers: Readonly<Record<string, unknown>> = {};
  readonly #world: World;
  readonly #socket: VirtualSocket;
  readonly #isDeaf: boolean;
  readonly #onWhole: OnWhole;

  constructor(world: World, socket: VirtualSocket, isDeaf: boolean, onWhole: OnWhole) {
    super();
    this.#world = world;
    this.#socket = socket;
    this.#isDeaf = isDeaf;
    this.#onWhole = onWhole;
  }

  writeHead(status: number, headers: Readonly<Record<string, unknown>>): void {
    this.#status = status;
    this.#headers = headers;
  }

  /** `done`: the kernel has the piece, which may change from then on; without it none changes. */
  write(piece: Uint8Array, done?: () => void): boolean {
    if (done === undefined) this.#pieces.push(piece);
    this.#world.deliver(() => {
      if (done !== undefined) this.#pieces.push(Uint8Array.from(piece));
      if (!this.#isDeaf) done === undefined ? this.emit('drain') : done();
    });
    return !this.#isDeaf;
  }

  end(last: Uint8Array | null): void {
    if (last !== null) this.#pieces.push(Uint8Array.from(last));
    if (this.#isDeaf || this.#socket.isGone || this.#socket.destroyed) return;
    const bytes = Buffer.concat(this.#pieces);
    if ((this.#headers['Content-Length'] ?? bytes.length) !== bytes.length) throw new Error('Bug: a wrong length');
    this.#world.deliver(() => this.emit('finish'));
    this.#onWhole(this.#status, String(this.#headers['Content-Type']), bytes);
  }
}
