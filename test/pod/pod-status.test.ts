import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  type ContainerState,
  type Pod,
  readOwnContainer,
  readPod,
  readStatusMessage,
} from '../../src/pod/pod-status.ts';
import { readRecordedBody, readRecordedText } from '../support/recording.ts';

const FOLDER = 'kubernetes-1.36.3';

function read(text: string): Pod {
  const reading = readPod(text);
  if ('why' in reading) assert.fail(reading.why);
  return reading.pod;
}

function listKinds(pod: Pod): string {
  return pod.containers.map(({ name, state }) => `${name} ${state.kind}`).join(', ');
}

const RECORDINGS: readonly (readonly [file: string, kinds: string])[] = [
  // 3 under Never.
  ['never', 'load done, lastscrape alive'],
  [
    'on-failure.1-waiting',
    'fails notStarted, good notStarted, oom notStarted, noimage notStarted, lastscrape notStarted',
  ],
  ['on-failure.2-running', 'fails alive, good done, oom alive, noimage notStarted, lastscrape alive'],
  // `fails` and `oom` are "terminated" here, and are restarted 10 s later.
  ['on-failure.3-ended', 'fails alive, good done, oom alive, noimage notStarted, lastscrape alive'],
  ['on-failure.4-crash-loop', 'fails alive, good done, oom alive, noimage notStarted, lastscrape alive'],
  // In a `Never` pod, each ended with 3: a rule for 3, a rule for all but 3, and OnFailure of its own.
  ['rules', 'in alive, notin done, onfailure alive, lastscrape alive'],
  ['deleted.1-begun', 'load alive, lastscrape alive'],
  ['deleted.2-ended', 'load done, lastscrape done'],
  // `load` is "terminated" here, and everything is started again by its rule RestartAllContainers.
  ['restart-all.1-begun', 'load alive, lastscrape alive'],
  ['restart-all.2-waiting', 'load alive, lastscrape alive'],
];

for (const [file, kinds] of RECORDINGS) {
  test(`readPod() reads ${file} of a real API server`, () => {
    assert.equal(listKinds(read(readRecordedText(`${FOLDER}/${file}.json`))), kinds);
  });
}

test('readPod() says what it saw, in few words', () => {
  const listSeen = (file: string) =>
    Object.fromEntries(
      read(readRecordedText(`${FOLDER}/${file}`)).containers.map(({ name, state }) => [name, state.seen]),
    );
  assert.deepEqual(listSeen('on-failure.3-ended.json'), {
    fails: 'ended with 3, to be restarted',
    good: 'ended with 0',
    oom: 'ended with 137 (OOMKilled), to be restarted',
    noimage: 'not started (ImagePullBackOff)',
    lastscrape: 'running',
  });
  assert.equal(listSeen('on-failure.4-crash-loop.json')['fails'], 'to be restarted (CrashLoopBackOff)');
});

test('readPod() knows the pod and its native sidecar', () => {
  const { uid, initNames } = read(readRecordedText(`${FOLDER}/on-failure.1-waiting.json`));
  assert.match(uid, /^[0-9a-f]{8}-[0-9a-f-]{27}$/);
  assert.deepEqual(initNames, ['native']);
});

type Fields = Readonly<Record<string, unknown>>;

/** A pod with one container `main`; `pod` replaces parts of it. */
function podWith(pod: { spec?: Fields; container?: Fields; status?: Fields; pod?: Fields; metadata?: Fields }): string {
  return JSON.stringify({
    kind: 'Pod',
    metadata: { uid: 'u', ...pod.metadata },
    spec: { restartPolicy: 'Never', ...pod.spec, containers: [{ name: 'main', ...pod.container }] },
    status: { phase: 'Running', containerStatuses: [{ name: 'main', restartCount: 0, ...pod.status }], ...pod.pod },
  });
}

const ended = (exitCode: number, reason = exitCode === 0 ? 'Completed' : 'Error') => ({
  status: { state: { terminated: { exitCode, reason } } },
});
const waiting = (reason: string, more: Fields = {}) => ({ status: { state: { waiting: { reason } }, ...more } });
const LAST = { lastState: { terminated: { exitCode: 1, reason: 'Error' } } };
const ON_FAILURE = { restartPolicy: 'OnFailure' };
const ALWAYS = { restartPolicy: 'Always' };
const NEVER = { restartPolicy: 'Never' };
const DELETED = { metadata: { deletionTimestamp: '2026-11-21T14:38:21Z' } };
/** Ended with 3, with a policy and a rule of its own. */
const ruled = (
  operator: string,
  values?: readonly number[],
  { action = 'Restart', policy = NEVER as Fields } = {},
) => ({ container: { ...policy, restartPolicyRules: [{ action, exitCodes: { operator, values } }] }, ...ended(3) });
/** Ended with 0 while a condition of the pod says so of all containers. */
const restartingAll = (status: string) => ({
  ...ended(0),
  pod: { conditions: [{ type: 'AllContainersRestarting', status }] },
});

