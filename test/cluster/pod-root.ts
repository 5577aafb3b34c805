// Root file systems for images: the tests' Locust with its Python, and Node with a stand-in. Each holds a
// program and its libraries, nothing else.

import { execFileSync } from 'node:child_process';
import { chmodSync, cpSync, mkdirSync, readdirSync, realpathSync, symlinkSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { listImports } from '../tools/house.ts';

const TEST = join(import.meta.dirname, '..');

type Python = { readonly program: string; readonly version: string; readonly library: string; readonly site: string };

const ASK_PYTHON = `
import json, os, sys, sysconfig
print(json.dumps({
  "program": os.path.realpath(sys.executable), "version": "%d.%d" % sys.version_info[:2],
  "library": os.path.realpath(sysconfig.get_path("stdlib")), "site": os.path.realpath(sysconfig.get_path("purelib"))}))
`;

/** Of the standard library what nothing at run time asks for, and half of its bytes. */
const LEFT_OUT = /\/(site-packages|dist-packages|test|tests|idlelib|ensurepip|lib2to3|config-[^/]*)$/;

/** Makes Locust's, as lines of a Containerfile; Python moves to /usr, which PYTHONHOME must say. */
export function makeLocustRoot(root: string, python: string): readonly string[] {
  const { program, version, library, site }: Python = JSON.parse(
    execFileSync(python, ['-c', ASK_PYTHON], { encoding: 'utf8' }),
  );
  const inside = `/usr/bin/python${version}`;
  copy(program, join(root, inside));
  symlinkSync(inside, join(root, 'usr/bin/python'));
  copy(library, join(root, 'usr/lib', `python${version}`), (path) => !LEFT_OUT.test(path));
  copy(site, join(root, 'opt/site'));
  const modules = [join(library, 'lib-dynload'), site].flatMap(listModules);
  copyLibraries([program, ...modules], root, [library, site]);
  makeTmp(root);
  return [
    ...['ENV PYTHONHOME=/usr', 'ENV PYTHONPATH=/opt/site', 'ENV PYTHONDONTWRITEBYTECODE=1', 'ENV TZ=UTC'],
    ...['USER 1000:1000', 'WORKDIR /tmp', `ENTRYPOINT ${JSON.stringify([inside, '-m', 'locust'])}`],
  ];
}

/** Makes the exporter's, with the Node that runs the test. @returns lines of a Containerfile */
export function makeExporterRoot(root: string): readonly string[] {
  copyStandIn(root, 'exporter-main');
  // As the real image: from scratch, user 1000.
  return ['USER 1000:1000', 'ENTRYPOINT ["/node", "/stand-in/exporter-main.ts"]'];
}

/** Makes the root of a mesh's proxy, with the same Node. @returns its entrypoint; append the preset */
export function makeMeshRoot(root: string): readonly string[] {
  copyStandIn(root, 'quit-target-main');
  return ['/node', '/stand-in/quit-target-main.ts'];
}

/** Makes the root of a main that serves its own metrics, with the same Node. @returns its entrypoint */
export function makeJobRoot(root: string): readonly string[] {
  copyStandIn(root, 'counting-job');
  return ['/node', '/stand-in/counting-job.ts'];
}

/** Node, and a program of test/stand-in with all that it imports: test/ and src/ both lie at the image's root. */
function copyStandIn(root: string, name: string): void {
  copy(realpathSync(process.execPath), join(root, 'node'));
  copyLibraries([process.execPath], root, []);
  const files = new Set([`test/stand-in/${name}.ts`]);
  for (const file of files) {
    copy(join(TEST, '..', file), join(root, file.replace(/^test\//, '')));
    for (const { to, isType } of listImports(file)) if (/^(src|test)\//.test(to) && !isType) files.add(to);
  }
}

// Times are kept: Python believes a compiled file by the time of its source.
function copy(from: string, to: string, filter: (path: string) => boolean = () => true): void {
  mkdirSync(dirname(to), { recursive: true });
  cpSync(from, to, { recursive: true, preserveTimestamps: true, verbatimSymlinks: true, filter });
}

/** Copies the libraries that the loader names, but for those below folders that are `there` already. */
export function copyLibraries(programs: readonly string[], root: string, there: readonly string[]): void {
  const text = execFileSync('ldd', programs, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] });
  const libraries = new Set([...text.matchAll(/(\/\S+) \(0x/g)].map(([, path]) => path ?? ''));
  for (const path of libraries) {
    if (!there.some((folder) => path.startsWith(`${folder}/`))) copy(realpathSync(path), join(root, path));
  }
}

function listModules(folder: string): readonly string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && /\.so(\.|$)/.test(entry.name))
    .map((entry) => join(entry.parentPath, entry.name));
}

function makeTmp(root: string): void {
  const path = join(root, 'tmp');
  mkdirSync(path);
  chmodSync(path, 0o1777);
}
