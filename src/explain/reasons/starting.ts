// What was not started yet, or is started again and again: images, settings, init containers, back-off. Pure.

import { at, isObject, toObjects, toText } from '../../base/json.ts';
import type { Change, Command, Found, Reason } from '../finding.ts';
import { containerLines, describeTemplate, eventsCommand, kubectl, logsCommand, podChange, toLines } from '../lines.ts';
import { type ContainerFacts, type Ended, findCondition, isNeverStarted, type PodFacts } from '../pod.ts';
import { quoteShell, quoteText, quoteYaml, tailMessage } from '../words.ts';
import { tellPod } from './helpers.ts';
import { isKept } from './main.ts';

/** The kubelet's reasons for an image that it does not have (pkg/kubelet/images/types.go, 1.36). */
const IMAGE_REASONS = [
  'ErrImagePull',
  'ImagePullBackOff',
  'InvalidImageName',
  'ErrImageNeverPull',
  'ImageInspectError',
  'RegistryUnavailable',
  'SignatureValidationFailed',
];
const CONFIG_REASONS = ['CreateContainerConfigError', 'CreateContainerError'];

/** The rows. */
export const STARTING_REASONS: readonly Reason<PodFacts>[] = [
  {
    id: 'image',
    meaning: 'the image of a container cannot be had',
    find: forWaiting(
      ({ reason }) => IMAGE_REASONS.includes(reason),
      (container, pod, { reason, message }) => ({
        container: container.name,
        isStuck: true,
        summary: `${container.name} keeps ${tellPod(pod)}: its image ${quoteText(toText(container.spec['image']), 120)} cannot be pulled`,
        ...sinceMade(pod),
        why: `${reason}: ${quoteText(tailMessage(message))}`,
        change: changeImage(container, pod, reason, message),
        first: isRefused(message) ? loginCommand(pod) : null,
        now: {
          what: 'to give this pod another image at once',
          line: kubectl(pod.namespace, `set image pod/${quoteShell(pod.name)} ${quoteShell(container.name)}=IMAGE`),
        },
      }),
    ),
  },
  {
    id: 'config',
    meaning: 'a container cannot be made: a ConfigMap or Secret is missing, or it may not run as root',
    find: forWaiting(
      ({ reason }) => CONFIG_REASONS.includes(reason),
      (container, pod, { reason, message }) => ({
        container: container.name,
        isStuck: true,
        summary: `${container.name} keeps ${tellPod(pod)}: it cannot be started: ${quoteText(message, 100) || reason}`,
        ...sinceMade(pod),
        why: `${reason}: ${quoteText(message) || 'the JSON does not tell more'}`,
        change: changeConfig(container, pod, message),
        see: eventsCommand(pod),
      }),
    ),
  },
  {
    id: 'backOff',
    meaning: 'a container ends with an error and is started again after a pause, longer each time',
    find: (pod) =>
      pod.containers.flatMap((container) => {
        const last = container.ended ?? container.lastEnded;
        // One that is running now is told of by another row.
        const isAgain = container.running === null && !container.isDone && last !== null;
        const isOwnRow = pod.owner === null && last?.exitCode === 0 && container.role === 'regular';
        if (!isAgain || isOwnRow || isEndedBy(container, IMAGE_REASONS) || isBeside(container, pod)) return [];
        // An init container of a pod that is never restarted has failed it.
        return [tellBackOff(container, pod, last)];
      }),
  },
  {
    id: 'initRuns',
    meaning: 'an init container still runs, or a native sidecar does not pass its startupProbe: the others wait for it',
    find: (pod) => {
      const first = pod.containers.find(({ role, running, isDone }) =>
        role === 'init' ? !isDone : role === 'native' && running?.hasStarted === false,
      );
      if (first === undefined || first.running === null || pod.mains.some(wasStarted)) return [];
      return [tellInit(first, pod)];
    },
  },
  {
    id: 'creating',
    meaning: 'a container waits for its volumes, the network, or the kubelet',
    find: (pod) => {
      const isBusy = pod.containers.some(({ role, running, waiting }) => {
        return (
          (role === 'init' && running !== null) ||
          !['', 'ContainerCreating', 'PodInitializing'].includes(waiting?.reason ?? '') ||
          running?.hasStarted === false
        );
      });
      const first = pod.containers.find(({ running, ended, isDone }) => running === null && ended === null && !isDone);
      if (pod.nodeName === '' || isBusy || first === undefined) return [];
      return [tellCreating(first, pod)];
    },
  },
];

