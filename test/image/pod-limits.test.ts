// The image of dist/ under the limits of the manifests and a tenth of a core, as PID 1, in podman.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { chmodSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { VERSION } from '../../src/base/version.ts';
import type { Child } from '../support/child.ts';
import { openPod, type Pod, scrapeToTheEnd } from '../support/watcher.ts';
import { gatePodman, openPodman, type Podman } from './pod-podman.ts';

const skip = gatePodman('test/image/pod-limits.test.ts');
const IMAGE = `lastscrape:${VERSION}`;

/** The manifests' securityContext and limit as podman's options, and a tenth of a core. */
const LIMITS = [
  ...['--memory', '64m', '--memory-swap', '64m', '--cpus', '0.1', '--user', '65532:65532', '--cap-drop', 'all'],
  ...['--security-opt', 'no-new-privileges', '--read-only', '--read-only-tmpfs=false'],
];

/** A tenth of a core takes ten times as long: 2 s to the first look; the machine may be busy. */
const END_MS = 90_000;

describe('the image under its limits', { skip }, () => {
  let podman: Podman;
  before(async () => {
    podman = openPodman();
    await podman.pullLayout(IMAGE);
  });
  after(async () => {
    await podman[Symbol.asyncDispose]();
  });

  test('the root file system has nothing that could be run but lastscrape', async () => {
    await assert.rejects(
      podman.run('run', '--rm', '--network', 'none', '--entrypoint', '/bin/sh', IMAGE),
      /no such file/,
    );
    assert.match(await podman.run('run', '--rm', '--network', 'none', ...LIMITS, IMAGE, '--version'), /^lastscrape \d/);
  });

  test('a whole job in 64 MiB and a tenth of a core, from a cold cache', async () => {
    await dropPages();
    await using pod = await openPod();
    const watcher = await startContainer('job', pod);
    await watcher.waitForLine(/"msg":"main is running"/, END_MS);
    assert.deepEqual(readLimits((await podman.inspect('job')).State.Pid), ['67108864', '10000']);
    pod.locust.kill();
    await watcher.waitForLine(/"msg":"main ended"/, END_MS);
    await scrapeToTheEnd(pod, () => watcher.exit !== undefined);
    await proveEnd('job', watcher, { code: 0, outcome: 'scraped' });
    assert.equal(pod.exporter.isOpen, false);
  });

  test('as PID 1: "podman stop" is answered within the grace', async () => {
    await using pod = await openPod();
    const watcher = await startContainer('stopped', pod, { LASTSCRAPE_TERMINATION_GRACE: '1s' });
    await watcher.waitForLine(/"msg":"main is running"/, END_MS);
    await podman.run('stop', '--time', '60', 'stopped');
    await proveEnd('stopped', watcher, { code: 0, outcome: 'terminated' });
    assert.equal(pod.exporter.isOpen, false, 'the grace ends in a quit');
  });

  // As the kubelet: the message is a file of the host, mounted where the default says.
  const messagePath = (name: string) => join(podman.directory, `${name}.message`);

  async function startContainer(name: string, pod: Pod, extra: Readonly<Record<string, string>> = {}): Promise<Child> {
    writeFileSync(messagePath(name), '');
    chmodSync(messagePath(name), 0o666);
    const { LASTSCRAPE_TERMINATION_LOG: _here, ...env } = { ...pod.env, ...extra };
    const variables = Object.entries(env).flatMap(([key, value]) => ['--env', `${key}=${value}`]);
    const mount = ['--volume', `${messagePath(name)}:/dev/termination-log`];
    return podman.start(name, 'run', '--name', name, '--network', 'host', ...LIMITS, ...mount, ...variables, IMAGE);
  }

  async function proveEnd(name: string, watcher: Child, expected: { code: number; outcome: string }): Promise<void> {
    const { code } = await watcher.waitForExit(END_MS);
    const { State, EffectiveCaps } = await podman.inspect(name);
    assert.deepEqual([code, State.ExitCode, State.OOMKilled], [expected.code, expected.code, false], watcher.tail());
    assert.deepEqual(EffectiveCaps ?? [], []);
    const stdout = watcher.lines.filter(({ stream }) => stream === 'stdout');
    const { time: _time, level: _level, msg, ...report } = JSON.parse(stdout.at(-1)?.text ?? '{}');
    assert.deepEqual([msg, report.outcome, watcher.lines.length], ['report', expected.outcome, stdout.length]);
    assert.deepEqual(JSON.parse(readFileSync(messagePath(name), 'utf8')), report, 'the termination message');
  }

  // The pull left the image's pages in memory: in a pod the first start pays for them.
  async function dropPages(): Promise<void> {
    const root = (await podman.run('image', 'mount', IMAGE)).trim();
    execFileSync('sync');
    const script = 'find "$1" -type f -exec dd if={} iflag=nocache count=0 status=none ";"';
    execFileSync('sh', ['-c', script, 'sh', root]);
    const resident = execFileSync('fincore', ['--bytes', '--noheadings', '--output', 'RES', join(root, 'lastscrape')]);
    assert.equal(Number(resident.toString()), 0, 'bytes of the binary in memory');
    await podman.run('image', 'unmount', IMAGE);
  }
});

/** What the kernel holds a process to: bytes of memory, and microseconds of a core in each 100 ms. */
function readLimits(pid: number): readonly (string | undefined)[] {
  const groups = readFileSync(`/proc/${pid}/cgroup`, 'utf8');
  const read = (path: string) => readFileSync(`/sys/fs/cgroup/${path}`, 'utf8').trim();
  const findPath = (controller: string) =>
    new RegExp(`^\\d+:(?:.*,)?${controller}(?:,.*)?:(.*)$`, 'm').exec(groups)?.[1];
  const [memory, cpu] = [findPath('memory'), findPath('cpu')];
  if (memory !== undefined && cpu !== undefined) {
    return [read(`memory${memory}/memory.limit_in_bytes`), read(`cpu${cpu}/cpu.cfs_quota_us`)];
  }
  // The unified hierarchy has one path for all.
  const [, unified] = /^0::(.*)$/m.exec(groups) ?? [];
  return [read(`${unified}/memory.max`), read(`${unified}/cpu.max`).split(' ')[0]];
}
