// What was not started yet, or is restarted again and again. For scheduling, volumes and images it says what
// the scheduler or the kubelet says, and gives no advice. Pure.

import { at, isObject, toObjects, toText } from '../../base/json.ts';
import { type ContainerFacts, type Ended, isNeverStarted, sinceStart } from '../container.ts';
import type { Change, Found, Reason } from '../finding.ts';
import { changePod, containerLines, eventsCommand, logsCommand } from '../lines.ts';
import { describePod, findCondition, keepsPod, type PodFacts } from '../pod.ts';
import { quoteText, tailMessage } from '../words.ts';
import { endLater, isKept, stopRestarts } from './main.ts';

/** The kubelet's reasons for an image that it does not have (pkg/kubelet/images/types.go, 1.36). */
const IMAGE_REASONS = [
  ...['ErrImagePull', 'ImagePullBackOff', 'InvalidImageName', 'ErrImageNeverPull'],
  ...['ImageInspectError', 'RegistryUnavailable', 'SignatureValidationFailed'],
];
const CONFIG_REASONS = ['CreateContainerConfigError', 'CreateContainerError'];

/** The rows of a pod without a node. */
export const UNSCHEDULED_REASONS: readonly Reason<PodFacts>[] = [
  { id: 'gated', find: (pod) => (isGated(pod) ? explainUnscheduled(pod) : null) },
  { id: 'unschedulable', find: (pod) => (isGated(pod) ? null : explainUnscheduled(pod)) },
];

/** The rows of a pod on a node. */
export const STARTING_REASONS: readonly Reason<PodFacts>[] = [
  {
    id: 'image',
    find: (pod) => findWaiting(pod, IMAGE_REASONS).map((container) => explainWaiting(container, pod, true)),
  },
  {
    id: 'config',
    find: (pod) => findWaiting(pod, CONFIG_REASONS).map((container) => explainWaiting(container, pod, true)),
  },
  {
    id: 'backOff',
    find: (pod) =>
      pod.containers.flatMap((container) => {
        const last = container.ended ?? container.lastEnded;
        // While it runs another row explains it.
        const isAgain = container.running === null && !container.isDone && last !== null;
        const isPolicy = pod.owner === null && last?.exitCode === 0 && container.role === 'regular';
        if (!isAgain || isPolicy || isNotWaitedFor(container, pod)) return [];
        if (IMAGE_REASONS.includes(container.waiting?.reason ?? '')) return [];
        const from = container.role === 'regular' ? '' : ' from starting';
        const because = `${from}: ${describeBackOff(container, last)}`;
        return keepsPod(container, pod, because, explainBackOff(container, pod, last));
      }),
  },
  {
    id: 'initRuns',
    find: (pod) => {
      const first = pod.containers.find(({ role, running, isDone }) =>
        role === 'init' ? !isDone : role === 'native' && running?.hasStarted === false,
      );
      if (first === undefined || first.running === null || pod.mains.some(wasStarted)) return null;
      return explainInit(first, pod);
    },
  },
  {
    id: 'creating',
    find: (pod) => {
      const isBusy = pod.containers.some(
        ({ role, running, waiting }) =>
          (role === 'init' && running !== null) ||
          !['', 'ContainerCreating', 'PodInitializing'].includes(waiting?.reason ?? '') ||
          running?.hasStarted === false,
      );
      const first = pod.containers.find(({ running, ended, isDone }) => running === null && ended === null && !isDone);
      return isBusy || first === undefined ? null : explainWaiting(first, pod, null);
    },
  },
];

/** The row of what fails while main runs; it comes last. */
export const BESIDE_REASONS: readonly Reason<PodFacts>[] = [
  {
    id: 'nativeFails',
    find: (pod) =>
      pod.containers.flatMap((container) => {
        const { name, running, lastEnded } = container;
        if (!isNotWaitedFor(container, pod) || running !== null || lastEnded === null) return [];
        const how = describeBackOff(container, lastEnded);
        const summary = `${name} does not keep ${describePod(pod)}, but it does not work: ${how}`;
        return { container: name, summary, ...explainBackOff(container, pod, lastEnded), isStuck: false };
      }),
  },
];

