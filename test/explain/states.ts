// The states of `lastscrape explain`, each as a manifest that a real cluster brings into it, for
// tools/make-explain.ts (fixtures) and explain.cluster.ts.

/** An object of the API, as it is sent or as it comes back. */
export type Fields = { readonly [field: string]: unknown };

/** An object that can be created. */
export type Manifest = { readonly apiVersion: string; readonly kind: string; readonly [field: string]: unknown };

/** One state, and how a cluster comes to it. */
export type ExplainState = {
  /** The fixture's name: fixtures/explain/NAME.json. */
  readonly name: string;
  /** Its object: a bare pod, or a Job and the pod that it makes. */
  readonly manifest: Manifest;
  readonly of: 'Pod' | 'Job';
  /** Whether an object that came back is in the state. */
  readonly isReached: (object: ReachedObject) => boolean;
  /** It is deleted once this is so; the state is reached after that. */
  readonly deleteWhen?: (object: ReachedObject) => boolean;
  /** From the newest moment in the fixture to that at which it is explained; default 60. */
  readonly afterSeconds?: number;
  /** The findings' reasons, with the container where there is one. Blank: nothing keeps it. */
  readonly reasons: string;
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
  readonly state: {
    readonly waiting?: { readonly reason?: string };
    readonly running?: object;
    readonly terminated?: { readonly exitCode: number; readonly message?: string };
  };
};

