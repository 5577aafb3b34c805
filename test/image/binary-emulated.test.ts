// The binaries on other machines do a whole job: arm64 under qemu-user with the libraries of its image, x64
// on a CPU without SSE 4.1, where undici parses without SIMD. binary.test.ts compares what they print.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { startChild } from '../support/child.ts';
import { makeFolder } from '../support/folder.ts';
import { openPod, scrapeToTheEnd } from '../support/watcher.ts';
import { DIST, gateDist, gateProgram } from './dist.ts';

const FILE = 'test/image/binary-emulated.test.ts';
const ARM64 = join(DIST, 'rootfs/arm64');
const gateQemu = (program: string) => gateDist(FILE) || gateProgram(FILE, program, 'qemu-user-static');
const MACHINES = [
  process.arch === 'arm64'
    ? { machine: 'arm64', skip: gateDist(FILE), command: [join(DIST, 'lastscrape-linux-arm64')] }
    : {
        machine: 'arm64',
        skip: gateQemu('qemu-aarch64-static'),
        command: ['qemu-aarch64-static', '-L', ARM64, join(ARM64, 'lastscrape')],
      },
  ...(process.arch === 'x64'
    ? [
        {
          machine: 'x64 without SSE 4.1',
          skip: gateQemu('qemu-x86_64-static'),
          command: ['qemu-x86_64-static', '-cpu', 'kvm64', join(DIST, 'lastscrape-linux-x64')],
        },
      ]
    : []),
];

/** 120 s: an emulated start takes 1 s on an idle core, 10 s next to other tests. */
const END_MS = 120_000;

const ENDS = [
  {
    name: 'watches, holds for one scrape, stops the exporter, reports, exits 0',
    signal: undefined,
    outcome: 'scraped',
  },
  { name: 'SIGTERM starts the grace, which ends the watch', signal: 'SIGTERM', outcome: 'terminated' },
] as const;

for (const { machine, skip, command, name, signal, outcome } of MACHINES.flatMap((each) =>
  // qemu-user 7.2 for x64 ends any Node by SIGSEGV at a signal that it listens to.
  ENDS.filter((end) => each.machine === 'arm64' || end.signal === undefined).map((end) => ({ ...each, ...end })),
)) {
  test(`${machine}: ${name}`, { skip, timeout: 2 * END_MS }, async () => {
    const folder = makeFolder();
    await using pod = await openPod();
    await using watcher = startChild({
      name: 'the watcher',
      command,
      env: {
        PATH: process.env['PATH'] ?? '',
        ...pod.env,
        LASTSCRAPE_TERMINATION_LOG: join(folder, 'termination-log'),
        LASTSCRAPE_TERMINATION_GRACE: '1s',
      },
      cwd: folder,
    });
    await watcher.waitForLine(/"msg":"main is running"/, END_MS);
    if (signal === undefined) {
      pod.locust.kill();
      await watcher.waitForLine(/"msg":"main ended"/, END_MS);
      await scrapeToTheEnd(pod, () => watcher.exit !== undefined);
    } else {
      watcher.signal(signal);
    }
    const { code } = await watcher.waitForExit(END_MS);
    const { time: _time, level: _level, msg, ...report } = JSON.parse(watcher.lines.at(-1)?.text ?? '{}');
    assert.deepEqual([code, msg, report.outcome], [0, 'report', outcome], watcher.tail());
    assert.deepEqual(JSON.parse(readFileSync(join(folder, 'termination-log'), 'utf8')), report);
    assert.equal(pod.exporter.isOpen, false);
  });
}
