// The cluster of KUBECONFIG, through kubectl and its proxy on loopback, so that any way to log in works. What
// is made here has a label of this run, and is removed with it.

import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import { type Child, startChild } from '../support/child.ts';
import { readTestVariable } from '../support/programs.ts';
import { until } from '../support/until.ts';

/** Of everything that a run makes; its value is the name of the run. */
export const RUN_LABEL = 'lastscrape.dev/test';

/** Below the time after which `fetch` gives up an answer that is silent, 300 s. */
const WATCH_SECONDS = 240;

/** What is read of a container's status. */
export type ContainerStatus = {
  readonly name: string;
  readonly restartCount: number;
  readonly state: {
    readonly waiting?: { readonly reason: string };
    readonly running?: { readonly startedAt: string };
    readonly terminated?: Terminated;
  };
  readonly lastState?: { readonly terminated?: Terminated };
};

type Terminated = {
  readonly exitCode: number;
  readonly reason: string;
  readonly message?: string;
  readonly finishedAt: string;
};

/** What is read of a container's specification. */
export type Container = {
  readonly name: string;
  readonly image?: string;
  readonly args?: readonly string[];
  readonly env?: readonly { readonly name: string; readonly value?: string }[];
  readonly [field: string]: unknown;
};

/** A pod as far as the tests read it. */
export type Pod = {
  readonly metadata: {
    readonly name: string;
    readonly uid: string;
    readonly resourceVersion?: string;
    readonly labels?: Readonly<Record<string, string>>;
    readonly annotations?: Readonly<Record<string, string>>;
  };
  readonly spec: {
    readonly containers: readonly Container[];
    readonly initContainers?: readonly Container[];
    readonly terminationGracePeriodSeconds?: number;
  };
  readonly status: {
    readonly phase: string;
    readonly podIP?: string;
    readonly conditions?: readonly { readonly type: string; readonly status: string }[];
    readonly containerStatuses?: readonly ContainerStatus[];
    readonly initContainerStatuses?: readonly ContainerStatus[];
  };
};

/** One change of a pod, and when the test learned of it (epoch ms). */
export type PodEvent = { readonly type: 'ADDED' | 'MODIFIED' | 'DELETED'; readonly pod: Pod; readonly atMs: number };

export type Manifest = { readonly apiVersion: string; readonly kind: string; readonly [field: string]: unknown };

export type Cluster = AsyncDisposable & {
  /** The name of this run, fit for a label and a part of a name. */
  readonly run: string;
  /** Runs kubectl; `input` is its stdin. @throws with its stderr when it fails. */
  kubectl(args: readonly string[], input?: string): Promise<string>;
  apply(...manifests: readonly Manifest[]): Promise<void>;
  /** Reads a path of the API as text. @throws on any answer but 200. */
  read(path: string): Promise<string>;
  /** Makes a namespace, which is removed at the end with all that is in it. */
  openNamespace(name: string, labels?: Readonly<Record<string, string>>): Promise<Namespace>;
  defer(remove: () => Promise<unknown>): void;
};

/** One namespace, with every change of its pods since it was made. */
export type Namespace = {
  readonly name: string;
  readonly events: readonly PodEvent[];
  apply(...manifests: readonly Manifest[]): Promise<void>;
  /** The first change of a pod that is as wanted, also one already seen. @throws after `withinMs` */
  untilPod(what: string, withinMs: number, isWanted: (pod: Pod, event: PodEvent) => boolean): Promise<PodEvent>;
  /** Waits until a Job has ended, and until the events tell what its pods came to. @returns its condition. */
  untilJobEnded(name: string, withinMs: number): Promise<'Complete' | 'Failed'>;
  /** A field of an object such as `service/web`; @param path in braces, as kubectl's jsonpath has it. */
  readField(object: string, path: string): Promise<string>;
  readLog(pod: string, container: string): Promise<string>;
  /** What the API server makes of a pod, and warns of; it is not created (dry run). @throws with why it refuses it */
  tryPod(pod: object): Promise<{ readonly pod: Pod; readonly warnings: string }>;
  /** What its pods came to, with the ends of their logs, and its events, for a message. */
  describe(): Promise<string>;
};

