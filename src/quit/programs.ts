// The programs in a main container's pod: how each is known, and where it is asked to quit. Data, for
// `http-target.ts` and `explain`. A new program is a row here; one with a quit endpoint is also a row of
// docs/reference.md. What a row says was measured (fixtures/recordings/quit-endpoints) or read where its
// comment says.

/** What a program is for the pod it stands in. */
export type ProgramKind = 'lastscrape' | 'exporter' | 'mesh' | 'databaseProxy' | 'helper';

/** A program that is known by name. */
export type Program = Preset | (KnownProgram & { readonly name: null });

type Annotation = readonly [name: string, value: string];

type KnownProgram = {
  readonly kind: ProgramKind;
  /** With its article, as a part of a sentence. */
  readonly what: string;
  /** Names of containers, and last parts of images. */
  readonly names: readonly string[];
  /** An injector adds it to the pod: no manifest has it. */
  readonly isInjected: boolean;
  /** An annotation of the pod by which its injector adds a native sidecar, or no container. */
  readonly annotation: Annotation | null;
  /** What that does, as a sentence. Absent without an annotation. */
  readonly annotationEffect?: string;
  /** What must be set on it so that it can be asked; null: nothing. */
  readonly flag: string | null;
  /** The same as an annotation of the pod or an argument of the program; null: it is neither. */
  readonly enable: { readonly annotation: Annotation } | { readonly argument: string } | null;
};

/** A program with a quit endpoint. */
export type Preset = KnownProgram & {
  /** Its entry of LASTSCRAPE_QUIT. */
  readonly name: string;
  /** What its process is named, then the processes that it starts and that listen on ports of its service. */
  readonly programs: readonly [string, ...string[]];
  /** What else people call it in LASTSCRAPE_QUIT; too common to know a container by. */
  readonly otherNames: readonly string[];
  /** The flag with which it exits with 0 after TERM; absent: none is known, or none is needed. */
  readonly exitZeroFlag?: string;
  /** Where its quit endpoint listens on loopback; null: on the host and port of METRICS_URL. */
  readonly port: number | null;
  /** Asked by POST. */
  readonly path: string;
  /** Ports of its service, which must also refuse before it counts as gone; unused ones refuse anyway. */
  readonly servicePorts: readonly number[];
  /** The status by which it says that the flag is missing; null: its quit port is closed then. */
  readonly offStatus: number | null;
  readonly headers?: Readonly<Record<string, string>>;
  /** A token that it may want: the header, and the variable of lastscrape's environment that has it. */
  readonly token?: { readonly header: string; readonly variable: string };
  /** How long it takes to go with its own defaults; 0: it refuses within 100 ms. */
  readonly needsMs: number;
  /** A port of loopback by which it is found where it was not listed; absent: it is not searched for. */
  readonly foundBy?: number;
  /** What an answer means; `html`: a page with a status below 300, `taken`: any other answer below 300. */
  readonly hints: Readonly<Partial<Record<number | 'html' | 'taken' | 'disabled' | 'dropped', string>>>;
};

const PLAIN = { name: null, kind: 'helper', isInjected: false, annotation: null, flag: null, enable: null } as const;

/** What most presets have. */
const PRESET = {
  ...PLAIN,
  otherNames: [],
  path: '/quitquitquit',
  servicePorts: [],
  offStatus: null,
  needsMs: 0,
  hints: {},
} as const;

const needsArgument = (argument: string) => ({ flag: argument, enable: { argument } });

/** What the programs of the Prometheus project have in common: the lifecycle API. */
const LIFECYCLE = { ...PRESET, path: '/-/quit', ...needsArgument('--web.enable-lifecycle'), offStatus: 403 } as const;

/** The proxies of Google's databases. */
const DATABASE_PROXY = {
  ...PRESET,
  ...needsArgument('--quitquitquit'),
  kind: 'databaseProxy',
  port: 9091,
  offStatus: 404,
  needsMs: 1_000,
} as const;

