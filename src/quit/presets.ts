// The presets: programs that are known by name, a row each. A new one is a row here and rows of docs/targets.md.
// What a row says of its program was measured (fixtures/recordings/quit-endpoints) or read where its comment says.

import { describeHighPort, isPortNumber } from '../base/parse.ts';
import { type HttpAnswer, httpTarget } from './http-target.ts';
import type { TargetKind } from './target.ts';

/** A program that is known by name. */
export type Preset = {
  readonly name: string;
  /** What its process is named, then those that it starts itself and that listen on ports of its service. */
  readonly programs: readonly [string, ...string[]];
  /** What else people call it, or its container; its first program is known anyway. */
  readonly otherNames: readonly string[];
  /** The flag with which it exits with 0 after TERM; null: none is known, or none is needed. */
  readonly exitZeroFlag: string | null;
  /** Where its quit endpoint listens on loopback; null: on the host and port of METRICS_URL. */
  readonly port: number | null;
  readonly method: 'POST';
  readonly path: string;
  /** Ports of its service that must also refuse before it counts as gone; those that it does not use refuse anyway. */
  readonly servicePorts: readonly number[];
  /** What must be set on it so that it can be asked; null: nothing. */
  readonly flag: string | null;
  /** The status by which it says that the flag is missing; null: by none, its quit port is closed then. */
  readonly offStatus: number | null;
  /** Headers that it wants. */
  readonly headers: Readonly<Record<string, string>>;
  /** A token that it may want: the header, and the variable of lastscrape's environment that has it; null: none. */
  readonly token: { readonly header: string; readonly variable: string } | null;
  /** How long it takes to go with its own defaults; 0: it refuses within 100 ms. */
  readonly needsMs: number;
  /** It is a mesh's proxy, which carries scrapes and reports. */
  readonly isMesh: boolean;
  /** A port of loopback by which it is found where it was not listed; null: nobody searches for it. */
  readonly foundBy: number | null;
  /** What else an answer means, by its status or kind; `html`: a page with a status below 300, `taken`: any other answer below 300. */
  readonly hints: Readonly<Partial<Record<number | 'html' | 'taken' | 'disabled' | 'dropped', string>>>;
};

/** What most presets have. */
const PLAIN = {
  otherNames: [],
  exitZeroFlag: null,
  method: 'POST',
  path: '/quitquitquit',
  servicePorts: [],
  flag: null,
  offStatus: null,
  headers: {},
  token: null,
  needsMs: 0,
  isMesh: false,
  foundBy: null,
  hints: {},
} as const;

/** What the programs of the Prometheus project have in common: the lifecycle API. */
const LIFECYCLE = { ...PLAIN, path: '/-/quit', flag: '--web.enable-lifecycle', offStatus: 403 } as const;

