// Puts main.cjs and the assets into a base binary with pkg's SEA mode, offline. A process of its own (`node inject.ts JSON`, an
// InjectPlan), because pkg takes its cache from HOME, its work folder from TMPDIR, and changes the current directory.

import { createRequire } from 'node:module';
import { FLAGS } from './flags.ts';

/** What the process is to do. HOME must hold the seeded cache, TMPDIR main.cjs as `lastscrape.cjs`, and the assets. */
export type InjectPlan = {
  readonly nodeVersion: string;
  /** Their names, as files and as the program asks for them. */
  readonly assets: readonly string[];
  readonly arch: string;
  /** Where the executable is written. */
  readonly path: string;
};

type Sea = (
  entry: string,
  options: { readonly seaConfig: Readonly<Record<string, unknown>>; readonly targets: readonly object[] },
) => Promise<void>;

/** main.cjs, as seen from the folder that pkg makes in TMPDIR: the name is in the binary, so it names no folder. */
const MAIN = '../lastscrape.cjs';

const plan: InjectPlan = JSON.parse(process.argv[2] ?? '');
const { default: sea } = createRequire(import.meta.url)('@yao-pkg/pkg/lib-es5/sea.js') as { readonly default: Sea };
await sea(`${process.env['TMPDIR']}/lastscrape.cjs`, {
  seaConfig: {
    main: MAIN,
    assets: Object.fromEntries(plan.assets.map((name) => [name, `../${name}`])),
    disableExperimentalSEAWarning: true,
    useSnapshot: false,
    useCodeCache: false,
    execArgv: FLAGS,
    // NODE_OPTIONS of the pod cannot touch the program.
    execArgvExtension: 'none',
  },
  targets: [
    {
      platform: 'linux',
      arch: plan.arch,
      // All three parts: with fewer pkg asks the network for the newest.
      nodeRange: `node${plan.nodeVersion}`,
      output: plan.path,
    },
  ],
});
