// A real pod: podman plays one with the container by hand of deploy/README.md, the real Locust, the stand-in
// exporter and the image of dist/, under its limits. Prometheus and Locust's worker are outside of the pod, in
// its network.
// podman 4.3 knows no kind Job, refuses containerPort without a bridge, and has no termination message: see
// readPodFile().

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdirSync, writeFileSync } from 'node:fs';
import { type IncomingMessage, request } from 'node:http';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';
import { parse, stringify } from 'yaml';
import { VERSION } from '../../src/base/version.ts';
import { readBlock } from '../deploy/guide.ts';
import { type Child, startChild } from '../support/child.ts';
import type { InsidePlan } from '../support/inside.ts';
import { type Answer, baseEnv, type Network } from '../support/network.ts';
import { locustfile, readFinalTotal, START_MS } from '../support/pod.ts';
import { findPrograms, listMissing } from '../support/programs.ts';
import { startPrometheus } from '../support/prometheus.ts';
import { proveStored } from '../support/proof.ts';
import { ROOT } from './dist.ts';
import { gatePodman, openPodman } from './pod-podman.ts';
import { LOCUSTFILES, makeExporterRoot, makeLocustRoot } from './pod-root.ts';

const FILE = 'test/image/pod-podman.test.ts';
const programs = findPrograms();
const skip = gatePodman(FILE, listMissing(programs, ['locust', 'prometheus']));

/** The containers of the pod, in the order in which they are to end. */
const NAMES = ['load-load-master', 'load-locust-metrics-exporter', 'load-lastscrape'] as const;

/** The operator's arguments with a run of 8 s, as in test/pods. */
const LOCUST_ARGS = [
  ...['--locustfile', `${LOCUSTFILES}/steady.py`, '--host', 'http://127.0.0.1:8000'],
  ...['--run-time', '8s', '--users', '6', '--spawn-rate', '3', '--master', '--master-port=5557', '--expect-workers=1'],
  ...['--autostart', '--autoquit', '5', '--enable-rebalancing', '--only-summary'],
];

/** The start, a run of 8 s, an autoquit of 5 s, a hold of at most 90 s. */
const POD_MS = START_MS + 150_000;

/** It takes 40 s; the images are 400 MB of files, which took 90 s on a busy disk. */
const TEST_MS = 600_000;

test('a pod with the container by hand completes, and Prometheus holds the final total', {
  skip,
  timeout: TEST_MS,
}, async () => {
  await using stack = new AsyncDisposableStack();
  const podman = stack.use(openPodman());
  const { directory } = podman;
  const [python = ''] = programs.locust ?? [];
  const roots = { exporter: join(directory, 'exporter'), locust: join(directory, 'locust') };
  for (const root of Object.values(roots)) mkdirSync(root);
  await podman.importRoot(roots.locust, 'locustio/locust:2.47.0', makeLocustRoot(roots.locust, python));
  await podman.importRoot(roots.exporter, 'containersol/locust_exporter:v0.5.0', makeExporterRoot(roots.exporter));
  await podman.pullLayout(`registry.example.com/lastscrape:${VERSION}`);

  // The network comes first, so that Prometheus and the worker are there when Locust starts.
  const file = join(directory, 'pod.yaml');
  writeFileSync(file, readPodFile());
  await podman.run('kube', 'play', '--network', 'none', '--build=false', '--start=false', file);
  const infra = (await podman.run('pod', 'inspect', '--format', '{{.InfraContainerID}}', 'load')).trim();
  await podman.run('start', infra);
  const network = await enterNetwork((await podman.inspect(infra)).State.Pid, directory, stack);
  const prometheus = await startPrometheus({
    network,
    command: programs.prometheus ?? [],
    directory,
    scrapeInterval: '5s',
    targetPort: network.ports.exporter,
  });
  stack.use(prometheus.child);
  await podman.run('pod', 'start', 'load');
  const [master, exporter, watcher] = NAMES.map((name) => podman.start(name, 'logs', '--follow', name));
  assert.ok(master !== undefined && exporter !== undefined && watcher !== undefined);
  const logs = [master, exporter, watcher];
  try {
    stack.use(startWorker(network, directory));
    await podman.start('podman wait', 'wait', ...NAMES).waitForExit(POD_MS);
    for (const log of logs) await log.waitForExit(POD_MS);

    const ended = await Promise.all(NAMES.map((name) => podman.inspect(name)));
    assert.deepEqual(
      ended.map(({ State: { Status, ExitCode } }) => `${Status} ${ExitCode}`),
      ['exited 0', 'exited 0', 'exited 0'],
    );
    const [locustMs = NaN, exporterMs = NaN, watcherMs = NaN] = ended.map(({ State }) => Date.parse(State.FinishedAt));
    assert.ok(
      locustMs < exporterMs && exporterMs < watcherMs,
      `Locust, the exporter, lastscrape: ended at ${[locustMs, exporterMs, watcherMs]}`,
    );
    const [, , { EffectiveCaps, Config, HostConfig } = assert.fail('no lastscrape')] = ended;
    assert.deepEqual(
      [EffectiveCaps ?? [], Config.User, HostConfig.ReadonlyRootfs, HostConfig.Memory, HostConfig.SecurityOpt],
      [[], '65532:65532', true, 64 * 2 ** 20, ['no-new-privileges']],
    );

    const total = readFinalTotal(master);
    assert.ok(total > 50, `a run of ${total} requests proves little`);
    const report = JSON.parse(watcher.lines.at(-1)?.text ?? '{}');
    assert.deepEqual([report.msg, report.outcome, report.final?.requests], ['report', 'scraped', total]);
    await proveStored(prometheus, total);
  } catch (error) {
    process.stderr.write(`${[...logs, prometheus.child].map((child) => child.tail()).join('\n')}\n`);
    throw error;
  }
});