/** The row of what fails beside a main that runs: it is told of last. */
export const BESIDE_REASONS: readonly Reason<PodFacts>[] = [
  {
    id: 'nativeFails',
    meaning: 'a native sidecar ends with an error again and again: the pod does not wait for it',
    find: (pod) =>
      pod.containers.flatMap((container) => {
        const { name, running, lastEnded } = container;
        if (!isBeside(container, pod) || running !== null || lastEnded === null) return [];
        const found = tellBackOff(container, pod, lastEnded);
        const [, how = ''] = found.summary.split(': ');
        return [
          { ...found, isStuck: false, summary: `${name} does not keep ${tellPod(pod)}, but it does not work: ${how}` },
        ];
      }),
  },
];

/** A native sidecar of a pod whose main was started: that ends, whatever becomes of the sidecar. */
function isBeside({ role }: ContainerFacts, { mains }: PodFacts): boolean {
  return role === 'native' && mains.some(wasStarted);
}

function tellBackOff(container: ContainerFacts, pod: PodFacts, last: Ended): Found {
  const { name, waiting, restartCount, role } = container;
  const isStart = isNeverStarted(last);
  const isMemory = last.reason === 'OOMKilled';
  const [, pause = ''] = /back-off (\S+) restarting/.exec(waiting?.message ?? '') ?? [];
  const how = isStart
    ? 'its command cannot be started; it is tried again and again'
    : isMemory
      ? 'it is killed again and again, out of memory'
      : `it ends with ${last.exitCode}${restartCount > 1 ? ' again and again' : ''}`;
  const kept = role === 'regular' ? tellPod(pod) : `${tellPod(pod)} from starting`;
  return {
    container: name,
    isStuck: true,
    summary: `${name} keeps ${kept}: ${how}${isStart ? '' : ', and is started again'}${pause === '' ? '' : ` after a pause of ${pause}`}`,
    sinceMs: last.atMs,
    sinceWhat: isStart
      ? 'it was tried last'
      : `it ended last, after ${restartCount} restart${restartCount === 1 ? '' : 's'}`,
    why: isStart
      ? quoteText(tailMessage(last.message))
      : `restartPolicy is ${toText(container.spec['restartPolicy']) || pod.restartPolicy}. ${last.message === '' ? 'Why it ends so is in its log only.' : `It says: ${quoteText(last.message)}`}`,
    change: changeBackOff(container, pod, last),
    see: logsCommand(pod, name, '--previous --tail=20'),
  };
}

function changeBackOff(container: ContainerFacts, pod: PodFacts, last: Ended): Change {
  const where = describeTemplate(pod);
  const { spec } = container;
  if (isNeverStarted(last)) {
    const command = [spec['command'], spec['args']].find(Array.isArray) ?? ['/bin/sh'];
    const field = Array.isArray(spec['command']) ? 'command' : 'args';
    return podChange(
      `${where}, name a program that the image has:`,
      containerLines(container, [
        `${field}: [${command.map((each: unknown) => quoteYaml(String(each))).join(', ')}]   # this is what cannot be started`,
      ]),
    );
  }
  const limit = toText(at(at(spec, 'resources'), 'limits')['memory']);
  if (last.reason === 'OOMKilled' && limit !== '') {
    return podChange(
      `${where}, give it more memory, here twice its limit of ${limit}:`,
      containerLines(container, [`resources: {limits: {memory: ${double(limit)}}}`]),
    );
  }
  if (isKept(pod))
    return podChange('Mend the program: its log tells what is wrong. Its owner wants it to run for ever.', null);
  // Of a native sidecar Always is what makes it one.
  if (container.role === 'native') return podChange('Mend the program: its log tells what is wrong.', null);
  return podChange(
    `Mend the program: its log tells what is wrong. ${where}, to have it fail at once instead:`,
    toLines(['spec:', '  restartPolicy: Never']),
  );
}

