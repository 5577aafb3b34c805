// Finds the real programs of the pods; installs nothing (tools/install-programs.ts and a package manager do).
// LASTSCRAPE_TEST_LOCUST_VERSION: another Locust than the locked one. LASTSCRAPE_TEST_EXPORTER: a real locust_exporter,
// else on the PATH. LASTSCRAPE_TEST_BINARY: a built watcher, else the sources. CI=true: nothing may be missing.
import { execFileSync, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { accessSync, constants, existsSync, readFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { delimiter, join } from 'node:path';

/** An exporter that a pod can have: its name for a person, and its command. */
export type ExporterProgram = { readonly name: string; readonly isReal: boolean; readonly command: readonly string[] };

/** The commands found; `undefined`: not found. Of kustomize the folder comes last, whose kustomization it builds. */
export type Programs = Readonly<Record<Needed, readonly string[] | undefined>> & {
  /** The stand-in first, then the real one if it is installed. */
  readonly exporters: readonly ExporterProgram[];
  readonly watcher: readonly string[];
};

/** A program by the name of its field in Programs. */
type Needed = keyof typeof HOW_TO_INSTALL;

/** The Locust that requirements.txt locks. */
export const LOCKED_LOCUST_VERSION = '2.47.0';

/** The lock file: every wheel of Locust and of what it needs, by hash. */
export const REQUIREMENTS_PATH = join(import.meta.dirname, 'requirements.txt');

const HOW_TO_INSTALL = {
  locust:
    'Locust: run "npm exec -- node test/tools/install-programs.ts" (needs Python 3.11 or later with venv, and PyPI)',
  prometheus: 'Prometheus: "apt-get install prometheus" on Debian, or put "prometheus" on the PATH',
  promtool: 'promtool: "apt-get install prometheus" on Debian, or put "promtool" on the PATH',
  nodeExporter:
    'node_exporter: "apt-get install prometheus-node-exporter" on Debian, or put "prometheus-node-exporter" on the PATH',
  kustomize: 'kubectl or kustomize: put one of them on the PATH',
  kubeconform:
    'kubeconform: "go install github.com/yannh/kubeconform/cmd/kubeconform@v0.8.0", or put "kubeconform" on the PATH',
  helm: 'helm: ".ci/install-go-program helm" (needs Go), or put "helm" on the PATH',
};

const ROOT = join(import.meta.dirname, '..', '..');

/** A variable of the test's own environment; empty means not set. */
export function readTestVariable(name: string): string | undefined {
  const value = process.env[name]?.trim();
  return value === '' ? undefined : value;
}

/** The version of Locust that the tests use. */
export function locustVersion(): string {
  return readTestVariable('LASTSCRAPE_TEST_LOCUST_VERSION') ?? LOCKED_LOCUST_VERSION;
}

/** The folder of Locust's virtual environment, there or not; named by version and lock file. */
export function locustEnvironmentPath(): string {
  const version = locustVersion();
  const lock = createHash('sha256').update(readFileSync(REQUIREMENTS_PATH)).digest('hex').slice(0, 12);
  return cachePath(`locust-${version}-${version === LOCKED_LOCUST_VERSION ? lock : 'unlocked'}`);
}

/** What a Locust needs besides to send OTLP itself, and its environment: that of the locked one, and more. */
export const OTLP_REQUIREMENTS_PATH = join(import.meta.dirname, 'requirements-otel.txt');

export function otlpEnvironmentPath(): string {
  const locks = [REQUIREMENTS_PATH, OTLP_REQUIREMENTS_PATH].map((path) => readFileSync(path));
  const lock = createHash('sha256').update(Buffer.concat(locks)).digest('hex').slice(0, 12);
  return cachePath(`locust-otel-${LOCKED_LOCUST_VERSION}-${lock}`);
}

/** A folder for what install.ts installs, kept between runs; there or not. */
export function cachePath(folder: string): string {
  return join(readTestVariable('XDG_CACHE_HOME') ?? join(homedir(), '.cache'), 'lastscrape', folder);
}

/** The Nodes that the npm package is tried with, in addition to the checkout's: the oldest that it takes, and the newest. */
export const OTHER_NODES = ['22.23.3', '26.10.0'] as const;

export function otherNodePath(version: string): string {
  return cachePath(`node-${version}`);
}

/** The file that install.ts writes last: without it an environment is half made. */
export const COMPLETE_MARKER = 'lastscrape-complete';

export function findPrograms(): Programs {
  const environment = locustEnvironmentPath();
  const find = (name: string, ...args: readonly string[]) => {
    const path = findOnPath(name);
    return path === undefined ? undefined : [path, ...args];
  };
  const binary = readTestVariable('LASTSCRAPE_TEST_BINARY');
  return {
    locust: existsSync(join(environment, COMPLETE_MARKER))
      ? [join(environment, 'bin', 'python'), '-m', 'locust']
      : undefined,
    prometheus: find('prometheus'),
    promtool: find('promtool'),
    nodeExporter: find('prometheus-node-exporter'),
    kustomize: find('kubectl', 'kustomize') ?? find('kustomize', 'build'),
    kubeconform: find('kubeconform'),
    helm: find('helm'),
    exporters: [standInExporter(), ...realExporters()],
    watcher: binary === undefined ? [process.execPath, join(ROOT, 'bin', 'lastscrape.ts')] : [binary],
  };
}

/** What to install so that the tests which need these programs run; empty when all are there. */
export function listMissing(programs: Programs, needed: readonly Needed[]): readonly string[] {
  const missing = needed.filter((name) => programs[name] === undefined).map((name) => HOW_TO_INSTALL[name]);
  return needed.includes('prometheus') || needed.includes('locust')
    ? [...missing, ...listMissingForNetwork()]
    : missing;
}

/** What the network of a pod (network.ts) lacks on this machine. */
export function listMissingForNetwork(): readonly string[] {
  const { status } = spawnSync('setpriv', ['unshare', '--net', 'ip', 'link', 'set', 'lo', 'up'], { stdio: 'ignore' });
  return status === 0 ? [] : ['namespaces of the network: run as root on Linux, with iproute2 and util-linux'];
}

/** Why the tests of a file are skipped; `false`: nothing is missing. @throws with CI=true otherwise */
export function gateMissing(file: string, missing: readonly string[]): string | false {
  if (missing.length === 0) return false;
  const message = `Cannot run ${file}: ${missing.join('; ')}`;
  if (readTestVariable('CI') === 'true') throw new Error(message);
  process.stderr.write(`SKIPPED ${message}\n`);
  return message;
}

/** The same for real programs; where none is missing stderr has their versions, which `describe` finds. */
export function gatePrograms(file: string, missing: readonly string[], describe: () => readonly string[]) {
  const skip = gateMissing(
    file,
    missing.length === 0 ? [] : [`real programs are missing; install ${missing.join('; ')}`],
  );
  if (skip === false) process.stderr.write(`${file} runs with ${describe().join(', ')}\n`);
  return skip;
}

export function gate(programs: Programs, file: string, needed: readonly Needed[]): string | false {
  return gatePrograms(file, listMissing(programs, needed), () => describePrograms(programs, needed));
}

/** Why what takes long and says little of a change does not run; `false` outside CI, and with CI_FULL=1. */
export function gateFull(what: string): string | false {
  if (readTestVariable('CI') !== 'true' || readTestVariable('CI_FULL') === '1') return false;
  const message = `NOT RUN ${what}: CI_FULL=1 runs it`;
  process.stderr.write(`${message}\n`);
  return message;
}

/** One phrase for each program; Prometheus's with its version. */
export function describePrograms(programs: Programs, needed: readonly Needed[]): readonly string[] {
  const phrases = needed.flatMap((name) => {
    if (name === 'locust') return [`Locust ${locustVersion()}`, ...programs.exporters.map((exporter) => exporter.name)];
    const command = programs[name] ?? [];
    return ['prometheus', 'promtool', 'nodeExporter'].includes(name) ? readVersion(command) : command.join(' ');
  });
  const binary = readTestVariable('LASTSCRAPE_TEST_BINARY');
  return [...phrases, binary === undefined ? 'the sources' : `the binary ${binary}`];
}

function standInExporter(): ExporterProgram {
  return {
    name: 'the stand-in for the exporter',
    isReal: false,
    command: [process.execPath, join(ROOT, 'test', 'stand-in', 'exporter-main.ts')],
  };
}

function realExporters(): readonly ExporterProgram[] {
  const named = readTestVariable('LASTSCRAPE_TEST_EXPORTER');
  if (named !== undefined && !isExecutable(named)) {
    throw new Error(`Cannot use LASTSCRAPE_TEST_EXPORTER: it is "${named}"; must be the path of a locust_exporter`);
  }
  const path = named ?? findOnPath('locust_exporter');
  return path === undefined ? [] : [{ name: 'the real locust_exporter', isReal: true, command: [path] }];
}

/** The path of a program; `undefined`: not found. */
export function findOnPath(name: string): string | undefined {
  return (readTestVariable('PATH') ?? '')
    .split(delimiter)
    .map((folder) => join(folder, name))
    .find(isExecutable);
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

// "prometheus, version 2.42.0+ds (branch: …" on stdout, or on stderr in older versions.
function readVersion(command: readonly string[]): string {
  const [file = ''] = command;
  const text = execFileSync(file, ['--version'], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] });
  const match = /^(\S+), version (\S+)/.exec(text);
  return match === null ? file : `${match[1]} ${match[2]}`;
}

/** For Debian's Pushgateway, which keeps its groups in a file of the machine otherwise: the next one had them. */
export const IN_MEMORY = '--persistence.file=';
