// Pods that hand over, or are held: a program and lastscrape before it, each with the targets that Kubernetes'
// discovery has of it.

import { writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { discoverPod, type Pod } from '../deploy/discovery.ts';
import { startChild } from '../support/child.ts';
import { makeFolder } from '../support/folder.ts';
import { findFreePort, listen } from '../support/listen.ts';
import { findPrograms } from '../support/programs.ts';

const IMAGE = 'registry.example.com/image:1';

export type JobPod = Awaited<ReturnType<typeof startPod>>;

/** Starts one whose counter is 1. `handOver`: LASTSCRAPE_HAND_OVER; `port`: of its front. */
export async function startPod(name: string, handOver: string, port?: number) {
  const folder = makeFolder();
  const page = { text: 'jobs_done_total 1\n' };
  const program = createServer((_, response) =>
    response.writeHead(200, { 'content-type': 'text/plain' }).end(page.text),
  );
  const front = port ?? (await findFreePort());
  const uid = `uid-${name}`;
  const pod: Pod = {
    metadata: {
      ...{ name, namespace: 'batch', uid },
      labels: { app: 'shop', tier: 'batch', 'batch.kubernetes.io/job-name': 'import', 'job-name': 'import' },
      annotations: {
        ...{ 'prometheus.io/scrape': 'true', 'prometheus.io/port': `${front}` },
        ...{ 'prometheus.io/param_part': 'all', 'example.com/owner': 'the "orders" team' },
      },
    },
    spec: {
      nodeName: 'node-1',
      containers: [{ name: 'import', image: IMAGE }],
      initContainers: [{ name: 'lastscrape', image: IMAGE, ports: [{ name: 'lastscrape', containerPort: front }] }],
    },
    status: { phase: 'Running', ready: 'true', podIP: '127.0.0.1' },
  };
  for (const part of ['labels', 'annotations'] as const) {
    const lines = Object.entries(pod.metadata[part] ?? {}).map(([key, value]) => `${key}=${JSON.stringify(value)}`);
    writeFileSync(join(folder, part), lines.join('\n'));
  }
  const source = await listen(program);
  const child = startChild({
    name,
    command: [...findPrograms().watcher],
    env: {
      LASTSCRAPE_METRICS_URL: `http://127.0.0.1:${source}/metrics`,
      LASTSCRAPE_FRONT: `127.0.0.1:${front}`,
      LASTSCRAPE_DONE_WHEN: 'sigterm',
      LASTSCRAPE_TERMINATION_GRACE: '10m',
      LASTSCRAPE_TTL: '9m',
      LASTSCRAPE_HAND_OVER: handOver,
      LASTSCRAPE_HAND_OVER_FOLDER: folder,
      ...{ POD_NAME: name, POD_NAMESPACE: 'batch', POD_UID: uid, NODE_NAME: 'node-1' },
    },
    cwd: folder,
  });
  return {
    child,
    targets: discoverPod(pod),
    /** Adds a million, and is told to end. */
    end(): void {
      page.text = 'jobs_done_total 1000001\n';
      process.kill(child.pid, 'SIGTERM');
    },
    /** The report, once it is gone. */
    async report(): Promise<Readonly<Record<string, unknown>>> {
      await child.exited;
      return JSON.parse(child.lines.findLast(({ stream }) => stream === 'stdout')?.text ?? '{}');
    },
    async [Symbol.asyncDispose]() {
      program.closeAllConnections();
      program.close();
      await child[Symbol.asyncDispose]();
    },
  };
}

/** What Kubernetes' discovery has of these pods, as a file of Prometheus's file discovery. */
export function writeTargets(file: string, pods: readonly JobPod[]): void {
  const groups = pods.flatMap(({ targets }) =>
    targets.map(({ __address__: address, ...labels }) => ({ targets: [address], labels })),
  );
  writeFileSync(file, JSON.stringify(groups));
}
