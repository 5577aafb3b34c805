// What runs on beside a main that has ended: an exporter, a proxy, another helper. Pure.
// Where lastscrape is in the pod its own rows tell (lastscrape.ts).

import { toObjects, toText } from '../../base/json.ts';
import type { ProgramKind } from '../../quit/programs.ts';
import type { Change, Command, Found, Reason } from '../finding.ts';
import {
  annotationLines,
  describeTemplate,
  eventsCommand,
  IMAGE,
  kubectl,
  lastscrapeLines,
  logsCommand,
  nativeLines,
  podChange,
  toLines,
} from '../lines.ts';
import { type ContainerFacts, isNeverStarted, type PodFacts } from '../pod.ts';
import { joinNames, quoteShell, quoteText, tailMessage } from '../words.ts';

const WHY = 'A pod is over only when all its regular containers have ended, and nobody tells this one to.';
const NATIVE = 'Kubernetes (1.29 and later) ends a native sidecar by itself when the other containers have ended';

/** The rows, a kind of program each. */
export const HELPER_REASONS: readonly Reason<PodFacts>[] = [
  {
    id: 'exporterRuns',
    meaning: 'an exporter of metrics runs on as a regular container',
    find: findKind('exporter', (container, pod) =>
      isLocusts(container) ? holdLocust(pod) : holdExporter(container, pod),
    ),
  },
  {
    id: 'meshRuns',
    meaning: "a mesh's proxy runs on as a regular container",
    find: findKind('mesh', changeHelper),
  },
  {
    id: 'databaseProxyRuns',
    meaning: 'a database proxy runs on as a regular container',
    find: findKind('databaseProxy', changeHelper),
  },
  {
    id: 'helperRuns',
    meaning: 'another known helper runs on as a regular container: a log shipper, a collector, an agent',
    find: findKind('helper', changeHelper),
  },
  {
    id: 'otherRuns',
    meaning: 'a container runs on beside another that has ended, and its name does not tell what it is',
    find: (pod) => findRunning(pod, null).map((container) => tellOther(container, pod)),
  },
];

/** How a helper is made to end with main. */
export function changeHelper(container: ContainerFacts, pod: PodFacts): Change {
  const { program } = container;
  const where = describeTemplate(pod);
  if (program?.annotation) {
    const { name, value, does } = program.annotation;
    return podChange(`${where}, add this annotation. ${does}. ${NATIVE}:`, annotationLines(name, value));
  }
  if (program?.isInjected && program.name !== null) return quitInjected(container, program.name, pod);
  return podChange(`${where}, make it a native sidecar. ${NATIVE}:`, nativeLines(container));
}

/** What is injected cannot be moved: lastscrape asks it to end. */
function quitInjected({ program }: ContainerFacts, preset: string, pod: PodFacts): Change {
  const flag = program === null ? null : program.flag;
  return podChange(
    `${describeTemplate(pod)}, add lastscrape, which asks it to end once ${joinNames(pod.mains.map(({ name }) => name))} has${flag === null ? '' : ` (it also needs ${flag})`}:`,
    watchLines(pod, [
      ['LASTSCRAPE_SCRAPES', '0'],
      ['LASTSCRAPE_QUIT', preset],
    ]),
  );
}

/** lastscrape that goes by the pod's own status. */
export function watchLines({ mains }: PodFacts, env: readonly (readonly [name: string, value: string])[]): string {
  const doneWhen = mains.map(({ name }) => `container:${name}`).join();
  return lastscrapeLines([['LASTSCRAPE_DONE_WHEN', doneWhen], ...env], [POD_NAME]);
}

/** By which lastscrape knows its pod. */
export const POD_NAME = '- {name: POD_NAME, valueFrom: {fieldRef: {fieldPath: metadata.name}}}';

/** The right to get pods. */
export function roleCommand({ namespace, spec }: PodFacts): Command {
  const account = `${namespace}:${toText(spec['serviceAccountName']) || 'default'}`;
  const role = kubectl(namespace, 'create role lastscrape --verb=get --resource=pods');
  const binding = `create rolebinding lastscrape --role=lastscrape --serviceaccount=${account}`;
  return { what: "let the pod's service account get pods", line: `${role} && ${kubectl(namespace, binding)}` };
}

/** Locust's exporter: lastscrape in its place where the operator makes the pod, else beside it, where it needs no variable. */
function holdLocust(pod: PodFacts): Change {
  if (pod.labels['managed-by'] === 'locust-k8s-operator') {
    return {
      what: "In the values of the operator's chart (1.x: config.loadGenerationPods), put lastscrape in the exporter's place: from the next test on it keeps the pod until it was scraped, and ends:",
      in: 'chartValues',
      lines: toLines(['locustPods:', '  metricsExporter:', `    image: ${IMAGE}   # where you pushed it`]),
    };
  }
  return podChange(
    `${describeTemplate(pod)}, add this container. It waits for the last scrape, then stops the exporter and itself:`,
    lastscrapeLines([]),
  );
}

/** Another exporter: the kubelet ends it, and lastscrape keeps it until it was scraped. */
function holdExporter(container: ContainerFacts, pod: PodFacts): Change {
  const url = findMetricsUrl(container, pod);
  if (url === null) return changeHelper(container, pod);
  return podChange(
    `${describeTemplate(pod)}, make it a native sidecar, with lastscrape behind it, which keeps both until Prometheus has scraped once more. ${NATIVE}:`,
    nativeLines(container, [
      '    - name: lastscrape   # the last of initContainers',
      `      image: ${IMAGE}   # where you pushed it`,
      '      restartPolicy: Always',
      '      env:',
      '        - {name: LASTSCRAPE_DONE_WHEN, value: sigterm}',
      `        - {name: LASTSCRAPE_METRICS_URL, value: ${JSON.stringify(url)}}`,
    ]),
  );
}

