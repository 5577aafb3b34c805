// `node test/tools/install-programs.ts`: installs the programs of the tests that pip and Go install, each cached by
// version or lock file, by hash where locked; another Locust (LASTSCRAPE_TEST_LOCUST_VERSION) without.
import { execFileSync } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { JUDGES, OLD_JUDGE, OPERATOR_JUDGE } from '../judges/judges.ts';
import { GO_CLIENT, HOOK_TOOLS, JAVA_CLIENT, PYTHON_CLIENT } from '../pods/front-programs.ts';
import { type Source, TARGET_PROGRAMS } from '../pods/target-programs.ts';
import {
  COMPLETE_MARKER,
  cachePath,
  findOnPath,
  LOCKED_LOCUST_VERSION,
  locustEnvironmentPath,
  locustVersion,
  OTHER_NODES,
  OTLP_REQUIREMENTS_PATH,
  otherNodePath,
  otlpEnvironmentPath,
  REQUIREMENTS_PATH,
} from '../support/programs.ts';

/** In the order tried; the lock file was made for CPython 3.11 and later. */
const PYTHONS = ['python3', 'python3.11', 'python3.12', 'python3.13', 'python3.14'];

const SUITABLE = 'import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 11))';

const SUPPORT = join(import.meta.dirname, '../support');

const python = PYTHONS.find(isSuitable);

once(`Locust ${locustVersion()}`, locustEnvironmentPath(), installLocust);
once(`Locust ${LOCKED_LOCUST_VERSION} that sends OTLP`, otlpEnvironmentPath(), (path) =>
  installPackages(path, [
    ...['--require-hashes', '--requirement', REQUIREMENTS_PATH],
    ...['--requirement', OTLP_REQUIREMENTS_PATH],
  ]),
);
for (const [{ name, folder }, requirements] of [
  [PYTHON_CLIENT, 'requirements-client.txt'],
  [HOOK_TOOLS, 'requirements-hook.txt'],
] as const) {
  once(name, cachePath(folder), (path) =>
    installPackages(path, ['--require-hashes', '--requirement', join(SUPPORT, requirements)]),
  );
}
once(GO_CLIENT.name, cachePath(GO_CLIENT.folder), (path) => build(GO_CLIENT.source, '.', join(path, 'bin/go-client')));
for (const { name, source, folder } of [JUDGES, OLD_JUDGE, OPERATOR_JUDGE]) {
  once(name, cachePath(folder), (path) => build(source, './...', join(path, 'bin/')));
}
once(JAVA_CLIENT.name, cachePath(JAVA_CLIENT.folder), buildJavaClient);
for (const { name, source } of TARGET_PROGRAMS) {
  if (source.kind !== 'debian') once(name, cachePath(source.folder), (path) => installTarget(path, source));
}
for (const version of OTHER_NODES)
  once(`Node ${version}`, otherNodePath(version), (path) => installNode(path, version));

/** Fills a folder once; a half-made one is filled again. */
function once(name: string, path: string, install: (path: string) => string | null): void {
  if (existsSync(join(path, COMPLETE_MARKER))) {
    console.log(`${name} is already there: ${path}`);
    return;
  }
  rmSync(path, { recursive: true, force: true });
  mkdirSync(path, { recursive: true });
  const problem = install(path);
  if (problem === null) {
    writeFileSync(join(path, COMPLETE_MARKER), '');
    return;
  }
  process.stderr.write(`Cannot install ${name}: ${problem}\n`);
  process.exitCode = 1;
}

/** null, or what is missing. */
function installLocust(path: string): string | null {
  const isLocked = locustVersion() === LOCKED_LOCUST_VERSION;
  if (!isLocked) process.stderr.write(`Locust ${locustVersion()} is not the locked one: installed without hashes\n`);
  const what = isLocked ? ['--require-hashes', '--requirement', REQUIREMENTS_PATH] : [`locust==${locustVersion()}`];
  const problem = installPackages(path, what);
  if (problem === null) run(join(path, 'bin', 'python'), ['-m', 'locust', '--version']);
  return problem;
}

function installTarget(path: string, source: Exclude<Source, { kind: 'debian' }>): string | null {
  if (source.kind === 'go') {
    const go = findOnPath('go');
    if (go === undefined) return 'no Go on the PATH; it must be 1.26 or later';
    run(go, ['install', '-trimpath', source.module], { GOBIN: join(path, 'bin'), CGO_ENABLED: '0', GOFLAGS: '' });
    return null;
  }
  const requirements = join(SUPPORT, source.requirements);
  const problem = installPackages(path, [
    '--require-hashes',
    '--requirement',
    requirements,
    '--target',
    join(path, 'packages'),
  ]);
  if (problem === null) chmodSync(join(path, source.file), 0o755);
  return problem;
}

function installNode(path: string, version: string): null {
  const package_ = `node-linux-${process.arch}@${version}`;
  run('npm', ['install', '--silent', '--ignore-scripts', '--no-save', '--prefix', path, package_]);
  return null;
}

function build(source: string, packages: string, to: string): string | null {
  const go = findOnPath('go');
  if (go === undefined) return 'no Go on the PATH; it must be 1.26 or later';
  const env = { CGO_ENABLED: '0', GOFLAGS: '' };
  run(go, ['build', '-C', source, '-trimpath', '-o', to, packages], env);
  return null;
}

function buildJavaClient(path: string): string | null {
  const [maven, javac] = [findOnPath('mvn'), findOnPath('javac')];
  if (maven === undefined || javac === undefined) return 'no Maven or no JDK on the PATH';
  const classes = join(path, 'classes');
  const copy = 'org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies';
  run(maven, ['-q', '-B', '-f', join(JAVA_CLIENT.source, 'pom.xml'), copy, `-DoutputDirectory=${classes}`]);
  run(javac, ['-d', classes, '-cp', join(classes, '*'), join(JAVA_CLIENT.source, 'PushJob.java')]);
  return null;
}

function installPackages(path: string, what: readonly string[]): string | null {
  if (python === undefined) {
    return 'no Python 3.11 or later with venv on the PATH; on Debian run "apt-get install python3-venv"';
  }
  run(python, ['-m', 'venv', path]);
  const pip = ['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', '--only-binary', ':all:'];
  run(join(path, 'bin', 'python'), [...pip, ...what]);
  return null;
}

function isSuitable(candidate: string): boolean {
  try {
    execFileSync(candidate, ['-c', SUITABLE], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}

function run(file: string, args: readonly string[], env: Readonly<Record<string, string>> = {}): void {
  execFileSync(file, args, { stdio: ['ignore', 'inherit', 'inherit'], env: { ...process.env, ...env } });
}
