// A container that has not started yet, is restarted again and again, or still does the pod's work. Where the
// scheduler or the kubelet refuses one, it repeats what they say, and gives no advice. Pure.

import { toText } from '../../base/json.ts';
import { joinNames } from '../../base/text.ts';
import { type ContainerFacts, type Ended, isNeverStarted, sinceStart } from '../container.ts';
import type { Change, Found, Reasons } from '../finding.ts';
import { changePod, containerLines, eventsCommand, logsCommand, specLines } from '../lines.ts';
import { describePod, findCondition, keepsPod, type PodFacts } from '../pod.ts';
import { addOthers, quoteText, readName, tailMessage } from '../words.ts';

/** Owners whose pods never end; a Job's do. */
const KEEPERS = ['ReplicaSet', 'ReplicationController', 'StatefulSet', 'DaemonSet', 'Node'];

/** What comes before every start, then before every restart (the kubelet, pkg/kubelet, 1.36). */
const STARTING = ['', 'ContainerCreating', 'PodInitializing'];
const RESTARTING = ['CrashLoopBackOff', 'RunContainerError'];

/** The row of a pod without a node. */
export const UNSCHEDULED_REASONS: Reasons<PodFacts> = {
  unscheduled: (pod) => {
    const condition = findCondition(pod.conditions, 'PodScheduled', 'False');
    const reason = quoteText(toText(condition?.['reason']));
    const scheduler = quoteText(toText(pod.spec['schedulerName'])) || 'default-scheduler';
    return {
      isStuck: condition === undefined ? null : true,
      summary: `Pod ${pod.namespace}/${pod.name} has no node: ${reason || `${scheduler} has not looked at it yet`}`,
      since: pod.created,
      why: condition === undefined ? '' : `${scheduler} says: ${quoteText(toText(condition['message']), 300)}`,
      see: eventsCommand(pod, 'pod'),
    };
  },
};

