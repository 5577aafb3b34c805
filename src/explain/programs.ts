// The programs that stand beside a main container, by the names of their containers and images; a new one is a row. Pure.
// Which request stops one, and what must be set for that, is in the presets of lastscrape (act/presets.ts).

import { type Json, toText } from '../base/json.ts';
import { PRESETS } from '../quit/presets.ts';

/** What a program is for the pod it stands in. */
export type ProgramKind = 'lastscrape' | 'exporter' | 'mesh' | 'databaseProxy' | 'helper';

/** A program that is known by name. */
export type Program = {
  readonly kind: ProgramKind;
  /** With its article, as a part of a sentence. */
  readonly what: string;
  /** Names of containers, and last parts of images. */
  readonly names: readonly string[];
  /** Its preset; null: lastscrape has none. */
  readonly preset: string | null;
  /** An annotation that makes a native sidecar of it, or leaves it out, where somebody injects it; null: move it by hand. */
  readonly annotation: { readonly name: string; readonly value: string; readonly does: string } | null;
  /** Somebody injects it into the pod: it is in no manifest. */
  readonly isInjected: boolean;
  /** What lets lastscrape stop it: an annotation or an argument; null: nothing is needed, or nothing helps. */
  readonly enable:
    | { readonly annotation: readonly [name: string, value: string] }
    | { readonly argument: string }
    | null;
};

const PLAIN = { preset: null, annotation: null, isInjected: false, enable: null } as const;
const LIFECYCLE = { ...PLAIN, kind: 'helper', enable: { argument: '--web.enable-lifecycle' } } as const;