/** Where Prometheus reads it; null: nothing in the pod tells. */
function findMetricsUrl({ spec }: ContainerFacts, { annotations }: PodFacts): string | null {
  const ports = toObjects(spec['ports']);
  const named = ports.find(({ name }) => /metrics|prom/.test(toText(name))) ?? ports[0];
  const port = toText(annotations['prometheus.io/port']) || named?.['containerPort'];
  if (!/^\d{1,5}$/.test(String(port))) return null;
  const path = toText(annotations['prometheus.io/path']);
  return `http://localhost:${port}${/^\/[\w./-]*$/.test(path) ? path : '/metrics'}`;
}

function findKind(
  kind: ProgramKind,
  change: (container: ContainerFacts, pod: PodFacts) => Change,
): Reason<PodFacts>['find'] {
  return (pod) => findRunning(pod, kind).map((container) => tellHelper(container, change(container, pod), pod));
}

/** Helpers of a kind that run although every main has ended, and that nobody in the pod stops. */
function findRunning(pod: PodFacts, kind: ProgramKind | null): readonly ContainerFacts[] {
  if (pod.mainsEnded === null || pod.lastscrape !== null) return [];
  return findRunningHelpers(pod).filter(({ program }) => (program?.kind ?? null) === kind);
}

/** Helpers that run. */
export function findRunningHelpers({ helpers }: PodFacts): readonly ContainerFacts[] {
  return helpers.filter(({ isDone, running }) => !isDone && running !== null);
}

/** Says that a helper keeps the pod. */
export function tellHelper(container: ContainerFacts, change: Change, pod: PodFacts): Found {
  const { name, program } = container;
  const mains = joinNames(pod.mains.map((each) => each.name));
  return {
    container: name,
    isStuck: true,
    summary: `${name} keeps ${tellPod(pod)}: it is ${program?.what ?? 'a helper'} and runs on, although ${mains} ${pod.mains.length === 1 ? 'has' : 'have'} ended`,
    sinceMs: pod.mainsEnded?.atMs ?? null,
    sinceWhat: pod.mainsEnded?.what ?? '',
    why: [WHY, ...pod.mains.filter(({ ended }) => isNeverStarted(ended)).map(tellNeverStarted)].join(' '),
    change,
    first: change.lines?.includes('container:') ? roleCommand(pod) : null,
    now: findQuitCommand(container, pod),
  };
}

function tellNeverStarted({ name, ended }: ContainerFacts): string {
  return `${name} itself could not be started: ${quoteText(tailMessage(ended?.message ?? ''))}.`;
}

function tellOther(container: ContainerFacts, pod: PodFacts): Found {
  const { name } = container;
  return {
    ...tellHelper(container, podChange('', null), pod),
    isStuck: null,
    summary: `${name} keeps ${tellPod(pod)}: it still runs, although ${joinNames(pod.mains.map((each) => each.name))} ${pod.mains.length === 1 ? 'has' : 'have'} ended`,
    why: `A pod is over only when all its regular containers have ended. The JSON does not tell what ${name} is: where it works, wait; where it only serves the other, it will not end by itself.`,
    change: podChange(
      `If it only serves the other: ${lower(describeTemplate(pod))}, make it a native sidecar. ${NATIVE}:`,
      nativeLines(container),
    ),
    see: logsCommand(pod, name),
    now: null,
  };
}

/** `pod NAMESPACE/NAME`. */
export function tellPod({ namespace, name }: PodFacts): string {
  return `pod ${namespace}/${name}`;
}

function lower(text: string): string {
  return `${text.charAt(0).toLowerCase()}${text.slice(1)}`;
}

function isLocusts({ program }: ContainerFacts): boolean {
  return program?.name === 'locust-exporter';
}

/** What ends a helper with exit code 0, from outside of its pod; null: nothing that is sure to. */
function findQuitCommand({ name, spec, program }: ContainerFacts, pod: PodFacts): Command | null {
  const what = 'to end it in this pod, whatever was not scraped yet';
  if (program?.name === 'locust-exporter') {
    const [port] = toObjects(spec['ports']);
    const at = `/api/v1/namespaces/${pod.namespace}/pods/${pod.name}:${port?.['containerPort'] ?? 9646}/proxy/quitquitquit`;
    // It exits inside the handler, so kubectl gets no answer.
    return {
      what: `${what} (kubectl then tells of an error: it gets no answer)`,
      line: `kubectl create --raw ${quoteShell(at)} --filename=/dev/null`,
    };
  }
  if (program?.name === 'istio') {
    const line = `exec ${quoteShell(pod.name)} --container=${quoteShell(name)} -- pilot-agent request POST quitquitquit`;
    return { what: 'to end it in this pod', line: kubectl(pod.namespace, line) };
  }
  return null;
}

/** What cannot be told by any row. */
export function tellUnknown(pod: PodFacts): Found {
  const conditions = pod.conditions.filter((each) => each['status'] !== 'True').map((each) => toText(each['type']));
  const running = pod.containers.filter(({ isDone }) => !isDone).map(({ name }) => name);
  return {
    container: running[0] ?? null,
    isStuck: null,
    summary: `${running[0] ?? 'Nothing that the JSON shows'} keeps ${tellPod(pod)}, and the JSON does not tell why`,
    sinceMs: pod.createdAtMs,
    sinceWhat: 'the pod was made',
    why: `Its phase is ${pod.phase || 'unknown'}${conditions.length === 0 ? '' : `, and these conditions are not met: ${joinNames(conditions)}`}.`,
    change: podChange('Nothing is sure to help.', null),
    see: eventsCommand(pod),
  };
}
