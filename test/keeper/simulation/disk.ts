// The keeper's folder in virtual time: what was synced stays where its node crashes, what came after may go.

import type { HandOver } from '../../../src/decide/keep/targets.ts';
import type { OpenPage, Store } from '../../../src/keeper/store.ts';
import type { Random, World } from '../../front/simulation/world.ts';

type File = { readonly kept: HandOver; readonly text: string };

export type Disk = ReturnType<typeof openDisk>;

/** An empty one. `isFull`: whether the next write fails. */
export function openDisk(world: World, random: Random, isFull: () => boolean) {
  const files = new Map<string, File>();
  /** How to undo each change of the folder since it was synced. */
  let unsynced: (() => void)[] = [];

  function change(key: string, file: File | null): void {
    const before = files.get(key);
    unsynced.push(() => (before === undefined ? files.delete(key) : files.set(key, before)));
    file === null ? files.delete(key) : files.set(key, file);
  }
  function read(key: string): File {
    const file = files.get(key);
    if (file === undefined) throw Object.assign(new Error('ENOENT'), { code: 'ENOENT' });
    return file;
  }
  const find = (key: string) => {
    const { kept, text } = read(key);
    return { kept: { ...kept, packedBytes: [], checksum: '' }, sizeBytes: text.length, takenAtSeconds: 0 };
  };

  return {
    files,
    hasUnsynced: () => unsynced.length > 0,
    /** Undoes the newest changes that were not synced, any number of them. */
    crash(): void {
      const keptCount = random.between(0, unsynced.length);
      for (const undo of unsynced.slice(keptCount).toReversed()) undo();
      unsynced = [];
    },
    /** As a process sees it, which gets no answer any more once it is dead. */
    open(isAlive: () => boolean): Store {
      const wait = () =>
        new Promise<void>((resolve) => {
          world.outside(world.nowMs() + random.between(0, 40), () => isAlive() && resolve());
        });
      return {
        async listKeys() {
          await wait();
          return [...files.keys()];
        },
        begin(key) {
          let file: File | null = null;
          return {
            [Symbol.asyncDispose]: wait,
            async write(kept, pages, onSize) {
              let text = '';
              for (const { sizeBytes } of kept.formats) {
                for await (const piece of pages(sizeBytes)) {
                  text += Buffer.from(piece).toString();
                  onSize(text.length);
                }
              }
              await wait();
              if (isFull()) throw Object.assign(new Error('ENOSPC'), { code: 'ENOSPC' });
              file = { kept, text };
            },
            async place() {
              await wait();
              change(key, file);
            },
          };
        },
        async sync() {
          const count = unsynced.length;
          await wait();
          unsynced.splice(0, count);
        },
        async open(key): Promise<OpenPage> {
          await wait();
          const { text } = read(key);
          async function* readText(): AsyncGenerator<Uint8Array> {
            yield Buffer.from(text);
          }
          return { ...find(key), read: readText, [Symbol.asyncDispose]: async () => {} };
        },
        async remove(key) {
          await wait();
          change(key, null);
        },
        setAside: () => Promise.reject(new Error('Bug: no page is corrupt here')),
      };
    },
  };
}