/** Every preset, in the order of docs/targets.md. */
export const PRESETS: readonly Preset[] = [
  {
    // It exits inside the handler: the normal answer is a closed connection (0.5.0 and 0.5.2, fixtures/recordings).
    ...PLAIN,
    name: 'locust-exporter',
    programs: ['locust_exporter'],
    otherNames: ['locust-metrics-exporter', 'exporter'],
    port: null,
    hints: { html: 'a locust_exporter before v0.5.0 has no /quitquitquit' },
  },
  {
    // istio/istio: pilot/cmd/pilot-agent/status/server.go (15020, POST, from loopback only), pkg/envoy/agent.go: the status
    // port closes at once, Envoy (admin on 15000) goes after TERMINATION_DRAIN_DURATION_SECONDS, 5 s by default
    // (istio.io/latest/docs/reference/commands/pilot-agent). 15021 is Envoy's health port.
    ...PLAIN,
    name: 'istio',
    programs: ['pilot-agent', 'envoy'],
    otherNames: ['istio-proxy'],
    port: 15020,
    servicePorts: [15000],
    needsMs: 5_000,
    isMesh: true,
    foundBy: 15021,
    hints: {
      403: 'pilot-agent is asked from loopback only: is its address another one?',
      404: 'this is not pilot-agent: its status port is 15020, or that of the annotation status.sidecar.istio.io/port',
      disabled:
        'pilot-agent refuses while its Envoy answers: the annotation status.sidecar.istio.io/port may name another port',
    },
  },
  {
    // Envoy's admin interface has no port of its own; 9901 is what its documentation and examples use
    // (envoyproxy.io/docs/envoy/latest/operations/admin). It quits with POST only (405), and drains nothing before.
    ...PLAIN,
    name: 'envoy',
    programs: ['envoy'],
    port: 9901,
    flag: 'an admin listener in its configuration',
    isMesh: true,
    hints: { 404: 'this is not the admin interface of Envoy: which port has it?' },
  },
  {
    // linkerd/linkerd2-proxy: linkerd/app/admin/src/server.rs (POST, 403 from another address than loopback, 404 where it is
    // off), linkerd2-proxy/src/main.rs: a second request is answered 500. It refuses at once, and its process may live on
    // for 2 minutes until open connections end. Off by default since 2.16 (linkerd.io/2/tasks/graceful-shutdown).
    ...PLAIN,
    name: 'linkerd',
    programs: ['linkerd2-proxy'],
    otherNames: ['linkerd-proxy'],
    port: 4191,
    path: '/shutdown',
    flag: 'the annotation config.linkerd.io/proxy-admin-shutdown: enabled',
    offStatus: 404,
    isMesh: true,
    foundBy: 4191,
    hints: {
      403: 'linkerd-proxy is asked from loopback only: is its address another one?',
      500: 'it was asked before and drains open connections, for 2 minutes at most',
    },
  },
  {
    // 2.27.0. Its admin port opens with the flag or with --debug, then without the endpoint: 404. Other methods than GET and
    // POST get 400. The service ports are those of PostgreSQL, MySQL and SQL Server. Within 0.9 s.
    ...PLAIN,
    name: 'cloud-sql-proxy',
    programs: ['cloud-sql-proxy'],
    otherNames: ['cloudsql', 'cloud-sql', 'cloudsql-auth-proxy'],
    exitZeroFlag: '--exit-zero-on-sigterm',
    port: 9091,
    servicePorts: [5432, 3306, 1433],
    flag: '--quitquitquit',
    offStatus: 404,
    needsMs: 1_000,
  },
  {
    // 1.15.1: the same code; AlloyDB speaks PostgreSQL's protocol only.
    ...PLAIN,
    name: 'alloydb-proxy',
    programs: ['alloydb-auth-proxy'],
    otherNames: ['alloydb'],
    exitZeroFlag: '--exit-zero-sigterm',
    port: 9091,
    servicePorts: [5432],
    flag: '--quitquitquit',
    offStatus: 404,
    needsMs: 1_000,
  },
  {
    // 1.14.0, docs.dapr.io/reference/api/health_api and /operations/security/api-token. Any other method or path is 404.
    ...PLAIN,
    name: 'dapr',
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
    // hashicorp/consul-dataplane: pkg/consuldp/lifecycle.go (any method, then it waits for the whole grace period and quits
    // Envoy, whose admin port is 19000). 20600 and 30 s are the defaults of consul-k8s (charts/consul/values.yaml,
    // connectInject.sidecarProxy.lifecycle); without them consul-dataplane itself takes 20300 and no time.
    ...PLAIN,
    name: 'consul-dataplane',
    programs: ['consul-dataplane', 'envoy'],
    otherNames: ['consul', 'consul-connect'],
    port: 20600,
    path: '/graceful_shutdown',
    servicePorts: [19000],
    flag: 'the annotation consul.hashicorp.com/enable-sidecar-proxy-lifecycle: "true"',
    needsMs: 30_000,
    isMesh: true,
    hints: {
      404: 'the annotation consul.hashicorp.com/sidecar-proxy-lifecycle-graceful-shutdown-path may name another path',
      taken: 'it waits for its shutdown-grace-period first: LASTSCRAPE_QUIT_TIMEOUT must be longer',
    },
  },
  {
    // hashicorp/vault: command/agent.go (404 where it is off, 405 for another method than POST, 412 without the header where
    // require_request_header is set); developer.hashicorp.com/vault/docs/agent-and-proxy/agent. 8200 is the listener of
    // the injector (vault.hashicorp.com/agent-enable-quit, agent-cache-listener-port). Go answers 400 where TLS is spoken.
    ...PLAIN,
    name: 'vault-agent',
    programs: ['vault'],
    otherNames: ['vault-proxy'],
    port: 8200,
    path: '/agent/v1/quit',
    flag: 'agent_api { enable_quit = true } in its listener, or the annotation vault.hashicorp.com/agent-enable-quit',
    offStatus: 404,
    headers: { 'x-vault-request': 'true' },
    hints: { 400: 'the listener may speak TLS; this one must have tls_disable = true' },
  },
  { ...LIFECYCLE, name: 'prometheus', programs: ['prometheus'], port: 9090 },
  { ...LIFECYCLE, name: 'pushgateway', programs: ['pushgateway'], otherNames: ['prometheus-pushgateway'], port: 9091 },
  // 0.31.0: without the flag there is no such path. GET is answered 200 and does nothing.
  {
    ...LIFECYCLE,
    name: 'statsd-exporter',
    programs: ['statsd_exporter'],
    otherNames: ['statsd'],
    port: 9102,
    offStatus: 404,
  },
];

