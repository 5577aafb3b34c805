// The keeper's pages over a real folder, at moments that a process cannot be caught in.

import assert from 'node:assert/strict';
import { readdirSync, writeFileSync } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { SYSTEM_CLOCK } from '../../src/base/waits.ts';
import { openPages, PAGE_PATH } from '../../src/keeper/pages.ts';
import { openStore, type Store } from '../../src/keeper/store.ts';
import { decompress } from '../../src/snapshot/packing.ts';
import { makeFolder } from '../support/folder.ts';
import { TEXT, writeHandOver } from './keeper.ts';

const SCRAPER = { address: '10.0.0.9', agent: 'Prometheus', connection: 1, openConnections: [] };
const LIMITS = { maxBytes: 16_000_000, maxPages: 100 };

/** Pages in a new folder, at a clock of the test's; `change`: what is put in place of the store. */
async function openKept(change: (store: Store) => Partial<Store> = () => ({}), gone = new AbortController().signal) {
  const folder = makeFolder();
  const clock = { nowMs: 0 };
  const lines: string[] = [];
  const store = await openStore(folder);
  const pages = await openPages({
    store: { ...store, ...change(store) },
    limits: LIMITS,
    clock: { nowMs: () => clock.nowMs, after: () => () => {} },
    wallMs: () => clock.nowMs,
    log: ({ id, fields }) => lines.push(`${id} ${JSON.stringify(fields)}`),
  });
  const body = async function* (bytes: Uint8Array) {
    yield bytes;
  };
  const from = { proven: null, address: '10.0.0.1', gone };
  const send = (name: string, page: string) => ({ ...from, body: body(writeHandOver({ name, pages: [page] })) });
  return {
    clock,
    folder,
    lines,
    pages,
    handOver: (name = 'job-1', page = TEXT) => pages.take(send(name, page)),
    check: (name = 'job-1') => pages.check(send(name, TEXT)),
    withdraw: (name = 'job-1') => pages.withdraw(send(name, TEXT)),
    keys(): readonly string[] {
      const listed = pages.listTargets({ ...SCRAPER, startedAtMs: clock.nowMs }, 15_000);
      return listed.map(({ labels }) => JSON.parse(labels.toString())['__metrics_path__'].slice(PAGE_PATH.length));
    },
    async read(key: string): Promise<string | null> {
      await using page = await pages.open(key);
      if (page === null) return null;
      const pieces: Uint8Array[] = [];
      for await (const piece of decompress(page.read(0))) pieces.push(piece);
      return Buffer.concat(pieces).toString();
    },
  };
}

/** A store that calls right after a file has come into its place. */
function callOnPlaced(onPlaced: () => void) {
  return (store: Store): Partial<Store> => ({
    begin(key) {
      const file = store.begin(key);
      const place = async () => {
        await file.place();
        onPlaced();
      };
      return { ...file, place };
    },
  });
}

test('a page is gone that its pod took back while it was put in place, since its answer was late', async () => {
  let withdrawn: Promise<void> | null = null;
  const kept = await openKept(
    callOnPlaced(() => {
      withdrawn = kept.withdraw();
    }),
  );
  await kept.handOver();
  await withdrawn;
  assert.deepEqual(kept.keys(), []);
  assert.deepEqual(readdirSync(kept.folder), []);
});

test('what a pod took back stays gone where the node crashes', async () => {
  const calls: string[] = [];
  const kept = await openKept(({ remove, sync }) => ({
    remove: (key) => remove(key).finally(() => calls.push('removed')),
    sync: () => sync().finally(() => calls.push('synced')),
  }));
  await kept.handOver();
  await kept.withdraw();
  assert.deepEqual(calls, ['synced', 'removed', 'synced']);
});

test('a page whose pod has gone once it is written leaves nothing, since that pod is held', async () => {
  const gone = new AbortController();
  const change = (store: Store): Partial<Store> => ({
    begin(key) {
      const file = store.begin(key);
      return { ...file, write: (...parts) => file.write(...parts).finally(() => gone.abort()) };
    },
  });
  const kept = await openKept(change, gone.signal);
  await assert.rejects(kept.handOver(), { name: 'AbortError' });
  assert.deepEqual([kept.keys(), readdirSync(kept.folder)], [[], []]);
});

test('a page is there that was taken while the one before it, of the same pod, was being forgotten', async () => {
  let onPlaced = () => {};
  const kept = await openKept(callOnPlaced(() => onPlaced()));
  kept.clock.nowMs = 300_000;
  await kept.handOver('job-1', 'old 1\n');
  const [key = ''] = kept.keys();
  kept.pages.addTake(key, { ...SCRAPER, startedAtMs: kept.clock.nowMs });
  kept.clock.nowMs += 60_000;
  assert.deepEqual(kept.keys(), []);
  // The old page's time ends right after the new file has come into its place.
  onPlaced = () => {
    kept.clock.nowMs += 300_000;
    kept.pages.advance();
  };
  await kept.handOver('job-1', 'new 1\n');
  // What was to be removed is by now.
  await kept.handOver('job-2');
  assert.equal(await kept.read(key), 'new 1\n');
});

