// The program and its packages as one CommonJS file. The sources keep the public imports; here undici is cut down to the client
// that is used. V8 reads the whole text at the start and holds it: every byte costs, whoever needs it.
// "Gains" in image/: what the binary saves over one without the trick (x64, Node 24.21.0, an exposition of 50 KB, measured as
// `npm run compare` does). A trick that gains less than 1 % is not worth its lines.

import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { basename, join, relative } from 'node:path';

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
  /**
   * What the bundle reads when it needs it, by name (image/asset.cjs): llhttp and yaml. In the bundle V8 would hold their text twice, in
   * its heap and as a part of the file. Gains 3 % of the anonymous memory, 0.6 % of the resident. Were one missing, no request
   * could be sent, or no tombstone be read.
   */
  readonly assets: ReadonlyMap<string, Buffer>;
  /** Every source file in it, relative to the checkout, sorted. */
  readonly inputs: readonly string[];
  /** The folders of the npm packages in it, relative to the checkout, sorted. */
  readonly packageFolders: readonly string[];
};

// As far as it is used: esbuild is a package of image/ alone, which may not be installed when the types are checked.
type Resolution = { readonly path: string; readonly namespace?: string; readonly external?: boolean };
type Source = { readonly contents: string; readonly loader: 'js' | 'ts'; readonly resolveDir?: string };
type PluginBuild = {
  readonly onResolve: (
    options: { readonly filter: RegExp },
    resolve: (question: {
      readonly path: string;
      readonly importer: string;
      readonly resolveDir: string;
      readonly kind: string;
    }) => Resolution | undefined,
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
 * What undici 8.12.4 gets instead of what it asks for. An absent module throws a `Bug:` error as soon as anything of it is called:
 * the exchange fails, and the report says why. The tests of the bundle list who asks for them.
 */
const STAND_INS = [
  // HTTP/2: asked for when a server chooses it, which allowH2: false rules out. Gains 18 % of the anonymous memory, 10 % of the
  // resident, a third of the time of a start (it loads node:http2, which needs node:http and node:tls).
  { filter: /(^|\/)client-h2\.js$/, path: 'image/absent.cjs' },
  // Bodies of requests: no request has one. Gains 3 % of the anonymous memory, 3 % of the CPU time of a start.
  { filter: /(^|\/)web\/(fetch\/body\.js|fetch\/formdata|webidl)$/, path: 'image/absent.cjs' },
  // Gains 2 % of the anonymous and of the resident memory, 8 % of the CPU time of a start. What is missing is undefined there.
  { filter: /^node:http$/, path: 'image/slim-http.cjs' },
  // Gains 2 % of the anonymous memory, 1 % of the resident, 3 % of the CPU time of a start. What is missing is undefined there.
  { filter: /^node:assert$/, path: 'image/slim-assert.cjs' },
  // Gains, with llhttpConstants, 1 % of the anonymous memory, 2 % of the CPU time of a start. What is missing is undefined there:
  // limits of WebSockets.
  { filter: /^(\.|\.\.\/core)\/constants$/, path: 'image/slim-headers.cjs' },
] as const;

/** Bundles bin/lastscrape.ts. @throws when esbuild has anything to say. */
export async function bundleProgram({ root, commit }: BundlePlan): Promise<Bundle> {
  const yaml = await bundle(root, {
    stdin: { contents: "export { parse } from 'yaml';", resolveDir: root },
    // Chooses the build of yaml that asks nothing of the process: the one for Node differs in variables of the environment that
    // make it print what it reads, and in how it warns, which `logLevel: 'error'` rules out.
    platform: 'browser',
  });
  const assets = new Map<string, Buffer>();
  const addAsset: AddAsset = (name, bytes) => assets.set(name, bytes);
  const plugins = [
    standIns(root),
    llhttpAsAsset(root, addAsset),
    llhttpConstants(),
    // Only `tombstone:` needs it: gains 3 % more of the anonymous memory, 4 % of the CPU time of a start.
    packageAsAsset(root, addAsset, 'yaml', yaml.bytes),
  ];
  const define = {
    LASTSCRAPE_COMMIT: JSON.stringify(commit),
    // undici's own name for "built by esbuild into Node": leaves its second parser out, which only an option or a variable of the
    // environment chooses. Gains 3 % of the anonymous memory. Should another undici ask for that name elsewhere, the tests of the
    // binary would see what is missing.
    esbuildDetection: 'true',
    // The environment of the pod decides nothing but what starts with LASTSCRAPE_.
    'process.env.JEST_WORKER_ID': 'undefined',
    'process.env.UNDICI_NO_WASM_SIMD': 'undefined',
  };
  const found = findLazySources(root);
  const alwaysThere = await bundle(root, { ...ENTRY, plugins: [found.plugin, ...plugins], define });
  const lazy = await bundleLazySources(root, found.sources, alwaysThere.inputs, define);
  const program = await bundle(root, {
    stdin: { contents: SHARING_ENTRY, resolveDir: root },
    plugins: [sourcesAsAsset(root, addAsset, lazy), ...plugins],
    define,
  });
  const inputs = [...new Set([...program.inputs, ...lazy.inputs, ...yaml.inputs])].filter(isFile).sort();
  const folders = inputs.flatMap((path) => /^node_modules\/(?:@[^/]+\/)?[^/]+/.exec(path)?.[0] ?? []);
  // In an order that does not depend on which file esbuild reads first.
  const sorted = new Map([...assets].sort(([left], [right]) => (left < right ? -1 : 1)));
  return { bytes: program.bytes, assets: sorted, inputs, packageFolders: [...new Set(folders)].sort() };
}

async function bundle(
  root: string,
  options: Readonly<Record<string, unknown>>,
): Promise<Pick<Bundle, 'bytes' | 'inputs'>> {
  const esbuild = createRequire(import.meta.url)('esbuild') as Esbuild;
  const { outputFiles, metafile, warnings } = await esbuild.build({
    absWorkingDir: root,
    bundle: true,
    write: false,
    metafile: true,
    platform: 'node',
    target: 'node24',
    format: 'cjs',
    // require() instead: the function that code-cache.ts makes of the bundle has no import().
    supported: { 'dynamic-import': false },
    // Gains 2 % of the anonymous memory, with the syntax 3 %. Names stay, so that the stack in the report of a bug can be read.
    minifyWhitespace: true,
    minifySyntax: true,
    // Not the checkout's: what the bundle is made from must not depend on a file that says how to check types.
    tsconfigRaw: { compilerOptions: { alwaysStrict: true } },
    logLevel: 'silent',
    ...options,
  });
  if (warnings.length > 0)
    throw new Error(`Cannot bundle: esbuild warns "${warnings.map(({ text }) => text).join('; ')}"`);
  const [output] = outputFiles;
  if (output === undefined) throw new Error('Bug: esbuild gave no bundle');
  return { bytes: Buffer.from(output.contents), inputs: Object.keys(metafile.inputs) };
}

type Plugin = { readonly name: string; readonly setup: (build: PluginBuild) => void };

function standIns(root: string): Plugin {
  return {
    name: 'stand-ins',
    setup: (build) => {
      build.onResolve({ filter: /^undici$/ }, () => ({ path: 'undici', namespace: 'client' }));
      build.onLoad({ filter: /^undici$/, namespace: 'client' }, () => ({
        // Instead of undici's index, which has every dispatcher and the web API. Gains, with what is absent, 28 % of the anonymous
        // memory, 16 % of the resident, half of the time of a start. Were the file moved in another undici, the build would fail.
        contents: "exports.Client = require('undici/lib/dispatcher/client.js');",
        loader: 'js',
        // The checkout's undici: image/ has another one, which pkg needs.
        resolveDir: root,
      }));
      for (const { filter, path } of STAND_INS) {
        build.onResolve({ filter }, ({ importer }) =>
          relative(root, importer).startsWith('node_modules/undici/') ? { path: join(root, path) } : undefined,
        );
      }
    },
  };
}

/** A file beside the bundle, by the name that it has there. */
type AddAsset = (name: string, bytes: Buffer) => void;

/** llhttp as bytes, for CPUs with SSE 4.1 and without. @throws when undici has it in another form */
function llhttpAsAsset(root: string, addAsset: AddAsset): Plugin {
  return {
    name: 'llhttp-as-asset',
    setup: (build) => {
      build.onLoad({ filter: /\/llhttp(_simd)?-wasm\.js$/ }, ({ path }) => {
        const [, base64] = /^const wasmBase64 = '([\w+/=]+)'$/m.exec(readFileSync(path, 'utf8')) ?? [];
        if (base64 === undefined)
          throw new Error(`Cannot bundle ${path}: it has no wasmBase64; must be looked at again`);
        const name = `bundle.${basename(path, '-wasm.js')}.wasm`;
        addAsset(name, Buffer.from(base64, 'base64'));
        return { contents: `module.exports = ${callAsset(root, name)};`, loader: 'js' };
      });
    },
  };
}

/**
 * Of llhttp's constants those that undici's client asks for, without its tables of methods, statuses and letters. STAND_INS says
 * what that gains. Were one missing, no request could be sent, or no answer read.
 */
function llhttpConstants(): Plugin {
  return {
    name: 'llhttp-constants',
    setup: (build) => {
      build.onLoad({ filter: /\/llhttp\/constants\.js$/ }, ({ path }) => {
        const { ERROR, TYPE } = createRequire(path)(path);
        return { contents: `module.exports = ${JSON.stringify({ ERROR, TYPE })};`, loader: 'js' };
      });
    },
  };
}

/** A package that becomes code when it is asked for: until then V8 knows no function of it. */
function packageAsAsset(root: string, addAsset: AddAsset, packageName: string, text: Buffer): Plugin {
  const filter = new RegExp(`^${packageName}$`);
  const name = `bundle.${packageName}.cjs`;
  return {
    name: 'package-as-asset',
    setup: (build) => {
      build.onResolve({ filter }, () => ({ path: packageName, namespace: 'asset' }));
      build.onLoad({ filter, namespace: 'asset' }, () => {
        addAsset(name, text);
        return {
          contents: `new Function('module', ${callAsset(root, name)}.toString('latin1'))(module);`,
          loader: 'js',
          resolveDir: root,
        };
      });
    },
  };
}

const ENTRY = { entryPoints: ['bin/lastscrape.ts'] };
/** The same, with what the lazy code shares with it. */
const SHARING_ENTRY = "import 'shared-names'; import './bin/lastscrape.ts';";

/** Finds what is asked for by `import()`, and leaves it out. */
function findLazySources(root: string): { readonly plugin: Plugin; readonly sources: Set<string> } {
  const sources = new Set<string>();
  const plugin: Plugin = {
    name: 'find-lazy-sources',
    setup: (build) => {
      build.onResolve({ filter: /^\./ }, ({ path, resolveDir, kind }) => {
        if (kind !== 'dynamic-import') return undefined;
        sources.add(relative(root, join(resolveDir, path)));
        return { path, external: true };
      });
    },
  };
  return { plugin, sources };
}

/** The code of what is asked for by `import()`, without what the program has anyway. */
type LazyBundle = Pick<Bundle, 'bytes' | 'inputs'> & {
  /** What it takes from sources that the program has anyway. */
  readonly shared: ReadonlyMap<string, readonly string[]>;
};

/** @throws where a package is asked for by such code alone: it would be there twice, or want a stand-in */
async function bundleLazySources(
  root: string,
  sources: ReadonlySet<string>,
  alwaysThere: readonly string[],
  define: Readonly<Record<string, string>>,
): Promise<LazyBundle> {
  const rows = [...sources].map((source) => {
    const name = JSON.stringify(source);
    return `exports[${name}] = () => require(${JSON.stringify(`./${source}`)});`;
  });
  const imports = [...sources].map((source) => `export * as ${toName(source)} from ${JSON.stringify(`./${source}`)};`);
  const sharedSources = (resolved: object): Plugin => ({
    name: 'shared-sources',
    setup: (build) => {
      build.onResolve({ filter: /^\./ }, ({ path, resolveDir }) => {
        const source = relative(root, join(resolveDir, path));
        return alwaysThere.includes(source) ? { path: source, ...resolved } : undefined;
      });
      build.onLoad({ filter: /./, namespace: 'shared' }, ({ path }) => ({
        contents: `module.exports = shared[${JSON.stringify(path)}];`,
        loader: 'js',
      }));
    },
  });
  // As ES modules first: what is left of their imports says what the code takes from the program.
  const named = await bundle(root, {
    stdin: { contents: imports.join('\n'), resolveDir: root },
    format: 'esm',
    plugins: [sharedSources({ external: true })],
    define,
  });
  const { bytes, inputs } = await bundle(root, {
    stdin: { contents: rows.sort().join('\n'), resolveDir: root },
    plugins: [sharedSources({ namespace: 'shared' })],
    define,
  });
  const packaged = inputs.find((path) => path.includes('node_modules/'));
  if (packaged !== undefined)
    throw new Error(`Cannot bundle ${packaged}: only what is imported by import() asks for it`);
  return { bytes, inputs, shared: listSharedNames(named.bytes.toString('utf8')) };
}

/** The names that a bundle of ES modules imports from sources. */
function listSharedNames(text: string): ReadonlyMap<string, readonly string[]> {
  const shared = new Map<string, readonly string[]>();
  for (const [, list = '', source = ''] of text.matchAll(/\bimport\{([^}]*)\}from"(src\/[^"]+)"/g)) {
    const names = list.split(',').map((each) => each.split(' as ')[0] ?? '');
    shared.set(source, [...new Set([...(shared.get(source) ?? []), ...names])].sort());
  }
  return new Map([...shared].sort(([left], [right]) => (left < right ? -1 : 1)));
}

