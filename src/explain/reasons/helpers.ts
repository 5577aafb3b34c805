// What runs on after main has ended: an exporter, a proxy, another helper. Pure.
// A pod with lastscrape in it has other rows (lastscrape.ts).

import { toNumber, toObjects, toText } from '../../base/json.ts';
import type { ContainerFacts } from '../container.ts';
import type { Change, Command, Found, Reasons } from '../finding.ts';
import {
  annotationLines,
  changePod,
  envLine,
  IMAGE,
  kubectl,
  lastscrapeLines,
  logsCommand,
  nativeLines,
  POD_NAME,
  specLines,
  toLines,
} from '../lines.ts';
import { keepsPod, type PodFacts } from '../pod.ts';
import { quoteShell, readName } from '../words.ts';

/** What ends a helper, and what must be run before. */
export type Remedy = { readonly change: Change; readonly first?: Command };

const WHY = 'A pod is over only when all its regular containers have ended, and nothing asks this one to.';
const NATIVE = 'Kubernetes 1.29 and later stop native sidecars when the other containers have ended';

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
    return { change: changePod(pod, 'Add this annotation', annotationLines(...program.annotation), effect) };
  }
  if (!program?.isInjected || program.name === null) return moveHelper(helper, pod, 'Make it a native sidecar');
  // What is injected cannot be moved: lastscrape asks it to end.
  const needs = program.flag === null ? '' : `; it also needs ${program.flag}`;
  const settings = [envLine('LASTSCRAPE_DONE_WHEN', watchMains(pod)), envLine('LASTSCRAPE_SCRAPES', '0')];
  const lines = lastscrapeLines(...settings, envLine('LASTSCRAPE_QUIT', program.name), POD_NAME);
  const effect = `It asks the helper to end once ${describeEnd(pod)}${needs}`;
  return { change: changePod(pod, 'Add lastscrape', lines, effect), first: roleCommand(pod) };
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
  return { change: changePod(pod, what, nativeLines(helper), NATIVE) };
}

function findRemedy(helper: ContainerFacts, pod: PodFacts): Remedy {
  if (helper.program?.name === 'pushgateway') return replaceGateway(helper, pod);
  return helper.program?.kind === 'exporter' ? holdExporter(helper, pod) : endHelper(helper, pod);
}

/** lastscrape in the place of a Pushgateway, which would end before its last numbers were scraped. */
function replaceGateway({ name, spec }: ContainerFacts, pod: PodFacts): Remedy {
  const [port] = toObjects(spec['ports']);
  const lines = specLines(
    'initContainers:',
    ...sidecarLines(
      `the last of initContainers; cut ${name} from containers`,
      `pushgateway://127.0.0.1:${toNumber(port?.['containerPort'], 9091)}`,
    ),
    `      ${envLine('LASTSCRAPE_FRONT', '9469')}   # where Prometheus scrapes it, instead of ${name}`,
    '    lifecycle: {postStart: {exec: {command: [/lastscrape, --ready]}}}   # before main pushes',
  );
  const effect = 'It takes the pushes, and keeps the pod until Prometheus has scraped once more';
  return { change: changePod(pod, 'Put lastscrape in its place', lines, effect) };
}

/** lastscrape as a native sidecar; more variables may follow. */
function sidecarLines(what: string, url: string): readonly string[] {
  return [
    `  - name: lastscrape   # ${what}`,
    `    image: ${IMAGE}   # where you pushed it`,
    '    restartPolicy: Always',
    '    env:',
    '      - {name: LASTSCRAPE_DONE_WHEN, value: sigterm}',
    `      - {name: LASTSCRAPE_METRICS_URL, value: ${JSON.stringify(url)}}`,
    `      ${envLine('LASTSCRAPE_EXIT_ZERO', 'true')}`,
  ];
}

/** lastscrape next to Locust's exporter, or in its place; behind another one, as native sidecars. */
function holdExporter(helper: ContainerFacts, pod: PodFacts): Remedy {
  if (helper.program?.name === 'locust-exporter') {
    if (pod.labels['managed-by'] !== 'locust-k8s-operator') {
      const effect = 'It waits for the last scrape, then stops the exporter and itself';
      return { change: changePod(pod, 'Add this container', lastscrapeLines(), effect) };
    }
    const change: Change = {
      what: "Put lastscrape in the exporter's place in the values of the operator's chart (1.x: config.loadGenerationPods). From the next test on it keeps the pod until it was scraped, and ends:",
      in: 'chartValues',
      lines: toLines('locustPods:', '  metricsExporter:', `    image: ${IMAGE}   # where you pushed it`),
    };
    return { change };
  }
  const url = findMetricsUrl(helper, pod);
  if (url === null) return endHelper(helper, pod);
  const lines = nativeLines(helper, ...sidecarLines('the last of initContainers', url));
  const effect = `lastscrape keeps both until Prometheus has scraped once more. ${NATIVE}`;
  return { change: changePod(pod, 'Make it a native sidecar, with lastscrape behind it,', lines, effect) };
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
