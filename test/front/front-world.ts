// A front before a source that a test drives, on a clock that the test turns; main is seen alive.

import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import type { MainView } from '../../src/decide/serve/serve.ts';
import { type Front, type FrontParts, openFront } from '../../src/front/front.ts';
import { readPieces } from '../support/pieces.ts';
import { VirtualClock } from '../support/virtual-clock.ts';
import { openSource, scrape } from './source.ts';

export const LIVING: MainView = { main: 'living', wasAlive: true, endedAtMs: null };
export const ENDED: MainView = { main: 'ended', wasAlive: true, endedAtMs: 5_000 };
export const POLL_MS = 1_000;
export const NEVER = new AbortController().signal;

export type World = Awaited<ReturnType<typeof openWorld>>;

/** `body`: what the source answers; the rest as openFront() takes it. */
export async function openWorld(
  t: TestContext,
  { body, ...parts }: Partial<FrontParts> & { readonly body?: string } = {},
) {
  const source = await openSource(body);
  const clock = new VirtualClock(1_000);
  const opened = await openFront({
    at: { host: '127.0.0.1', port: 0 },
    url: source.url,
    metricNames: [],
    pollMs: POLL_MS,
    clock,
    toUnixSeconds: (atMs) => 1_000_000 + atMs / 1000,
    log() {},
    ...parts,
  });
  assert.ok(opened.kind === 'open');
  const { front } = opened;
  t.after(async () => {
    await front.close();
    await source[Symbol.asyncDispose]();
  });
  front.tell(LIVING);
  return {
    front,
    source,
    clock,
    ask: (accept: string, isScraper = true) => scrape(front.port, { headers: { accept }, isScraper }),
    post: () => scrape(front.port, { path: '/-/snapshot', method: 'POST' }),
    /** The source's part of what a scrape gets. */
    page: async () => withoutOwn((await scrape(front.port)).text),
  };
}

export function withoutOwn(text: string): string {
  return text.replace(/# HELP lastscrape_[\s\S]*$/, '');
}

export const turn = () => new Promise((resolve) => setImmediate(resolve));

/** Has the source read once, as an observation does, and waits until that is kept; it has a sample. */
export async function takeSnapshot({ front, clock }: World): Promise<void> {
  clock.advance(30_000);
  await front.readExporter(NEVER);
  while ((front.observe().answeredAtMs ?? 0) < clock.nowMs()) await turn();
}

/** What a push would send. */
export async function readNewest({ front }: { readonly front: Front }): Promise<string> {
  return String(await readPieces((await front.newest())?.body.read() ?? []));
}
