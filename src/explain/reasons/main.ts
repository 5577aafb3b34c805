// Main itself, and what is meant to run for ever. Pure.

import type { Found, Reason } from '../finding.ts';
import { describeTemplate, kubectl, logsCommand, podChange, toLines } from '../lines.ts';
import type { ContainerFacts, PodFacts } from '../pod.ts';
import { joinNames, quoteShell } from '../words.ts';
import { tellPod } from './helpers.ts';

/** Whose pods never end; a Job's do. */
const KEEPERS = ['ReplicaSet', 'ReplicationController', 'StatefulSet', 'DaemonSet', 'Node'];

/** The rows. */
export const MAIN_REASONS: readonly Reason<PodFacts>[] = [
  {
    id: 'meantToRun',
    meaning: 'the pod belongs to a Deployment, StatefulSet or DaemonSet, which keeps it running for ever',
    find: (pod) => {
      const { owner } = pod;
      const [running] = findRunningMains(pod);
      if (owner === null || !isKept(pod) || running === undefined) return [];
      return [
        {
          container: running.name,
          isStuck: false,
          summary: `${running.name} keeps ${tellPod(pod)}, as it should: the pod belongs to ${owner.kind} ${owner.name}, which keeps it running for ever`,
          ...since(running),
          why: 'Such a pod ends only when somebody deletes it or scales its owner down. Work that is to end belongs into a Job.',
          change: podChange('Nothing, if it is a service. To end it, scale down or delete what owns it.', null),
        },
      ];
    },
  },
  {
    id: 'restartedAlways',
    meaning: 'main has ended with 0, and is started again: restartPolicy is Always',
    find: (pod) =>
      pod.mains.flatMap((container) => {
        const end = container.ended ?? container.lastEnded;
        const isAgain = pod.owner === null && !container.isDone && end?.exitCode === 0;
        if (!isAgain || (container.spec['restartPolicy'] ?? pod.restartPolicy) !== 'Always') return [];
        return [
          {
            container: container.name,
            isStuck: true,
            summary: `${container.name} keeps ${tellPod(pod)}: it ended with 0 and is started again each time, since restartPolicy is Always`,
            sinceMs: end?.atMs ?? null,
            sinceWhat: `${container.name} ended last`,
            why: `Always is the default of a pod. It was started again ${count(container.restartCount)} so far.`,
            change: podChange(`${describeTemplate(pod)}, let it end:`, toLines(['spec:', '  restartPolicy: Never'])),
          },
        ];
      }),
  },
  {
    id: 'mainRuns',
    meaning: 'main still runs: the pod is not over',
    find: (pod) => {
      const running = findRunningMains(pod);
      const [first] = running;
      if (first === undefined || isKept(pod)) return [];
      // What was started again for no other reason than its policy has a row of its own.
      if (pod.owner === null && pod.restartPolicy === 'Always' && first.lastEnded?.exitCode === 0) return [];
      return [tellMain(first, running, pod)];
    },
  },
];

function tellMain(first: ContainerFacts, running: readonly ContainerFacts[], pod: PodFacts): Found {
  const names = joinNames(running.map(({ name }) => name));
  const helpers = pod.lastscrape === null ? pod.helpers.filter(({ isDone }) => !isDone) : [];
  const later =
    helpers.length === 0
      ? ''
      : ` Beware: when it ends, ${joinNames(helpers.map(({ name, program }) => `${name} (${program?.what ?? 'a helper'})`))} will keep the pod; ask again then.`;
  const isAgain = pod.restartPolicy === 'Always';
  return {
    container: first.name,
    isStuck: false,
    summary: `${names} keep${running.length === 1 ? 's' : ''} ${tellPod(pod)}: ${running.length === 1 ? 'it still runs' : 'they still run'}`,
    ...since(first),
    why: `The pod's own work is not over, as far as the JSON tells; whether it hangs is not in the JSON.${later}`,
    change: isAgain
      ? podChange(
          `${describeTemplate(pod)}, if it is to end: with Always it is started again whenever it does:`,
          toLines(['spec:', '  restartPolicy: Never']),
        )
      : podChange(
          `Nothing, if it should still run. ${describeTemplate(pod)}, to end it after an hour, whatever it does:`,
          toLines(['spec:', '  activeDeadlineSeconds: 3600']),
        ),
    see: logsCommand(pod, first.name),
  };
}

function findRunningMains({ mains }: PodFacts): readonly ContainerFacts[] {
  return mains.filter(({ running }) => running !== null);
}

/** Whether somebody keeps such a pod running for ever. */
export function isKept({ owner }: PodFacts): boolean {
  return owner !== null && KEEPERS.includes(owner.kind);
}

function since({ name, running }: ContainerFacts): Pick<Found, 'sinceMs' | 'sinceWhat'> {
  return { sinceMs: running?.sinceMs ?? null, sinceWhat: `${name} was started` };
}

function count(times: number): string {
  return times === 1 ? 'once' : `${times} times`;
}

/** Deletes a pod. */
export function deletePod({ namespace, name }: PodFacts): string {
  return kubectl(namespace, `delete pod ${quoteShell(name)}`);
}
