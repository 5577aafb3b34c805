import assert from 'node:assert/strict';
import { readdirSync, readFileSync, statSync, symlinkSync, watch, writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage } from 'node:http';
import { join } from 'node:path';
import { test } from 'node:test';
import { parse } from 'yaml';
import { openTombstone } from '../../src/run/own-tombstone.ts';
import { mountHanging } from '../base/hanging-mount.ts';
import { makeFolder } from '../support/folder.ts';
import { listen } from '../support/listen.ts';
import { gateNamespaces, openPidNamespace, signalInnermost } from '../support/pid-namespace.ts';
import { openHttp } from '../support/receiver.ts';
import { startWatcher } from '../support/watcher.ts';

const skip = gateNamespaces('test/run/own-tombstone.test.ts');

const NEVER = new AbortController().signal;

/** Ends at once: main is treated as done. */
const SHORT = {
  LASTSCRAPE_DONE_WHEN: 'file:/no/such/file',
  LASTSCRAPE_SCRAPES: '0',
  LASTSCRAPE_RUN_TIMEOUT: '1ms',
  LASTSCRAPE_QUIT: 'none',
};

test('the tombstone has what kubexit writes, by a rename, and is followed by the one with the exit code', async () => {
  const folder = makeFolder();
  const path = join(folder, 'lastscrape');
  const problems: string[] = [];
  let minute = 0;
  const wallMs = () => Date.UTC(2026, 10, 21, 9, minute++);
  const tombstone = openTombstone(path, { pid: 7, wallMs }, NEVER, (problem) => problems.push(problem));
  assert.deepEqual(readdirSync(folder), [], 'nothing before the hold ends');
  await tombstone.declareDead();
  const text = readFileSync(path, 'utf8');
  assert.equal(text, 'Born: "2026-11-21T09:00:00.000Z"\nDied: "2026-11-21T09:01:00.000Z"\nExitCode: 0\n');
  const { ino } = statSync(path);
  await tombstone.close(69);
  assert.equal(readFileSync(path, 'utf8'), text.replace('ExitCode: 0', 'ExitCode: 69'), 'Died is the first one');
  assert.notEqual(statSync(path).ino, ino, 'another file: no reader gets half of it');
  assert.deepEqual([readdirSync(folder), problems], [['lastscrape'], []]);
});

test('the tombstone of a folder that cannot be written is one warning', async () => {
  const folder = makeFolder();
  const problems: string[] = [];
  const openAt = (path: string) =>
    openTombstone(path, { pid: 7, wallMs: () => 0 }, NEVER, (problem) => problems.push(problem));
  const missing = openAt(join(folder, 'no', 'lastscrape'));
  await missing.checkFolder();
  assert.equal(problems.length, 1, 'reported at once, not at the end of the hold');
  await missing.declareDead();
  await missing.close(0);
  assert.deepEqual(problems, [`Cannot write ${join(folder, 'no', 'lastscrape')}: ENOENT`]);
  // Somebody's link under the temporary name is not written through.
  writeFileSync(join(folder, 'other'), 'other');
  symlinkSync(join(folder, 'other'), join(folder, '.linked.tmp-7'));
  const linked = openAt(join(folder, 'linked'));
  await linked.declareDead();
  await linked.close(0);
  assert.match(problems[1] ?? '', /ELOOP/);
  assert.equal(readFileSync(join(folder, 'other'), 'utf8'), 'other');
});

/** Reacts as kubexit does: to a Create or a Write of the name, and then reads the file; it never looks before. */
function watchDeath(folder: string, name: string) {
  const abort = new AbortController();
  const deaths: string[] = [];
  const names = new Set<string>();
  const seen = Promise.withResolvers<void>();
  watch(folder, { signal: abort.signal }, (_event, file) => {
    names.add(file ?? '');
    if (file !== name) return;
    const { Died } = parse(readFileSync(join(folder, name), 'utf8'));
    if (typeof Died !== 'string') return;
    deaths.push(Died);
    seen.resolve();
  });
  return { deaths, names, seen: seen.promise, close: () => abort.abort() };
}

test('a container that waits as kubexit does sees the end before any target is asked, and a late one sees it, too', async () => {
  const folder = makeFolder();
  const path = join(folder, 'lastscrape');
  const early = watchDeath(folder, 'lastscrape');
  const asked = Promise.withResolvers<IncomingMessage>();
  let textWhenAsked = '';
  let isQuit = false;
  const server = createServer((request, response) => {
    textWhenAsked ||= readFileSync(path, 'utf8');
    asked.resolve(request);
    // It lives on until the late one has seen the tombstone.
    if (isQuit) server.close();
    response.writeHead(200, { connection: 'close' }).end();
  });
  const port = await listen(server);
  const watcher = startWatcher({
    ...SHORT,
    LASTSCRAPE_QUIT: `http://127.0.0.1:${port}/quit`,
    LASTSCRAPE_TOMBSTONE: path,
  });
  await asked.promise;
  assert.match(textWhenAsked, /^Born: "[^"]+Z"\nDied: "[^"]+Z"\nExitCode: 0\n$/, 'written before the first request');
  await early.seen;
  const late = watchDeath(folder, 'lastscrape');
  await late.seen;
  isQuit = true;
  const { code } = await watcher.ended;
  assert.equal(code, 0);
  early.close();
  late.close();
  assert.equal(new Set([...early.deaths, ...late.deaths]).size, 1, 'one death, reported again');
  assert.ok(
    [...early.names, ...late.names].every((name) => name === 'lastscrape' || /^\.lastscrape\.tmp-\d+$/.test(name)),
    'no name that anything waits for',
  );
  assert.deepEqual(readdirSync(folder), ['lastscrape']);
});

