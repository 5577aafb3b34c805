// Makes the virtual environment of the tests' Locust: `node test/pods/install.ts`. It is cached between runs by version and
// lock file, so that a second run does nothing. The locked version is installed by hash; another one
// (LASTSCRAPE_TEST_LOCUST_VERSION) without, and it says so. It installs nothing else and touches no Python but its own.
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import {
  COMPLETE_MARKER,
  LOCKED_LOCUST_VERSION,
  locustEnvironmentPath,
  locustVersion,
  REQUIREMENTS_PATH,
} from './programs.ts';

/** In the order tried; the lock file was made for CPython 3.11 and later. */
const PYTHONS = ['python3', 'python3.11', 'python3.12', 'python3.13', 'python3.14'];

const SUITABLE = 'import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 11))';

const path = locustEnvironmentPath();
const marker = join(path, COMPLETE_MARKER);
if (existsSync(marker)) {
  console.log(`Locust ${locustVersion()} is already there: ${path}`);
} else {
  const python = PYTHONS.find(isSuitable);
  if (python === undefined) {
    process.stderr.write(
      'Cannot install Locust: no Python 3.11 or later with venv on the PATH; on Debian run "apt-get install python3-venv"\n',
    );
    process.exitCode = 1;
  } else {
    install(python);
  }
}

function install(python: string): void {
  rmSync(path, { recursive: true, force: true });
  mkdirSync(dirname(path), { recursive: true });
  run(python, ['-m', 'venv', path]);
  const pip = ['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', '--only-binary', ':all:'];
  const isLocked = locustVersion() === LOCKED_LOCUST_VERSION;
  if (!isLocked) process.stderr.write(`Locust ${locustVersion()} is not the locked one: installed without hashes\n`);
  run(join(path, 'bin', 'python'), [
    ...pip,
    ...(isLocked ? ['--require-hashes', '--requirement', REQUIREMENTS_PATH] : [`locust==${locustVersion()}`]),
  ]);
  run(join(path, 'bin', 'python'), ['-m', 'locust', '--version']);
  writeFileSync(marker, '');
}

function isSuitable(python: string): boolean {
  try {
    execFileSync(python, ['-c', SUITABLE], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}

function run(file: string, args: readonly string[]): void {
  execFileSync(file, args, { stdio: ['ignore', 'inherit', 'inherit'] });
}
