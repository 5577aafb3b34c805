// The states of pods and Jobs that `lastscrape explain` is held against, each as a manifest that a real cluster brings into it.
// test/tools/make-explain.ts takes the fixtures from them, test/cluster/explain.cluster.ts makes the main ones anew.

/** An object of the API, as it is sent or as it comes back. */
export type Fields = { readonly [field: string]: unknown };

/** An object that can be created. */
export type Manifest = { readonly apiVersion: string; readonly kind: string; readonly [field: string]: unknown };

/** One state, and how a cluster comes to it. */
export type ExplainState = {
  /** The fixture's name: fixtures/explain/NAME.json. */
  readonly name: string;
  /** Its object: a pod of its own, or a Job and the pod that it makes. */
  readonly manifest: Manifest;
  /** What is taken: the pod, or the Job. */
  readonly of: 'Pod' | 'Job';
  /** Whether an object that came back is in the state. */
  readonly isReached: (object: ReachedObject) => boolean;
  /** It is deleted once this is so; the state is reached after that. */
  readonly deleteWhen?: (object: ReachedObject) => boolean;
  /** From the newest moment in the fixture to that at which it is explained; default 60. */
  readonly afterSeconds?: number;
  /** Of `lastscrape explain`: the findings' reasons, with the container where one is told of. None: nothing keeps it. */
  readonly reasons: readonly string[];
};

/** A pod or Job as far as the conditions above read it. */
export type ReachedObject = {
  readonly metadata: { readonly name: string; readonly deletionTimestamp?: string };
  readonly status?: {
    readonly phase?: string;
    readonly active?: number;
    readonly failed?: number;
    readonly terminating?: number;
    readonly conditions?: readonly { readonly type: string; readonly status: string; readonly reason?: string }[];
    readonly containerStatuses?: readonly ReachedContainer[];
    readonly initContainerStatuses?: readonly ReachedContainer[];
  };
};

type ReachedContainer = {
  readonly name: string;
  readonly restartCount: number;
  readonly state: {
    readonly waiting?: { readonly reason?: string };
    readonly running?: object;
    readonly terminated?: { readonly exitCode: number; readonly message?: string };
  };
};

/** Images that the states run. */
export type StateImages = {
  readonly lastscrape: string;
  readonly exporter: string;
  readonly busybox: string;
  readonly mesh: string;
};