/** What the value of a header may consist of (RFC 9110, section 5.5); Node and undici throw on anything else. */
const HEADER_VALUE = /^[\t\x20-\x7e\x80-\xff]*$/;

const PORTS = /^(?::(\d+))?(?::(\d+))?$/;

/** The kind of target that a preset is: `NAME`, `NAME:PORT`, `NAME:PORT:SERVICE_PORT`. */
export function presetKind(preset: Preset): TargetKind {
  const { name, method, path, needsMs, isMesh, flag } = preset;
  return {
    usage: name,
    otherNames: [preset.programs[0], ...preset.otherNames],
    meaning: `\`${method} ${path}\` on ${preset.port === null ? 'the host and port of `LASTSCRAPE_METRICS_URL`' : `port ${preset.port}`}`,
    read(entry, { metricsUrl, version, env, pid, kill }) {
      if (entry !== name && !entry.startsWith(`${name}:`)) return null;
      const [match, port, servicePort] = PORTS.exec(entry.slice(name.length)) ?? [];
      if (match === undefined || !isPort(port) || !isPort(servicePort)) {
        return {
          problem: `${name}, ${name}:PORT or ${name}:PORT:SERVICE_PORT, with ports from 1 to 65535${describeHighPort(entry)}`,
        };
      }
      const token = preset.token === null ? '' : (env[preset.token.variable]?.trim() ?? '');
      if (!HEADER_VALUE.test(token)) {
        return {
          problem: `${name} with a ${preset.token?.variable} that a header can carry: without line breaks, other control characters, and characters beyond Latin-1`,
        };
      }
      const hasNoPort = preset.port === null && metricsUrl.protocol !== 'http:';
      if (hasNoPort && port === undefined) {
        const what = metricsUrl.protocol === 'file:' ? 'a file, which has no port' : "Locust's page, and no exporter";
        return { problem: `${name}:PORT where LASTSCRAPE_METRICS_URL is ${what}` };
      }
      const url =
        preset.port === null && !hasNoPort
          ? new URL(metricsUrl.origin)
          : new URL(`http://localhost:${preset.port ?? port}`);
      if (port !== undefined) url.port = port;
      url.pathname = path;
      return {
        value: httpTarget({
          name: entry,
          method,
          url,
          version,
          sender: { pid, kill },
          programs: preset.programs,
          headers: {
            ...preset.headers,
            ...(preset.token === null || token === '' ? {} : { [preset.token.header]: token }),
          },
          servicePorts: servicePort === undefined ? preset.servicePorts : [Number(servicePort)],
          // An open quit port shows that the flag is set, where it would be closed without.
          flag: preset.offStatus === null ? null : flag,
          needed: flag,
          needsMs,
          isMesh,
          hint: (answer) => findHint(preset, answer),
        }),
      };
    },
  };
}

/** Absent is fine. */
function isPort(digits: string | undefined): boolean {
  return digits === undefined || isPortNumber(digits);
}

function findHint({ flag, offStatus, hints }: Preset, answer: HttpAnswer): string | null {
  if (answer.kind === 'disabled' && hints.disabled === undefined && flag !== null) {
    return `its quit port refuses while ${answer.port} answers: it needs ${flag}`;
  }
  if (answer.kind === 'disabled' || answer.kind === 'dropped') return hints[answer.kind] ?? null;
  if (answer.kind !== 'answered') return null;
  const { status, isHtml } = answer;
  if (status === offStatus) return `it answered ${status}: quitting is switched off; it needs ${flag}`;
  const isPage = status < 300 && isHtml;
  const hint = isPage ? hints.html : status < 300 ? hints.taken : hints[status];
  return hint === undefined ? null : `it answered ${status}${isPage ? ' with a page of HTML' : ''}: ${hint}`;
}
