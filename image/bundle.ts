// The program and its packages as one CommonJS file. The source keeps undici's public import; here it is cut down to the
// client that is used, without HTTP/2, form data and the experimental parser (738 KB to 163 KB).

import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join, relative } from 'node:path';

/** What the bundle is made from. */
export type BundlePlan = {
  /** The checkout. */
  readonly root: string;
  /** What `--version` shows: a commit, or `unknown`. */
  readonly commit: string;
};

/** The bundle, and what is in it. */
export type Bundle = {
  readonly bytes: Buffer;
  /** Every source file in it, relative to the checkout, sorted. */
  readonly inputs: readonly string[];
  /** The folders of the npm packages in it, relative to the checkout, sorted. */
  readonly packageFolders: readonly string[];
};

// As far as it is used: esbuild is a package of image/ alone, which may not be installed when the types are checked.
type Resolution = { readonly path: string; readonly namespace?: string };
type Source = { readonly contents: string; readonly loader: 'js' | 'ts'; readonly resolveDir?: string };
type PluginBuild = {
  readonly onResolve: (
    options: { readonly filter: RegExp },
    resolve: (question: { readonly path: string; readonly importer: string }) => Resolution | undefined,
  ) => void;
  readonly onLoad: (
    options: { readonly filter: RegExp; readonly namespace?: string },
    load: (question: { readonly path: string }) => Source | undefined,
  ) => void;
};
type Esbuild = {
  readonly build: (options: Readonly<Record<string, unknown>>) => Promise<{
    readonly outputFiles: readonly { readonly contents: Uint8Array }[];
    readonly metafile: { readonly inputs: Readonly<Record<string, unknown>> };
    readonly warnings: readonly { readonly text: string }[];
  }>;
};

/**
 * What these importers get instead of what they ask for. Absent is what the client of undici 8.12.4 asks for only on ways
 * that lastscrape never takes; the slim ones have all that is called, without the memory of the rest.
 */
const STAND_INS = [
  {
    filter: /(^|\/)(client-h2\.js|web\/fetch\/body\.js|web\/fetch\/formdata|web\/webidl)$/,
    importer: 'node_modules/undici/',
    path: 'image/absent.cjs',
  },
  { filter: /^node:http$/, importer: 'node_modules/undici/', path: 'image/slim-http.cjs' },
  { filter: /^node:assert$/, importer: 'node_modules/undici/', path: 'image/slim-assert.cjs' },
  { filter: /^node:fs\/promises$/, importer: 'src/', path: 'image/slim-fs-promises.ts' },
] as const;

/** Bundles bin/lastscrape.ts. @throws when esbuild has anything to say. */
export async function bundleProgram({ root, commit }: BundlePlan): Promise<Bundle> {
  const esbuild = createRequire(import.meta.url)('esbuild') as Esbuild;
  const { outputFiles, metafile, warnings } = await esbuild.build({
    absWorkingDir: root,
    entryPoints: ['bin/lastscrape.ts'],
    bundle: true,
    write: false,
    metafile: true,
    platform: 'node',
    target: 'node24',
    format: 'cjs',
    // A main of pkg's SEA mode is CommonJS, which has no await at the top.
    plugins: [topLevelAwait(root), standIns(root)],
    // Names stay, so that the stack in the report of a bug can be read.
    minifyWhitespace: true,
    minifySyntax: true,
    legalComments: 'none',
    // One byte outside ASCII, and V8 would hold the whole bundle with two bytes a character.
    charset: 'ascii',
    // Not the checkout's: what the bundle is made from must not depend on a file that says how to check types.
    tsconfigRaw: { compilerOptions: { alwaysStrict: true } },
    logLevel: 'silent',
    define: {
      LASTSCRAPE_COMMIT: JSON.stringify(commit),
      // undici's own name for "built by esbuild into Node": leaves the experimental parser out.
      esbuildDetection: 'true',
      // The environment of the pod decides nothing but what starts with LASTSCRAPE_.
      'process.env.JEST_WORKER_ID': 'undefined',
      'process.env.UNDICI_NO_WASM_SIMD': 'undefined',
    },
  });
  if (warnings.length > 0)
    throw new Error(`Cannot bundle: esbuild warns "${warnings.map(({ text }) => text).join('; ')}"`);
  const inputs = Object.keys(metafile.inputs).sort();
  const folders = inputs.flatMap((path) => /^node_modules\/(?:@[^/]+\/)?[^/]+/.exec(path)?.[0] ?? []);
  const [output] = outputFiles;
  if (output === undefined) throw new Error('Bug: esbuild gave no bundle');
  return { bytes: Buffer.from(output.contents), inputs, packageFolders: [...new Set(folders)].sort() };
}

type Plugin = { readonly name: string; readonly setup: (build: PluginBuild) => void };

function standIns(root: string): Plugin {
  return {
    name: 'stand-ins',
    setup: (build) => {
      build.onResolve({ filter: /^undici$/ }, () => ({ path: 'undici', namespace: 'client' }));
      build.onLoad({ filter: /^undici$/, namespace: 'client' }, () => ({
        contents: "exports.Client = require('undici/lib/dispatcher/client.js');",
        loader: 'js',
        // The checkout's undici: image/ has another one, which pkg needs.
        resolveDir: root,
      }));
      for (const { filter, importer: wanted, path } of STAND_INS) {
        build.onResolve({ filter }, ({ importer }) =>
          relative(root, importer).startsWith(wanted) ? { path: join(root, path) } : undefined,
        );
      }
    },
  };
}

/** Puts what follows the imports of the entry into an async function. */
function topLevelAwait(root: string): Plugin {
  const entry = join(root, 'bin/lastscrape.ts');
  return {
    name: 'top-level-await',
    setup: (build) => {
      build.onLoad({ filter: /\/bin\/lastscrape\.ts$/ }, ({ path }) => {
        if (path !== entry) return undefined;
        const lines = readFileSync(path, 'utf8').split('\n');
        const last = lines.findLastIndex((line) => /^import .* from '.*';$/.test(line));
        const [imports, body] = [lines.slice(0, last + 1), lines.slice(last + 1)];
        if (body.some((line) => /^(import|export)\b/.test(line))) {
          throw new Error('Cannot bundle bin/lastscrape.ts: it must import first, one line each, and export nothing');
        }
        return { contents: `${imports.join('\n')}\n(async () => {${body.join('\n')}\n})();\n`, loader: 'ts' };
      });
    },
  };
}