/** Twice a quantity; the number of digits stays small. */
function double(quantity: string): string {
  const [, number = '', unit = ''] = /^(\d+(?:\.\d+)?)(\D*)$/.exec(quantity) ?? [];
  return number === '' ? quantity : `${Number(number) * 2}${unit}`;
}

function changeImage(container: ContainerFacts, pod: PodFacts, reason: string, message: string): Change {
  const where = describeTemplate(pod);
  if (reason === 'ErrImageNeverPull') {
    return podChange(`${where}, let the node pull it:`, containerLines(container, ['imagePullPolicy: IfNotPresent']));
  }
  if (isRefused(message)) {
    return podChange(
      `The registry wants a login, or there is no such image. ${where}, name a Secret that has it:`,
      toLines(['spec:', '  imagePullSecrets:', '    - name: registry-login']),
    );
  }
  return podChange(
    `${where}, correct the image's name, or make its registry reachable from the node:`,
    containerLines(container, [
      `image: ${quoteYaml(quoteText(toText(container.spec['image'])))}   # this one cannot be pulled`,
    ]),
  );
}

function isRefused(message: string): boolean {
  return /unauthorized|authentication required|denied|forbidden|\b40[13]\b/i.test(message);
}

function loginCommand({ namespace }: PodFacts): Command {
  const secret =
    'create secret docker-registry registry-login --docker-server=HOST --docker-username=USER --docker-password=PASSWORD';
  return { what: 'make the Secret', line: kubectl(namespace, secret) };
}

function changeConfig(container: ContainerFacts, pod: PodFacts, message: string): Change {
  const [, kind = '', object = ''] = /(configmap|secret) "([^"]+)" not found/i.exec(message) ?? [];
  const [, key = '', keyKind = '', keyObject = ''] =
    /couldn't find key (\S+) in (ConfigMap|Secret) [^/\s]+\/(\S+)/i.exec(message) ?? [];
  const name = object || keyObject;
  if (name !== '') {
    const isSecret = (kind || keyKind).toLowerCase() === 'secret';
    return {
      what: `${key === '' ? 'Make' : 'Add the key to'} the ${isSecret ? 'Secret' : 'ConfigMap'}; the pod goes on by itself within a minute or two:`,
      in: 'newObject',
      lines: toLines([
        'apiVersion: v1',
        `kind: ${isSecret ? 'Secret' : 'ConfigMap'}`,
        'metadata:',
        `  name: ${quoteYaml(name)}`,
        `  namespace: ${quoteYaml(pod.namespace)}`,
        isSecret ? 'stringData:' : 'data:',
        `  ${quoteYaml(key || 'KEY')}: "value"   # what the container wants`,
      ]),
    };
  }
  if (/runAsNonRoot/.test(message)) {
    return podChange(
      `${describeTemplate(pod)}, name a user that is not root:`,
      containerLines(container, ['securityContext: {runAsUser: 65532}']),
    );
  }
  return podChange(`${describeTemplate(pod)}, correct what the message names.`, null);
}

function tellInit(container: ContainerFacts, pod: PodFacts): Found {
  const { name, role, running, spec } = container;
  const isNative = role === 'native';
  return {
    container: name,
    isStuck: null,
    summary: isNative
      ? `${name} keeps ${tellPod(pod)} from starting: its startupProbe has not passed, and the other containers wait for that`
      : `${name} keeps ${tellPod(pod)} from starting: it is an init container, and the others wait until it has ended`,
    sinceMs: running?.sinceMs ?? null,
    sinceWhat: `${name} was started`,
    why: isNative
      ? `It runs, but nothing answers the probe as it must: ${describeProbe(spec['startupProbe'])}.`
      : 'It still runs. What it waits for is in its log only.',
    change: isNative
      ? podChange(
          `${describeTemplate(pod)}, ask for what the program really answers; without a probe the others start at once:`,
          containerLines(container, ['startupProbe: null   # removes it']),
        )
      : podChange(
          `Nothing, if what it waits for will come. ${describeTemplate(pod)}, to give up after an hour:`,
          toLines(['spec:', '  activeDeadlineSeconds: 3600']),
        ),
    see: logsCommand(pod, name),
  };
}

