// The arm64 binary does a whole job on the stand-ins: as it is on an arm64 machine, elsewhere under qemu-user with the libraries
// of its own image. What --version, --help and --check print is compared in binary.test.ts.

import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { startChild } from '../support/child.ts';
import { DIST, gateDist, gateProgram } from '../support/dist.ts';
import { openPod } from '../support/watcher.ts';

const FILE = 'test/image/binary-arm64.test.ts';
const isNative = process.arch === 'arm64';
const skip = gateDist(FILE) || (isNative ? false : gateProgram(FILE, 'qemu-aarch64-static', 'qemu-user-static'));
const ROOT_FOLDER = join(DIST, 'rootfs/arm64');
const COMMAND = isNative
  ? [join(DIST, 'lastscrape-linux-arm64')]
  : ['qemu-aarch64-static', '-L', ROOT_FOLDER, join(ROOT_FOLDER, 'lastscrape')];

/** 120 s: an emulated start takes 1 s on an idle core, ten times that beside other tests. */
const END_MS = 120_000;

for (const { name, signal, outcome } of [
  {
    name: 'watches, holds for one scrape, stops the exporter, reports, exits 0',
    signal: undefined,
    outcome: 'scraped',
  },
  { name: 'SIGTERM starts the grace, which ends the watch', signal: 'SIGTERM', outcome: 'terminated' },
] as const) {
  test(`arm64: ${name}`, { skip, timeout: 2 * END_MS }, async () => {
    const folder = mkdtempSync(join(tmpdir(), 'lastscrape-arm64-'));
    try {
      await using pod = await openPod();
      await using watcher = startChild({
        name: 'the watcher',
        command: COMMAND,
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
        while (watcher.exit === undefined && pod.exporter.isOpen) {
          await fetch(`${pod.exporter.url}/metrics`).then(
            (answer) => answer.text(),
            () => undefined,
          );
        }
      } else {
        watcher.signal(signal);
      }
      const { code } = await watcher.waitForExit(END_MS);
      const { time: _time, level: _level, msg, ...report } = JSON.parse(watcher.lines.at(-1)?.text ?? '{}');
      assert.deepEqual([code, msg, report.outcome], [0, 'report', outcome], watcher.tail());
      assert.deepEqual(JSON.parse(readFileSync(join(folder, 'termination-log'), 'utf8')), report);
      assert.equal(pod.exporter.isOpen, false);
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });
}
