// Kills lastscrape in a pod from outside, as a node does: from a pod that sees the node's processes.

import type { Namespace, Pod } from './cluster.ts';
import { IMAGES } from './images.ts';
import { findStatus, getFixture, START_MS } from './scenario.ts';

const NAME = 'killer';

/** By SIGKILL; or the kernel kills it, since its container is out of memory. */
export type Death = 'SIGKILL' | 'out of memory';

/** Does what `ending` says to the one process lastscrape in the control groups of that pod. */
const SCRIPT = (podUid: string, ending: string) => `
set --
for process in /proc/[0-9]*; do
  groups=
  while read -r group; do groups="$groups $group"; done <$process/cgroup
  case "$groups" in *${podUid}* | *${podUid.replaceAll('-', '_')}*) ;; *) continue ;; esac
  [ "$(basename "$(readlink $process/exe)")" != lastscrape ] || set -- "$@" "\${process#/proc/}"
done 2>/dev/null
[ $# = 1 ] || { echo "found $# processes" >&2; exit 1; }
${ending}
`;

const ENDINGS: Readonly<Record<Death, (limitMib: number) => string>> = {
  SIGKILL: () => 'kill -KILL "$1"',
  // A second program takes all but 6 MiB of the container's memory; the kernel learns whom to end then.
  'out of memory': (limitMib) => `
group=/node-cgroup/memory$(sed -n 's/^[0-9]*:memory://p' /proc/$1/cgroup)
[ "$group" != /node-cgroup/memory ] || group=/node-cgroup$(sed -n 's/^0:://p' /proc/$1/cgroup)
echo 1000 >/proc/$1/oom_score_adj
sh -c 'echo $$ >"$0/cgroup.procs" && exec dd if=/dev/zero of=/dev/null bs=${limitMib - 6}M count=1' "$group" || true
`,
};

/** A pod that waits on the node, so that a death is a matter of a moment. */
export type Killer = {
  /** `limitMib`: what lastscrape's container may have. @throws unless there is exactly one such process */
  kill(pod: Pod, death: Death, limitMib?: number): Promise<void>;
};

/** Starts it, and waits until it runs. */
export async function startKiller(namespace: Namespace): Promise<Killer> {
  await namespace.apply({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: NAME },
    spec: {
      hostPID: true,
      restartPolicy: 'Never',
      terminationGracePeriodSeconds: 0,
      containers: [
        {
          name: NAME,
          image: IMAGES.busybox,
          args: ['-c', 'sleep 3600'],
          securityContext: { privileged: true, runAsUser: 0 },
          resources: { limits: { cpu: '100m', memory: '128Mi' } },
          volumeMounts: [{ name: 'node-cgroup', mountPath: '/node-cgroup' }],
        },
      ],
      volumes: [{ name: 'node-cgroup', hostPath: { path: '/sys/fs/cgroup' } }],
    },
  });
  await namespace.untilPod(
    'the killer running',
    START_MS,
    (pod) => pod.metadata.name === NAME && findStatus(pod, NAME)?.state.running !== undefined,
  );
  return {
    async kill({ metadata: { uid } }, death, limitMib = 64) {
      const script = SCRIPT(uid, ENDINGS[death](limitMib));
      await getFixture().cluster.kubectl(['exec', '--namespace', namespace.name, NAME, '--', 'sh', '-c', script]);
    },
  };
}