/**
 * A pod of Locust's master and its exporter, as podman reads it, and in it the container that deploy/README.md
 * has to be added by hand, without what is only for a native sidecar, or for Kubernetes 1.35.
 */
function readPodFile(): string {
  const { env: _, restartPolicy, restartPolicyRules, ...lastscrape } = parse(readBlock('run', 'by hand'))[0];
  assert.equal(restartPolicy, 'Never');
  const containers = [
    { name: 'load-master', image: 'locustio/locust:2.47.0', args: LOCUST_ARGS },
    { name: 'locust-metrics-exporter', image: 'containersol/locust_exporter:v0.5.0' },
    { ...lastscrape, image: `registry.example.com/${lastscrape.image}` },
  ];
  const spec = { restartPolicy: 'Never', containers };
  return stringify({ apiVersion: 'v1', kind: 'Pod', metadata: { name: 'load' }, spec });
}

/** The network of a pod by its first process, with the target of Locust's users in it. */
async function enterNetwork(pid: number, directory: string, stack: AsyncDisposableStack): Promise<Network> {
  const ports = { master: 5557, web: 8089, exporter: 9646, prometheus: 9090, nodeExporter: 9100, target: 8000 };
  // With the test the kernel ends what it started; the containers end by themselves, which is what they are
  // here for.
  const wrap: Network['wrap'] = (command) => [
    'setpriv',
    '--pdeathsig',
    'KILL',
    'nsenter',
    `--net=/proc/${pid}/ns/net`,
    ...command,
  ];
  const plan: InsidePlan = { directory, targetPort: ports.target, doors: [ports.prometheus] };
  const inside = startChild({
    name: 'the process inside',
    command: wrap([process.execPath, join(ROOT, 'test/support/inside.ts'), JSON.stringify(plan)]),
    env: baseEnv(directory),
    cwd: directory,
  });
  stack.use(inside);
  await inside.waitForLine(/^ready$/, START_MS);
  return {
    kind: 'namespace',
    ports,
    wrap,
    newPort: () => Promise.reject(new Error('Bug: no port is wanted here')),
    get: (port, path) => get(join(directory, `${port}.sock`), path),
    probe: () => Promise.reject(new Error('Bug: no probe is wanted here')),
    crowd: () => Promise.reject(new Error('Bug: no crowd is wanted here')),
    [Symbol.asyncDispose]: () => inside[Symbol.asyncDispose](),
  };
}

function startWorker(network: Network, directory: string): Child {
  return startChild({
    name: 'the worker',
    command: network.wrap([
      ...(programs.locust ?? []),
      ...['--locustfile', locustfile('steady'), '--worker', '--master-host=127.0.0.1', '--master-port=5557'],
    ]),
    env: { ...baseEnv(directory), PYTHONDONTWRITEBYTECODE: '1' },
    cwd: directory,
  });
}

async function get(socketPath: string, path: string): Promise<Answer> {
  const asked = request({ socketPath, path, agent: false, timeout: 20_000 }).end();
  asked.once('timeout', () => asked.destroy(new Error(`Cannot get ${path}: no answer within 20 s`)));
  const [response]: readonly [IncomingMessage] = (await once(asked, 'response')) as [IncomingMessage];
  return { status: response.statusCode ?? 0, body: await text(response) };
}