test('the last tombstone has the exit code of the process', async () => {
  const path = join(makeFolder(), 'lastscrape');
  await using target = await openHttp();
  const { code } = await startWatcher({
    ...SHORT,
    LASTSCRAPE_QUIT: `http://127.0.0.1:${target.port}/quit`,
    LASTSCRAPE_QUIT_TIMEOUT: '100ms',
    LASTSCRAPE_TOMBSTONE: path,
  }).ended;
  assert.deepEqual([code, parse(readFileSync(path, 'utf8')).ExitCode], [69, 69]);
});

test('no tombstone is written by an end before the hold is over: main may run', async () => {
  const folder = makeFolder();
  const env = { ...SHORT, LASTSCRAPE_RUN_TIMEOUT: '0', LASTSCRAPE_TOMBSTONE: join(folder, 'lastscrape') };
  const watcher = startWatcher(env);
  await watcher.said('main is running');
  watcher.child.kill('SIGTERM');
  await watcher.said('asked to terminate');
  watcher.child.kill('SIGINT');
  const { code, report } = await watcher.ended;
  assert.deepEqual([code, report?.['outcome']], [130, 'terminated']);
  assert.deepEqual(readdirSync(folder), []);
});

test('no tombstone is written in a dry run, which says so, nor where none is asked for', async () => {
  const folder = makeFolder();
  const path = join(folder, 'lastscrape');
  const { code, log } = await startWatcher({ ...SHORT, LASTSCRAPE_TOMBSTONE: path, LASTSCRAPE_DRY_RUN: 'true' }).ended;
  assert.equal(code, 0);
  assert.ok(log.some((line) => line['msg'] === 'dry run: the tombstone is not written' && line['path'] === path));
  assert.deepEqual(readdirSync(folder), []);
});

test('--check says that the tombstone is written, and why it cannot be', async () => {
  const folder = makeFolder();
  const check = async (path: string) =>
    (
      await startWatcher({ ...SHORT, KUBERNETES_SERVICE_HOST: '127.0.0.1', LASTSCRAPE_TOMBSTONE: path }, ['--check'])
        .ended
    ).stdout;
  const good = await check(join(folder, 'lastscrape'));
  assert.match(good, new RegExp(`^ +Then write ${folder}/lastscrape, and rewrite it until exit\\.$`, 'm'));
  assert.match(good, new RegExp(`^ +${folder}/lastscrape: can be written$`, 'm'));
  assert.match(await check('/no/lastscrape'), /^ {2}warning: Cannot write \/no\/lastscrape: ENOENT$/m);
  assert.deepEqual(readdirSync(folder), []);
});

test('a tombstone on a file system that hangs costs one warning and a few seconds', { skip }, async () => {
  await using namespace = await openPidNamespace();
  const { path } = await mountHanging(namespace);
  const tombstone = join(path, 'lastscrape');
  const problem = `Cannot write ${tombstone}: its file system does not answer`;
  for (const isAlone of [false, true]) {
    const watcher = namespace.watch({ ...SHORT, LASTSCRAPE_TOMBSTONE: tombstone }, { isAlone });
    const { code, report, log } = await watcher.ended;
    assert.deepEqual([code, report?.['outcome']], [0, 'timedOut']);
    const warnings = log.filter((line) => line['level'] === 'warn');
    const logged = warnings.map((line) => line['problem']);
    assert.deepEqual(logged, [problem]);
  }
  const inPod = { KUBERNETES_SERVICE_HOST: '127.0.0.1', LASTSCRAPE_TOMBSTONE: tombstone };
  const { code, stdout } = await namespace.watch(inPod, { args: ['--check'] }).ended;
  assert.equal(code, 0);
  assert.ok(stdout.includes(`warning: ${problem}`), stdout);
});

test('a second signal ends a watcher whose tombstone hangs', { skip }, async () => {
  await using namespace = await openPidNamespace();
  const { path } = await mountHanging(namespace);
  const env = { ...SHORT, LASTSCRAPE_RUN_TIMEOUT: '0', LASTSCRAPE_TOMBSTONE: join(path, 'lastscrape') };
  const watcher = namespace.watch(env);
  await watcher.said('main is running');
  signalInnermost(watcher.child, 'SIGTERM');
  await watcher.said('asked to terminate');
  signalInnermost(watcher.child, 'SIGINT');
  assert.equal((await watcher.ended).code, 130);
});