/** An image that is lastscrape under any container name; the policies in deploy/ have the same pattern. */
export const LASTSCRAPE_IMAGE = '(^|/)lastscrape([:@]|$)';
/** An image that is lastscrape in the container of Locust's exporter; the policies have the same pattern. */
export const LASTSCRAPE_IN_PLACE_IMAGE = 'lastscrape[^/]*$';

const LASTSCRAPE: Program = { ...PLAIN, kind: 'lastscrape', what: 'lastscrape', names: ['lastscrape'] };

/** Every program, presets in the order of docs/reference.md. */
export const PROGRAMS: readonly Program[] = [
  LASTSCRAPE,
  {
    // It exits inside the handler: the normal answer is a closed connection (0.5.0 and 0.5.2).
    ...PRESET,
    name: 'locust-exporter',
    kind: 'exporter',
    what: "Locust's exporter",
    names: ['locust-metrics-exporter', 'locust_exporter', 'locust-exporter'],
    programs: ['locust_exporter'],
    otherNames: ['exporter'],
    port: null,
    hints: { html: 'a locust_exporter before v0.5.0 has no /quitquitquit' },
  },
  {
    // istio/istio: pilot/cmd/pilot-agent/status/server.go (15020, POST, from loopback only),
    // pkg/envoy/agent.go: the status port closes at once, Envoy (admin on 15000, health on 15021) after
    // TERMINATION_DRAIN_DURATION_SECONDS, 5 s by default. The annotation: release notes of 1.24, per pod,
    // before ENABLE_NATIVE_SIDECARS.
    ...PRESET,
    name: 'istio',
    kind: 'mesh',
    what: "Istio's proxy",
    names: ['istio-proxy', 'proxyv2'],
    isInjected: true,
    annotation: ['sidecar.istio.io/nativeSidecar', 'true'],
    annotationEffect: 'Istio 1.24 and later then inject a native sidecar',
    programs: ['pilot-agent', 'envoy'],
    port: 15020,
    servicePorts: [15000],
    needsMs: 5_000,
    foundBy: 15021,
    hints: {
      403: 'pilot-agent is asked from loopback only: is its address another one?',
      404: 'this is not pilot-agent: its status port is 15020, or that of the annotation status.sidecar.istio.io/port',
      disabled:
        'pilot-agent refuses while its Envoy answers: the annotation status.sidecar.istio.io/port may name another port',
    },
  },
  {
    // No default port: 9901 is what its documentation uses
    // (envoyproxy.io/docs/envoy/latest/operations/admin). It quits with POST only (405), and drains nothing
    // before.
    ...PRESET,
    name: 'envoy',
    kind: 'mesh',
    what: "Envoy, a mesh's proxy",
    names: ['envoy', 'envoy-proxy'],
    programs: ['envoy'],
    port: 9901,
    flag: 'an admin listener in its configuration',
    hints: { 404: 'this is not the admin interface of Envoy: which port has it?' },
  },
  {
    // linkerd/linkerd2-proxy: linkerd/app/admin/src/server.rs (POST, 403 from beyond loopback, 404 where it
    // is off), linkerd2-proxy/src/main.rs (500 to a second request). It refuses at once; its process may live
    // on for 2 minutes until connections end. Off by default since 2.16
    // (linkerd.io/2/tasks/graceful-shutdown). The annotation: linkerd.io/2/reference/proxy-configuration,
    // since 2.15; newer ones also take config.beta.
    ...PRESET,
    name: 'linkerd',
    kind: 'mesh',
    what: "Linkerd's proxy",
    names: ['linkerd-proxy', 'linkerd2-proxy'],
    isInjected: true,
    annotation: ['config.alpha.linkerd.io/proxy-enable-native-sidecar', 'true'],
    annotationEffect: 'Linkerd 2.15 and later then inject a native sidecar',
    programs: ['linkerd2-proxy'],
    port: 4191,
    path: '/shutdown',
    flag: 'the annotation config.linkerd.io/proxy-admin-shutdown: enabled',
    enable: { annotation: ['config.linkerd.io/proxy-admin-shutdown', 'enabled'] },
    offStatus: 404,
    foundBy: 4191,
    hints: {
      403: 'linkerd-proxy is asked from loopback only: is its address another one?',
      500: 'it was asked before and drains open connections, for 2 minutes at most',
    },
  },
  {
    // 2.27.0. With --debug its admin port is open without the endpoint: 404. Other methods than GET and POST
    // get 400. The service ports: PostgreSQL, MySQL and SQL Server. Within 0.9 s.
    ...DATABASE_PROXY,
    name: 'cloud-sql-proxy',
    what: "Cloud SQL's proxy",
    names: ['cloud-sql-proxy', 'cloudsql-proxy', 'cloudsql-auth-proxy', 'cloudsql', 'cloud-sql', 'gce-proxy'],
    programs: ['cloud-sql-proxy'],
    exitZeroFlag: '--exit-zero-on-sigterm',
    servicePorts: [5432, 3306, 1433],
  },
  {
    // 1.15.1: the same code; AlloyDB speaks PostgreSQL's protocol only.
    ...DATABASE_PROXY,
    name: 'alloydb-proxy',
    what: "AlloyDB's proxy",
    names: ['alloydb-auth-proxy', 'alloydb-proxy', 'alloydb'],
    programs: ['alloydb-auth-proxy'],
    exitZeroFlag: '--exit-zero-sigterm',
    servicePorts: [5432],
  },
  {
    // 1.14.0, docs.dapr.io/reference/api/health_api and /operations/security/api-token. Other methods, paths:
    // 404.
    ...PRESET,
    name: 'dapr',
    what: "Dapr's sidecar",
    names: ['daprd'],
    isInjected: true,
    programs: ['daprd'],
    port: 3500,
    path: '/v1.0/shutdown',
    token: { header: 'dapr-api-token', variable: 'DAPR_API_TOKEN' },
    hints: {
      401: 'it wants a token: give lastscrape the same DAPR_API_TOKEN',
      404: 'this is not the HTTP port of daprd',
    },
  },
  {
    // hashicorp/consul-dataplane: pkg/consuldp/lifecycle.go (any method; waits for the whole grace period,
    // then quits Envoy, admin on 19000). 20600 and 30 s: consul-k8s (charts/consul/values.yaml,
    // sidecarProxy.lifecycle).
    ...PRESET,
    name: 'consul-dataplane',
    kind: 'mesh',
    what: "Consul's proxy",
    names: ['consul-dataplane'],
    isInjected: true,
    programs: ['consul-dataplane', 'envoy'],
    otherNames: ['consul', 'consul-connect'],
    port: 20600,
    path: '/graceful_shutdown',
    servicePorts: [19000],
    flag: 'the annotation consul.hashicorp.com/enable-sidecar-proxy-lifecycle: "true"',
    enable: { annotation: ['consul.hashicorp.com/enable-sidecar-proxy-lifecycle', 'true'] },
    needsMs: 30_000,
    hints: {
      404: 'the annotation consul.hashicorp.com/sidecar-proxy-lifecycle-graceful-shutdown-path may name another path',
      taken: 'it waits for its shutdown-grace-period first: LASTSCRAPE_QUIT_TIMEOUT must be longer',
    },
  },
  {
    // hashicorp/vault: command/agent.go (404 where it is off, 405 but for POST, 412 without the header);
    // developer.hashicorp.com/vault/docs/agent-and-proxy/agent. 8200: the injector's listener; Go answers 400
    // to TLS. Annotations: vault/docs/deploy/kubernetes/injector/annotations.
    ...PRESET,
    name: 'vault-agent',
    what: "Vault's agent",
    names: ['vault-agent', 'vault-proxy'],
    isInjected: true,
    annotation: ['vault.hashicorp.com/agent-pre-populate-only', 'true'],
    annotationEffect: 'Vault then injects only its init container, which fetches the secrets once',
    programs: ['vault'],
    port: 8200,
    path: '/agent/v1/quit',
    flag: 'agent_api { enable_quit = true } in its listener, or the annotation vault.hashicorp.com/agent-enable-quit',
    enable: { annotation: ['vault.hashicorp.com/agent-enable-quit', 'true'] },
    offStatus: 404,
    headers: { 'x-vault-request': 'true' },
    hints: { 400: 'the listener may speak TLS; this one must have tls_disable = true' },
  },
  {
    ...LIFECYCLE,
    name: 'prometheus',
    what: 'a Prometheus',
    names: ['prometheus'],
    programs: ['prometheus'],
    port: 9090,
  },
  {
    ...LIFECYCLE,
    name: 'pushgateway',
    what: 'a Pushgateway',
    names: ['pushgateway', 'prometheus-pushgateway'],
    programs: ['pushgateway'],
    port: 9091,
  },
  {
    // 0.31.0: without the flag the path is 404. GET is answered 200 and does nothing.
    ...LIFECYCLE,
    name: 'statsd-exporter',
    kind: 'exporter',
    what: 'a statsd exporter',
    names: ['statsd-exporter', 'statsd_exporter'],
    programs: ['statsd_exporter'],
    otherNames: ['statsd'],
    port: 9102,
    offStatus: 404,
  },
  { ...PLAIN, kind: 'databaseProxy', what: 'PgBouncer, a database proxy', names: ['pgbouncer'] },
  {
    ...PLAIN,
    what: 'an OpenTelemetry collector',
    names: [
      ...['otc-container', 'otel-collector', 'otel-agent'],
      ...['opentelemetry-collector', 'opentelemetry-collector-contrib'],
    ],
  },
  { ...PLAIN, what: 'a log shipper', names: ['fluent-bit', 'fluentd', 'filebeat', 'promtail', 'log-shipper'] },
  { ...PLAIN, what: "Cloud Storage's file system", names: ['gke-gcsfuse-sidecar'], isInjected: true },
];