/** Opens the cluster of KUBECONFIG. @throws when it cannot be reached. */
export async function openCluster(): Promise<Cluster> {
  const run = `r${Date.now().toString(36)}`;
  const stack = new AsyncDisposableStack();
  const kubectl = async (args: readonly string[], input = ''): Promise<string> => {
    const started = promisify(execFile)('kubectl', args, { maxBuffer: 2 ** 26 });
    // One that has ended already says why by its exit code, not by a closed pipe.
    started.child.stdin?.on('error', () => {}).end(input);
    return (await started).stdout;
  };
  const proxy = stack.use(startProxy());
  try {
    const { text } = await proxy.waitForLine(/Starting to serve on/, 60_000);
    const origin = `http://${/127\.0\.0\.1:\d+/.exec(text)?.[0]}`;
    const read = async (path: string) => {
      const response = await fetch(`${origin}${path}`);
      const body = await response.text();
      if (response.status !== 200) throw new Error(`Cannot read ${path}: ${response.status} ${body.slice(0, 500)}`);
      return body;
    };
    const cluster: Cluster = {
      run,
      kubectl,
      async apply(...manifests) {
        await kubectl(['apply', '-f', '-'], manifests.map((manifest) => JSON.stringify(manifest)).join('\n'));
      },
      read,
      async openNamespace(name, labels = {}) {
        const full = `lastscrape-${run}-${name}`;
        stack.defer(() =>
          kubectl(['delete', 'namespace', full, '--wait=false', '--ignore-not-found']).then(() => undefined),
        );
        await cluster.apply({
          apiVersion: 'v1',
          kind: 'Namespace',
          metadata: { name: full, labels: { [RUN_LABEL]: run, ...labels } },
        });
        return openNamespace(cluster, origin, full, stack);
      },
      defer: (remove) => stack.defer(() => remove().then(() => undefined)),
      [Symbol.asyncDispose]: () => stack.disposeAsync(),
    };
    await read('/readyz');
    return cluster;
  } catch (error) {
    await stack.disposeAsync();
    throw error;
  }
}

// Any free port of loopback; it writes which.
function startProxy(): Child {
  const env = Object.fromEntries(['PATH', 'HOME', 'KUBECONFIG'].map((name) => [name, readTestVariable(name) ?? '']));
  return startChild({ name: 'kubectl proxy', command: ['kubectl', 'proxy', '--port=0'], env, cwd: '/' });
}

