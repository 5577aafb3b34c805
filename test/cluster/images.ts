// The images of the cluster test: lastscrape from dist/, Locust, the exporter, Prometheus, busybox, and those
// of the migration; loaded by the command that the user of the test names.

import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  copyFileSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { readInterpreter } from '../../image/elf.ts';
import { VERSION } from '../../src/base/version.ts';
import { DIST } from '../image/dist.ts';
import { findTarget, TARGET_PROGRAMS } from '../pods/target-programs.ts';
import { findOnPath, otlpEnvironmentPath, type Programs } from '../support/programs.ts';
import { type ImageConfig, packFolder, packNamed } from './archive.ts';
import { runShell } from './cluster.ts';
import { copyLibraries, makeExporterRoot, makeJobRoot, makeLocustRoot, makeMeshRoot } from './pod-root.ts';
import { CLUSTER_PROMETHEUS_PATH } from './prometheus-path.ts';

/** As Debian's package names it. */
export const PUSHGATEWAY = 'prometheus-pushgateway';

/** The names under which the images are loaded. lastscrape has the one of deploy/. */
export const IMAGES = {
  lastscrape: `docker.io/library/lastscrape:${VERSION}`,
  /** lastscrape under a name that no policy knows. */
  renamed: 'localhost/lastscrape-test/metrics:1',
  locust: 'localhost/lastscrape-test/locust:1',
  /** The same with locust[otel]; only for LocustTests of a real operator. */
  locustOtlp: 'localhost/lastscrape-test/locust-otlp:1',
  exporter: 'localhost/lastscrape-test/exporter:1',
  prometheus: 'localhost/lastscrape-test/prometheus:1',
  pushgateway: 'localhost/lastscrape-test/pushgateway:1',
  busybox: 'localhost/lastscrape-test/busybox:1',
  report: 'localhost/lastscrape-test/report:1',
  iptables: 'localhost/lastscrape-test/iptables:1',
  kubexit: 'localhost/lastscrape-test/kubexit:1',
  mesh: 'localhost/lastscrape-test/mesh:1',
  job: 'localhost/lastscrape-test/job:1',
  statsdExporter: 'localhost/lastscrape-test/statsd-exporter:1',
  cloudSqlProxy: 'localhost/lastscrape-test/cloud-sql-proxy:1',
} as const;

/** Makes archives and has them loaded. */
export type ImageLoader = Disposable & {
  loadAll(): Promise<void>;
  loadLocustAs(name: string): Promise<void>;
  loadOtlpLocust(): Promise<void>;
  loadLastscrapeAs(name: string): Promise<void>;
  /** Loads an image of one program of this machine. @param user `UID:GID` @param at its path there, if not the same */
  loadProgramAs(name: string, program: string, user: string, at?: string): Promise<void>;
  loadFolderAs(name: string, root: string, config: ImageConfig): Promise<void>;
};

/** @param command a shell command line that takes the path of an archive, as `ctr images import` */
export function openImageLoader(programs: Programs, command: string): ImageLoader {
  const directory = mkdtempSync(join(tmpdir(), 'lastscrape-images-'));
  const load = async (file: string) => {
    await runShell(`${command} "$ARCHIVE"`, directory, { ARCHIVE: file });
    rmSync(file);
  };
  const locustRoot = join(directory, 'locust');
  let locustLines: readonly string[] = [];
  const loadLocustAs = async (name: string) => {
    const file = join(directory, 'locust.tar');
    packFolder(locustRoot, name, readLines(locustLines), file);
    await load(file);
  };
  const loadFolderAs = async (name: string, root: string, config: ImageConfig) => {
    const file = join(directory, 'folder.tar');
    packFolder(root, name, config, file);
    await load(file);
  };
  const loadLastscrapeAs = async (name: string) => {
    const file = join(directory, 'lastscrape.tar');
    packNamed(join(DIST, 'image'), name, file);
    await load(file);
  };
  return {
    loadLocustAs,
    async loadOtlpLocust() {
      const root = mkdtempSync(join(directory, 'locust-otlp-'));
      const file = `${root}.tar`;
      const lines = makeLocustRoot(root, join(otlpEnvironmentPath(), 'bin/python'));
      packFolder(root, IMAGES.locustOtlp, readLines(lines), file);
      await load(file);
    },
    loadLastscrapeAs,
    async loadProgramAs(name, program, user, at) {
      const root = mkdtempSync(join(directory, 'program-'));
      await loadFolderAs(name, root, { entrypoint: addProgram(root, program, at), user });
    },
    loadFolderAs,
    async loadAll() {
      const file = (name: string) => join(directory, `${name}.tar`);
      await loadLastscrapeAs(IMAGES.lastscrape);
      await loadLastscrapeAs(IMAGES.renamed);

      mkdirSync(locustRoot);
      locustLines = makeLocustRoot(locustRoot, programs.locust?.[0] ?? '');
      await loadLocustAs(IMAGES.locust);

      for (const { name, make } of MADE) {
        const root = join(directory, name);
        mkdirSync(root);
        packFolder(root, IMAGES[name], make(root, programs), file(name));
        await load(file(name));
      }
    },
    [Symbol.dispose]: () => rmSync(directory, { recursive: true, force: true, maxRetries: 3 }),
  };
}

/** An image that is made here: how its folder is filled, and what it then says of itself. */
type Made = {
  readonly name: keyof typeof IMAGES;
  readonly make: (root: string, programs: Programs) => ImageConfig;
};

/** The user of lastscrape's image, and of the real Cloud SQL Auth Proxy (distroless' nonroot). */
const NONROOT = '65532:65532';

