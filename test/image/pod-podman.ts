// A podman of the test's own: storage, state and settings in one temporary folder, no registry asked.
// Disposing ends and removes every container, then the folder.

import { execFile, execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { gateMissing, readTestVariable } from '../support/programs.ts';
import { gateDist, gateProgram } from './dist.ts';

export type Podman = AsyncDisposable & {
  /** For files of the test; removed at the end. */
  readonly directory: string;
  /** Runs one command and returns what it printed. @throws with its stderr when it fails. */
  run(...args: readonly string[]): Promise<string>;
};

/** A command takes less than 2 s; the disk may be busy. */
const COMMAND_MS = 300_000;

// Where nothing is said podman asks the service manager for cgroups and the journal for events; here may
// be neither. The limits are those that runc may set in a sandbox.
const settings = (directory: string) => `[containers]
default_ulimits = ["nofile=20000:20000", "nproc=32768:32768"]
[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
events_logger = "file"
lock_type = "file"
tmp_dir = "${directory}/state"
`;

const storage = (directory: string) => `[storage]
driver = "overlay"
graphroot = "${directory}/storage"
runroot = "${directory}/run"
`;

/** Why tests that need podman are skipped; as gateDist(). `others`: what else is missing. */
export function gatePodman(file: string, others: readonly string[] = []): string | false {
  return (
    gateDist(file) ||
    gateProgram(file, 'podman', 'podman runc catatonit') ||
    gateMissing(file, [...listMissingRights(), ...others])
  );
}

/** What a test that is not root is to do; empty for root. */
export function listMissingRights(): readonly string[] {
  return process.getuid?.() === 0 ? [] : ['only root may set limits and make namespaces; run as root'];
}

/** Opens it; nothing runs yet. */
export function openPodman(): Podman {
  const directory = mkdtempSync(join(tmpdir(), 'lastscrape-podman-'));
  for (const name of ['storage', 'run', 'state']) mkdirSync(join(directory, name));
  const env = {
    PATH: readTestVariable('PATH') ?? '',
    HOME: directory,
    CONTAINERS_CONF: writeSettings(directory, 'containers.conf', settings(directory)),
    CONTAINERS_STORAGE_CONF: writeSettings(directory, 'storage.conf', storage(directory)),
    // Without a registry to search, an image that is not here is an error at once.
    CONTAINERS_REGISTRIES_CONF: writeSettings(directory, 'registries.conf', 'unqualified-search-registries = []\n'),
  };
  const run = async (...args: readonly string[]): Promise<string> => {
    const { stdout } = await promisify(execFile)('podman', args, { env, timeout: COMMAND_MS, maxBuffer: 2 ** 24 });
    return stdout;
  };
  return {
    directory,
    run,
    async [Symbol.asyncDispose]() {
      await run('pod', 'rm', '--all', '--force', '--time', '0');
      await run('rm', '--all', '--force', '--time', '0');
      // podman leaves its overlay folder mounted on itself.
      const mounted = join(directory, 'storage/overlay');
      execFileSync('sh', ['-c', 'if mountpoint --quiet "$1"; then umount "$1"; fi', 'sh', mounted]);
      rmSync(directory, { recursive: true, force: true, maxRetries: 3 });
    },
  };
}

function writeSettings(directory: string, name: string, text: string): string {
  const path = join(directory, name);
  writeFileSync(path, text);
  return path;
}