function describeProbe(probe: unknown): string {
  if (!isObject(probe)) return 'the JSON has no probe';
  const [kind = 'unknown'] = ['httpGet', 'tcpSocket', 'exec', 'grpc'].filter((each) => isObject(probe[each]));
  const { port, path, command } = at(probe, kind);
  const asked = [
    toText(path),
    port === undefined ? '' : `port ${port}`,
    Array.isArray(command) ? command.join(' ') : '',
  ];
  return quoteText([kind, ...asked].filter(Boolean).join(' '), 100);
}

function tellCreating(container: ContainerFacts, pod: PodFacts): Found {
  if (isObject(at(container.spec, 'lifecycle')['postStart']) && hasSandbox(pod)) return tellPostStart(container, pod);
  const mounted = findMounted(pod);
  const [one] = mounted;
  return {
    container: container.name,
    isStuck: null,
    summary: `${container.name} keeps ${tellPod(pod)}: it was not started yet; its node prepares volumes, the network or the image`,
    ...sinceMade(pod),
    why: `The JSON does not tell what it waits for.${mounted.length === 0 ? '' : ` It mounts ${mounted.map(({ text }) => text).join(', ')}: is that there?`}`,
    change:
      one === undefined
        ? podChange('None before the events are known.', null)
        : podChange(
            `Make what is missing. ${describeTemplate(pod)}, where the pod can do without ${one.text}:`,
            toLines(['spec:', '  volumes:', `    - name: ${one.volume}`, `      ${one.lines}`]),
          ),
    see: eventsCommand(pod),
  };
}

/** Volumes and network are there (Kubernetes 1.29 and later tell). */
function hasSandbox({ conditions }: PodFacts): boolean {
  return findCondition(conditions, 'PodReadyToStartContainers', 'True') !== undefined;
}

function tellPostStart(container: ContainerFacts, pod: PodFacts): Found {
  return {
    container: container.name,
    isStuck: null,
    summary: `${container.name} keeps ${tellPod(pod)}: it does not count as started, and its postStart hook may be why`,
    ...sinceMade(pod),
    why: 'Volumes and network are there. Until the hook has ended the kubelet starts no container after this one. Else it waits for its image.',
    change: podChange(
      `Have the hook end. ${describeTemplate(pod)}, without it:`,
      containerLines(container, ['lifecycle: {postStart: null}   # removes it']),
    ),
    see: eventsCommand(pod),
  };
}

/** Volumes that may be missing and can be optional. */
function findMounted({
  spec,
}: PodFacts): readonly { readonly volume: string; readonly text: string; readonly lines: string }[] {
  return toObjects(spec['volumes']).flatMap((volume) => {
    const secret = toText(at(volume, 'secret')['secretName']);
    const configMap = toText(at(volume, 'configMap')['name']);
    const name = toText(volume['name']);
    if (secret !== '') {
      return [
        { volume: name, text: `Secret ${secret}`, lines: `secret: {secretName: ${quoteYaml(secret)}, optional: true}` },
      ];
    }
    if (configMap !== '' && configMap !== 'kube-root-ca.crt') {
      return [
        {
          volume: name,
          text: `ConfigMap ${configMap}`,
          lines: `configMap: {name: ${quoteYaml(configMap)}, optional: true}`,
        },
      ];
    }
    return [];
  });
}

function forWaiting(
  isWanted: (waiting: NonNullable<ContainerFacts['waiting']>) => boolean,
  tell: (container: ContainerFacts, pod: PodFacts, waiting: NonNullable<ContainerFacts['waiting']>) => Found,
): Reason<PodFacts>['find'] {
  return (pod) =>
    pod.containers.flatMap((container) =>
      container.waiting !== null && isWanted(container.waiting) ? [tell(container, pod, container.waiting)] : [],
    );
}

function isEndedBy({ waiting }: ContainerFacts, reasons: readonly string[]): boolean {
  return waiting !== null && reasons.includes(waiting.reason);
}

function wasStarted({ running, ended, lastEnded }: ContainerFacts): boolean {
  return running !== null || ended !== null || lastEnded !== null;
}

function sinceMade({ createdAtMs }: PodFacts): Pick<Found, 'sinceMs' | 'sinceWhat'> {
  return { sinceMs: createdAtMs, sinceWhat: 'the pod was made' };
}