/** The rows of a pod on a node. */
export const MAIN_REASONS: Reasons<PodFacts> = {
  notStarted: (pod) => {
    const refused = pod.containers.filter(isRefused);
    if (refused.length > 0) return refused.map((container) => explainWaiting(container, pod, true));
    const isBusy = pod.containers.some(
      ({ role, running, waiting }) =>
        (role === 'init' && running !== null) ||
        !STARTING.includes(waiting?.reason ?? '') ||
        running?.hasStarted === false,
    );
    const first = pod.containers.find(({ running, ended, isDone }) => running === null && ended === null && !isDone);
    return isBusy || first === undefined ? null : explainWaiting(first, pod, null);
  },
  backOff: (pod) =>
    pod.containers.flatMap((container) => {
      const last = container.ended ?? container.lastEnded;
      // While it runs another row explains it.
      const isAgain = container.running === null && !container.isDone && last !== null;
      const isPolicy = pod.owner === null && last?.exitCode === 0 && container.role === 'regular';
      if (!isAgain || isPolicy || isRefused(container) || isNotWaitedFor(container, pod)) return [];
      const from = container.role === 'regular' ? '' : ' from starting';
      const because = `${from}: ${describeBackOff(container, last)}`;
      return keepsPod(container, pod, because, explainBackOff(container, pod, last));
    }),
  initRuns: (pod) => {
    const first = pod.containers.find(({ role, running, isDone }) =>
      role === 'init' ? !isDone : role === 'native' && running?.hasStarted === false,
    );
    if (first === undefined || first.running === null || pod.mains.some(wasStarted)) return null;
    const isInit = first.role === 'init';
    const proxy = pod.containers.find(({ role, program }) => role === 'regular' && program?.kind === 'mesh');
    if (first.program?.kind === 'lastscrape' && proxy !== undefined) {
      return keepsPod(first, pod, ` from starting: its startupProbe never passes, since ${proxy.name} is not up yet`, {
        isStuck: true,
        since: sinceStart(first),
        why: `An init container redirects what comes into the pod to ${proxy.name}, which starts only after the probe.`,
        change: changePod(pod, 'Take the probe out', containerLines(first, 'startupProbe: null')),
        see: eventsCommand(pod, 'pod'),
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
      see: isInit ? logsCommand(pod, first.name) : eventsCommand(pod, 'pod'),
    });
  },
  meantToRun: (pod) => {
    const [running] = findRunningMains(pod);
    if (!isKept(pod) || running === undefined) return null;
    const owner = `${pod.owner?.kind} ${pod.owner?.name}`;
    return keepsPod(running, pod, `, as it should: the pod belongs to ${owner}, which keeps it running for ever`, {
      isStuck: false,
      since: sinceStart(running),
      why: 'It ends only when it is deleted or its owner is scaled down. Work that is to end belongs in a Job.',
    });
  },
  restartedAlways: (pod) =>
    pod.mains.flatMap((container) => {
      const { name, spec, restartCount, isDone } = container;
      const end = container.ended ?? container.lastEnded;
      const isAgain = pod.owner === null && !isDone && end?.exitCode === 0;
      if (!isAgain || (spec['restartPolicy'] ?? pod.restartPolicy) !== 'Always') return [];
      return keepsPod(container, pod, ': it ended with 0 and is restarted each time, since restartPolicy is Always', {
        isStuck: true,
        since: { atMs: end.atMs, what: `${name} ended last` },
        why: `Always is the default of a pod. It was restarted ${restartCount === 1 ? 'once' : `${restartCount} times`} so far.`,
        change: stopRestarts(pod, 'Do not restart it'),
      });
    }),
  mainRuns: (pod) => {
    const [first, ...others] = findRunningMains(pod);
    if (first === undefined || isKept(pod)) return null;
    // Restarts that have no cause but the policy have a row of their own.
    if (pod.owner === null && pod.restartPolicy === 'Always' && first.lastEnded?.exitCode === 0) return null;
    const helpers = pod.lastscrape === null ? pod.helpers.filter(({ isDone }) => !isDone) : [];
    const names = joinNames(helpers.map(({ name, program }) => `${name} (${program?.what ?? 'a helper'})`));
    const later = names === '' ? '' : ` Beware: when it ends, ${names} will keep the pod; ask again then.`;
    const ending = 'If it is to end, do not restart it, as Always does';
    return keepsPod(first, pod, `: it still runs${addOthers(others)}`, {
      isStuck: false,
      since: sinceStart(first),
      why: `The pod's own work is not over; the JSON does not show whether it hangs.${later}`,
      change: pod.restartPolicy === 'Always' ? stopRestarts(pod, ending) : endLater(pod),
      see: logsCommand(pod, first.name),
    });
  },
  nativeFails: (pod) =>
    pod.containers.flatMap((container) => {
      const { name, running, lastEnded } = container;
      if (!isNotWaitedFor(container, pod) || running !== null || lastEnded === null) return [];
      const how = describeBackOff(container, lastEnded);
      const summary = `${name} does not keep ${describePod(pod)}, but it does not work: ${how}`;
      return { container: name, summary, ...explainBackOff(container, pod, lastEnded), isStuck: false };
    }),
};

/** @param isStuck null: it may be on its way */
function explainWaiting(container: ContainerFacts, pod: PodFacts, isStuck: true | null): Found {
  const { reason = '', message = '' } = container.waiting ?? {};
  const says = quoteText(tailMessage(message), 300);
  const from = container.role === 'regular' ? '' : ' from starting';
  return keepsPod(
    container,
    pod,
    `${from}: the kubelet has not started it (${quoteText(reason) || 'no reason given'})`,
    {
      isStuck,
      since: pod.created,
      why: says === '' ? 'The JSON does not show why; the events do.' : `The kubelet says: ${says}`,
      see: eventsCommand(pod, 'pod'),
    },
  );
}

function describeBackOff({ waiting, restartCount }: ContainerFacts, last: Ended): string {
  const [, pause] = /back-off (\S+) restarting/.exec(waiting?.message ?? '') ?? [];
  const how = isNeverStarted(last)
    ? 'its command cannot be started; it is tried again'
    : last.reason === 'OOMKilled'
      ? 'it runs out of memory, is killed and restarted'
      : `it ends with ${last.exitCode}${restartCount > 1 ? ' again and again' : ''} and is restarted`;
  return `${how}${pause === undefined ? '' : ` after a pause of ${pause}`}`;
}

function explainBackOff(container: ContainerFacts, pod: PodFacts, last: Ended): Omit<Found, 'container' | 'summary'> {
  const { name, spec, restartCount } = container;
  const see = logsCommand(pod, name, '--previous --tail=20');
  if (isNeverStarted(last)) {
    const why = `The kubelet says: ${quoteText(tailMessage(last.message), 300)}`;
    return { isStuck: true, since: { atMs: last.atMs, what: 'it was tried last' }, why, see };
  }
  const fix = last.reason === 'OOMKilled' ? 'Give it more memory' : 'Fix the program';
  // Its owner wants it to run for ever; of a native sidecar Always is what makes it one.
  const isAlways = isKept(pod) || container.role === 'native';
  const hasRules = spec['restartPolicyRules'] !== undefined;
  const restarts = `${restartCount} restart${restartCount === 1 ? '' : 's'}`;
  const says = last.message === '' ? 'Its log says why it ends.' : `It says: ${quoteText(last.message)}`;
  return {
    isStuck: true,
    since: { atMs: last.atMs, what: `it ended last, after ${restarts}` },
    why: `restartPolicy is ${readName(spec['restartPolicy']) || pod.restartPolicy}${hasRules ? ', and restartPolicyRules restart it all the same' : ''}. ${says}`,
    change: isAlways
      ? null
      : hasRules
        ? changePod(
            pod,
            `${fix}; to let it fail at once instead, take its rules out`,
            containerLines(container, 'restartPolicyRules: null'),
          )
        : stopRestarts(pod, `${fix}; to let it fail at once instead, do not restart it`),
    see,
  };
}

/** What ends a pod that hangs; null: its own deadline does. */
function endLater(pod: PodFacts): Change | null {
  if (pod.spec['activeDeadlineSeconds'] !== undefined) return null;
  return changePod(pod, 'To end it after an hour, set a deadline', specLines('activeDeadlineSeconds: 3600'));
}

/** What ends a pod whose containers are restarted. */
function stopRestarts(pod: PodFacts, what: string): Change {
  return changePod(pod, what, specLines('restartPolicy: Never'));
}

/** Whether its owner keeps the pod running for ever. */
function isKept({ owner }: PodFacts): boolean {
  return owner !== null && KEEPERS.includes(owner.kind);
}

/** Whether the kubelet says why it cannot start it: an image, a ConfigMap, a volume. */
function isRefused({ waiting }: ContainerFacts): boolean {
  return waiting !== null && ![...STARTING, ...RESTARTING].includes(waiting.reason);
}

/** Whether the pod ends without waiting for it: a native sidecar of a pod whose main was started. */
function isNotWaitedFor({ role }: ContainerFacts, { mains }: PodFacts): boolean {
  return role === 'native' && mains.some(wasStarted);
}

function wasStarted({ running, ended, lastEnded }: ContainerFacts): boolean {
  return running !== null || ended !== null || lastEnded !== null;
}

function findRunningMains({ mains }: PodFacts): readonly ContainerFacts[] {
  return mains.filter(({ running }) => running !== null);
}
