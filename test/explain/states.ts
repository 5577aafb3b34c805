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
    state('exporter-of-locust', job('load', [main(), exporter]), hasEnded('main'), [
      'exporterRuns locust-metrics-exporter',
    ]),
    state(
      'exporter',
      job('backup', [main(), run('node-exporter', forEver, { ports: [{ name: 'metrics', containerPort: 9100 }] })], {}),
      hasEnded('main'),
      ['exporterRuns node-exporter'],
    ),
    state('mesh-istio', job('report', [main(), mesh('istio-proxy', 'istio')]), hasEnded('main'), [
      'meshRuns istio-proxy',
    ]),
    state(
      'mesh-linkerd-and-database-proxy',
      job('migrate', [main(), run('cloud-sql-proxy', forEver), mesh('linkerd-proxy', 'linkerd')]),
      hasEnded('main'),
      ['meshRuns linkerd-proxy', 'databaseProxyRuns cloud-sql-proxy'],
    ),
    state('dapr', job('orders', [main(), run('daprd', forEver)]), hasEnded('main'), ['helperRuns daprd']),
    state('unknown-beside-an-ended-one', job('pair', [main(), run('cache', forEver)]), hasEnded('main'), [
      'otherRuns cache',
    ]),
    state(
      'native-sidecar-deaf-to-term',
      job('native', [main()], {
        terminationGracePeriodSeconds: 60,
        initContainers: [run('log-shipper', deaf, { restartPolicy: 'Always' })],
      }),
      hasEnded('main'),
      ['nativeEnds log-shipper'],
      { afterSeconds: 20 },
    ),
    // Main itself.
    state(
      'main-runs',
      job('long', [main(forEver), run('cloud-sql-proxy', forEver)]),
      isRunning('main', 'cloud-sql-proxy'),
      ['mainRuns main'],
    ),
    state(
      'restart-policy-always',
      pod('once', [main('sleep 1; exit 0')], { restartPolicy: 'Always' }),
      isWaiting('main', 'CrashLoopBackOff'),
      ['restartedAlways main'],
    ),
    // Restarts in place count; at the limit the Job deletes the pod.
    state(
      'back-off',
      withJob(job('failing', [main('sleep 1; exit 3')], { restartPolicy: 'OnFailure' }), {
        backoffLimit: 20,
      }),
      isWaiting('main', 'CrashLoopBackOff'),
      ['backOff main'],
    ),
    state(
      'back-off-out-of-memory',
      pod(
        'hungry',
        [
          {
            ...main('tail /dev/zero'),
            resources: { limits: { memory: '32Mi' } },
          },
        ],
        { restartPolicy: 'OnFailure' },
      ),
      isWaiting('main', 'CrashLoopBackOff'),
      ['backOff main'],
    ),
    state(
      'replica',
      {
        apiVersion: 'apps/v1',
        kind: 'Deployment',
        metadata: { name: 'web' },
        spec: {
          selector: { matchLabels: { app: 'web' } },
          template: { metadata: { labels: { app: 'web' } }, spec: { containers: [run('web', forEver)] } },
        },
      },
      isRunning('web'),
      ['meantToRun web'],
    ),
    state(
      'native-sidecar-fails',
      job('crashing', [main('sleep 600')], {
        initContainers: [run('log-agent', 'sleep 1; exit 1', { restartPolicy: 'Always' })],
      }),
      isWaiting('log-agent', 'CrashLoopBackOff'),
      ['mainRuns main', 'nativeFails log-agent'],
    ),
    state(
      'main-could-not-be-started',
      job('misnamed', [
        { ...main(), command: ['/no/such/program'] },
        run('node-exporter', forEver, { ports: [{ containerPort: 9100 }] }),
      ]),
      hasEnded('main'),
      ['exporterRuns node-exporter'],
    ),
    // Before main.
    state(
      'image',
      job('typo', [{ ...main(), image: 'registry.invalid/none:1' }, run('cloud-sql-proxy', forEver)]),
      isWaiting('main', 'ImagePullBackOff'),
      ['image main'],
    ),
    state(
      'config',
      job('settings', [{ ...main(), envFrom: [{ configMapRef: { name: 'missing' } }] }]),
      isWaiting('main', 'CreateContainerConfigError'),
      ['config main'],
    ),
    state(
      'command',
      pod('misspelt', [{ ...main(), command: ['/bin/no-such-program'] }], { restartPolicy: 'OnFailure' }),
      (object) => isWaiting('main', 'CrashLoopBackOff')(object) || isWaiting('main', 'RunContainerError')(object),
      ['backOff main'],
    ),
    state('init-runs', job('wait-for-db', [main()], { initContainers: [run('wait', forEver)] }), isRunning('wait'), [
      'initRuns wait',
    ]),
    state(
      'init-back-off',
      pod('init-fails', [main()], {
        restartPolicy: 'OnFailure',
        initContainers: [run('prepare', 'sleep 1; exit 1')],
      }),
      isWaiting('prepare', 'CrashLoopBackOff'),
      ['backOff prepare'],
    ),
    state(
      'native-sidecar-not-started',
      job('probe', [main()], {
        initContainers: [
          run('proxy', forEver, {
            restartPolicy: 'Always',
            startupProbe: { tcpSocket: { port: 1 }, failureThreshold: 100 },
          }),
        ],
      }),
      isRunning('proxy'),
      ['initRuns proxy'],
    ),
    state(
      'volume',
      job('mount', [{ ...main(), volumeMounts: [{ name: 'keys', mountPath: '/keys' }] }], {
        volumes: [{ name: 'keys', secret: { secretName: 'missing' } }],
      }),
      isWaiting('main', 'ContainerCreating'),
      ['creating main'],
    ),
    state(
      'unschedulable',
      job('huge', [{ ...main(), resources: { requests: { cpu: '1000', memory: '64Mi' } } }]),
      hasCondition('PodScheduled', 'False'),
      ['unschedulable'],
    ),
    state(
      'gated',
      pod('queued', [main()], { schedulingGates: [{ name: 'example.com/quota' }] }),
      hasCondition('PodScheduled', 'False'),
      ['gated'],
    ),
    // The end.
    state(
      'finalizer',
      pod('guarded', [main()], {}, { finalizers: ['example.com/archive'] }),
      ({ metadata }) => metadata.deletionTimestamp !== undefined,
      ['finalizer'],
      { deleteWhen: ({ status }) => status?.phase === 'Succeeded' },
    ),
    state(
      'terminating',
      pod('deaf', [main(deaf)], { terminationGracePeriodSeconds: 120 }),
      ({ metadata }) => metadata.deletionTimestamp !== undefined,
      ['terminating main'],
      { deleteWhen: isRunning('main'), afterSeconds: -60 },
    ),
    state(
      'terminating-in-a-hook',
      pod('hook', [{ ...main(forEver), lifecycle: { preStop: { exec: { command: ['sleep', '500'] } } } }], {
        terminationGracePeriodSeconds: 600,
      }),
      ({ metadata }) => metadata.deletionTimestamp !== undefined,
      ['terminating main'],
      { deleteWhen: isRunning('main'), afterSeconds: -500 },
    ),
    state('succeeded', job('done', [main()]), hasPhase('Succeeded'), []),
    state('failed', job('lost', [main(), run('cloud-sql-proxy', 'sleep 3; exit 143')]), hasPhase('Failed'), []),
    state(
      'failed-deadline',
      pod('slow', [main(forEver)], { activeDeadlineSeconds: 3, terminationGracePeriodSeconds: 5 }),
      (object) => hasPhase('Failed')(object) && hasEnded('main')(object),
      [],
    ),
    // lastscrape itself.
    state(
      'lastscrape-holds',
      job('held', [
        main(serve5557),
        exporter,
        lastscrape({ LASTSCRAPE_DONE_WHEN: 'port:5557', LASTSCRAPE_TTL: '10m' }),
      ]),
      hasEnded('main'),
      ['lastscrapeHolds lastscrape'],
    ),
    state(
      'lastscrape-is-overdue',
      job('overdue', [
        main(serve5557),
        exporter,
        lastscrape({ LASTSCRAPE_DONE_WHEN: 'file:/never', LASTSCRAPE_TTL: '1s', LASTSCRAPE_QUIT_TIMEOUT: '1s' }),
      ]),
      hasEnded('main'),
      ['lastscrapeOverdue lastscrape'],
      { afterSeconds: 300 },
    ),
    state(
      'lastscrape-waits-for-sigterm',
      job('regular', [main(), lastscrape({ LASTSCRAPE_DONE_WHEN: 'sigterm', LASTSCRAPE_SCRAPES: '0' })]),
      hasEnded('main'),
      ['lastscrapeSigterm lastscrape'],
    ),
    state(
      'lastscrape-is-misconfigured',
      job('wrong', [main(serve5557), exporter, lastscrape({ LASTSCRAPE_TTL: 'soon' })]),
      (object) => hasEnded('main')(object) && hasEnded('lastscrape')(object),
      ['lastscrapeMisconfigured locust-metrics-exporter'],
    ),
    state(
      'lastscrape-could-not-stop-it',
      job('stubborn', [
        main(serve5557),
        mesh('linkerd-proxy', 'linkerd', [{ name: 'LASTSCRAPE_TEST_QUIT', value: 'off' }]),
        lastscrape({
          LASTSCRAPE_DONE_WHEN: 'port:5557',
          LASTSCRAPE_SCRAPES: '0',
          LASTSCRAPE_QUIT: 'linkerd',
          LASTSCRAPE_QUIT_TIMEOUT: '3s',
        }),
      ]),
      (object) => hasEnded('main')(object) && hasEnded('lastscrape')(object),
      ['quitFailed linkerd-proxy'],
    ),
    state(
      'lastscrape-was-not-asked-to',
      job('left', [
        main(serve5557),
        run('cloud-sql-proxy', forEver),
        lastscrape({ LASTSCRAPE_DONE_WHEN: 'port:5557', LASTSCRAPE_SCRAPES: '0', LASTSCRAPE_QUIT: 'none' }),
      ]),
      (object) => hasEnded('main')(object) && hasEnded('lastscrape')(object),
      ['notInQuit cloud-sql-proxy'],
    ),
    state(
      'lastscrape-holds-as-a-native-sidecar',
      job('native-held', [main()], {
        terminationGracePeriodSeconds: 120,
        initContainers: [
          { ...exporter, restartPolicy: 'Always' },
          lastscrape(
            { LASTSCRAPE_DONE_WHEN: 'sigterm', LASTSCRAPE_TERMINATION_GRACE: '110s', LASTSCRAPE_TTL: '110s' },
            { restartPolicy: 'Always' },
          ),
        ],
      }),
      hasEnded('main'),
      ['lastscrapeHolds lastscrape'],
    ),
    state(
      'lastscrape-is-done',
      job('well', [
        main(serve5557),
        exporter,
        lastscrape({ LASTSCRAPE_DONE_WHEN: 'port:5557', LASTSCRAPE_SCRAPES: '0' }),
      ]),
      hasPhase('Succeeded'),
      [],
    ),
    // Jobs.
    state(
      'job-suspended',
      withJob(job('paused', [main()]), { suspend: true }),
      hasCondition('Suspended', 'True'),
      ['suspended'],
      { of: 'Job' },
    ),
    state(
      'job-without-parallelism',
      withJob(job('zero', [main()]), { parallelism: 0 }),
      ({ status }) => status?.active === 0 || (status !== undefined && 'ready' in status),
      ['noParallelism'],
      { of: 'Job' },
    ),
    state('job-runs', job('busy', [main(forEver)]), ({ status }) => status?.active === 1, ['podsRun'], { of: 'Job' }),
    state(
      'job-retries',
      withJob(job('retry', [main('exit 1')]), { backoffLimit: 6 }),
      ({ status }) => (status?.failed ?? 0) >= 2 && (status?.active ?? 0) === 0,
      ['retries'],
      { of: 'Job' },
    ),
    state(
      'job-cannot-make-pods',
      job('refused', [main()], { serviceAccountName: 'missing' }),
      ({ status }) => status !== undefined && 'uncountedTerminatedPods' in status,
      ['noPods'],
      { of: 'Job' },
    ),
    state(
      'job-failed',
      withJob(job('given-up', [main('exit 1')]), { backoffLimit: 0 }),
      hasCondition('Failed', 'True'),
      [],
      { of: 'Job' },
    ),
    state(
      'job-ignores-failures',
      withJob(job('patient', [main('exit 42')]), {
        podFailurePolicy: { rules: [{ action: 'Ignore', onExitCodes: { operator: 'In', values: [42] } }] },
      }),
      ({ status }) => status?.terminating === 0 && status.active === undefined,
      ['ignoredFailures'],
      { of: 'Job' },
    ),
    state(
      'job-deadline',
      withJob(job('late', [main(deaf)], { terminationGracePeriodSeconds: 60 }), { activeDeadlineSeconds: 4 }),
      hasCondition('FailureTarget', 'True'),
      ['jobEnds'],
      { of: 'Job' },
    ),
    state('job-complete', job('finished', [main()]), hasCondition('Complete', 'True'), [], { of: 'Job' }),
  ];
}

type More = Partial<Pick<ExplainState, 'of' | 'deleteWhen' | 'afterSeconds'>>;

function state(
  name: string,
  manifest: Manifest,
  isReached: ExplainState['isReached'],
  reasons: readonly string[],
  more: More = {},
): ExplainState {
  return { name, manifest, of: 'Pod', isReached, reasons, ...more };
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
