// The binary in surroundings that a pod may bring along: variables for other Nodes, closed streams, no identity, no
// rights, PID 1. Every run is a whole job on the stand-ins, which must end as if nothing were there.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { type Child, startChild } from '../support/child.ts';
import { makeFolder } from '../support/folder.ts';
import { findFreePort } from '../support/listen.ts';
import { openPeer } from '../support/peer.ts';
import { gateMissing } from '../support/programs.ts';
import { until } from '../support/until.ts';
import { openPod, type Pod, scrapeToTheEnd } from '../support/watcher.ts';
import { DIST, gateDist } from './dist.ts';

const FILE = 'test/image/binary-hardening.test.ts';
const skip = gateDist(FILE);
const skipRoot =
  skip || gateMissing(FILE, process.getuid?.() === 0 ? [] : ['only root may make namespaces; run as root']);
const BINARY = join(DIST, `lastscrape-linux-${process.arch}`);

/** Two busy cores; a run takes 0.4 s on an idle one. */
const END_MS = 60_000;

const EXPECTED = ['watching', 'main is running', 'main ended', 'quitting', 'target stopped', 'report'];

type Job = {
  /** What runs the binary; default nothing. */
  readonly wrapper?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
};

/** A folder of the test's own, which may be written by every user. */
function openFolder(): string {
  const path = makeFolder();
  execFileSync('chmod', ['0777', path]);
  return path;
}

function startBinary(pod: Pod, cwd: string, { wrapper = [], env = {} }: Job): Child {
  return startChild({
    name: 'the watcher',
    command: [...wrapper, BINARY],
    env: { ...pod.env, LASTSCRAPE_TERMINATION_LOG: join(cwd, 'termination-log'), ...env },
    cwd,
  });
}

const readMessage = (folder: string) => JSON.parse(readFileSync(join(folder, 'termination-log'), 'utf8'));
const listMessages = (watcher: Child) =>
  watcher.lines.filter(({ stream }) => stream === 'stdout').map((line) => JSON.parse(line.text).msg);
const readErrors = (watcher: Child) =>
  watcher.lines
    .filter(({ stream }) => stream === 'stderr')
    .map(({ text }) => text)
    .join('\n');

async function scrapeUntilEnd(pod: Pod, watcher: Child): Promise<void> {
  await scrapeToTheEnd(pod, () => watcher.exit !== undefined);
  await watcher.waitForExit(END_MS);
}

/** Runs a whole job, which must end well. @returns what it left, with the files in its folder */
async function runJob(job: Job, folder: string): Promise<{ watcher: Child; stderr: string; files: readonly string[] }> {
  await using pod = await openPod();
  await using watcher = startBinary(pod, folder, job);
  await watcher.waitForLine(/"msg":"main is running"/, END_MS);
  pod.locust.kill();
  await scrapeUntilEnd(pod, watcher);
  assert.deepEqual([watcher.exit?.code, watcher.exit?.signal], [0, null], watcher.tail());
  assert.deepEqual(listMessages(watcher), EXPECTED);
  assert.equal(readMessage(folder).outcome, 'scraped');
  assert.equal(pod.exporter.isOpen, false);
  return { watcher, stderr: readErrors(watcher), files: readdirSync(folder).sort() };
}

/** Variables that change what another Node, or another packed program, does. What they name is not there. */
const VARIABLES: Readonly<Record<string, string>> = {
  NODE_OPTIONS: '--no-such-option --max-old-space-size=x',
  ...{ NODE_EXTRA_CA_CERTS: '/nowhere/ca.pem', SSL_CERT_FILE: '/nowhere', NODE_USE_SYSTEM_CA: '1' },
  ...{ OPENSSL_CONF: '/nowhere', NODE_TLS_REJECT_UNAUTHORIZED: '0', NODE_ICU_DATA: '/nowhere', NODE_PATH: '/nowhere' },
  ...{ TZ: 'Nowhere/Odd', LC_ALL: 'xx_XX', LANG: 'de_DE', NODE_PENDING_DEPRECATION: '1', NODE_NO_WARNINGS: '0' },
  ...{ FORCE_COLOR: '3', UV_THREADPOOL_SIZE: '1', UV_USE_IO_URING: '1', HOME: '/nowhere', TMPDIR: '/nowhere' },
  ...{ XDG_CACHE_HOME: '/nowhere', PKG_EXECPATH: 'PKG_INVOKE_NODEJS', DEBUG_PKG: '1', NODE_UNIQUE_ID: '1' },
};