function explainUnscheduled(pod: PodFacts): Found {
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
}

/** @param isStuck null: it may be on its way */
function explainWaiting(container: ContainerFacts, pod: PodFacts, isStuck: true | null): Found {
  const { reason = '', message = '' } = container.waiting ?? {};
  const says = quoteText(tailMessage(message), 300);
  return keepsPod(container, pod, `: the kubelet has not started it (${quoteText(reason) || 'no reason given'})`, {
    isStuck,
    since: pod.created,
    why: says === '' ? 'The JSON does not show why; the events do.' : `The kubelet says: ${says}`,
    see: eventsCommand(pod, 'pod'),
  });
}

/** Whether the pod ends without waiting for it: a native sidecar of a pod whose main was started. */
function isNotWaitedFor({ role }: ContainerFacts, { mains }: PodFacts): boolean {
  return role === 'native' && mains.some(wasStarted);
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
  const restarts = `${restartCount} restart${restartCount === 1 ? '' : 's'}`;
  const says = last.message === '' ? 'Its log says why it ends.' : `It says: ${quoteText(last.message)}`;
  return {
    isStuck: true,
    since: { atMs: last.atMs, what: isNeverStarted(last) ? 'it was tried last' : `it ended last, after ${restarts}` },
    why: isNeverStarted(last)
      ? `The kubelet says: ${quoteText(tailMessage(last.message), 300)}`
      : `restartPolicy is ${toText(spec['restartPolicy']) || pod.restartPolicy}. ${says}`,
    change: isNeverStarted(last) ? null : changeBackOff(container, pod, last),
    see: logsCommand(pod, name, '--previous --tail=20'),
  };
}

function changeBackOff(container: ContainerFacts, pod: PodFacts, last: Ended): Change | null {
  const limit = toText(at(at(container.spec, 'resources'), 'limits')['memory']);
  const [, number, unit] = /^(\d+(?:\.\d+)?)(\D*)$/.exec(limit) ?? [];
  if (last.reason === 'OOMKilled' && number !== undefined) {
    const lines = containerLines(container, `resources: {limits: {memory: ${Number(number) * 2}${unit}}}`);
    return changePod(pod, `Give it more memory, here twice its limit of ${limit},`, lines);
  }
  // Its owner wants it to run for ever; of a native sidecar Always is what makes it one.
  if (isKept(pod) || container.role === 'native') return null;
  return stopRestarts(pod, 'Fix the program; to let it fail at once instead, do not restart it');
}

function explainInit(container: ContainerFacts, pod: PodFacts): Found {
  const isInit = container.role === 'init';
  const probe = container.spec['startupProbe'];
  const shown = isObject(probe) ? quoteText(JSON.stringify(probe), 160) : 'a probe';
  const what = isInit ? 'this init container still runs' : 'its startupProbe has not passed';
  const removal = containerLines(container, 'startupProbe: null   # removes it');
  const fix = 'Probe what the program really answers, or remove the probe';
  return keepsPod(container, pod, ` from starting: ${what}, and the others wait for that`, {
    isStuck: null,
    since: sinceStart(container),
    why: isInit ? 'Its log shows what it waits for.' : `It runs, but does not pass ${shown}.`,
    change: isInit ? endLater(pod) : changePod(pod, fix, removal),
    see: logsCommand(pod, container.name),
  });
}

function isGated({ spec }: PodFacts): boolean {
  return toObjects(spec['schedulingGates']).length > 0;
}

function findWaiting({ containers }: PodFacts, reasons: readonly string[]): readonly ContainerFacts[] {
  return containers.filter(({ waiting }) => reasons.includes(waiting?.reason ?? ''));
}

function wasStarted({ running, ended, lastEnded }: ContainerFacts): boolean {
  return running !== null || ended !== null || lastEnded !== null;
}
