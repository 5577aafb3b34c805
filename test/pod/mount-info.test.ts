import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readOwnContainer } from '../../src/pod/mount-info.ts';

const UID = '25d544b4-8c37-4008-b75b-2a6d6b547bd7';

/** As containerd mounts it (seen on Kubernetes 1.36.3), with the folder of a stock kubelet. */
const MOUNT_INFO = `
416 400 0:52 / / rw,relatime - overlay overlay rw
366 416 0:50 / /dev/mqueue rw,nosuid,nodev,noexec,relatime - mqueue mqueue rw
367 416 254:0 /var/lib/kubelet/pods/${UID}/etc-hosts /etc/hosts rw,relatime - ext4 /dev/vda rw
368 418 254:0 /var/lib/kubelet/pods/${UID}/containers/lastscrape/c7a353e0 /dev/termination-log rw,relatime - ext4 /dev/vda rw
372 416 0:40 / /var/run/secrets/kubernetes.io/serviceaccount ro,relatime - tmpfs tmpfs rw
`;

test('readOwnContainer() knows the pod and the container by the mount of the termination message', () => {
  assert.deepEqual(readOwnContainer(MOUNT_INFO), { podUid: UID, name: 'lastscrape' });
});

test('readOwnContainer() does not care where it is mounted, nor where the kubelet keeps it', () => {
  const moved = MOUNT_INFO.replace('/dev/termination-log', '/tmp/message').replaceAll('/var/lib/kubelet', '/data/k8s');
  assert.deepEqual(readOwnContainer(moved), { podUid: UID, name: 'lastscrape' });
  // Where the kubelet's folder is a file system of its own.
  assert.deepEqual(readOwnContainer(MOUNT_INFO.replaceAll('/var/lib/kubelet', '')), {
    podUid: UID,
    name: 'lastscrape',
  });
});

test('readOwnContainer() knows nothing where no such file is mounted', () => {
  const without = MOUNT_INFO.split('\n').filter((line) => !line.includes('termination-log'));
  assert.equal(readOwnContainer(without.join('\n')), null);
  assert.equal(readOwnContainer(''), null);
  // A volume of another pod's container, mounted from the node, is no message.
  const volume = `368 418 254:0 /var/lib/kubelet/pods/${UID}/containers/x /host rw - ext4 /dev/vda rw\n`;
  assert.equal(readOwnContainer(volume), null);
  // Only the path on the node counts, not the place.
  assert.equal(readOwnContainer(`368 418 254:0 / /pods/${UID}/containers/x/1 rw - ext4 /dev/vda rw\n`), null);
});