const TABLE: readonly (readonly [string, Parameters<typeof podWith>[0], ContainerState['kind']])[] = [
  ['Never and 0', ended(0), 'done'],
  ['Never and 1', ended(1), 'done'],
  ['Never and OOMKilled', ended(137, 'OOMKilled'), 'done'],
  ['OnFailure and 0', { spec: ON_FAILURE, ...ended(0) }, 'done'],
  ['OnFailure and 1', { spec: ON_FAILURE, ...ended(1) }, 'alive'],
  ['OnFailure and OOMKilled', { spec: ON_FAILURE, ...ended(137, 'OOMKilled') }, 'alive'],
  ['Always and 0', { spec: ALWAYS, ...ended(0) }, 'alive'],
  ['no policy at all, which is Always', { spec: { restartPolicy: undefined }, ...ended(0) }, 'alive'],
  ['its own policy, Never, in an OnFailure pod', { spec: ON_FAILURE, container: NEVER, ...ended(1) }, 'done'],
  ['its own policy, OnFailure, and 0', { container: ON_FAILURE, ...ended(0) }, 'done'],
  ['its own policy, OnFailure, and 1', { container: ON_FAILURE, ...ended(1) }, 'alive'],
  ['its own policy, Always', { container: ALWAYS, ...ended(0) }, 'alive'],
  ['a rule In that matches', ruled('In', [1, 3]), 'alive'],
  ['a rule In that does not match', ruled('In', [1]), 'done'],
  ['a rule NotIn that matches', ruled('NotIn', [1]), 'alive'],
  ['a rule NotIn that does not match', ruled('NotIn', [3]), 'done'],
  ['a rule of an unknown operator', ruled('Above', [1]), 'done'],
  ['no matching rule, and OnFailure', ruled('In', [0], { policy: ON_FAILURE }), 'alive'],
  ['a rule In without values', ruled('In'), 'done'],
  ['a rule without a policy', ruled('In', [3], { policy: {} }), 'done'],
  ['a rule that restarts all', ruled('In', [3], { action: 'RestartAllContainers' }), 'alive'],
  ['all are restarted because of another', restartingAll('True'), 'alive'],
  ['all were restarted', restartingAll('False'), 'done'],
  ['a deleted pod, OnFailure and 1', { spec: ON_FAILURE, ...ended(1), ...DELETED }, 'done'],
  ['a deleted pod that still runs', { spec: ON_FAILURE, status: { state: { running: {} } }, ...DELETED }, 'alive'],
  [
    'a deleted pod in CrashLoopBackOff, whose status may be old',
    { spec: ON_FAILURE, ...waiting('CrashLoopBackOff', { restartCount: 1 }), ...DELETED },
    'alive',
  ],
  ['a failed pod (evicted), OnFailure and 137', { spec: ON_FAILURE, ...ended(137), pod: { phase: 'Failed' } }, 'done'],
  ['a pod that is over', { spec: ON_FAILURE, ...ended(1), pod: { phase: 'Succeeded' } }, 'done'],
  ['running', { status: { state: { running: { startedAt: 'x' } } } }, 'alive'],
  ['CrashLoopBackOff without a last state', waiting('CrashLoopBackOff'), 'alive'],
  ['CrashLoopBackOff with one', waiting('CrashLoopBackOff', LAST), 'alive'],
  ['waiting after a restart', waiting('ContainerCreating', { restartCount: 1 }), 'alive'],
  ['waiting with a last state', waiting('PodInitializing', LAST), 'alive'],
  ['ContainerCreating', waiting('ContainerCreating'), 'notStarted'],
  ['ImagePullBackOff', waiting('ImagePullBackOff'), 'notStarted'],
  ['a status without a state', { status: {} }, 'notStarted'],
  ['an exit code that is no number', { status: { state: { terminated: { exitCode: '0' } } } }, 'notStarted'],
  ['another status', { pod: { containerStatuses: [{ name: 'other', ...ended(0).status }] } }, 'notStarted'],
  ['no statuses', { pod: { containerStatuses: undefined } }, 'notStarted'],
  ['statuses that are no list', { pod: { containerStatuses: { main: ended(0).status } } }, 'notStarted'],
  [
    'an ephemeral container of the same name',
    { pod: { containerStatuses: [], ephemeralContainerStatuses: [{ name: 'main', ...ended(0).status }] } },
    'notStarted',
  ],
];

for (const [name, pod, kind] of TABLE) {
  test(`readPod() takes for ${kind}: ${name}`, () => assert.equal(listKinds(read(podWith(pod))), `main ${kind}`));
}

