// The keeper as a process in virtual time, over its real pages and rules; its connections end with it.

import type { Clock } from '../../../src/base/waits.ts';
import { openPages, type Pages } from '../../../src/keeper/pages.ts';
import type { Random, World } from '../../front/simulation/world.ts';
import type { Disk } from './disk.ts';

/** How the keeper's time ends: killed, its node crashes, or SIGTERM. */
export type KeeperEnd = { readonly atMs: number; readonly how: 'kill' | 'crash' | 'stop'; readonly downMs: number };

const STOPPING_MS = 30_000;

export type KeeperHost = ReturnType<typeof openKeeperHost>;

/** Not started yet. */
export function openKeeperHost(world: World, random: Random, disk: Disk, maxPages: number) {
  let generation = 0;
  let pages: Pages | null = null;
  let isStopping = false;
  const drops = new Set<() => void>();

  function start(): void {
    const own = ++generation;
    const isAlive = () => own === generation;
    const clock: Clock = {
      nowMs: world.nowMs,
      after: (ms, callback) => world.after(ms, () => isAlive() && callback()),
    };
    const parts = {
      store: disk.open(isAlive),
      limits: { maxBytes: 16_000_000, maxPages },
      clock,
      wallMs: () => 1_800_000_000_000 + world.nowMs(),
      log: ({ id }: { readonly id: string }) => world.tell(() => `the keeper: ${id}`),
    };
    isStopping = false;
    void openPages(parts).then((opened) => {
      world.tell(() => `the keeper serves ${opened.count().pages} pages`);
      pages = opened;
      const advance = () => {
        opened.advance();
        if (isStopping && opened.count().pages === 0) return end(2_000);
        clock.after(isStopping ? 500 : 5_000, advance);
      };
      advance();
    });
  }
  function end(downMs: number): void {
    generation++;
    pages = null;
    for (const drop of drops) drop();
    world.tell(() => `the keeper is away for ${downMs} ms`);
    world.outside(world.nowMs() + downMs, start);
  }

  return {
    start,
    end({ how, downMs }: KeeperEnd): void {
      if (pages === null || isStopping) return;
      world.tell(() => `the keeper: ${how}`);
      if (how === 'crash') disk.crash();
      if (how === 'stop') {
        const own = generation;
        isStopping = true;
        pages.stop();
        world.outside(world.nowMs() + STOPPING_MS, () => own === generation && end(downMs));
      } else end(downMs);
    },
    /** Asks it; what it answers comes `answerMs` later. A client that hangs up gets nothing. */
    async ask<Answer>(
      work: (pages: Pages, gone: AbortSignal) => Promise<Answer>,
      { hangUp, answerMs = random.between(0, 50) }: { readonly hangUp?: AbortSignal; readonly answerMs?: number } = {},
    ): Promise<Answer | 'refused' | 'dropped'> {
      const { promise, resolve } = Promise.withResolvers<Answer | 'refused' | 'dropped'>();
      world.outside(world.nowMs() + random.between(0, 50), () => {
        if (pages === null) return resolve('refused');
        const gone = new AbortController();
        const drop = () => {
          drops.delete(drop);
          gone.abort();
          resolve('dropped');
        };
        drops.add(drop);
        // Before what the client asks next, as by TCP.
        hangUp?.addEventListener('abort', drop);
        void work(pages, gone.signal).then((answer) => {
          world.outside(world.nowMs() + answerMs, () => {
            if (drops.delete(drop)) resolve(answer);
          });
        });
      });
      return promise;
    },
  };
}
