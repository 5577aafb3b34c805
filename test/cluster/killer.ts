// Kills lastscrape in a pod from outside, as a node does: a pod that sees the processes and control groups of the node.

import assert from 'node:assert/strict';
import type { Namespace, Pod } from './cluster.ts';
import { IMAGES } from './images.ts';

/** By SIGKILL; or the kernel kills it, since its container is out of memory. */
export type Death = 'SIGKILL' | 'out of memory';

/** Finds the one process of the program lastscrape in the control groups of that pod, and does to it what `ending` says. */
const SCRIPT = (podUid: string, ending: string) => `
set --
for process in /proc/[0-9]*; do
  [ "$(basename "$(readlink $process/exe)")" = lastscrape ] || continue
  case "$(tr _ - <$process/cgroup)" in *${podUid}*) set -- "$@" "\${process#/proc/}" ;; esac
done 2>/dev/null
[ $# = 1 ] || { echo "found $# processes"; exit 1; }
${ending}
`;

const ENDINGS: Readonly<Record<Death, (limitMib: number) => string>> = {
  SIGKILL: () => 'kill -KILL "$1"',
  // A program beside it takes all but 6 MiB of what its container may have, and the kernel is told whom to end then; it spares the
  // other one, which comes from a pod of the class Guaranteed, or ends it, too, after that. In `args` Kubernetes makes one
  // dollar of two.
  'out of memory': (limitMib) => `
group=/node-cgroup/memory$(sed -n 's/^[0-9]*:memory://p' /proc/$1/cgroup)
[ "$group" != /node-cgroup/memory ] || group=/node-cgroup$(sed -n 's/^0:://p' /proc/$1/cgroup)
echo 1000 >/proc/$1/oom_score_adj
sh -c 'echo $$$$ >"$0/cgroup.procs" && exec dd if=/dev/zero of=/dev/null bs=${limitMib - 6}M count=1' "$group" || true
`,
};

/** `limitMib` is what its container may have. @throws when there is not exactly one such process. */
export async function killLastscrape(
  namespace: Namespace,
  { metadata: { uid } }: Pod,
  death: Death,
  limitMib = 64,
): Promise<void> {
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
          args: ['-c', SCRIPT(uid, ENDINGS[death](limitMib))],
          securityContext: { privileged: true, runAsUser: 0 },
          resources: { limits: { cpu: '100m', memory: '128Mi' } },
          volumeMounts: [{ name: 'node-cgroup', mountPath: '/node-cgroup' }],
        },
      ],
      volumes: [{ name: 'node-cgroup', hostPath: { path: '/sys/fs/cgroup' } }],
    },
  });
  const { pod } = await namespace.untilPod(
    'the end of the killer',
    60_000,
    ({ metadata, status }) => metadata.name === 'killer' && /Succeeded|Failed/.test(status.phase),
  );
  if (pod.status.phase === 'Failed') assert.fail(`the killer failed: ${await namespace.readLog('killer', 'killer')}`);
}
