// What is loaded only when asked for: the default configuration does not pay for YAML, the API client, TLS,
// the front, `--check` or `explain`, nor for dear modules of Node (image/bundle.ts). Runs the bundle; V8's
// coverage says which of its modules ran.

import assert from 'node:assert/strict';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { makeFolder } from '../support/folder.ts';
import { findFreePort } from '../support/listen.ts';
import { openHttp } from '../support/receiver.ts';
import { openPod, startWatcher } from '../support/watcher.ts';
import { DIST, gateDist } from './dist.ts';

const skip = gateDist('test/image/asked-for.test.ts');
const MARK = '\nloaded: ';
/** Runs the bundle as the program, and prints at the end which modules Node loaded. */
const BUNDLE = [
  process.execPath,
  '--eval',
  `process.on('exit', () => console.error(${JSON.stringify(MARK)} + process.moduleLoadList)); require(process.argv[1])`,
  join(DIST, 'bundle.cjs'),
];
/** The same with a pipe for stdin. */
const PIPED = ['/bin/sh', '-c', 'echo | "$0" "$@"', ...BUNDLE];
/** A module of the bundle is a function with its path for a name (esbuild), unless it always runs. */
const API_CLIENT = ['lazy-source:src/pod/pod-reader.ts'];
const CHECK = ['lazy-source:src/check/inspect.ts', 'lazy-source:src/check/plan.ts'];
const FRONT = ['lazy-source:src/front/front.ts'];
const TELLING = ['lazy-source:src/tell/telling.ts', 'lazy-source:src/pod/identity.ts'];
const KEEPING = ['lazy-source:src/front/kept-source.ts'];
const EXPLAIN = ['lazy-source:src/explain/run-explain.ts'];
const LAZY = [...API_CLIENT, ...CHECK, ...FRONT, ...TELLING, ...KEEPING, ...EXPLAIN, 'asset:yaml', 'lazy:lazy-sources'];
const ASSET = ['lazy:lazy-sources'];
/** Modules of Node that nothing loads but undici or a careless import. */
const DEAR = ['assert', 'http', 'http2', 'internal/fs/promises', 'tls'];
const DIED = 'Born: "2020-04-28T10:41:46.99Z"\nDied: "2020-04-28T10:41:47.05Z"\nExitCode: 3\n';

type Coverage = {
  readonly result: readonly {
    readonly url: string;
    readonly functions: readonly {
      readonly functionName: string;
      readonly ranges: readonly { readonly count: number }[];
    }[];
  }[];
};

/** Runs the bundle in a pod whose main ends once it was seen; `conditions`: of its port and tombstone. */
async function run(
  conditions: (masterPort: number, tombstone: string) => string,
  args: readonly string[] = [],
  settings: Readonly<Record<string, string>> = {},
  command: readonly string[] = BUNDLE,
) {
  const folder = makeFolder();
  await using pod = await openPod();
  const tombstone = join(folder, 'main');
  writeFileSync(tombstone, DIED.slice(0, DIED.indexOf('Died')));
  const coverage = join(folder, 'coverage');
  const env = {
    ...pod.env,
    LASTSCRAPE_DONE_WHEN: conditions(pod.locust.masterPort, tombstone),
    LASTSCRAPE_SCRAPES: '0',
    NODE_V8_COVERAGE: coverage,
    ...settings,
  };
  const watcher = startWatcher(env, args, command);
  const running = watcher.said('main is running').then(() => {
    writeFileSync(tombstone, DIED);
    pod.locust.kill();
  });
  // A configuration that does not fit this machine ends before.
  await Promise.allSettled([running]);
  const { code, stderr, report } = await watcher.ended;
  const ran = readdirSync(coverage)
    .flatMap((file) => (JSON.parse(readFileSync(join(coverage, file), 'utf8')) as Coverage).result)
    .filter(({ url }) => url.endsWith('/dist/bundle.cjs'))
    .flatMap(({ functions }) => functions.filter(({ ranges }) => ranges.some(({ count }) => count > 0)))
    .map(({ functionName }) => functionName);
  const loaded = (stderr.split(MARK)[1] ?? '').trim().split(',');
  // The exporter's client is always there, and so is a pipe's: what is not there next to it means something.
  assert.ok(loaded.includes('NativeModule net'), stderr);
  const isLoaded = (name: string) => loaded.includes(`NativeModule ${name}`);
  return { code, report, ran, dear: DEAR.filter(isLoaded), hasPerfHooks: isLoaded('perf_hooks') };
}

