// /proc/self/mountinfo → which container of which pod this is: the kubelet mounts the termination message from
// `<its folder>/pods/<UID of the pod>/containers/<name>/<id>` (seen on Kubernetes 1.36.3 with containerd).

/** The container that this process runs in. */
export type OwnContainer = { readonly podUid: string; readonly name: string };

/** The path on the node is the fourth field (proc_pid_mountinfo(5)). */
const MESSAGE_MOUNT = /^\d+ \d+ \d+:\d+ \S*\/pods\/([0-9a-f-]+)\/containers\/([a-z0-9-]+)\/[0-9a-f]+ /m;

/** Reads the text of mountinfo; null where no termination message is mounted. */
export function readOwnContainer(mountInfo: string): OwnContainer | null {
  const [, podUid, name] = MESSAGE_MOUNT.exec(mountInfo) ?? [];
  return podUid === undefined || name === undefined ? null : { podUid, name };
}