/** Every state. */
export function listExplainStates(images: StateImages): readonly ExplainState[] {
  const run = (name: string, script: string, more: Fields = {}): Fields => ({
    name,
    image: images.busybox,
    command: ['/bin/sh', '-c', script],
    ...more,
  });
  const main = (script = 'sleep 2') => run('main', script);
  const forEver = 'trap "exit 0" TERM; while :; do sleep 1; done';
  const deaf = 'trap "" TERM; while :; do sleep 1; done';
  // Long enough for lastscrape to see it, on a busy node.
  const serve5557 = 'timeout 15 nc -ll -p 5557 -e true; exit 0';
  const lastscrape = (env: Readonly<Record<string, string>>, more: Fields = {}): Fields => ({
    name: 'lastscrape',
    image: images.lastscrape,
    imagePullPolicy: 'IfNotPresent',
    env: Object.entries(env).map(([name, value]) => ({ name, value })),
    ...more,
  });
  const exporter = { name: 'locust-metrics-exporter', image: images.exporter, ports: [{ containerPort: 9646 }] };
  const mesh = (name: string, preset: string, env: readonly Fields[] = []): Fields => ({
    name,
    image: images.mesh,
    args: [preset],
    env,
  });
  const job = (name: string, containers: readonly Fields[], more: Fields = {}, template: Fields = {}) =>
    buildJob(name, { spec: { restartPolicy: 'Never', containers, ...more }, ...template });
  const pod = (name: string, containers: readonly Fields[], more: Fields = {}, metadata: Fields = {}): Manifest => ({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, ...metadata },
    spec: { restartPolicy: 'Never', containers, ...more },
  });

  return [
    // What runs on beside a main that has ended.
    {
      name: 'exporter-of-locust',
      manifest: job('load', [main(), exporter]),
      of: 'Pod',
      isReached: hasEnded('main'),
      reasons: ['exporterRuns locust-metrics-exporter'],
    },
    {
      name: 'exporter',
      manifest: job(
        'backup',
        [main(), run('node-exporter', forEver, { ports: [{ name: 'metrics', containerPort: 9100 }] })],
        {},
      ),
      of: 'Pod',
      isReached: hasEnded('main'),
      reasons: ['exporterRuns node-exporter'],
    },
    {
      name: 'mesh-istio',
      manifest: job('report', [main(), mesh('istio-proxy', 'istio')]),
      of: 'Pod',
      isReached: hasEnded('main'),
      reasons: ['meshRuns istio-proxy'],
    },
    {
      name: 'mesh-linkerd-and-database-proxy',
      manifest: job('migrate', [main(), run('cloud-sql-proxy', forEver), mesh('linkerd-proxy', 'linkerd')]),
      of: 'Pod',
      isReached: hasEnded('main'),
      reasons: ['meshRuns linkerd-proxy', 'databaseProxyRuns cloud-sql-proxy'],
    },
    {
      name: 'dapr',
      manifest: job('orders', [main(), run('daprd', forEver)]),
      of: 'Pod',
      isReached: hasEnded('main'),
      reasons: ['helperRuns daprd'],
    },
    {
      name: 'unknown-beside-an-ended-one',
      manifest: job('pair', [main(), run('cache', forEver)]),
      of: 'Pod',
      isReached: hasEnded('main'),
      reasons: ['otherRuns cache'],
    },
    {
      name: 'native-sidecar-deaf-to-term',
      manifest: job('native', [main()], {
        terminationGracePeriodSeconds: 60,
        initContainers: [run('log-shipper', deaf, { restartPolicy: 'Always' })],
      }),
      of: 'Pod',
      isReached: hasEnded('main'),
      afterSeconds: 20,
      reasons: ['nativeEnds log-shipper'],
    },
    // Main itself.
    {
      name: 'main-runs',
      manifest: job('long', [main(forEver), run('cloud-sql-proxy', forEver)]),
      of: 'Pod',
      isReached: isRunning('main', 'cloud-sql-proxy'),
      reasons: ['mainRuns main'],
    },
    {
      name: 'restart-policy-always',
      manifest: pod('once', [main('sleep 1; exit 0')], { restartPolicy: 'Always' }),
      of: 'Pod',
      isReached: isWaiting('main', 'CrashLoopBackOff'),
      reasons: ['restartedAlways main'],
    },
    {
      name: 'back-off',
      // Restarts in place count; at the limit the Job deletes the pod.
      manifest: withJob(job('failing', [main('sleep 1; exit 3')], { restartPolicy: 'OnFailure' }), {
        backoffLimit: 20,
      }),
      of: 'Pod',
      isReached: isWaiting('main', 'CrashLoopBackOff'),
      reasons: ['backOff main'],
    },
    {
      name: 'back-off-out-of-memory',
      manifest: pod(
        'hungry',
        [
          {
            ...main('tail /dev/zero'),
            resources: { limits: { memory: '32Mi' } },
          },
        ],
        { restartPolicy: 'OnFailure' },
      ),
      of: 'Pod',
      isReached: isWaiting('main', 'CrashLoopBackOff'),
      reasons: ['backOff main'],
    },
    {
      name: 'replica',
      manifest: {
        apiVersion: 'apps/v1',
        kind: 'Deployment',
        metadata: { name: 'web' },
        spec: {
          selector: { matchLabels: { app: 'web' } },
          template: { metadata: { labels: { app: 'web' } }, spec: { containers: [run('web', forEver)] } },
        },
      },
      of: 'Pod',
      isReached: isRunning('web'),
      reasons: ['meantToRun web'],
    },
    {
      name: 'native-sidecar-fails',
      manifest: job('crashing', [main('sleep 600')], {
        initContainers: [run('log-agent', 'sleep 1; exit 1', { restartPolicy: 'Always' })],
      }),
      of: 'Pod',
      isReached: isWaiting('log-agent', 'CrashLoopBackOff'),
      reasons: ['mainRuns main', 'nativeFails log-agent'],
    },
    {
      name: 'main-could-not-be-started',
      manifest: job('misnamed', [
        { ...main(), command: ['/no/such/program'] },
        run('node-exporter', forEver, { ports: [{ containerPort: 9100 }] }),
      ]),
      of: 'Pod',
      isReached: hasEnded('main'),
      reasons: ['exporterRuns node-exporter'],
    },
    // Before main.
    {
      name: 'image',
      manifest: job('typo', [{ ...main(), image: 'registry.invalid/none:1' }, run('cloud-sql-proxy', forEver)]),
      of: 'Pod',
      isReached: isWaiting('main', 'ImagePullBackOff'),
      reasons: ['image main'],
    },
    {
      name: 'config',
      manifest: job('settings', [{ ...main(), envFrom: [{ configMapRef: { name: 'missing' } }] }]),
      of: 'Pod',
      isReached: isWaiting('main', 'CreateContainerConfigError'),
      reasons: ['config main'],
    },
    {
      name: 'command',
      manifest: pod('misspelt', [{ ...main(), command: ['/bin/no-such-program'] }], { restartPolicy: 'OnFailure' }),
      of: 'Pod',
      isReached: (object) =>
        isWaiting('main', 'CrashLoopBackOff')(object) || isWaiting('main', 'RunContainerError')(object),
      reasons: ['backOff main'],
    },
    {
      name: 'init-runs',
      manifest: job('wait-for-db', [main()], { initContainers: [run('wait', forEver)] }),
      of: 'Pod',
      isReached: isRunning('wait'),
      reasons: ['initRuns wait'],
    },
    {
      name: 'init-back-off',
      manifest: pod('init-fails', [main()], {
        restartPolicy: 'OnFailure',
        initContainers: [run('prepare', 'sleep 1; exit 1')],
      }),
      of: 'Pod',
      isReached: isWaiting('prepare', 'CrashLoopBackOff'),
      reasons: ['backOff prepare'],
    },
    {
      name: 'native-sidecar-not-started',
      manifest: job('probe', [main()], {
        initContainers: [
          run('proxy', forEver, {
            restartPolicy: 'Always',
            startupProbe: { tcpSocket: { port: 1 }, failureThreshold: 100 },
          }),
        ],
      }),
      of: 'Pod',
      isReached: isRunning('proxy'),
      reasons: ['initRuns proxy'],
    },
    {
      name: 'volume',
      manifest: job('mount', [{ ...main(), volumeMounts: [{ name: 'keys', mountPath: '/keys' }] }], {
        volumes: [{ name: 'keys', secret: { secretName: 'missing' } }],
      }),
      of: 'Pod',
      isReached: isWaiting('main', 'ContainerCreating'),
      reasons: ['creating main'],
    },
    {
      name: 'post-start',
      manifest: job('hooked', [
        { ...main('sleep 600'), lifecycle: { postStart: { exec: { command: ['sleep', '500'] } } } },
        run('second', 'sleep 5'),
      ]),
      of: 'Pod',
      isReached: (object) =>
        isWaiting('main', 'ContainerCreating')(object) && hasCondition('PodReadyToStartContainers', 'True')(object),
      reasons: ['creating main'],
    },
    {
      name: 'unschedulable',
      manifest: job('huge', [{ ...main(), resources: { requests: { cpu: '1000', memory: '64Mi' } } }]),
      of: 'Pod',
      isReached: hasCondition('PodScheduled', 'False'),
      reasons: ['unschedulable'],
    },
    {
      name: 'unschedulable-node-selector',
      manifest: job('picky', [main()], { nodeSelector: { disk: 'fast' } }),
      of: 'Pod',
      isReached: hasCondition('PodScheduled', 'False'),
      reasons: ['unschedulable'],
    },
    {
      name: 'gated',
      manifest: pod('queued', [main()], { schedulingGates: [{ name: 'example.com/quota' }] }),
      of: 'Pod',
      isReached: hasCondition('PodScheduled', 'False'),
      reasons: ['gated'],
    },
    // The end.
    {
      name: 'finalizer',
      manifest: pod('guarded', [main()], {}, { finalizers: ['example.com/archive'] }),
      of: 'Pod',
      deleteWhen: ({ status }) => status?.phase === 'Succeeded',
      isReached: ({ metadata }) => metadata.deletionTimestamp !== undefined,
      reasons: ['finalizer'],
    },
    {
      name: 'terminating',
      manifest: pod('deaf', [main(deaf)], { terminationGracePeriodSeconds: 120 }),
      of: 'Pod',
      deleteWhen: isRunning('main'),
      isReached: ({ metadata }) => metadata.deletionTimestamp !== undefined,
      afterSeconds: -60,
      reasons: ['terminating main'],
    },
    {
      name: 'terminating-in-a-hook',
      manifest: pod('hook', [{ ...main(forEver), lifecycle: { preStop: { exec: { command: ['sleep', '500'] } } } }], {
        terminationGracePeriodSeconds: 600,
      }),
      of: 'Pod',
      deleteWhen: isRunning('main'),
      isReached: ({ metadata }) => metadata.deletionTimestamp !== undefined,
      afterSeconds: -500,
      reasons: ['terminating main'],
    },
    { name: 'succeeded', manifest: job('done', [main()]), of: 'Pod', isReached: hasPhase('Succeeded'), reasons: [] },
    {
      name: 'failed',
      manifest: job('lost', [main(), run('cloud-sql-proxy', 'sleep 3; exit 143')]),
      of: 'Pod',
      isReached: hasPhase('Failed'),
      reasons: [],
    },
    {
      name: 'failed-deadline',
      manifest: pod('slow', [main(forEver)], { activeDeadlineSeconds: 3, terminationGracePeriodSeconds: 5 }),
      of: 'Pod',
      isReached: (object) => hasPhase('Failed')(object) && hasEnded('main')(object),
      reasons: [],
    },
    // lastscrape itself.
    {
      name: 'lastscrape-holds',
      manifest: job('held', [
        main(serve5557),
        exporter,
        lastscrape({ LASTSCRAPE_DONE_WHEN: 'port:5557', LASTSCRAPE_TTL: '10m' }),
      ]),
      of: 'Pod',
      isReached: hasEnded('main'),
      reasons: ['lastscrapeHolds lastscrape'],
    },
    {
      name: 'lastscrape-is-overdue',
      manifest: job('overdue', [
        main(serve5557),
        exporter,
        lastscrape({ LASTSCRAPE_DONE_WHEN: 'file:/never', LASTSCRAPE_TTL: '1s', LASTSCRAPE_QUIT_TIMEOUT: '1s' }),
      ]),
      of: 'Pod',
      isReached: hasEnded('main'),
      afterSeconds: 300,
      reasons: ['lastscrapeOverdue lastscrape'],
    },
    {
      name: 'lastscrape-waits-for-sigterm',
      manifest: job('regular', [main(), lastscrape({ LASTSCRAPE_DONE_WHEN: 'sigterm', LASTSCRAPE_SCRAPES: '0' })]),
      of: 'Pod',
      isReached: hasEnded('main'),
      reasons: ['lastscrapeSigterm lastscrape'],
    },
    {
      name: 'lastscrape-is-misconfigured',
      manifest: job('wrong', [main(serve5557), exporter, lastscrape({ LASTSCRAPE_TTL: 'soon' })]),
      of: 'Pod',
      isReached: (object) => hasEnded('main')(object) && hasEnded('lastscrape')(object),
      reasons: ['lastscrapeMisconfigured locust-metrics-exporter'],
    },
    {
      name: 'lastscrape-could-not-stop-it',
      manifest: job('stubborn', [
        main(serve5557),
        mesh('linkerd-proxy', 'linkerd', [{ name: 'LASTSCRAPE_TEST_QUIT', value: 'off' }]),
        lastscrape({
          LASTSCRAPE_DONE_WHEN: 'port:5557',
          LASTSCRAPE_SCRAPES: '0',
          LASTSCRAPE_QUIT: 'linkerd',
          LASTSCRAPE_QUIT_TIMEOUT: '3s',
        }),
      ]),
      of: 'Pod',
      isReached: (object) => hasEnded('main')(object) && hasEnded('lastscrape')(object),
      reasons: ['quitFailed linkerd-proxy'],
    },
    {
      name: 'lastscrape-was-not-asked-to',
      manifest: job('left', [
        main(serve5557),
        run('cloud-sql-proxy', forEver),
        lastscrape({ LASTSCRAPE_DONE_WHEN: 'port:5557', LASTSCRAPE_SCRAPES: '0', LASTSCRAPE_QUIT: 'none' }),
      ]),
      of: 'Pod',
      isReached: (object) => hasEnded('main')(object) && hasEnded('lastscrape')(object),
      reasons: ['notInQuit cloud-sql-proxy'],
    },
    {
      name: 'lastscrape-holds-as-a-native-sidecar',
      manifest: job('native-held', [main()], {
        terminationGracePeriodSeconds: 120,
        initContainers: [
          { ...exporter, restartPolicy: 'Always' },
          lastscrape(
            { LASTSCRAPE_DONE_WHEN: 'sigterm', LASTSCRAPE_TERMINATION_GRACE: '110s', LASTSCRAPE_TTL: '110s' },
            { restartPolicy: 'Always' },
          ),
        ],
      }),
      of: 'Pod',
      isReached: hasEnded('main'),
      reasons: ['lastscrapeHolds lastscrape'],
    },
    {
      name: 'lastscrape-is-done',
      manifest: job('well', [
        main(serve5557),
        exporter,
        lastscrape({ LASTSCRAPE_DONE_WHEN: 'port:5557', LASTSCRAPE_SCRAPES: '0' }),
      ]),
      of: 'Pod',
      isReached: hasPhase('Succeeded'),
      reasons: [],
    },
    // Jobs.
    {
      name: 'job-suspended',
      manifest: withJob(job('paused', [main()]), { suspend: true }),
      of: 'Job',
      isReached: hasCondition('Suspended', 'True'),
      reasons: ['suspended'],
    },
    {
      name: 'job-without-parallelism',
      manifest: withJob(job('zero', [main()]), { parallelism: 0 }),
      of: 'Job',
      isReached: ({ status }) => status?.active === 0 || (status !== undefined && 'ready' in status),
      reasons: ['noParallelism'],
    },
    {
      name: 'job-runs',
      manifest: job('busy', [main(forEver)]),
      of: 'Job',
      isReached: ({ status }) => status?.active === 1,
      reasons: ['podsRun'],
    },
    {
      name: 'job-retries',
      manifest: withJob(job('retry', [main('exit 1')]), { backoffLimit: 6 }),
      of: 'Job',
      isReached: ({ status }) => (status?.failed ?? 0) >= 2 && (status?.active ?? 0) === 0,
      reasons: ['retries'],
    },
    {
      name: 'job-cannot-make-pods',
      manifest: job('refused', [main()], { serviceAccountName: 'missing' }),
      of: 'Job',
      isReached: ({ status }) => status !== undefined && 'uncountedTerminatedPods' in status,
      reasons: ['noPods'],
    },
    {
      name: 'job-failed',
      manifest: withJob(job('given-up', [main('exit 1')]), { backoffLimit: 0 }),
      of: 'Job',
      isReached: hasCondition('Failed', 'True'),
      reasons: [],
    },
    {
      name: 'job-ignores-failures',
      manifest: withJob(job('patient', [main('exit 42')]), {
        podFailurePolicy: { rules: [{ action: 'Ignore', onExitCodes: { operator: 'In', values: [42] } }] },
      }),
      of: 'Job',
      isReached: ({ status }) => status?.terminating === 0 && status.active === undefined,
      reasons: ['ignoredFailures'],
    },
    {
      name: 'job-deadline',
      manifest: withJob(job('late', [main(deaf)], { terminationGracePeriodSeconds: 60 }), { activeDeadlineSeconds: 4 }),
      of: 'Job',
      isReached: hasCondition('FailureTarget', 'True'),
      reasons: ['jobEnds'],
    },
    {
      name: 'job-complete',
      manifest: job('finished', [main()]),
      of: 'Job',
      isReached: hasCondition('Complete', 'True'),
      reasons: [],
    },
  ];
}