function openNamespace(cluster: Cluster, origin: string, name: string, stack: AsyncDisposableStack): Namespace {
  const events: PodEvent[] = [];
  const watching = new AbortController();
  stack.defer(() => watching.abort());
  void watch(`${origin}/api/v1/namespaces/${name}/pods?watch=1`, watching.signal, (type, pod) =>
    events.push({ type, pod, atMs: Date.now() }),
  );
  const readTail = (pod: string, container: string, isPrevious: boolean) =>
    cluster.read(
      `/api/v1/namespaces/${name}/pods/${pod}/log?container=${container}&previous=${isPrevious}&tailLines=30`,
    );
  // The watch may be behind a question that was asked directly.
  const isUpToDate = async () => {
    const { items }: { items: readonly Pod[] } = JSON.parse(await cluster.read(`/api/v1/namespaces/${name}/pods`));
    return items.every(({ metadata: { uid, resourceVersion } }) =>
      events.some(
        ({ pod: { metadata } }) => metadata.uid === uid && Number(metadata.resourceVersion) >= Number(resourceVersion),
      ),
    );
  };
  const describe = async () => {
    const newest = new Map(events.map((event) => [event.pod.metadata.name, event]));
    const texts: string[] = [`namespace ${name}:`];
    for (const { type, pod } of newest.values()) {
      texts.push(`  ${pod.metadata.name} ${type} ${pod.status.phase}`);
      for (const status of [...(pod.status.initContainerStatuses ?? []), ...(pod.status.containerStatuses ?? [])]) {
        const { name: container, restartCount, state } = status;
        const log = await readTail(pod.metadata.name, container, state.waiting !== undefined && restartCount > 0).catch(
          (error) => String(error),
        );
        texts.push(`    ${JSON.stringify({ container, restartCount, state })}`, log.replaceAll(/^/gm, '      '));
      }
    }
    return [...texts, await cluster.kubectl(['get', 'events', '--namespace', name]).catch(String)].join('\n');
  };
  return {
    name,
    events,
    apply: (...manifests) =>
      cluster.apply(
        ...manifests.map((manifest) => ({
          ...manifest,
          metadata: { ...(manifest['metadata'] as object), namespace: name },
        })),
      ),
    untilPod: (what, withinMs, isWanted) =>
      until(what, withinMs, async () => events.find((event) => isWanted(event.pod, event))),
    async untilJobEnded(job, withinMs) {
      const condition = await until(`the end of Job ${job}`, withinMs, async () => {
        const { status } = JSON.parse(await cluster.read(`/apis/batch/v1/namespaces/${name}/jobs/${job}`));
        const conditions: readonly { type: string; status: string }[] = status.conditions ?? [];
        const ended = conditions.find(
          (condition) => /^(Complete|Failed)$/.test(condition.type) && condition.status === 'True',
        );
        return ended?.type as 'Complete' | 'Failed' | undefined;
      });
      await until('what the API server has of the pods among the events', withinMs, async () =>
        (await isUpToDate()) ? true : undefined,
      );
      return condition;
    },
    readField: (object, path) => cluster.kubectl(['get', object, '--namespace', name, `--output=jsonpath=${path}`]),
    async tryPod(pod) {
      // A kubectl for each would take 0.3 s of CPU.
      const response = await fetch(`${origin}/api/v1/namespaces/${name}/pods?dryRun=All&fieldValidation=Strict`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(pod),
      });
      const body = await response.text();
      if (!response.ok) throw new Error(`Cannot create the pod: ${response.status} ${body}`);
      return { pod: JSON.parse(body), warnings: response.headers.get('warning') ?? '' };
    },
    readLog: (pod, container) => cluster.read(`/api/v1/namespaces/${name}/pods/${pod}/log?container=${container}`),
    describe,
  };
}

// A watch ends after some minutes, or when the API server restarts: the next one goes on where it ended.
async function watch(
  url: string,
  signal: AbortSignal,
  onEvent: (type: PodEvent['type'], pod: Pod) => void,
): Promise<void> {
  let since = '';
  while (!signal.aborted) {
    try {
      const response = await fetch(`${url}&timeoutSeconds=${WATCH_SECONDS}${since}`, { signal });
      if (response.status !== 200) throw new Error(`${response.status} ${await response.text()}`);
      let rest = '';
      for await (const piece of response.body?.pipeThrough(new TextDecoderStream()) ?? []) {
        const lines = `${rest}${piece}`.split('\n');
        rest = lines.pop() ?? '';
        for (const line of lines) {
          const { type, object } = JSON.parse(line);
          since = type === 'ERROR' ? '' : `&resourceVersion=${object.metadata.resourceVersion}`;
          if (type !== 'ERROR' && type !== 'BOOKMARK') onEvent(type, object);
        }
      }
    } catch (error) {
      if (signal.aborted) return;
      since = '';
      process.stderr.write(`The watch of ${url} broke and begins again: ${error}\n`);
      await delay(1_000);
    }
  }
}

/** Runs a shell command line in a folder, as people type it; passes on its output when it fails. */
export async function runShell(line: string, cwd: string, env: Readonly<Record<string, string>> = {}): Promise<string> {
  const shell = spawn('bash', ['-euo', 'pipefail', '-c', line], {
    cwd,
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let stdout = '';
  let stderr = '';
  shell.stdout.setEncoding('utf8').on('data', (piece: string) => {
    stdout += piece;
  });
  shell.stderr.setEncoding('utf8').on('data', (piece: string) => {
    stderr += piece;
  });
  const [code] = await once(shell, 'close');
  if (code !== 0) throw new Error(`Cannot run "${line}": it ended with ${code}\n${stdout}${stderr}`);
  return stdout;
}
