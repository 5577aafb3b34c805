// Kills lastscrape in a pod as the kernel would: SIGKILL from outside, by a pod that sees the processes of the node.

import assert from 'node:assert/strict';
import type { Namespace } from './cluster.ts';
import { IMAGES } from './images.ts';

/** Finds the one process of the program lastscrape in the control groups of that pod, and kills it. */
const SCRIPT = (podUid: string) => `
set --
for process in /proc/[0-9]*; do
  [ "$(basename "$(readlink $process/exe)")" = lastscrape ] || continue
  case "$(tr _ - <$process/cgroup)" in *${podUid}*) set -- "$@" "\${process#/proc/}" ;; esac
done 2>/dev/null
[ $# = 1 ] || { echo "found $# processes"; exit 1; }
kill -KILL "$1"
`;

/** @throws when there is not exactly one such process. */
export async function killLastscrape(namespace: Namespace, podUid: string): Promise<void> {
  await namespace.apply({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'killer' },
    spec: {
      hostPID: true,
      restartPolicy: 'Never',
      terminationGracePeriodSeconds: 0,
      containers: [
        {
          name: 'killer',
          image: IMAGES.busybox,
          args: ['-c', SCRIPT(podUid)],
          securityContext: { privileged: true, runAsUser: 0 },
        },
      ],
    },
  });
  const { pod } = await namespace.untilPod(
    'the end of the killer',
    60_000,
    ({ metadata, status }) => metadata.name === 'killer' && /Succeeded|Failed/.test(status.phase),
  );
  if (pod.status.phase === 'Failed') assert.fail(`the killer failed: ${await namespace.readLog('killer', 'killer')}`);
}