const MADE: readonly Made[] = [
  {
    name: 'exporter',
    make(root, { exporters }) {
      const real = exporters.find(({ isReal }) => isReal);
      if (real === undefined) return readLines(makeExporterRoot(root));
      return { entrypoint: addProgram(root, real.command[0] ?? ''), user: '1000:1000' };
    },
  },
  {
    name: 'prometheus',
    make: (root) => ({ entrypoint: addProgram(root, CLUSTER_PROMETHEUS_PATH), user: '65534:65534' }),
  },
  {
    name: 'pushgateway',
    make: (root) => ({ entrypoint: addProgram(root, findOnPath(PUSHGATEWAY) ?? ''), user: '65534:65534' }),
  },
  {
    name: 'busybox',
    make(root) {
      addBusybox(root, findOnPath('busybox') ?? '');
      return { entrypoint: ['/bin/sh'], user: '1000:1000' };
    },
  },
  {
    // Any main: a script that the kernel names "report"; as "migrate" the one of deploy/job/migration.
    name: 'report',
    make(root) {
      addBusybox(root, findOnPath('busybox') ?? '');
      addScript(root, 'report');
      symlinkSync('report', join(root, 'bin/migrate'));
      return { entrypoint: ['/bin/report'], user: '1000:1000' };
    },
  },
  {
    // What redirects in the pod of a mesh; with the kernel's part of the two that it can do.
    name: 'iptables',
    make(root) {
      const [program = ''] = addProgram(root, findOnPath('iptables') ?? '');
      const folder = dirname(globSync('/usr/lib/*/xtables/libxt_REDIRECT.so')[0] ?? '');
      mkdirSync(join(root, folder), { recursive: true });
      for (const name of ['libxt_REDIRECT.so', 'libxt_tcp.so'])
        copyFileSync(join(folder, name), join(root, folder, name));
      return { entrypoint: [program, 'iptables'], user: '0:0' };
    },
  },
  {
    name: 'kubexit',
    make(root) {
      addBusybox(root, findOnPath('busybox') ?? '');
      addScript(root, 'kubexit');
      return { entrypoint: ['/bin/kubexit'], user: '1000:1000' };
    },
  },
  {
    // istio-proxy and linkerd-proxy, neither of which can be had here.
    name: 'mesh',
    make(root) {
      const entrypoint = makeMeshRoot(root);
      return { entrypoint, user: '1337:1337' };
    },
  },
  {
    name: 'job',
    make(root) {
      const entrypoint = makeJobRoot(root);
      return { entrypoint, user: '1000:1000' };
    },
  },
  {
    // On busybox, in /bin and as nobody, as the real image.
    name: 'statsdExporter',
    make(root) {
      addBusybox(root, findOnPath('busybox') ?? '');
      const [program = ''] = addProgram(root, findTargetBy('statsd-exporter'));
      symlinkSync(program, join(root, 'bin/statsd_exporter'));
      return { entrypoint: ['/bin/statsd_exporter'], user: '65534:65534' };
    },
  },
  {
    // Its two first arguments stand for a cloud's credentials: an invalid token, nothing fetched early.
    name: 'cloudSqlProxy',
    make(root) {
      const [program = ''] = addProgram(root, findTargetBy('cloud-sql-proxy'));
      return { entrypoint: [program, '--token=none', '--lazy-refresh'], user: NONROOT };
    },
  },
];

/** What of these is to be installed; empty when all are there. */
export function listMissingTargets(): readonly string[] {
  const missing = TARGET_PROGRAMS.filter(
    (each) => /^(statsd-exporter|cloud-sql-proxy)$/.test(each.entry) && findTarget(each) === undefined,
  );
  return missing.map(({ name }) => `${name}: run "npm exec -- node test/tools/install-programs.ts" (needs Go)`);
}

function findTargetBy(entry: string): string {
  const program = TARGET_PROGRAMS.find((each) => each.entry === entry);
  return (program && findTarget(program)) ?? '';
}

function addScript(root: string, name: string): void {
  const path = join(root, 'bin', name);
  copyFileSync(join(import.meta.dirname, '../stand-in', `${name}.sh`), path);
  chmodSync(path, 0o755);
}

/** Puts a program of this machine with its libraries into a folder. @returns its path there */
function addProgram(root: string, program: string, at?: string): readonly string[] {
  const real = realpathSync(program);
  const path = at ?? real;
  const inside = join(root, path);
  mkdirSync(dirname(inside), { recursive: true });
  copyFileSync(real, inside);
  chmodSync(inside, 0o755);
  if (readInterpreter(readFileSync(real)) !== null) copyLibraries([real], root, []);
  mkdirSync(join(root, 'tmp'), { recursive: true });
  chmodSync(join(root, 'tmp'), 0o1777);
  return [path];
}

/** Puts busybox into a folder, with its commands in /bin. */
export function addBusybox(root: string, program: string): void {
  const [real = ''] = addProgram(root, program);
  mkdirSync(join(root, 'bin'), { recursive: true });
  for (const name of execFileSync(program, ['--list'], { encoding: 'utf8' }).trim().split('\n')) {
    if (join('/bin', name) !== real) symlinkSync(real, join(root, 'bin', name));
  }
}

function readLines(lines: readonly string[]) {
  const listValues = (instruction: string) =>
    lines.filter((line) => line.startsWith(`${instruction} `)).map((line) => line.slice(instruction.length + 1));
  return {
    entrypoint: JSON.parse(listValues('ENTRYPOINT')[0] ?? '[]') as readonly string[],
    user: listValues('USER')[0] ?? '',
    env: listValues('ENV'),
    workingDir: listValues('WORKDIR')[0] ?? '/',
  };
}