describe('the binary among variables that are meant for others', { skip }, () => {
  for (const [name, env] of Object.entries({ 'none at all, no HOME either': {}, 'all of them': VARIABLES })) {
    test(name, async () => {
      const { stderr, files } = await runJob({ env }, openFolder());
      assert.deepEqual([stderr, files], ['', ['termination-log']]);
    });
  }

  for (const option of ['--require', '--import']) {
    test(`NODE_OPTIONS=${option} loads nothing`, async () => {
      const folder = openFolder();
      const module = join(folder, 'module.cjs');
      const marker = join(folder, 'marker');
      writeFileSync(module, `require('node:fs').writeFileSync(${JSON.stringify(marker)}, '');`);
      const env = { NODE_OPTIONS: `${option}=${module}` };
      // The module does what is feared, in a Node that is not on its guard.
      execFileSync(process.execPath, ['-e', '0'], { env });
      assert.ok(existsSync(marker));
      rmSync(marker);
      await runJob({ env }, folder);
      assert.equal(existsSync(marker), false);
    });
  }

  test('neither NODE_OPTIONS=--inspect nor SIGUSR1 opens a debugger', async () => {
    const folder = openFolder();
    const port = await findFreePort();
    await using pod = await openPod();
    await using watcher = startBinary(pod, folder, { env: { NODE_OPTIONS: `--inspect=127.0.0.1:${port}` } });
    await watcher.waitForLine(/"msg":"main is running"/, END_MS);
    const asked = fetch(`http://127.0.0.1:${port}/json`);
    await assert.rejects(asked, ({ cause }: { cause: NodeJS.ErrnoException }) => cause.code === 'ECONNREFUSED');
    watcher.signal('SIGUSR1');
    pod.locust.kill();
    await scrapeUntilEnd(pod, watcher);
    assert.deepEqual([watcher.exit?.code, readErrors(watcher)], [0, '']);
  });

  test('a proxy is never asked', async () => {
    await using proxy = await openPeer((socket) => socket.destroy());
    const names = ['HTTP_PROXY', 'http_proxy', 'HTTPS_PROXY', 'https_proxy', 'ALL_PROXY', 'all_proxy'];
    const env = { ...Object.fromEntries(names.map((name) => [name, proxy.url.origin])), NODE_USE_ENV_PROXY: '1' };
    const { stderr } = await runJob({ env }, openFolder());
    assert.deepEqual([proxy.connectionsCount(), stderr], [0, '']);
  });

  // Node writes it to stderr; the log on stdout stays one JSON object a line.
  test('NODE_DEBUG leaves the log as it is', async () => {
    const env = { NODE_DEBUG: '*', NODE_DEBUG_NATIVE: 'ALL', DEBUG: '*' };
    const { stderr } = await runJob({ env }, openFolder());
    assert.ok(stderr.length > 0, 'it was asked for');
  });
});

describe('the binary without what programs are used to', { skip }, () => {
  for (const [name, redirection] of [
    ['stdout closed', '>&-'],
    ['stdin, stdout and stderr closed', '<&- >&- 2>&-'],
    ['a full device as stdout', '>/dev/full'],
  ] as const) {
    test(`${name} at the start: the job is done, and the termination message has the report`, async () => {
      const folder = openFolder();
      await using pod = await openPod();
      const wrapper = ['/bin/sh', '-c', `exec "$@" ${redirection}`, 'sh'];
      await using watcher = startBinary(pod, folder, { wrapper });
      await untilRunning(folder, watcher);
      pod.locust.kill();
      await scrapeUntilEnd(pod, watcher);
      assert.deepEqual([watcher.exit?.code, watcher.lines], [0, []]);
      assert.deepEqual([readMessage(folder).outcome, pod.exporter.isOpen], ['scraped', false]);
    });
  }
});

describe('the binary as PID 1', { skip: skipRoot }, () => {
  // The kernel delivers no signal to PID 1 that it does not handle.
  const wrapper = [
    'unshare',
    '--pid',
    '--fork',
    '--kill-child',
    ...withoutRights(),
    'prlimit',
    '--nofile=32',
    '--core=0',
  ];

  test('does the whole job with 32 descriptors, as user 65532 without a name, a group or a capability', async () => {
    const { stderr } = await runJob({ wrapper }, openFolder());
    assert.equal(stderr, '');
  });

  test('SIGTERM starts the grace, SIGINT ends it with 130', async () => {
    const folder = openFolder();
    await using pod = await openPod();
    await using watcher = startBinary(pod, folder, { wrapper });
    await watcher.waitForLine(/"msg":"main is running"/, END_MS);
    const inner = readChild(watcher.pid);
    assert.match(readFileSync(`/proc/${inner}/status`, 'utf8'), /^NSpid:\t\d+\t1$/m);
    process.kill(inner, 'SIGTERM');
    await watcher.waitForLine(/"msg":"asked to terminate"/, END_MS);
    process.kill(inner, 'SIGINT');
    const { code } = await watcher.waitForExit(END_MS);
    assert.deepEqual([code, readMessage(folder).exitCode], [130, 130], watcher.tail());
    assert.deepEqual([readMessage(folder).outcome, pod.exporter.isOpen], ['terminated', true]);
  });
});

function withoutRights(): readonly string[] {
  const none = ['--bounding-set=-all', '--inh-caps=-all', '--ambient-caps=-all', '--no-new-privs'];
  return ['setpriv', '--reuid=65532', '--regid=65532', '--clear-groups', ...none];
}

/** The process that `unshare --fork` waits for. */
function readChild(pid: number): number {
  return Number(readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim());
}

/** The termination message shows the state of a watcher without stdout. */
async function untilRunning(folder: string, watcher: Child): Promise<void> {
  const path = join(folder, 'termination-log');
  await until('main running', END_MS, async () => {
    if (watcher.exit !== undefined) throw new Error(`it ended; ${watcher.tail()}`);
    return existsSync(path) && readMessage(folder).summary === 'Unfinished: running' ? true : undefined;
  });
}