function buildJob(name: string, template: Fields): Manifest {
  return {
    apiVersion: 'batch/v1',
    kind: 'Job',
    metadata: { name },
    spec: { backoffLimit: 2, template },
  };
}

function withJob(job: Manifest, more: Fields): Manifest {
  return { ...job, spec: { ...(job['spec'] as Fields), ...more } };
}

function find({ status }: ReachedObject, name: string): ReachedContainer | undefined {
  const { containerStatuses = [], initContainerStatuses = [] } = status ?? {};
  return [...initContainerStatuses, ...containerStatuses].find((each) => each.name === name);
}

function hasEnded(name: string) {
  return (object: ReachedObject) => find(object, name)?.state.terminated !== undefined;
}

function isRunning(...names: readonly string[]) {
  return (object: ReachedObject) => names.every((name) => find(object, name)?.state.running !== undefined);
}

function isWaiting(name: string, reason: string) {
  return (object: ReachedObject) => find(object, name)?.state.waiting?.reason === reason;
}

function hasPhase(phase: string) {
  return ({ status }: ReachedObject) => status?.phase === phase;
}

function hasCondition(type: string, value: string) {
  return ({ status }: ReachedObject) =>
    status?.conditions?.some((condition) => condition.type === type && condition.status === value) ?? false;
}