test('a page that cannot be read for a while stays listed, and is read once it can', async () => {
  let isFailing = true;
  const kept = await openKept((store) => ({
    async open(...parts) {
      if (isFailing) throw Object.assign(new Error('EMFILE: too many open files'), { code: 'EMFILE' });
      return store.open(...parts);
    },
  }));
  await kept.handOver();
  const [key = ''] = kept.keys();
  await assert.rejects(kept.read(key), /EMFILE/);
  assert.deepEqual(kept.keys(), [key]);
  isFailing = false;
  assert.equal(await kept.read(key), TEXT);
  assert.equal(kept.pages.count().corrupt_total, 0);
});

test('a hand-over whose sync fails once the file is in place is refused, and is not there after a restart', async () => {
  const kept = await openKept();
  await kept.handOver('job-1', 'old 1\n');
  const handle = await open(kept.folder, 'r');
  const prototype: Pick<FileHandle, 'sync'> = Object.getPrototypeOf(handle);
  const { sync } = prototype;
  await handle.close();
  prototype.sync = async function (this: FileHandle) {
    if ((await this.stat()).isDirectory()) throw Object.assign(new Error('EIO: i/o error, fsync'), { code: 'EIO' });
    return sync.call(this);
  };
  try {
    await assert.rejects(kept.handOver('job-1', 'new 1\n'), /EIO/);
    await assert.rejects(kept.handOver('job-2'), /EIO/);
  } finally {
    prototype.sync = sync;
  }
  assert.deepEqual(readdirSync(kept.folder), []);
  assert.deepEqual(kept.keys(), []);
  assert.deepEqual(kept.pages.count().bytes, 0);
});

test('a namespace asks no more often than it may hand over', async () => {
  const kept = await openKept();
  for (let count = 0; count < 1_199; count++) await kept.check();
  await kept.handOver();
  await assert.rejects(kept.check(), { reason: 'tooOften' });
  await kept.withdraw();
  assert.deepEqual(kept.keys(), []);
});

test('a page that cannot be read back is kept aside, unless its pod hands over again meanwhile', async () => {
  const kept = await openKept();
  for (const name of ['a', 'b']) await kept.handOver(name);
  const [first = '', second = ''] = kept.keys();
  for (const key of [first, second]) {
    await using handle = await open(join(kept.folder, `${key}.page`), 'r+');
    await handle.write('x', 15);
    const failed = assert.rejects(kept.read(key), /the checksum of its page is wrong/);
    if (key === second) await kept.handOver('b', 'new 1\n');
    await failed;
  }
  const pages = await Promise.all(kept.keys().map(kept.read));
  assert.deepEqual(pages, ['new 1\n']);
  const names = [`${first}.page.corrupt`, `${second}.page`];
  assert.deepEqual(
    readdirSync(kept.folder)
      .filter((name) => !name.endsWith(`${second}.page.corrupt`))
      .sort(),
    names.sort(),
  );
});

test('what cannot be read back is kept aside, within a sixteenth of the bytes', async () => {
  const kept = await openKept();
  const large = Array.from({ length: 70_000 }, (_, index) => `a${index} ${Math.random()}\n`).join('');
  for (const name of ['a', 'b', 'c']) await kept.handOver(name, large);
  const sizeBytes = Number(kept.pages.count().bytes) / 3;
  assert.ok(sizeBytes < 1_000_000 && sizeBytes * 2 > 1_000_000, `${sizeBytes}: one fits, two do not`);
  const list = () => readdirSync(kept.folder).filter((name) => name.endsWith('.corrupt'));
  for (const key of kept.keys()) {
    await using handle = await open(join(kept.folder, `${key}.page`), 'r+');
    await handle.write('x', 100);
    await assert.rejects(kept.read(key), /the checksum of its page is wrong/);
    assert.deepEqual(list(), [`${key}.page.corrupt`], 'the newest');
  }
  assert.equal(kept.pages.count().corrupt_total, 3);
  assert.equal(kept.pages.count().bytes, 0);
});

test('a check changes nothing in the folder of a keeper that is at work', async () => {
  const kept = await openKept();
  await kept.handOver();
  const torn = join(kept.folder, 'torn.page');
  writeFileSync(torn, 'torn');
  let checked: readonly string[] = [];
  const store = await openStore(kept.folder);
  async function* read() {
    const before = readdirSync(kept.folder);
    const log = () => {};
    await openPages({
      store: await openStore(kept.folder, true),
      limits: LIMITS,
      clock: SYSTEM_CLOCK,
      wallMs: Date.now,
      log,
    });
    checked = before.filter((name) => !readdirSync(kept.folder).includes(name));
    yield Buffer.from(TEXT);
  }
  const handOver = JSON.parse(String(writeHandOver({})).split('\n')[0] ?? '');
  await using file = store.begin('a');
  await file.write(handOver, read, () => {});
  assert.deepEqual(checked, []);
});

test('two keepers in one folder do not mix what they write', async () => {
  const folder = makeFolder();
  const handOver = JSON.parse(String(writeHandOver({})).split('\n')[0] ?? '');
  async function write(store: Store, onBegun: () => Promise<void>): Promise<void> {
    async function* read() {
      await onBegun();
      yield Buffer.from(TEXT);
    }
    await using file = store.begin('a');
    await file.write(handOver, read, () => {});
    await file.place();
  }
  const [one, other] = [await openStore(folder), await openStore(folder)];
  await write(one, () => write(other, async () => {}));
  await using page = await one.open((await one.listKeys())[0] ?? '', true);
  assert.equal(page.kept.pod.name, 'job-1');
});
