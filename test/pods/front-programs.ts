// Finds the programs of the front's tests: jobs with their own numbers, and scrapers. It installs nothing:
// Debian and `node test/tools/install-*.ts` do.
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { CLUSTER_PROMETHEUS_PATH, CLUSTER_PROMETHEUS_VERSION } from '../cluster/prometheus-path.ts';
import {
  COMPLETE_MARKER,
  cachePath,
  findOnPath,
  findPrograms,
  gatePrograms,
  listMissingForNetwork,
} from '../support/programs.ts';

/** prometheus_client of PyPI by requirements-client.txt, in a virtual environment of its own. */
export const PYTHON_CLIENT = { name: 'prometheus_client 0.26.0', folder: 'prometheus-client-0.26.0' };

/** What says which Python a file needs, and the newest client for Python 3.6 to 3.8, in one virtual environment. */
export const HOOK_TOOLS = { name: 'vermin 1.9.2, prometheus_client 0.17.1', folder: 'vermin-1.9.2-client-0.17.1' };

/** The OpenTelemetry Collector of test/tools/install-collector.ts. */
export const COLLECTOR = {
  name: 'OpenTelemetry Collector 0.164.0',
  version: 'v0.164.0',
  folder: 'otelcol-0.164.0-both',
};

const GO_CLIENT_SOURCE = join(import.meta.dirname, 'jobs/go-client');
const goClientHash = createHash('sha256')
  .update(readFileSync(join(GO_CLIENT_SOURCE, 'main.go')))
  .digest('hex');

/** A job with client_golang, built by `install-programs.ts` of what is in `source`. */
export const GO_CLIENT = {
  name: 'client_golang 1.23.2',
  source: GO_CLIENT_SOURCE,
  folder: `go-client-1.23.2-${goClientHash.slice(0, 12)}`,
};

/** The Java client of Maven Central, and a job with it, built by `install-programs.ts`. */
export const JAVA_CLIENT = {
  name: 'prometheus-metrics-exporter-pushgateway 1.4.3',
  source: join(import.meta.dirname, 'jobs/java-client'),
  folder: 'java-client-1.4.3',
};

const INSTALL = 'run "npm exec -- node test/tools';

type Row = {
  readonly find: () => string | undefined;
  readonly howToInstall: string;
  /** With its version, where it does not say that itself. */
  readonly name?: string;
};

const ROWS = {
  prometheus: {
    find: () => findOnPath('prometheus'),
    howToInstall: 'Prometheus 2.42: "apt-get install prometheus" on Debian',
  },
  nodeExporter: {
    find: () => findOnPath('prometheus-node-exporter'),
    howToInstall: 'node_exporter: "apt-get install prometheus-node-exporter" on Debian',
  },
  pushgateway: {
    find: () => findOnPath('prometheus-pushgateway'),
    howToInstall: 'Pushgateway: "apt-get install prometheus-pushgateway" on Debian',
  },
  curl: { find: () => findOnPath('curl'), howToInstall: 'curl: "apt-get install curl"' },
  python: {
    name: PYTHON_CLIENT.name,
    find: () => findInstalled(PYTHON_CLIENT.folder, 'bin/python'),
    howToInstall: `prometheus_client: ${INSTALL}/install-programs.ts" (needs Python with venv)`,
  },
  vermin: {
    name: HOOK_TOOLS.name,
    find: () => findInstalled(HOOK_TOOLS.folder, 'bin/vermin'),
    howToInstall: `vermin: ${INSTALL}/install-programs.ts" (needs Python with venv)`,
  },
  goClient: {
    name: GO_CLIENT.name,
    find: () => findInstalled(GO_CLIENT.folder, 'bin/go-client'),
    howToInstall: `a job with client_golang: ${INSTALL}/install-programs.ts" (needs Go 1.26)`,
  },
  javaClient: {
    name: JAVA_CLIENT.name,
    find: () => findInstalled(JAVA_CLIENT.folder, 'classes'),
    howToInstall: `a job with the Java client: ${INSTALL}/install-programs.ts" (needs a JDK and Maven: "apt-get install openjdk-17-jdk-headless maven" on Debian)`,
  },
  busybox: {
    name: 'busybox',
    find: () => findOnPath('busybox'),
    howToInstall: 'busybox: "apt-get install busybox-static"',
  },
  prometheus3: {
    name: `Prometheus 3 (${CLUSTER_PROMETHEUS_VERSION})`,
    find: () => (existsSync(CLUSTER_PROMETHEUS_PATH) ? CLUSTER_PROMETHEUS_PATH : undefined),
    howToInstall: `Prometheus 3: ${INSTALL}/install-cluster.ts" (needs Go 1.26)`,
  },
  collector: {
    name: COLLECTOR.name,
    find: () => findInstalled(COLLECTOR.folder, 'bin/otelcol'),
    howToInstall: `the OpenTelemetry Collector: ${INSTALL}/install-collector.ts" (needs Go 1.26)`,
  },
} as const satisfies Readonly<Record<string, Row>>;

export type FrontProgram = keyof typeof ROWS;

/** The command of lastscrape: the sources, or what LASTSCRAPE_TEST_BINARY names. */
export const LASTSCRAPE: readonly string[] = findPrograms().watcher;

/** The path of a program. @throws where it is missing: the tests that want it were to be skipped. */
export function frontProgram(name: FrontProgram): string {
  const path = ROWS[name].find();
  if (path === undefined) throw new Error(`Bug: ${name} is used although it is missing`);
  return path;
}

/** What to install so that all of these run; empty where they are there. */
export function listMissingFrontPrograms(needed: readonly FrontProgram[]): readonly string[] {
  const missing = needed.filter((name) => ROWS[name].find() === undefined).map((name) => ROWS[name].howToInstall);
  return needed.some((name) => name.startsWith('prometheus')) ? [...missing, ...listMissingForNetwork()] : missing;
}

/** One phrase for each program, with its version. */
export function describeFrontPrograms(needed: readonly FrontProgram[]): readonly string[] {
  return [...needed.map(describeProgram), `lastscrape: ${LASTSCRAPE.at(-1)}`];
}

/** Why the tests of these programs are skipped; `false`: all are there. @throws with CI=true otherwise */
export function gateFront(file: string, needed: readonly FrontProgram[]): string | false {
  return gatePrograms(file, listMissingFrontPrograms(needed), () => describeFrontPrograms(needed));
}

function findInstalled(folder: string, file: string): string | undefined {
  const path = cachePath(folder);
  return existsSync(join(path, COMPLETE_MARKER)) ? join(path, file) : undefined;
}

// The first line that it says of itself, without how it was built: "prometheus, version 2.42.0+ds (…".
function describeProgram(name: FrontProgram): string {
  const row: Row = ROWS[name];
  if (row.name !== undefined) return row.name;
  const { stdout, stderr } = spawnSync(frontProgram(name), ['--version'], { encoding: 'utf8' });
  const text = stdout === '' ? stderr : stdout;
  return (text.split('\n', 1)[0] ?? '').replace(/ \(.*/, '').replace(', version', '');
}
