// A container that has not started yet, or still does the pod's work. Of what the scheduler or the kubelet
// refuses, or starts again and again, it names the reason: `kubectl describe` says the rest. Pure.

import { at, type Json, toText } from '../../base/json.ts';
import { joinNames } from '../../base/text.ts';
import { type ContainerFacts, isNeverStarted, sinceStart } from '../container.ts';
import type { Change, Found, Reasons } from '../finding.ts';
import { changePod, containerLines, describeCommand, logsCommand, specLines } from '../lines.ts';
import { findCondition, keepsPod, type PodFacts } from '../pod.ts';
import { addOthers, quoteText, tailMessage } from '../words.ts';

/** Owners whose pods never end, and can have no deadline. */
const KEEPERS = ['ReplicaSet', 'ReplicationController', 'StatefulSet', 'DaemonSet', 'Node'];

/** What comes before every start (the kubelet, pkg/kubelet, 1.36). */
const STARTING = ['', 'ContainerCreating', 'PodInitializing'];

/** The row of a pod without a node. */
export const UNSCHEDULED_REASONS: Reasons<PodFacts> = {
  unscheduled: (pod) => {
    const condition = findCondition(pod.conditions, 'PodScheduled', 'False');
    const says = quoteText(toText(condition?.['message']), 300);
    return {
      isStuck: condition === undefined ? null : true,
      summary: `Pod ${pod.namespace}/${pod.name} has no node${condition === undefined ? ' yet' : ''}`,
      since: pod.created,
      why: says === '' ? 'No scheduler has said why.' : `The scheduler says: ${says}`,
      see: describeCommand(pod, 'pod'),
    };
  },
};

/** The rows of a pod on a node. */
export const MAIN_REASONS: Reasons<PodFacts> = {
  notStarted: (pod) => {
    const waiting = pod.containers.filter(
      (each) => each.running === null && !each.isDone && !isNotWaitedFor(each, pod),
    );
    const refused = waiting.filter(({ waiting, ended }) => ended !== null || !STARTING.includes(waiting?.reason ?? ''));
    if (refused.length > 0) return refused.map((container) => explainWaiting(container, pod, true));
    const isBusy = pod.containers.some(
      ({ role, running }) => running !== null && (role === 'init' || !running.hasStarted),
    );
    return isBusy ? null : waiting.slice(0, 1).map((container) => explainWaiting(container, pod, null));
  },
  initRuns: (pod) => {
    const first = pod.containers.find(({ role, running, isDone }) =>
      role === 'init' ? !isDone : role === 'native' && running?.hasStarted === false,
    );
    if (first === undefined || first.running === null || pod.mains.some(wasStarted)) return null;
    const isInit = first.role === 'init';
    const proxy = pod.containers.find(({ role, program }) => role === 'regular' && program?.kind === 'mesh');
    if (first.program?.kind === 'lastscrape' && proxy !== undefined && first.spec['startupProbe'] !== undefined) {
      return keepsPod(first, pod, ` from starting: its startupProbe never passes, since ${proxy.name} is not up yet`, {
        isStuck: true,
        since: sinceStart(first),
        why: `An init container redirects what comes into the pod to ${proxy.name}, which starts only after the probe.`,
        change: changePod(pod, 'Take the probe out', containerLines(first, 'startupProbe: null')),
        see: describeCommand(pod, 'pod'),
      });
    }
    const what = isInit ? 'this init container still runs' : 'its startupProbe has not passed';
    return keepsPod(first, pod, ` from starting: ${what}, and the others wait for that`, {
      isStuck: null,
      since: sinceStart(first),
      why: isInit
        ? 'Its log shows what it waits for.'
        : 'It runs; its events say what the probe gets, and its log why.',
      change: endLater(pod),
      see: isInit ? logsCommand(pod, first.name) : describeCommand(pod, 'pod'),
    });
  },
  mainRuns: (pod) => {
    const [first, ...others] = pod.mains.filter(({ running }) => running !== null);
    if (first === undefined) return null;
    const helpers = pod.lastscrape === null ? pod.helpers.filter(({ isDone }) => !isDone) : [];
    const names = joinNames(helpers.map(({ name, program }) => `${name} (${program?.what ?? 'a helper'})`));
    const later = names === '' ? '' : ` Beware: when it ends, ${names} will keep the pod; ask again then.`;
    return keepsPod(first, pod, `: it still runs${addOthers(others)}`, {
      isStuck: false,
      since: sinceStart(first),
      why: isKept(pod)
        ? `As it should: the pod belongs to ${pod.owner?.kind} ${pod.owner?.name}, which keeps it running for ever.`
        : `The pod's own work is not over; the JSON does not show whether it hangs.${later}`,
      change: endLater(pod),
      see: logsCommand(pod, first.name),
    });
  },
  notInjected: (pod) => {
    if (pod.labels['lastscrape.dev/inject'] !== 'true' || pod.lastscrape !== null) return null;
    return {
      isStuck: false,
      summary: `Pod ${pod.namespace}/${pod.name} has the label lastscrape.dev/inject, and no lastscrape`,
      since: pod.created,
      why: `${findMisfit(pod.spec) ?? 'A policy is not at work here, or left it alone: "kubectl apply --dry-run=server" of its manifest warns why'}.`,
    };
  },
};

