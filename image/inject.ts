// Puts the bundle into the base binaries with pkg's SEA mode, offline. A process of its own (`node inject.ts JSON`, an
// InjectPlan), because pkg takes its cache from HOME, its work folder from TMPDIR, and changes the current directory.

import { createRequire } from 'node:module';

/** What the process is to do. HOME must hold the seeded cache, TMPDIR the bundle as `lastscrape.cjs`. */
export type InjectPlan = {
  readonly nodeVersion: string;
  readonly outputs: readonly { readonly arch: string; readonly path: string }[];
};

type Sea = (
  entry: string,
  options: { readonly seaConfig: Readonly<Record<string, unknown>>; readonly targets: readonly object[] },
) => Promise<void>;

/** The bundle, as seen from the folder that pkg makes in TMPDIR: the name is in the binary, so it names no folder. */
const MAIN = '../lastscrape.cjs';

/**
 * The flags of the built-in Node (each measured): the smallest heap that reads 64 MiB of exposition, no optimising
 * compilers, one worker thread of V8, and no inspector by SIGUSR1; a young generation of 1 MB, so that the pieces of a body of 3 MB
 * are collected while it is read (16 MB of anonymous memory instead of 23). undici needs WebAssembly, which rules out --jitless.
 */
const FLAGS = [
  '--optimize-for-size',
  '--no-opt',
  '--no-maglev',
  '--no-sparkplug',
  '--liftoff-only',
  '--v8-pool-size=1',
  '--disable-sigusr1',
  '--max-old-space-size=48',
  '--scavenger-max-new-space-capacity-mb=1',
];

const plan: InjectPlan = JSON.parse(process.argv[2] ?? '');
const { default: sea } = createRequire(import.meta.url)('@yao-pkg/pkg/lib-es5/sea.js') as { readonly default: Sea };
await sea(`${process.env['TMPDIR']}/lastscrape.cjs`, {
  seaConfig: {
    main: MAIN,
    disableExperimentalSEAWarning: true,
    useSnapshot: false,
    useCodeCache: false,
    execArgv: FLAGS,
    // NODE_OPTIONS of the pod cannot touch the program.
    execArgvExtension: 'none',
  },
  targets: plan.outputs.map(({ arch, path }) => ({
    platform: 'linux',
    arch,
    // All three parts: with fewer pkg asks the network for the newest.
    nodeRange: `node${plan.nodeVersion}`,
    output: path,
  })),
});
