// What V8 compiles of the bundle from its start to its first poll, recorded once for each architecture: the binary has it ready. Gains
// a quarter of the CPU time of a start, a fifth of its time, for 1 % more memory. The same bundle gives the same bytes on any machine
// that can run Node for both.

import { execFileSync } from 'node:child_process';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Architecture } from './binary.ts';
import type { DebianPackage } from './debian.ts';
import { FLAGS } from './flags.ts';
import { BINARY_PATH, makeRoot, writeRoot } from './root.ts';

/** The bundle as `record-code-cache.cjs` and `main.cjs` run it: a function. V8 takes the cache for this very text alone. */
export function wrapBundle(bundle: Buffer): Buffer {
  return Buffer.from(`(function (require, __dirname) {${bundle.toString('latin1')}\n})`, 'latin1');
}

/** qemu-user 7.2 loses an event now and then, for which Node then waits: it takes some seconds, or has hung. */
const TRIES_COUNT = 3;

/** Where the cache is to be recorded. */
export type CodeCachePlan = {
  readonly architecture: Architecture;
  /** Node as it is in the binary. */
  readonly base: Buffer;
  /** What Node is linked with; of all architectures. */
  readonly debianPackages: readonly DebianPackage[];
  /** Has the wrapped bundle as `bundle.js`, and its assets. */
  readonly workFolder: string;
};

/** Writes `bundle.cache` into the work folder, and returns it; empty where nothing here runs Node for the architecture. */
export function recordCodeCache({ architecture, base, debianPackages, workFolder }: CodeCachePlan): Buffer {
  const nothing = Buffer.alloc(0);
  const root = join(workFolder, `root-${architecture.node}`);
  writeRoot(
    root,
    makeRoot({ architecture, binary: base, packages: debianPackages, license: nothing, notices: nothing }),
  );
  const emulator = `qemu-${architecture.triplet.split('-')[0]}-static`;
  const [program = '', ...args] = [
    ...(architecture.node === process.arch ? [] : [emulator, '-L', root]),
    join(root, BINARY_PATH),
    ...FLAGS,
    // V8's seeds: the cache is the same each time. They are no part of it: in the binary they are random.
    '--random-seed=1',
    join(import.meta.dirname, 'record-code-cache.cjs'),
    workFolder,
  ];
  writeFileSync(join(workFolder, 'termination-log'), '');
  // V8 numbers its functions, those of Node too: which of these run depends on what stdout and stderr are.
  const options = {
    env: { PATH: process.env['PATH'] },
    stdio: 'ignore',
    timeout: 60_000,
    killSignal: 'SIGKILL',
  } as const;
  for (let triesLeft = TRIES_COUNT; triesLeft > 0; triesLeft--) {
    try {
      execFileSync(program, args, options);
      break;
    } catch (error) {
      const code = error instanceof Error && 'code' in error ? error.code : null;
      if (code === 'ETIMEDOUT' && triesLeft > 1) continue;
      if (code !== 'ENOENT') throw error;
      console.log(`NOT THE BYTES OF A RELEASE: there is no ${program} (qemu-user-static); a start takes longer`);
      writeFileSync(join(workFolder, 'bundle.cache'), '');
      break;
    }
  }
  rmSync(root, { recursive: true });
  return readFileSync(join(workFolder, 'bundle.cache'));
}