/** Why the policies leave it alone, as lastscrape.podReason in deploy/chart says; null: nothing shows it. */
function findMisfit(spec: Json): string | null {
  const { 'kubernetes.io/os': os = 'linux', 'kubernetes.io/arch': arch = 'amd64' } = at(spec, 'nodeSelector');
  if (spec['hostNetwork'] === true) return 'With hostNetwork localhost is the node';
  if (spec['resources'] !== undefined) return 'It sets resources as a whole, which a further container might exceed';
  const isLinux = (at(spec, 'os')['name'] ?? os) === 'linux' && os === 'linux';
  return isLinux && ['amd64', 'arm64'].includes(toText(arch)) ? null : 'The image is for Linux on amd64 and arm64';
}

/** @param isStuck null: it may be on its way */
function explainWaiting(container: ContainerFacts, pod: PodFacts, isStuck: true | null): Found {
  const { reason = '', message = '' } = container.waiting ?? {};
  const last = container.ended ?? container.lastEnded;
  const from = container.role === 'regular' ? '' : ' from starting';
  const says = isNeverStarted(last) ? (last?.message ?? '') : message;
  const problems = container === pod.lastscrape?.container ? (pod.lastscrape.report?.problems ?? []) : [];
  const kubelet =
    says === '' ? 'The JSON does not show why.' : `The kubelet says: ${quoteText(tailMessage(says), 300)}`;
  return keepsPod(container, pod, `${from}: it does not run (${quoteText(reason) || 'no reason given'})`, {
    isStuck,
    since: last === null ? pod.created : { atMs: last.atMs, what: `it ended with ${last.exitCode}, ${last.reason}` },
    why: problems.length === 0 ? kubelet : `lastscrape reports: ${problems.map((each) => quoteText(each)).join('. ')}`,
    see: last === null ? describeCommand(pod, 'pod') : logsCommand(pod, container.name, '--previous --tail=20'),
  });
}

/** What ends a pod that hangs; null: its own deadline does, or it can have none. */
function endLater(pod: PodFacts): Change | null {
  if (pod.spec['activeDeadlineSeconds'] !== undefined || isKept(pod)) return null;
  return changePod(pod, 'To end it after an hour, set a deadline', specLines('activeDeadlineSeconds: 3600'));
}

function isKept({ owner }: PodFacts): boolean {
  return owner !== null && KEEPERS.includes(owner.kind);
}

/** Whether the pod ends without waiting for it: a native sidecar of a pod whose main was started. */
function isNotWaitedFor({ role }: ContainerFacts, { mains }: PodFacts): boolean {
  return role === 'native' && mains.some(wasStarted);
}

function wasStarted({ running, ended, lastEnded }: ContainerFacts): boolean {
  return running !== null || ended !== null || lastEnded !== null;
}
