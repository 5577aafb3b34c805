// A pod as the API server shows it → the state of each regular container, and which of them this is. Pure.
// Restarts follow the kubelet's rule (ShouldContainerBeRestarted and ContainerShouldRestart of Kubernetes
// 1.36.3; fixtures/recordings/kubernetes-1.36.3): "terminated" alone is not the end, it lasts ten seconds
// between two restarts.

import { at, isObject, type Json, parseObject, toObjects, toText } from '../base/json.ts';

/** The state of one regular container. `seen` is short and fits after its name. */
export type ContainerState =
  /** It runs, or will be started again. */
  | { readonly kind: 'alive'; readonly seen: string }
  /** It ended and will not be started again. */
  | { readonly kind: 'done'; readonly seen: string; readonly exitCode: number }
  /** It was not started yet: no image, init containers still run, … */
  | { readonly kind: 'notStarted'; readonly seen: string };

/** One of `spec.containers`. */
export type PodContainer = {
  readonly name: string;
  readonly state: ContainerState;
  /** Its restartPolicy is Always: no exit is its last. */
  readonly isAlwaysRestarted: boolean;
};

/** What a watcher inside needs of a pod. */
export type Pod = {
  readonly uid: string;
  /** The regular containers, in the order of the spec; no init, native sidecar or ephemeral container. */
  readonly containers: readonly PodContainer[];
  /** The init containers, native sidecars among them. */
  readonly initNames: readonly string[];
};

/** The pod, or why the text cannot be read as one. */
type PodResult = { readonly pod: Pod } | { readonly why: string };

/** Reads the body of `GET /api/v1/namespaces/NAMESPACE/pods/NAME`; never throws. */
export function readPod(text: string): PodResult {
  const root = parseObject(text);
  return root === null ? { why: 'the answer is not JSON' } : readPodObject(root);
}

/** The same for a parsed body. */
export function readPodObject(root: Json): PodResult {
  const containers = toObjects(at(root, 'spec')['containers']);
  if (root['kind'] !== 'Pod' || containers.length === 0) return { why: 'the answer is not a Pod' };
  const status = at(root, 'status');
  return {
    pod: {
      uid: toText(at(root, 'metadata')['uid']),
      containers: containers.map((container) => {
        const name = toText(container['name']);
        const own = toObjects(status['containerStatuses']).find((each) => each['name'] === name) ?? {};
        return {
          name,
          state: readState(container, own, root),
          isAlwaysRestarted: readRestartPolicy(container, root) === 'Always',
        };
      }),
      initNames: toObjects(at(root, 'spec')['initContainers']).map((container) => toText(container['name'])),
    },
  };
}

/** The message of a Status object, as the API server sends it with errors; blank for any other text. */
export function readStatusMessage(text: string): string {
  const root = parseObject(text);
  return root?.['kind'] === 'Status' ? toText(root['message']) : '';
}

function readState(container: Json, status: Json, pod: Json): ContainerState {
  const state = at(status, 'state');
  if (isObject(state['running'])) return { kind: 'alive', seen: 'running' };
  const { exitCode, reason } = at(state, 'terminated');
  if (typeof exitCode === 'number') {
    // Those two say no more than the exit code does.
    const isInformative = typeof reason === 'string' && !['', 'Completed', 'Error'].includes(reason);
    const seen = `ended with ${exitCode}${isInformative ? ` (${reason})` : ''}`;
    if (isStartedAgain(container, exitCode, pod)) return { kind: 'alive', seen: `${seen}, to be restarted` };
    return { kind: 'done', seen, exitCode };
  }
  const why = toText(at(state, 'waiting')['reason']) || 'no status yet';
  const wasStarted = Number(status['restartCount'] ?? 0) > 0 || isObject(at(status, 'lastState')['terminated']);
  if (wasStarted || why === 'CrashLoopBackOff') return { kind: 'alive', seen: `to be restarted (${why})` };
  return { kind: 'notStarted', seen: `not started (${why})` };
}

/** Whether the kubelet restarts a container that ended with this code. */
function isStartedAgain(container: Json, exitCode: number, pod: Json): boolean {
  // A pod that is being deleted, or is over, starts nothing.
  if (at(pod, 'metadata')['deletionTimestamp'] !== undefined) return false;
  const status = at(pod, 'status');
  if (status['phase'] === 'Failed' || status['phase'] === 'Succeeded') return false;
  // The rule RestartAllContainers of any container (beta in 1.36) also starts the others, whatever they ended
  // with.
  const isStartingAll = toObjects(status['conditions']).some(
    (condition) => condition['type'] === 'AllContainersRestarting' && condition['status'] === 'True',
  );
  if (isStartingAll || hasMatchingRule(container, exitCode)) return true;
  const policy = readRestartPolicy(container, pod);
  return policy === 'OnFailure' ? exitCode !== 0 : policy !== 'Never';
}

/** Every action restarts a container (Kubernetes 1.36.3); rules need a policy of the container. */
function hasMatchingRule(container: Json, exitCode: number): boolean {
  if (container['restartPolicy'] === undefined) return false;
  return toObjects(container['restartPolicyRules']).some((rule) => {
    const { operator, values } = at(rule, 'exitCodes');
    const isListed = Array.isArray(values) && values.includes(exitCode);
    return operator === 'In' ? isListed : operator === 'NotIn' && !isListed;
  });
}

/** The container's own policy (Kubernetes 1.34), else the pod's; the API defaults to Always. */
function readRestartPolicy(container: Json, pod: Json): string {
  return toText(container['restartPolicy']) || toText(at(pod, 'spec')['restartPolicy']) || 'Always';
}

/** The container that this process runs in. */
export type OwnContainer = { readonly podUid: string; readonly name: string };

/**
 * The fourth field is the path on the node (proc_pid_mountinfo(5)). The kubelet mounts the message
 * from `<folder>/pods/<UID>/containers/<name>/<id>` (Kubernetes 1.36.3 with containerd).
 */
const MESSAGE_MOUNT = /^\d+ \d+ \d+:\d+ \S*\/pods\/([0-9a-f-]+)\/containers\/([a-z0-9-]+)\/[0-9a-f]+ /m;

/** Reads the text of /proc/self/mountinfo; null if no termination message is mounted. */
export function readOwnContainer(mountInfo: string): OwnContainer | null {
  const [, podUid, name] = MESSAGE_MOUNT.exec(mountInfo) ?? [];
  return podUid === undefined || name === undefined ? null : { podUid, name };
}
