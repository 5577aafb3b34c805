// What runs on after main has ended: an exporter, a proxy, another helper. Pure.
// A pod with lastscrape in it has other rows (lastscrape.ts).

import { type Json, toNumber, toObjects, toText } from '../../base/json.ts';
import type { ContainerFacts } from '../container.ts';
import type { Change, Command, Found, Reasons } from '../finding.ts';
import {
  addLastscrape,
  annotate,
  changePod,
  formatYaml,
  IMAGE,
  kubectl,
  logsCommand,
  makeNative,
  POD_NAME,
  toEnv,
} from '../lines.ts';
import { keepsPod, type PodFacts } from '../pod.ts';
import { quoteShell, readName } from '../words.ts';

/** What ends a helper, and what must be run before. */
export type Remedy = { readonly change: Change; readonly first?: Command };

const WHY = 'A pod is over only when all its regular containers have ended, and nothing asks this one to.';
const NATIVE = 'Kubernetes 1.29 and later stop native sidecars when the other containers have ended';
/** How a regular container becomes one. */
export const MOVE = `Move it to initContainers with all its lines, and add restartPolicy. ${NATIVE}`;

/** The rows. */
export const HELPER_REASONS: Reasons<PodFacts> = {
  helperRuns: (pod) => findHelpers(pod, true).map((helper) => explainHelper(helper, pod, findRemedy(helper, pod))),
  otherRuns: (pod) =>
    findHelpers(pod, false).map((container) =>
      keepsPod(container, pod, `: it still runs, although ${describeEnd(pod)}`, {
        isStuck: null,
        since: pod.mainsEnded ?? pod.created,
        why: `A pod is over only when all its regular containers have ended. The JSON does not show what ${container.name} is: wait if it works; if it only serves the other, it will not end.`,
        ...moveHelper(container, pod, 'If it only serves the other, make it a native sidecar'),
        see: logsCommand(pod, container.name),
      }),
    ),
};

/** The finding of a helper that keeps the pod, and how it is ended. */
export function explainHelper(helper: ContainerFacts, pod: PodFacts, remedy: Remedy): Found {
  const because = `: it is ${helper.program?.what ?? 'a helper'} and runs on, although ${describeEnd(pod)}`;
  return keepsPod(helper, pod, because, {
    isStuck: true,
    since: pod.mainsEnded ?? pod.created,
    why: WHY,
    ...remedy,
    now: findQuitCommand(helper, pod),
  });
}

/** How a helper is made to end with main. */
export function endHelper(helper: ContainerFacts, pod: PodFacts): Remedy {
  const { program } = helper;
  if (program?.annotation) {
    const effect = `${program.annotationEffect}. ${NATIVE}`;
    return { change: changePod(pod, 'Add this annotation', annotate(...program.annotation), effect) };
  }
  if (!program?.isInjected || program.name === null) return moveHelper(helper, pod, 'Make it a native sidecar');
  // What is injected cannot be moved: lastscrape asks it to end.
  const needs = program.flag === null ? '' : `; it also needs ${program.flag}`;
  const settings = { LASTSCRAPE_DONE_WHEN: watchMains(pod), LASTSCRAPE_SCRAPES: '0', LASTSCRAPE_QUIT: program.name };
  const patch = addLastscrape({ env: [...toEnv(settings), POD_NAME] });
  const effect = `It asks the helper to end once ${describeEnd(pod)}${needs}`;
  return { change: changePod(pod, 'Add lastscrape', patch, effect), first: roleCommand(pod) };
}

/** The value of DONE_WHEN that watches the status of the pod's mains. */
export function watchMains({ mains }: PodFacts): string {
  return mains.map(({ name }) => `container:${name}`).join();
}

/** The right to get pods. */
export function roleCommand(pod: PodFacts): Command {
  const account = `${pod.namespace}:${readName(pod.spec['serviceAccountName']) || 'default'}`;
  const role = kubectl(pod, 'create role lastscrape --verb=get --resource=pods');
  const binding = `create rolebinding lastscrape --role=lastscrape --serviceaccount=${quoteShell(account)}`;
  return { what: "let the pod's service account get pods", line: `${role} && ${kubectl(pod, binding)}` };
}

function moveHelper(helper: ContainerFacts, pod: PodFacts, what: string): Remedy {
  return { change: changePod(pod, what, makeNative(helper), MOVE) };
}

function findRemedy(helper: ContainerFacts, pod: PodFacts): Remedy {
  if (helper.program?.name === 'pushgateway') return replaceGateway(helper, pod);
  return helper.program?.kind === 'exporter' ? holdExporter(helper, pod) : endHelper(helper, pod);
}