test('readPod() says which containers are always restarted', () => {
  const isAlways = (pod: Parameters<typeof podWith>[0]) => read(podWith(pod)).containers[0]?.isAlwaysRestarted;
  assert.deepEqual([isAlways({ spec: ALWAYS }), isAlways({ container: ALWAYS })], [true, true]);
  assert.deepEqual([isAlways({ spec: ALWAYS, container: ON_FAILURE }), isAlways({})], [false, false]);
  assert.equal(isAlways({ spec: { restartPolicy: undefined } }), true, 'the default of the API');
});

test('readPod() counts regular containers only', () => {
  const text = JSON.stringify({
    kind: 'Pod',
    spec: {
      initContainers: [{ name: 'init' }, { name: 'native', restartPolicy: 'Always' }],
      containers: [{ name: 'b' }, { name: 'a' }],
      ephemeralContainers: [{ name: 'debug' }],
    },
  });
  const { containers, initNames, uid } = read(text);
  assert.deepEqual([containers.map(({ name }) => name), initNames, uid], [['b', 'a'], ['init', 'native'], '']);
});

test('readPod() says why a text is no pod, whatever it is', () => {
  for (const text of ['', 'x', '<html>', '[]', 'null', '1', '"Pod"', '{"kind":"Pod"']) {
    assert.deepEqual(readPod(text), { why: 'the answer is not JSON' }, text);
  }
  const pod = JSON.parse(podWith({}));
  for (const value of [{}, { ...pod, kind: 'PodList' }, { ...pod, spec: null }, { ...pod, spec: { containers: [] } }]) {
    assert.deepEqual(readPod(JSON.stringify(value)), { why: 'the answer is not a Pod' });
  }
});

test('readPod() never takes a cut text for a pod, wherever it is cut', () => {
  const text = readRecordedText(`${FOLDER}/never.json`);
  const end = text.trimEnd().length;
  for (let length = 0; length < end; length += 7) assert.ok('why' in readPod(text.slice(0, length)), `${length}`);
});

test('readStatusMessage() reads what the API server says with an error', () => {
  const readMessage = (file: string) => readStatusMessage(readRecordedBody(`${FOLDER}/${file}`).toString());
  assert.equal(readMessage('401.txt'), 'Unauthorized');
  assert.match(readMessage('403.txt'), /^pods "never" is forbidden: User "system:serviceaccount:/);
  assert.equal(readMessage('404.txt'), 'pods "nothing" not found');
  for (const text of ['', 'no', '{"kind":"Pod","message":"x"}', '{"kind":"Status","message":1}']) {
    assert.equal(readStatusMessage(text), '', text);
  }
});

const UID = '25d544b4-8c37-4008-b75b-2a6d6b547bd7';

/** As containerd mounts it (seen on Kubernetes 1.36.3), with the folder of a stock kubelet. */
const MOUNT_INFO = `
416 400 0:52 / / rw,relatime - overlay overlay rw
366 416 0:50 / /dev/mqueue rw,nosuid,nodev,noexec,relatime - mqueue mqueue rw
367 416 254:0 /var/lib/kubelet/pods/${UID}/etc-hosts /etc/hosts rw,relatime - ext4 /dev/vda rw
368 418 254:0 /var/lib/kubelet/pods/${UID}/containers/lastscrape/c7a353e0 /dev/termination-log rw,relatime - ext4 /dev/vda rw
372 416 0:40 / /var/run/secrets/kubernetes.io/serviceaccount ro,relatime - tmpfs tmpfs rw
`;

test('readOwnContainer() finds the termination message, mounted anywhere and kept anywhere by the kubelet', () => {
  const moved = MOUNT_INFO.replace('/dev/termination-log', '/tmp/message').replaceAll('/var/lib/kubelet', '/data/k8s');
  const ownFileSystem = MOUNT_INFO.replaceAll('/var/lib/kubelet', '');
  for (const text of [MOUNT_INFO, moved, ownFileSystem]) {
    assert.deepEqual(readOwnContainer(text), { podUid: UID, name: 'lastscrape' });
  }
});

test('readOwnContainer() knows nothing where no such file is mounted', () => {
  const without = MOUNT_INFO.split('\n').filter((line) => !line.includes('termination-log'));
  assert.deepEqual([readOwnContainer(without.join('\n')), readOwnContainer('')], [null, null]);
  // A volume of another pod's container, mounted from the node, is no message.
  const volume = `368 418 254:0 /var/lib/kubelet/pods/${UID}/containers/x /host rw - ext4 /dev/vda rw\n`;
  assert.equal(readOwnContainer(volume), null);
  // Only the path on the node counts, not the place.
  assert.equal(readOwnContainer(`368 418 254:0 / /pods/${UID}/containers/x/1 rw - ext4 /dev/vda rw\n`), null);
});