const listLazy = (ran: readonly string[]) => LAZY.filter((name) => ran.includes(name));

test('the bundle loads neither a YAML reader nor an API client nor a dear module of Node by default', {
  skip,
}, async () => {
  const { code, report, ran, dear } = await run((port) => `metric:locust_up,port:${port}`);
  assert.deepEqual([code, report?.['outcome']], [0, 'released']);
  assert.ok(ran.includes('node_modules/undici/lib/dispatcher/client-h1.js'));
  assert.deepEqual([listLazy(ran), dear], [[], []]);
});

test('the bundle loads node:perf_hooks for nothing but the time of a target that is asked', { skip }, async () => {
  const conditions = (port: number) => `metric:locust_up,port:${port}`;
  const { code, hasPerfHooks } = await run(conditions, [], { LASTSCRAPE_QUIT: 'none' });
  assert.deepEqual([code, hasPerfHooks], [0, false]);
});

test('the bundle loads the YAML reader for tombstone:, reads with it, and nothing of the API client', {
  skip,
}, async () => {
  const { code, report, ran, dear } = await run((_, tombstone) => `tombstone:${tombstone}`);
  assert.deepEqual([code, report?.['mainExitCodes']], [0, { main: 3 }]);
  assert.deepEqual([listLazy(ran), dear], [['asset:yaml'], []]);
});

test('the bundle loads the API client and TLS for container:, and no YAML reader', { skip }, async () => {
  const { code, ran, dear } = await run(() => 'container:load');
  assert.equal(code, 78, 'this machine is no pod');
  assert.deepEqual([listLazy(ran), dear], [[...API_CLIENT, ...ASSET], ['tls']]);
});

test('the bundle loads what --check looks at for --check, and no more', { skip }, async () => {
  const { code, ran, dear } = await run((port) => `metric:locust_up,port:${port}`, ['--check']);
  assert.deepEqual([code, listLazy(ran), dear], [0, [...CHECK, ...ASSET], []]);
});

test('the bundle loads the front and an HTTP server where a front is set', { skip }, async () => {
  const front = { LASTSCRAPE_FRONT: `127.0.0.1:${await findFreePort()}` };
  const { code, ran, dear } = await run((port) => `metric:locust_up,port:${port}`, [], front);
  assert.deepEqual([code, listLazy(ran), dear], [0, [...FRONT, ...ASSET], ['http']]);
});

test('the bundle loads the senders for a webhook or a push, and the store of last numbers for a push only', {
  skip,
}, async () => {
  const conditions = (port: number) => `metric:locust_up,port:${port}`;
  const nowhere = `localhost:${await findFreePort()}`;
  const told = await run(conditions, [], { LASTSCRAPE_WEBHOOK: `http://${nowhere}/` });
  assert.deepEqual([told.code, listLazy(told.ran), told.dear], [0, [...TELLING, ...ASSET], []]);
  await using gateway = await openHttp();
  const pushed = await run(conditions, [], {
    LASTSCRAPE_PUSH: `pushgateway+http://localhost:${gateway.port}`,
    LASTSCRAPE_PUSH_WHEN: 'always',
  });
  assert.equal(gateway.seen.length, 1);
  assert.deepEqual([pushed.code, listLazy(pushed.ran), pushed.dear], [0, [...TELLING, ...KEEPING, ...ASSET], []]);
  const checked = await run(conditions, ['--check'], { LASTSCRAPE_WEBHOOK: `http://${nowhere}/` });
  assert.deepEqual([checked.code, listLazy(checked.ran), checked.dear], [0, [...CHECK, ...ASSET], []]);
});

test('the bundle loads what explains a pod for explain, and no more', { skip }, async () => {
  const { ran, dear } = await run(() => 'port:1', ['explain'], {}, PIPED);
  assert.deepEqual([listLazy(ran), dear], [[...EXPLAIN, ...ASSET], []]);
});