/** The programs that LASTSCRAPE_QUIT knows by name. */
export const PRESETS: readonly Preset[] = PROGRAMS.filter((program): program is Preset => program.name !== null);

/** Any other exporter, by what its container or image is named. */
const EXPORTER: Program = { ...PLAIN, kind: 'exporter', what: 'an exporter', names: [] };
const EXPORTER_NAME = /(?:^|[-_.])exporter(?:$|[-_.])/;

/** What a program is known by: its container's name and image, and the names of its variables. */
type ProgramMarks = { readonly name: string; readonly image: string; readonly variables: readonly string[] };

/** What main has for its hook. */
const SNAPSHOT_URL = 'LASTSCRAPE_SNAPSHOT_URL';

/** The program in a container; null: none that is known. */
export function findProgram({ name, image, variables }: ProgramMarks): Program | null {
  // `registry/a/NAME:tag@digest` → NAME.
  const imageName = (image.split('@')[0] ?? '').split('/').at(-1)?.split(':')[0] ?? '';
  const find = (each: string) => PROGRAMS.find(({ names }) => names.includes(each)) ?? null;
  const named = find(name);
  const isConfigured = variables.some((each) => each.startsWith('LASTSCRAPE_') && each !== SNAPSHOT_URL);
  const isInPlace = isConfigured || new RegExp(LASTSCRAPE_IN_PLACE_IMAGE).test(image);
  if (new RegExp(LASTSCRAPE_IMAGE).test(image) || (named?.name === 'locust-exporter' && isInPlace)) return LASTSCRAPE;
  const known = named ?? find(imageName) ?? (isConfigured ? LASTSCRAPE : null);
  if (known !== null) return known;
  return EXPORTER_NAME.test(name) || EXPORTER_NAME.test(imageName) ? EXPORTER : null;
}
