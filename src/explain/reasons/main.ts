// A container that has not started yet, or still does the pod's work; one that is being ended. Of what the
// scheduler or the kubelet refuses, or starts again and again, it quotes them: `kubectl describe` says the
// rest. Pure.

import { at, type Json, toText } from '../../base/json.ts';
import { joinNames } from '../../base/text.ts';
import { type ContainerFacts, sinceStart } from '../container.ts';
import type { Found, Reasons } from '../finding.ts';
import { changePod, describeCommand, logsCommand } from '../lines.ts';
import { describeDisruption, describePod, keepsPod, type PodFacts } from '../pod.ts';
import { addOthers, formatAge, formatTime, quoteText } from '../words.ts';

/** What comes before every start (the kubelet, pkg/kubelet, 1.36). */
const STARTING = ['', 'ContainerCreating', 'PodInitializing'];
const EARLY = ['PodScheduled', 'PodReadyToStartContainers'];

/** The rows. */
export const MAIN_REASONS: Reasons<PodFacts> = {
  notStarted: (pod) => {
    const open = pod.containers.filter((each) => !each.isDone && !isUp(each, pod));
    const refused = open.filter(({ waiting, ended }) => ended !== null || !STARTING.includes(waiting?.reason ?? ''));
    if (refused.length > 0) return refused.map((container) => explainStart(container, pod, true));
    // What comes before all containers is not the first one's doing.
    const early = pod.conditions.find(({ type, status }) => EARLY.includes(toText(type)) && status === 'False');
    if (early !== undefined && !pod.containers.some(wasStarted)) return explainEarly(early, pod);
    // The others wait for the first.
    return open.slice(0, 1).map((container) => explainStart(container, pod, null));
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
      why: `The pod's own work is not over; the JSON does not show whether it hangs.${later}`,
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

/** Without a node the scheduler says why; of volumes and the network the condition says nothing. */
function explainEarly(
  { reason = 'its volumes or its network are not ready', message = '' }: Json,
  pod: PodFacts,
): Found {
  const words = quoteText(toText(message), 300);
  return {
    isStuck: words === '' ? null : true,
    summary: `Nothing in ${describePod(pod)} is started: ${quoteText(toText(reason))}`,
    since: pod.created,
    why: words === '' ? 'The JSON does not show why.' : `The scheduler says: ${words}`,
    see: describeCommand(pod),
  };
}

/** One that does not run, or is not up yet. @param isStuck null: it may be on its way */
function explainStart(container: ContainerFacts, pod: PodFacts, isStuck: true | null): Found {
  const { name, role, running, waiting } = container;
  const last = container.ended ?? container.lastEnded;
  const from = role === 'regular' ? '' : ' from starting';
  if (running !== null) {
    const what = role === 'init' ? 'it still runs' : 'its startupProbe has not passed';
    const more = { isStuck, since: sinceStart(container), why: 'Its log and its events show what it waits for.' };
    const because = `${from}: ${what}, and the others wait for that`;
    return keepsPod(container, pod, because, { ...more, see: logsCommand(pod, name) });
  }
  return keepsPod(
    container,
    pod,
    `${from}: it does not run (${quoteText(toText(waiting?.reason)) || 'no reason given'})`,
    {
      isStuck,
      since: last === null ? pod.created : { atMs: last.atMs, what: `it ended with ${last.exitCode}, ${last.reason}` },
      why: quoteWords(container, pod),
      see: last === null ? describeCommand(pod) : logsCommand(pod, name, '--previous --tail=20'),
    },
  );
}

/** What lastscrape's own report or the kubelet says. */
function quoteWords(container: ContainerFacts, { lastscrape }: PodFacts): string {
  const problems = container === lastscrape?.container ? (lastscrape.report?.problems ?? []) : [];
  if (problems.length > 0) return `lastscrape reports: ${problems.map((each) => quoteText(each)).join('. ')}`;
  const kubelet = quoteText(toText(container.waiting?.message), 600);
  return kubelet === '' ? 'The JSON does not show why.' : `The kubelet says: ${kubelet}`;
}

/** Whether no other container waits for it. A native sidecar keeps no pod whose main was started. */
function isUp({ role, running }: ContainerFacts, { mains }: PodFacts): boolean {
  if (role === 'regular') return running !== null;
  return role === 'native' && (running?.hasStarted === true || mains.some(wasStarted));
}

function wasStarted({ running, ended, lastEnded }: ContainerFacts): boolean {
  return running !== null || ended !== null || lastEnded !== null;
}

/** Set by the Job controller on its pods, and removed by it once it has counted them. */
const JOB_FINALIZER = 'batch.kubernetes.io/job-tracking';
/** How much later than its grace a pod may go: the kubelet kills, then updates the API server. */
const LATE_MS = 30_000;
/** What uses a grace. */
const LONG =
  'A preStop hook runs in it; a program that ignores SIGTERM, or a shell that does not pass it on, uses all of it.';
const HOLD = 'This is the task of lastscrape, which ends sooner where Prometheus scrapes the pod.';

/** The rows of a pod that is being deleted. */
export const DELETED_REASONS: Reasons<PodFacts> = {
  terminating: (pod, nowMs) => {
    const running = pod.containers.filter((each) => each.running !== null);
    const regular = running.filter(({ role }) => role !== 'native');
    // Native sidecars are asked to end when the others have, and the last of them first.
    const [first, ...more] = regular.length > 0 ? regular : running.slice(-1);
    if (first === undefined || pod.deletedByMs === null) return null;
    const disruption = describeDisruption(pod).replace(/\.$/, '');
    const others = pod.finalizers.filter((name) => name !== JOB_FINALIZER);
    const isLate = nowMs > pod.deletedByMs + LATE_MS;
    const isHold = pod.mainsEnded !== null && first === pod.lastscrape?.container;
    const until = formatTime(pod.deletedByMs);
    const because = isLate
      ? `: its node should have killed it at ${until}, and has not confirmed that`
      : `: it ${isHold ? "waits for Prometheus's last scrape" : 'was asked to end and still runs'}; killed at ${until}`;
    return keepsPod(first, pod, ` from going${addOthers(more)}${because}`, {
      isStuck: isLate,
      since: { atMs: pod.deletedByMs - pod.deletionGraceMs, what: 'the pod was deleted' },
      why: [
        ...(disruption === '' ? [] : [`It was not deleted by a person: ${disruption}.`]),
        `Its grace is ${formatAge(pod.deletionGraceMs)}. ${isHold ? HOLD : LONG}`,
        ...others.map((name) => `After that the finalizer ${quoteText(name)} keeps the object.`),
      ].join(' '),
      ...(isHold ? { see: logsCommand(pod, first.name, '--tail=3') } : endSooner(pod)),
    });
  },
  deleted: (pod) => {
    if (pod.containers.some(({ running }) => running !== null)) return null;
    const { finalizers, deletedByMs } = pod;
    const names = joinNames(finalizers.map((each) => quoteText(each)));
    const isJobs = finalizers.every((name) => name === JOB_FINALIZER);
    const program = isJobs ? 'the Job controller' : 'the program that set it';
    return {
      isStuck: names === '' ? false : isJobs ? null : true,
      summary:
        names === ''
          ? `Nothing keeps ${describePod(pod)}: it is deleted and goes any moment`
          : `The finalizer ${names} keeps ${describePod(pod)}, which is deleted: ${program} must remove it`,
      since: { atMs: deletedByMs, what: 'its grace was over' },
      why: 'No container of it runs.',
      see: describeCommand(pod),
    };
  },
};

/** The row of native sidecars that outlive main. */
export const NATIVE_REASONS: Reasons<PodFacts> = {
  nativeEnds: (pod, nowMs) => {
    const isOver = pod.containers.every(({ role, isDone }) => role !== 'regular' || isDone);
    const last = pod.containers.findLast(({ role, running }) => role === 'native' && running !== null);
    const end = pod.mainsEnded;
    if (!isOver || last === undefined || end === null) return null;
    const killedAtMs = end.atMs === null ? null : end.atMs + pod.graceMs;
    // lastscrape has another row while it holds.
    if (last.program?.kind === 'lastscrape' && nowMs <= (killedAtMs ?? nowMs)) return null;
    const isOverdue = killedAtMs !== null && nowMs > killedAtMs + LATE_MS;
    const when = killedAtMs === null ? 'when the grace is over' : `at about ${formatTime(killedAtMs)}`;
    const because = isOverdue ? `should have been killed ${when}` : `got SIGTERM and still runs; killed ${when}`;
    return keepsPod(last, pod, `: this native sidecar ${because}`, {
      isStuck: isOverdue ? null : false,
      since: end,
      why: `When the regular containers have ended, native sidecars get SIGTERM, the last of the list first. The pod's grace is ${formatAge(pod.graceMs)}.`,
      ...endSooner(pod),
    });
  },
};

function endSooner(pod: PodFacts) {
  const what = 'Handle SIGTERM in the program (in a shell: exec), or set a shorter terminationGracePeriodSeconds';
  return { change: changePod(pod, what, null), see: describeCommand(pod) };
}