/** lastscrape in the place of a Pushgateway, which would end before its last numbers were scraped. */
function replaceGateway({ name, spec }: ContainerFacts, pod: PodFacts): Remedy {
  const [port] = toObjects(spec['ports']);
  const url = `pushgateway://127.0.0.1:${toNumber(port?.['containerPort'], 9091)}`;
  // Before main pushes.
  const lifecycle = { postStart: { exec: { command: ['/lastscrape', '--ready'] } } };
  const own = { ...buildSidecar({ LASTSCRAPE_METRICS_URL: url, LASTSCRAPE_FRONT: '9469' }), lifecycle };
  const effect = `Cut ${name} from containers; lastscrape, the last of initContainers, takes the pushes, and keeps the pod until Prometheus has scraped port 9469 once more`;
  return { change: changePod(pod, 'Put lastscrape in its place', { spec: { initContainers: [own] } }, effect) };
}

/** lastscrape as a native sidecar. */
function buildSidecar(settings: Readonly<Record<string, string>>): Json {
  const env = toEnv({ LASTSCRAPE_DONE_WHEN: 'sigterm', ...settings, LASTSCRAPE_EXIT_ZERO: 'true' });
  return { name: 'lastscrape', image: IMAGE, restartPolicy: 'Always', env };
}

/** lastscrape next to Locust's exporter, or in its place; behind another one, as native sidecars. */
function holdExporter(helper: ContainerFacts, pod: PodFacts): Remedy {
  if (helper.program?.name === 'locust-exporter') {
    if (pod.labels['managed-by'] !== 'locust-k8s-operator') {
      const effect = 'It waits for the last scrape, then stops the exporter and itself';
      return { change: changePod(pod, 'Add this container', addLastscrape(), effect) };
    }
    const change: Change = {
      what: "Put lastscrape in the exporter's place in the values of the operator's chart (1.x: config.loadGenerationPods). From the next test on it keeps the pod until it was scraped, and ends:",
      in: 'chartValues',
      lines: formatYaml({ locustPods: { metricsExporter: { image: IMAGE } } }),
    };
    return { change };
  }
  const url = findMetricsUrl(helper, pod);
  if (url === null) return endHelper(helper, pod);
  const patch = makeNative(helper, buildSidecar({ LASTSCRAPE_METRICS_URL: url }));
  const effect = `${MOVE}. lastscrape, the last of them, keeps both until Prometheus has scraped once more`;
  return { change: changePod(pod, 'Make it a native sidecar, with lastscrape behind it,', patch, effect) };
}

/** Where Prometheus reads it; null: nothing in the pod shows it. */
function findMetricsUrl({ spec }: ContainerFacts, { annotations }: PodFacts): string | null {
  const ports = toObjects(spec['ports']);
  const named = ports.find(({ name }) => /metrics|prom/.test(toText(name))) ?? ports[0];
  const port = toText(annotations['prometheus.io/port']) || named?.['containerPort'];
  if (!/^\d{1,5}$/.test(String(port))) return null;
  const path = toText(annotations['prometheus.io/path']);
  return `http://localhost:${port}${/^\/[\w./-]*$/.test(path) ? path : '/metrics'}`;
}

/** Helpers, known or not, that run after every main has ended, in a pod without lastscrape. */
function findHelpers(pod: PodFacts, isKnown: boolean): readonly ContainerFacts[] {
  if (pod.mainsEnded === null || pod.lastscrape !== null) return [];
  return pod.runningHelpers.filter(({ program }) => (program !== null) === isKnown);
}

function describeEnd({ mains, mainNames }: PodFacts): string {
  return `${mainNames} ${mains.length === 1 ? 'has' : 'have'} ended`;
}

/** What ends a helper with exit code 0 from outside its pod; null: nothing that is sure to. */
function findQuitCommand({ name, spec, program }: ContainerFacts, pod: PodFacts): Command | null {
  if (program?.name === 'locust-exporter') {
    const [port] = toObjects(spec['ports']);
    const path = `/api/v1/namespaces/${pod.namespace}/pods/${pod.name}:${toNumber(port?.['containerPort'], 9646)}/proxy/quitquitquit`;
    // It exits inside the handler, so kubectl gets no answer.
    return {
      what: 'end it in this pod, without a last scrape (kubectl then reports an error: it gets no answer)',
      line: `kubectl create --raw ${quoteShell(path)} --filename=/dev/null`,
    };
  }
  if (program?.name !== 'istio') return null;
  const line = `exec ${quoteShell(pod.name)} --container=${quoteShell(name)} -- pilot-agent request POST quitquitquit`;
  return { what: 'end it in this pod', line: kubectl(pod, line) };
}