/** Every program, the more particular first. */
export const PROGRAMS: readonly Program[] = [
  { ...PLAIN, kind: 'lastscrape', what: 'lastscrape', names: ['lastscrape'] },
  {
    ...PLAIN,
    kind: 'exporter',
    what: "Locust's exporter",
    names: ['locust-metrics-exporter', 'locust_exporter', 'locust-exporter'],
    preset: 'locust-exporter',
  },
  {
    ...PLAIN,
    kind: 'mesh',
    what: "Istio's proxy",
    names: ['istio-proxy', 'proxyv2'],
    preset: 'istio',
    isInjected: true,
    // Release notes of Istio 1.24 (2024-11): per pod, before ENABLE_NATIVE_SIDECARS.
    annotation: {
      name: 'sidecar.istio.io/nativeSidecar',
      value: 'true',
      does: 'Istio (1.24 and later) then injects its proxy as a native sidecar',
    },
  },
  {
    ...PLAIN,
    kind: 'mesh',
    what: "Linkerd's proxy",
    names: ['linkerd-proxy', 'linkerd2-proxy'],
    preset: 'linkerd',
    isInjected: true,
    // linkerd.io/2/reference/proxy-configuration: since 2.15; newer ones also take config.beta, and go on taking this one.
    annotation: {
      name: 'config.alpha.linkerd.io/proxy-enable-native-sidecar',
      value: 'true',
      does: 'Linkerd (2.15 and later) then injects its proxy as a native sidecar',
    },
    enable: { annotation: ['config.linkerd.io/proxy-admin-shutdown', 'enabled'] },
  },
  {
    ...PLAIN,
    kind: 'mesh',
    what: "Consul's proxy",
    names: ['consul-dataplane'],
    preset: 'consul-dataplane',
    isInjected: true,
    enable: { annotation: ['consul.hashicorp.com/enable-sidecar-proxy-lifecycle', 'true'] },
  },
  { ...PLAIN, kind: 'mesh', what: "Envoy, a mesh's proxy", names: ['envoy', 'envoy-proxy'], preset: 'envoy' },
  {
    ...PLAIN,
    kind: 'databaseProxy',
    what: "Cloud SQL's proxy",
    names: ['cloud-sql-proxy', 'cloudsql-proxy', 'cloudsql-auth-proxy', 'cloudsql', 'cloud-sql', 'gce-proxy'],
    preset: 'cloud-sql-proxy',
    enable: { argument: '--quitquitquit' },
  },
  {
    ...PLAIN,
    kind: 'databaseProxy',
    what: "AlloyDB's proxy",
    names: ['alloydb-auth-proxy', 'alloydb-proxy', 'alloydb'],
    preset: 'alloydb-proxy',
    enable: { argument: '--quitquitquit' },
  },
  { ...PLAIN, kind: 'databaseProxy', what: 'PgBouncer, a database proxy', names: ['pgbouncer'] },
  { ...PLAIN, kind: 'helper', what: "Dapr's sidecar", names: ['daprd'], preset: 'dapr', isInjected: true },
  {
    ...PLAIN,
    kind: 'helper',
    what: "Vault's agent",
    names: ['vault-agent', 'vault-proxy'],
    preset: 'vault-agent',
    isInjected: true,
    // developer.hashicorp.com/vault/docs/deploy/kubernetes/injector/annotations: the init container alone stays.
    annotation: {
      name: 'vault.hashicorp.com/agent-pre-populate-only',
      value: 'true',
      does: 'Vault then injects its init container only, which fetches the secrets once',
    },
    enable: { annotation: ['vault.hashicorp.com/agent-enable-quit', 'true'] },
  },
  {
    ...LIFECYCLE,
    what: 'a statsd exporter',
    kind: 'exporter',
    names: ['statsd-exporter', 'statsd_exporter'],
    preset: 'statsd-exporter',
  },
  {
    ...LIFECYCLE,
    what: 'a Pushgateway',
    names: ['pushgateway', 'prometheus-pushgateway'],
    preset: 'pushgateway',
  },
  { ...LIFECYCLE, what: 'a Prometheus', names: ['prometheus'], preset: 'prometheus' },
  {
    ...PLAIN,
    kind: 'helper',
    what: 'a collector of OpenTelemetry',
    names: [
      'otc-container',
      'otel-collector',
      'otel-agent',
      'opentelemetry-collector',
      'opentelemetry-collector-contrib',
    ],
  },
  {
    ...PLAIN,
    kind: 'helper',
    what: 'a log shipper',
    names: ['fluent-bit', 'fluentd', 'filebeat', 'promtail', 'log-shipper'],
  },
  {
    ...PLAIN,
    kind: 'helper',
    what: 'the file system of Cloud Storage',
    names: ['gke-gcsfuse-sidecar'],
    isInjected: true,
  },
];

/** Any other exporter, by what its container or image is named. */
const EXPORTER: Program = { ...PLAIN, kind: 'exporter', what: 'an exporter', names: [] };
const EXPORTER_NAME = /(?:^|[-_.])exporter(?:$|[-_.])/;

/** The program in a container; null: none that is known. */
export function findProgram(container: Json): Program | null {
  const name = toText(container['name']);
  const image = readImageName(toText(container['image']));
  const env = Array.isArray(container['env']) ? container['env'] : [];
  const known =
    PROGRAMS.find(({ kind }) => kind === 'lastscrape' && [name, image].includes('lastscrape')) ??
    PROGRAMS.find(({ names }) => names.includes(name)) ??
    PROGRAMS.find(({ names }) => names.includes(image));
  if (known !== undefined) return known;
  // Whatever a user named it.
  if (env.some((each: Json | null) => toText(each?.['name']).startsWith('LASTSCRAPE_'))) return PROGRAMS[0] ?? null;
  return EXPORTER_NAME.test(name) || EXPORTER_NAME.test(image) ? EXPORTER : null;
}

/** What must be set on a program so that lastscrape can stop it, in the words of its preset; null: nothing. */
export function findFlag({ preset }: Program): string | null {
  return PRESETS.find(({ name }) => name === preset)?.flag ?? null;
}

/** `registry/a/NAME:tag@digest` → NAME. */
function readImageName(image: string): string {
  return (image.split('@')[0] ?? '').split('/').at(-1)?.split(':')[0] ?? '';
}