export type StateImages = {
  readonly lastscrape: string;
  readonly exporter: string;
  readonly busybox: string;
  readonly mesh: string;
};

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
    // What runs on after main has ended.
    state('exporter-of-locust', 'helperRuns locust-metrics-exporter', job('load', [main(), exporter])),
    state(
      'exporter',
      'helperRuns node-exporter',
      job('backup', [main(), run('node-exporter', forEver, { ports: [{ name: 'metrics', containerPort: 9100 }] })], {}),
    ),
    state('mesh-istio', 'helperRuns istio-proxy', job('report', [main(), mesh('istio-proxy', 'istio')])),
    state(
      'mesh-linkerd-and-database-proxy',
      'helperRuns cloud-sql-proxy, helperRuns linkerd-proxy',
      job('migrate', [main(), run('cloud-sql-proxy', forEver), mesh('linkerd-proxy', 'linkerd')]),
    ),
    state('dapr', 'helperRuns daprd', job('orders', [main(), run('daprd', forEver)])),
    state('unknown-beside-an-ended-one', 'otherRuns cache', job('pair', [main(), run('cache', forEver)])),
    state(
      'native-sidecar-deaf-to-term',
      'nativeEnds log-shipper',
      job('native', [main()], {
        terminationGracePeriodSeconds: 60,
        initContainers: [run('log-shipper', deaf, { restartPolicy: 'Always' })],
      }),
      hasEnded('main'),
      { afterSeconds: 20 },
    ),
    // Main itself.
    state(
      'main-runs',
      'mainRuns main',
      job('long', [main(forEver), run('cloud-sql-proxy', forEver)]),
      isRunning('main', 'cloud-sql-proxy'),
    ),
    // Before main.
    state(
      'image',
      'notStarted main',
      job('typo', [{ ...main(), image: 'registry.invalid/none:1' }, run('cloud-sql-proxy', forEver)]),
      isWaiting('main', 'ImagePullBackOff'),
    ),
    state(
      'native-sidecar-not-started',
      'notStarted proxy',
      job('probe', [main()], {
        initContainers: [
          run('proxy', forEver, {
            restartPolicy: 'Always',
            startupProbe: { tcpSocket: { port: 1 }, failureThreshold: 100 },
          }),
        ],
      }),
      isRunning('proxy'),
    ),
    state(
      'unschedulable',
      'notStarted',
      job('huge', [{ ...main(), resources: { requests: { cpu: '1000', memory: '64Mi' } } }]),
      hasCondition('PodScheduled', 'False'),
    ),
    // The end.
    state(
      'finalizer',
      'deleted',
      pod('guarded', [main()], {}, { finalizers: ['example.com/archive'] }),
      ({ metadata }) => metadata.deletionTimestamp !== undefined,
      { deleteWhen: ({ status }) => status?.phase === 'Succeeded' },
    ),
    state(
      'terminating',
      'terminating main',
      pod('deaf', [main(deaf)], { terminationGracePeriodSeconds: 120 }),
      ({ metadata }) => metadata.deletionTimestamp !== undefined,
      { deleteWhen: isRunning('main'), afterSeconds: -60 },
    ),
    state('succeeded', '', job('done', [main()]), hasPhase('Succeeded')),
    state('failed', '', job('lost', [main(), run('cloud-sql-proxy', 'sleep 3; exit 143')]), hasPhase('Failed')),
    // lastscrape itself.
    state(
      'lastscrape-holds',
      'lastscrapeHolds lastscrape',
      job('held', [
        main(serve5557),
        exporter,
        lastscrape({ LASTSCRAPE_DONE_WHEN: 'port:5557', LASTSCRAPE_TTL: '10m' }),
      ]),
    ),
    state(
      'lastscrape-is-overdue',
      'lastscrapeOverdue lastscrape',
      job('overdue', [
        main(serve5557),
        exporter,
        lastscrape({ LASTSCRAPE_DONE_WHEN: 'file:/never', LASTSCRAPE_TTL: '1s', LASTSCRAPE_QUIT_TIMEOUT: '1s' }),
      ]),
      hasEnded('main'),
      { afterSeconds: 300 },
    ),
    state(
      'lastscrape-waits-for-sigterm',
      'lastscrapeSigterm lastscrape',
      job('regular', [main(), lastscrape({ LASTSCRAPE_DONE_WHEN: 'sigterm', LASTSCRAPE_SCRAPES: '0' })]),
    ),
    state(
      'lastscrape-is-misconfigured',
      'lastscrapeMisconfigured locust-metrics-exporter',
      job('wrong', [main(serve5557), exporter, lastscrape({ LASTSCRAPE_TTL: 'soon' })]),
      (object) => hasEnded('main')(object) && hasEnded('lastscrape')(object),
    ),
    state(
      'lastscrape-could-not-stop-it',
      'quitFailed linkerd-proxy',
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
    ),
    state(
      'lastscrape-was-not-asked-to',
      'notInQuit cloud-sql-proxy',
      job('left', [
        main(serve5557),
        run('cloud-sql-proxy', forEver),
        lastscrape({ LASTSCRAPE_DONE_WHEN: 'port:5557', LASTSCRAPE_SCRAPES: '0', LASTSCRAPE_QUIT: 'none' }),
      ]),
      (object) => hasEnded('main')(object) && hasEnded('lastscrape')(object),
    ),
    state(
      'lastscrape-holds-as-a-native-sidecar',
      'lastscrapeHolds lastscrape',
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
    ),
    state(
      'lastscrape-is-done',
      '',
      job('well', [
        main(serve5557),
        exporter,
        lastscrape({ LASTSCRAPE_DONE_WHEN: 'port:5557', LASTSCRAPE_SCRAPES: '0' }),
      ]),
      hasPhase('Succeeded'),
    ),
    // Jobs.
    state('job-runs', 'jobRuns', job('busy', [main(forEver)]), ({ status }) => status?.active === 1),
    state(
      'job-failed',
      '',
      withJob(job('given-up', [main('exit 1')]), { backoffLimit: 0 }),
      hasCondition('Failed', 'True'),
    ),
    state(
      'job-deadline',
      'jobRuns',
      withJob(job('late', [main(deaf)], { terminationGracePeriodSeconds: 60 }), { activeDeadlineSeconds: 4 }),
      hasCondition('FailureTarget', 'True'),
    ),
  ];
}

type More = Partial<Pick<ExplainState, 'deleteWhen' | 'afterSeconds'>>;

function state(
  name: string,
  reasons: string,
  manifest: Manifest,
  isReached: ExplainState['isReached'] = hasEnded('main'),
  more: More = {},
): ExplainState {
  return { name, reasons, manifest, of: name.startsWith('job-') ? 'Job' : 'Pod', isReached, ...more };
}

function buildJob(name: string, template: Fields): Manifest {
  return { apiVersion: 'batch/v1', kind: 'Job', metadata: { name }, spec: { backoffLimit: 2, template } };
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