function toName(source: string): string {
  return source.replaceAll(/\W/g, '_');
}

/**
 * What few users switch on, the front above all, becomes code when it is asked for. Gains 3 % of the anonymous memory. Were it
 * missing, `--check`, a front or `container:` would end with a bug.
 *
 * It gets what it shares with the program by name: were the sources required, each would be wrapped, with a getter for each of its
 * exports. Gains 1.5 % of the anonymous memory, 4 % of the CPU time of a start.
 */
function sourcesAsAsset(root: string, addAsset: AddAsset, { bytes, shared }: LazyBundle): Plugin {
  const name = 'bundle.lazy.cjs';
  const sources = [...shared].map(([source, names]) => ({ source, names, prefix: toName(source) }));
  const imports = sources.map(({ source, names, prefix }) => {
    const list = names.map((each) => `${each} as ${prefix}_${each}`).join();
    return `import {${list}} from ${JSON.stringify(join(root, source))};`;
  });
  const rows = sources.map(({ source, names, prefix }) => {
    return `${JSON.stringify(source)}: {${names.map((each) => `${each}: ${prefix}_${each}`).join()}}`;
  });
  const contents: Readonly<Record<string, string>> = {
    'shared-names': `${imports.join('\n')}\nrequire('shared').list = () => ({${rows.join()}});`,
    shared: 'exports.list = null;',
    'lazy-sources': `new Function('exports', 'require', 'shared', ${callAsset(root, name)}.toString('latin1'))(exports, require, require('shared').list());`,
  };
  return {
    name: 'sources-as-asset',
    setup: (build) => {
      build.onResolve({ filter: /^(shared-names|shared|lazy-sources)$/ }, ({ path }) => ({ path, namespace: 'lazy' }));
      build.onLoad({ filter: /./, namespace: 'lazy' }, ({ path }) => {
        if (path === 'lazy-sources') addAsset(name, bytes);
        return { contents: contents[path] as string, loader: 'js', resolveDir: root };
      });
      build.onResolve({ filter: /^\./ }, ({ path, resolveDir, kind }) =>
        kind === 'dynamic-import'
          ? { path: relative(root, join(resolveDir, path)), namespace: 'lazy-source' }
          : undefined,
      );
      build.onLoad({ filter: /./, namespace: 'lazy-source' }, ({ path }) => ({
        contents: `module.exports = require('lazy-sources')[${JSON.stringify(path)}]();`,
        loader: 'js',
      }));
    },
  };
}

/** A source, and nothing that is made up on the way. */
function isFile(path: string): boolean {
  return !/^(?:shared|lazy|lazy-source|client|asset):|^<stdin>$/.test(path);
}

function callAsset(root: string, name: string): string {
  return `require(${JSON.stringify(join(root, 'image/asset.cjs'))})(${JSON.stringify(name)})`;
}
