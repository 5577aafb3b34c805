// `node test/tools/install-frameworks.ts [NAME…]`: builds the frameworks that make batch pods, from their Go modules and
// Python packages, outside of the checkout; some 20 minutes on two cores, once. Cached by version.
import { execFileSync } from 'node:child_process';
import { chmodSync, cpSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import {
  frameworkPath,
  GO_BUILDS,
  type GoBuild,
  isBuilt,
  PYTHON_BUILDS,
  type PythonBuild,
} from '../cluster/frameworks/builds.ts';
import { makeFolder } from '../support/folder.ts';
import { COMPLETE_MARKER } from '../support/programs.ts';

const wanted = process.argv.slice(2);
const isWanted = ({ name }: GoBuild | PythonBuild) => wanted.length === 0 || wanted.includes(name);

for (const build of GO_BUILDS.filter(isWanted)) install(build, () => buildPrograms(build));
for (const build of PYTHON_BUILDS.filter(isWanted)) install(build, () => installPackages(build));

function install(build: GoBuild | PythonBuild, make: () => void): void {
  const { name, version } = build;
  if (isBuilt(build)) {
    console.log(`${name} ${version} is already there: ${frameworkPath(build)}`);
    return;
  }
  console.log(`Building ${name} ${version}, which takes some minutes`);
  rmSync(frameworkPath(build), { recursive: true, force: true });
  make();
  writeFileSync(join(frameworkPath(build), COMPLETE_MARKER), '');
}

/** In a copy of the module, since its own folder cannot be written, and some of its files are missing there. */
function buildPrograms(build: GoBuild): void {
  const { module, version, programs, links = {} } = build;
  const directory = makeFolder();
  const downloaded = execFileSync('go', ['mod', 'download', '-json', `${module}@v${version}`], {
    encoding: 'utf8',
    cwd: directory,
  });
  const copy = join(directory, 'module');
  cpSync(JSON.parse(downloaded).Dir, copy, { recursive: true });
  makeWritable(copy);
  for (const [file, from] of Object.entries(links)) cpSync(join(copy, dirname(file), from), join(copy, file));
  for (const [program, path] of Object.entries(programs)) {
    const to = join(frameworkPath(build), 'bin', program);
    execFileSync('go', ['build', '-trimpath', '-ldflags', '-s -w', '-o', to, path], {
      cwd: copy,
      stdio: ['ignore', 'ignore', 'inherit'],
      env: { ...process.env, CGO_ENABLED: '0', GOFLAGS: '-mod=mod -buildvcs=false' },
    });
  }
  // What is installed beside the programs: charts, definitions, manifests.
  for (const part of ['charts', 'config', 'manifests'].filter((each) => readdirSync(copy).includes(each))) {
    cpSync(join(copy, part), join(frameworkPath(build), part), { recursive: true });
  }
}

function makeWritable(folder: string): void {
  chmodSync(folder, 0o755);
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) makeWritable(path);
    else chmodSync(path, 0o644);
  }
}

/** By uv: pip tries for 20 minutes which versions of Airflow's 140 packages fit together. */
function installPackages(build: PythonBuild): void {
  const path = frameworkPath(build);
  mkdirSync(path, { recursive: true });
  const run = (program: string, ...args: readonly string[]) => execFileSync(program, args, { stdio: 'inherit' });
  run('python3', '-m', 'venv', path);
  const python = join(path, 'bin/python');
  run(python, '-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', 'uv==0.13.9');
  run(join(path, 'bin/uv'), 'pip', 'install', '--quiet', '--python', python, ...build.packages);
}
