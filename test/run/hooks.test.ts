// The hook in every Python of this machine: a program that has it ends as it does without it, and its last numbers are read.

import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, existsSync, globSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { Agent, createServer, get, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { homedir } from 'node:os';
import { delimiter, join } from 'node:path';
import { describe, test } from 'node:test';
import { writeHooks } from '../../src/run/hooks.ts';
import { frontProgram, gateFront, HOOK_TOOLS, PYTHON_CLIENT } from '../pods/front-programs.ts';
import { startChild } from '../support/child.ts';
import { makeFolder } from '../support/folder.ts';
import { findFreePort } from '../support/listen.ts';
import { cachePath, readTestVariable } from '../support/programs.ts';

const skip = gateFront('test/run/hooks.test.ts', ['python', 'vermin']);
const PROGRAM = join(import.meta.dirname, 'hooked.py');
/** Twelve Pythons on two busy cores. */
const END_MS = 60_000;

const folder = makeFolder();
const hook = join(folder, 'python');
assert.equal(await writeHooks(folder, 7), null);
/** The same hook with a minute to wait: a machine may stand still for the 2 s. */
const patientHook = join(folder, 'patient');
cpSync(hook, patientHook, { recursive: true });
for (const path of globSync(join(patientHook, '*')))
  writeFileSync(path, readFileSync(path, 'utf8').replace('LEFT_SECONDS = 2\n', 'LEFT_SECONDS = 60\n'));

/** A Python, and its version as 100 × major + minor. */
type Python = { readonly path: string; readonly version: number };

/** Every Python on the PATH, and every one of pyenv. */
function findPythons(): readonly Python[] {
  const folders = (readTestVariable('PATH') ?? '').split(delimiter);
  const pyenv = readTestVariable('PYENV_ROOT') ?? join(homedir(), '.pyenv');
  const names = [...folders, ...globSync(join(pyenv, 'versions/*/bin'))].flatMap((each) =>
    globSync('python{2,3,2.*,3.?,3.??}', { cwd: each }).map((name) => join(each, name)),
  );
  const found = new Map<string, Python>();
  for (const name of names) {
    const code = 'import sys; print("%d %s" % (sys.version_info[0] * 100 + sys.version_info[1], sys.prefix))';
    const { status, stdout } = spawnSync(name, ['-c', code], { encoding: 'utf8' });
    if (status !== 0) continue;
    // python3.6 and python3.6m are one.
    const [version = ''] = stdout.split(' ');
    found.set(stdout, { path: name, version: Number(version) });
  }
  return [...found.values()];
}

/** How a program ended, and what its page showed at each call for a snapshot. */
type Ended = { readonly how: readonly unknown[]; readonly snapshots: readonly string[] };
type Play = {
  /** Of hooked.py. Default: return. */
  readonly ending?: string;
  readonly options?: readonly string[];
  /** In PYTHONPATH, behind the hook and before the packages; `first`: before the hook. */
  readonly own?: string;
  readonly first?: string;
  /** What answers POST /-/snapshot. Default: one that reads both pages. */
  readonly front?: 'hanging' | 'absent';
  readonly isHooked: boolean;
};

async function play(
  { path, version }: Python,
  { ending = 'return', options = [], own = '', first = '', front, isHooked }: Play,
): Promise<Ended> {
  const ports = [await findFreePort(), await findFreePort()];
  const snapshots: string[] = [];
  const agents: Agent[] = [];
  const read = async (port: number, agent: Agent) => {
    const [response] = (await once(get({ port, host: '127.0.0.1', agent }), 'response')) as [IncomingMessage];
    return Buffer.concat(await response.toArray()).toString();
  };
  const server = createServer(async (request, response) => {
    // A new connection each time, which is kept.
    const agent = new Agent({ keepAlive: true });
    agents.push(agent);
    const pages = ports.map((port) => read(port, agent).catch(() => ''));
    const worked = (await Promise.all(pages)).map((page) => Number(/^worked (.*)/m.exec(page)?.[1]));
    snapshots.push(`${request.method} ${request.url} ${worked}`);
    if (front !== 'hanging') response.end();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const port = front === 'absent' ? await findFreePort() : (server.address() as AddressInfo).port;
  const environment = cachePath((version < 309 ? HOOK_TOOLS : PYTHON_CLIENT).folder);
  const [packages = ''] = globSync(join(environment, 'lib/python3*/site-packages'));
  await using _closing = {
    async [Symbol.asyncDispose]() {
      for (const agent of agents) agent.destroy();
      server.closeAllConnections();
      server.close();
    },
  };
  const ownHook = front === 'hanging' ? hook : patientHook;
  await using child = startChild({
    name: `${path} ${ending}`,
    command: [path, '-W', 'ignore', ...options, PROGRAM, ending, ...ports.map(String)],
    env: {
      PYTHONPATH: [first, isHooked ? ownHook : '', own, packages].filter(Boolean).join(delimiter),
      LASTSCRAPE_SNAPSHOT_URL: `http://localhost:${port}/-/snapshot`,
    },
    cwd: folder,
  });
  const { code, signal } = await child.waitForExit(END_MS);
  return { how: [code, signal, child.lines.map(({ stream, text }) => `${stream} ${text}`)], snapshots };
}

/** Plays with the hook and without: it must end the same. @returns the calls for a snapshot */
async function compare(python: Python, row: Omit<Play, 'isHooked'>): Promise<readonly string[]> {
  const plain = await play(python, { ...row, isHooked: false });
  const hooked = await play(python, { ...row, isHooked: true });
  assert.deepEqual(hooked.how, plain.how, JSON.stringify(row));
  assert.deepEqual(plain.snapshots, []);
  return hooked.snapshots;
}

/** Runs it with the hook, which nothing answers, to its end. */
function run(path: string, args: readonly string[], env: Readonly<Record<string, string>> = {}, cwd = folder) {
  const hooked = { PYTHONPATH: hook, LASTSCRAPE_SNAPSHOT_URL: 'http://localhost:1/', ...env };
  const { status, stdout, stderr } = spawnSync(path, args, { env: hooked, cwd, encoding: 'utf8' });
  return { status, stdout, stderr };
}

/** Makes a folder with a sitecustomize of the image's own, or another module. */
function makeOwn(name: string, code: string, module = 'sitecustomize'): string {
  const own = join(folder, name);
  mkdirSync(own);
  writeFileSync(join(own, `${module}.py`), code);
  return own;
}

const OWN = makeOwn(
  'own',
  'import atexit, sys\nprint("own", __file__, sys.path)\natexit.register(print, "own at exit")\n',
);
/** Runs another in its own module, whose file it then is. */
const NEW_RELIC = makeOwn(
  'new-relic',
  `import sys; from importlib.machinery import PathFinder
sys.path.remove(${JSON.stringify(join(folder, 'new-relic'))})
spec = PathFinder.find_spec("sitecustomize", sys.path)
if spec: spec.loader.load_module("sitecustomize")
__file__ = "new-relic"; print("its agent runs", sys.modules["sitecustomize"].__file__)`,
);
const USER = makeOwn('user', 'print("user", __file__)\n', 'usercustomize');
const LAST = ['POST /-/snapshot 1000000,1000000'];
/** What is played, and the calls that come of it. */
const ROWS: readonly (readonly [row: Omit<Play, 'isHooked'>, snapshots: readonly string[]])[] = [
  ...['return', 'exit', 'raise', 'sigint', 'fork', 'child', 'bare'].map((ending) => [{ ending }, LAST] as const),
  [{ ending: 'handler' }, [...LAST, 'POST /-/snapshot NaN,0']],
  [{ own: OWN }, LAST],
  [{ own: USER }, LAST],
  [{ first: makeOwn('first', 'print("first")\n'), own: USER }, LAST],
  [{ first: NEW_RELIC }, LAST],
  [{ own: makeOwn('failing', 'raise ValueError("own")\n') }, LAST],
  [{ own: makeOwn('missing', 'import no_such_module\n') }, LAST],
  [{ front: 'absent' }, []],
  [{ front: 'hanging' }, LAST],
];
const pythons = findPythons();

describe('the hook of Python', { skip }, () => {
  // The tests after these block this process, which answers the programs' calls here.
  describe('a program ends as it does without it, and its last numbers are read', { concurrency: 6 }, () => {
    for (const python of pythons.filter(({ version }) => version >= 306)) {
      test(python.path, async () => {
        // One that ends makes no call.
        const interpreter = python.version < 308 ? [] : [[{ ending: 'interpreter' }, LAST] as const];
        for (const [row, snapshots] of [...ROWS, ...interpreter]) {
          // Before the exit handlers, if there are any, and after them.
          assert.deepEqual([...new Set(await compare(python, row))], snapshots, JSON.stringify(row));
        }
      });
    }
  });

  test('imports nothing but atexit; -S does without it, and so do -E and -I, which know no PYTHONPATH', async () => {
    const python = pythons.find(({ version }) => version >= 306) ?? assert.fail('no Python 3.6 or later');
    const code = 'import atexit, sys; print(atexit._ncallbacks(), *sys.modules)';
    const plain = run(python.path, ['-c', code], { PYTHONPATH: '' }).stdout.split(/\s/);
    const hooked = run(python.path, ['-c', code]).stdout.split(/\s/);
    assert.match(hooked.filter((each) => !plain.includes(each)).join(), /^\d+$/, 'another function is registered');
    assert.deepEqual((await play(python, { options: ['-S'], isHooked: true })).snapshots, []);
    const { path } = pythons.find(({ version }) => version >= 310) ?? python;
    assert.equal(run(path, ['-X', 'warn_default_encoding', '-c', '']).stderr, '');
    for (const option of ['-E', '-I']) {
      const code = 'import sys; print("sitecustomize" in sys.modules)';
      assert.equal(run(python.path, [option, '-c', code], { PYTHONPATH: OWN }).stdout, 'False\n', option);
    }
  });

  test('the colon that kustomize leaves behind does not put the current folder into the path', () => {
    const cwd = makeOwn('current', '');
    const list = (python: string, path: string) =>
      run(python, ['-c', 'import sys; print(sys.path)'], { PYTHONPATH: path }, cwd);
    for (const { path } of pythons.filter(({ version }) => version >= 306)) {
      const plain = list(path, '');
      assert.deepEqual(list(path, `${hook}:`), plain, path);
      assert.notDeepEqual(list(path, `${hook}:${OWN}:`), list(path, `${hook}:${OWN}`), 'what main had stays as it was');
    }
  });

  test('the colon that kustomize leaves behind takes no folder away that a .pth of the image names', () => {
    const cwd = makeOwn('installed', '');
    writeFileSync(join(cwd, 'installed_here.py'), 'print("it is there")\n');
    for (const { path, version } of pythons.filter((each) => each.version >= 306)) {
      const packages = join(folder, `base/lib/python3.${version % 100}/site-packages`);
      mkdirSync(packages, { recursive: true });
      writeFileSync(join(packages, 'editable.pth'), `# installed\n${cwd}\n`);
      const env = { PYTHONPATH: `${hook}:`, PYTHONUSERBASE: join(folder, 'base') };
      const program = join(folder, 'program.py');
      writeFileSync(program, 'import installed_here\n');
      assert.deepEqual(run(path, [program], env, cwd), { status: 0, stdout: 'it is there\n', stderr: '' }, path);
    }
  });

  test('a program in a folder that is gone starts', () => {
    for (const { path, version } of pythons.filter((each) => each.version >= 306)) {
      const script = 'mkdir gone && cd gone && rmdir ../gone && "$0" -c "print(1)"';
      // Python 3.11 and later fail by themselves where the path has another folder that is relative.
      const env = { PYTHONPATH: version < 311 ? `${hook}:relative` : hook };
      assert.deepEqual(run('/bin/sh', ['-c', script, path], env), { status: 0, stdout: '1\n', stderr: '' }, path);
    }
  });

  test('an older Python prints nothing of it, loads the own module of its image, and ends well', () => {
    const PYTHONPATH = [hook, makeOwn('old', 'print("own")\n')].join(delimiter);
    for (const { path } of pythons.filter(({ version }) => version < 306))
      assert.deepEqual(run(path, ['-c', 'print(1)'], { PYTHONPATH }), { status: 0, stdout: 'own\n1\n', stderr: '' });
  });

  test('needs no more than Python 3.6', () => {
    const options = ['--target=3.6-', '--violations', '--no-tips'];
    execFileSync(frontProgram('vermin'), [...options, join(hook, 'sitecustomize.py')]);
  });
});

test('writeHooks() writes a file for everyone to read, again over the old one, or says why not', async () => {
  assert.equal(await writeHooks(folder, 8), null);
  assert.deepEqual(globSync('.*', { cwd: hook }), [], 'nothing half made');
  assert.equal(statSync(join(hook, 'sitecustomize.py')).mode & 0o777, 0o644);
  const file = join(folder, 'own/sitecustomize.py');
  assert.equal(await writeHooks(file, 7), `Cannot write ${file}/python/sitecustomize.py: ENOTDIR`);
});

test('a run writes it before the front listens, and warns where it cannot', async () => {
  for (const [hooks, message] of [
    [join(folder, 'new'), /"msg":"watching"/],
    [join(folder, 'own/sitecustomize.py'), /"the hook cannot be written: .*ENOTDIR"/],
    ['/proc/none', /"the hook cannot be written: .*ENOENT"/],
  ] as const) {
    await using child = startChild({
      name: 'lastscrape',
      command: [process.execPath, join(import.meta.dirname, '../../bin/lastscrape.ts')],
      env: {
        LASTSCRAPE_HOOKS: hooks,
        LASTSCRAPE_FRONT: `127.0.0.1:${await findFreePort()}`,
        LASTSCRAPE_METRICS_URL: 'file:///none',
        LASTSCRAPE_DONE_WHEN: 'sigterm',
      },
      cwd: folder,
    });
    await child.waitForLine(message, END_MS);
    assert.equal(existsSync(join(hooks, 'python/sitecustomize.py')), hooks.endsWith('new'));
  }
});
