// `npm run release`: the version in one step, and from a tagged checkout to everything that is published in one more.
//   --set-version V       writes V wherever the version stands, and does nothing else
//   --registry HOST/NAME  builds twice, compares, pushes, signs, attests, reads back and verifies; the tag is the version
//   --key KEY             for --registry: cosign's private key (a file, env://NAME or a service's); its password in COSIGN_PASSWORD
//   --plain-http          for --registry: it speaks HTTP
//   --built               for --registry: takes dist/ as it is, instead of a checkout that is tagged and built twice
//   --files-url URL       for --registry: where these files will be; writes krew's manifest
//   --folder F            for --registry: where the files to publish beside the image are put; default: release/

import { execFileSync, spawnSync } from 'node:child_process';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { buildProvenance } from './provenance.ts';
import { buildAgain, listDifferences, readOrigin } from './release-compare.ts';
import { listMissingPrograms, publish } from './release-publish.ts';
import { readVersion, setVersion } from './release-version.ts';

const ROOT = join(import.meta.dirname, '..');
const DIST = join(ROOT, 'dist');
const USAGE =
  '"npm run release -- --set-version V", or "npm run release -- --registry HOST/NAME --key KEY [--plain-http] [--built] [--files-url URL] [--folder F]"';

try {
  main();
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
}

function main(): void {
  const values = readOptions();
  if (values['set-version'] !== undefined) {
    const changed = setVersion(ROOT, values['set-version']);
    for (const file of changed) console.log(file);
    console.log(
      changed.length === 0
        ? `The version is ${values['set-version']} already`
        : `The version is ${values['set-version']} in ${changed.length} files: commit them, and tag the commit v${values['set-version']}`,
    );
    return;
  }
  const { registry = '', key = '', folder = join(ROOT, 'release') } = values;
  const isBuilt = values.built === true;
  const version = readVersion(ROOT);
  const problems = [
    ...(/^[^/\s]+\/[a-z0-9._/-]+$/.test(registry)
      ? []
      : [`--registry is "${registry}"; must be HOST/NAME, without a tag`]),
    ...(key === '' ? ['there is no --key; make one with "cosign generate-key-pair"'] : []),
    ...listMissingPrograms(process.env['PATH'] ?? ''),
    ...(isBuilt ? [] : listCheckoutProblems(ROOT, version)),
  ];
  if (problems.length > 0)
    throw new Error(problems.map((problem) => `Cannot release ${version}: ${problem}`).join('\n'));
  if (!isBuilt) buildTwice();
  console.log(`== ${registry}:${version}`);
  const { image, chart } = publish({
    dist: DIST,
    version,
    provenance: buildProvenance({ root: ROOT, dist: DIST, version, env: process.env }),
    registry,
    key,
    isPlainHttp: values['plain-http'] === true,
    folder,
    chart: join(ROOT, 'deploy/chart'),
    filesUrl: values['files-url'] ?? null,
  });
  console.log(`Pushed, signed and verified: ${image}`);
  console.log(`Pushed, signed and verified: ${chart}`);
  console.log(`To publish beside it: the files in ${folder}`);
  console.log(`As a user verifies it: cosign verify --key cosign.pub --insecure-ignore-tlog=true ${image}`);
}

function parseOptions() {
  const options = {
    'set-version': { type: 'string' },
    registry: { type: 'string' },
    key: { type: 'string' },
    'plain-http': { type: 'boolean' },
    built: { type: 'boolean' },
    'files-url': { type: 'string' },
    folder: { type: 'string' },
  } as const;
  try {
    return parseArgs({ options }).values;
  } catch (cause) {
    throw new Error(`Cannot read the command line: ${(cause as Error).message}; must be ${USAGE}`, { cause });
  }
}

function readOptions() {
  const values = parseOptions();
  const { 'set-version': version, ...others } = values;
  if (
    (version === undefined) === (others.registry === undefined) ||
    (version !== undefined && Object.keys(others).length > 0)
  ) {
    throw new Error(`Cannot read the command line; must be ${USAGE}`);
  }
  return values;
}

/** What keeps the checkout from being released: the image carries its commit, which others must be able to find. */
function listCheckoutProblems(root: string, version: string): readonly string[] {
  const git = (...args: readonly string[]) => {
    const { status, stdout } = spawnSync('git', args, { cwd: root, encoding: 'utf8' });
    return status === 0 ? stdout.trim() : null;
  };
  const changes = git('status', '--porcelain');
  if (changes === null) return ['this is no checkout of git'];
  const tags = git('tag', '--points-at', 'HEAD')?.split('\n') ?? [];
  return [
    ...(changes === '' ? [] : ['the checkout has changes; commit them']),
    ...(tags.includes(`v${version}`) ? [] : [`the commit has no tag v${version}; "git tag -s v${version}"`]),
  ];
}

function buildTwice(): void {
  execFileSync(process.execPath, [join(import.meta.dirname, 'build.ts')], { cwd: ROOT, stdio: 'inherit' });
  console.log('== The same once more, in another folder');
  const folder = join(ROOT, '.cache/image/again');
  try {
    const differences = listDifferences(DIST, buildAgain(ROOT, folder, readOrigin(DIST)));
    if (differences.length > 0) {
      throw new Error(`Cannot release what was built: a second build differs in ${differences.join(', ')}`);
    }
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
