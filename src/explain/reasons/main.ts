// Main itself, and pods that are meant to run for ever. Pure.

import { type ContainerFacts, sinceStart } from '../container.ts';
import type { Change, Found, Reason } from '../finding.ts';
import { changePod, logsCommand, specLines } from '../lines.ts';
import { keepsPod, type PodFacts } from '../pod.ts';
import { addOthers, joinNames } from '../words.ts';

/** Owners whose pods never end; a Job's do. */
const KEEPERS = ['ReplicaSet', 'ReplicationController', 'StatefulSet', 'DaemonSet', 'Node'];

/** The rows. */
export const MAIN_REASONS: readonly Reason<PodFacts>[] = [
  {
    id: 'meantToRun',
    find: (pod) => {
      const [running] = findRunningMains(pod);
      if (!isKept(pod) || running === undefined) return null;
      const owner = `${pod.owner?.kind} ${pod.owner?.name}`;
      return keepsPod(running, pod, `, as it should: the pod belongs to ${owner}, which keeps it running for ever`, {
        isStuck: false,
        since: sinceStart(running),
        why: 'It ends only when it is deleted or its owner is scaled down. Work that is to end belongs in a Job.',
      });
    },
  },
  {
    id: 'restartedAlways',
    find: (pod) =>
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
  },
  {
    id: 'mainRuns',
    find: (pod) => {
      const [first, ...others] = findRunningMains(pod);
      if (first === undefined || isKept(pod)) return null;
      // Restarts that have no cause but the policy have a row of their own.
      if (pod.owner === null && pod.restartPolicy === 'Always' && first.lastEnded?.exitCode === 0) return null;
      return explainMain(first, others, pod);
    },
  },
];

function explainMain(first: ContainerFacts, others: readonly ContainerFacts[], pod: PodFacts): Found {
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
}

/** What ends a pod that hangs. */
export function endLater(pod: PodFacts): Change {
  return changePod(pod, 'To end it after an hour, set a deadline', specLines('activeDeadlineSeconds: 3600'));
}

/** What ends a pod whose containers are restarted. */
export function stopRestarts(pod: PodFacts, what: string): Change {
  return changePod(pod, what, specLines('restartPolicy: Never'));
}

/** Whether its owner keeps the pod running for ever. */
export function isKept({ owner }: PodFacts): boolean {
  return owner !== null && KEEPERS.includes(owner.kind);
}

function findRunningMains({ mains }: PodFacts): readonly ContainerFacts[] {
  return mains.filter(({ running }) => running !== null);
}
