// The Debian packages that the image takes files from: exactly those of debian.json, by name, version and digest.
// Fetched with apt from the mirror that this machine has, in a state of its own: the machine's packages and lists stay as
// they are, and neither its release nor its architecture matters.

import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ARCHITECTURES, type Architecture } from './binary.ts';
import { type Entry, readTar } from './tar.ts';

type DebianArchitecture = Architecture['debian'];

/** A row of debian.json. */
export type PinnedPackage = {
  readonly name: string;
  readonly version: string;
  /** An SPDX expression of what is taken from it, read by a person from its copyright file. */
  readonly license: string;
  /** What is taken: libraries that the binary is linked with, or files by path. */
  readonly takes: 'libraries' | readonly string[];
  readonly sha256: Readonly<Record<DebianArchitecture, string>>;
};

/** debian.json. */
export type Pins = { readonly suite: string; readonly packages: readonly PinnedPackage[] };

/** A package that was fetched. */
export type DebianPackage = PinnedPackage & {
  readonly architecture: DebianArchitecture;
  /** Of the source it was built from, for the bill of materials. */
  readonly source: string;
  /** Its own description, for scanners. */
  readonly control: string;
  readonly entries: readonly Entry[];
};

const PINS_PATH = join(import.meta.dirname, 'debian.json');
const KEYRING = '/usr/share/keyrings/debian-archive-keyring.gpg';

/** Reads debian.json. */
export function readPins(): Pins {
  return JSON.parse(readFileSync(PINS_PATH, 'utf8'));
}

/** Fetches what is not in `cache` yet and reads all packages. @throws when Debian has another version by now. */
export function fetchPackages(cache: string, pins: Pins): readonly DebianPackage[] {
  mkdirSync(cache, { recursive: true });
  const wanted = ARCHITECTURES.flatMap(({ debian }) =>
    pins.packages.map((pinned) => ({
      pinned,
      debian,
      path: join(cache, `${pinned.name}_${pinned.version}_${debian}.deb`),
    })),
  );
  const missing = wanted.filter(({ pinned, debian, path }) => digestOf(path) !== pinned.sha256[debian]);
  if (missing.length > 0) {
    const apt = openApt(join(cache, 'apt'), pins.suite);
    for (const { pinned, debian, path } of missing) {
      apt.download(pinned.name, pinned.version, debian, path);
      const digest = digestOf(path);
      if (digest !== pinned.sha256[debian]) {
        throw new Error(
          `Cannot use ${pinned.name} ${pinned.version} for ${debian}: its SHA-256 is ${digest}; must be ${pinned.sha256[debian]}`,
        );
      }
    }
  }
  return wanted.map(({ pinned, debian, path }) => readPackage(pinned, debian, path));
}

/** Writes the newest versions of the suite to debian.json. */
export function updatePins(cache: string, pins: Pins): void {
  mkdirSync(cache, { recursive: true });
  const apt = openApt(join(cache, 'apt'), pins.suite);
  const packages = pins.packages.map((pinned) => {
    const versions = new Set(ARCHITECTURES.map(({ debian }) => apt.newestVersion(pinned.name, debian)));
    const [version] = versions;
    if (version === undefined || versions.size !== 1) {
      throw new Error(
        `Cannot pin ${pinned.name}: its newest versions are ${[...versions].join(' and ')}; must be the same`,
      );
    }
    const digests = ARCHITECTURES.map(({ debian }) => {
      const path = join(cache, `${pinned.name}_${version}_${debian}.deb`);
      apt.download(pinned.name, version, debian, path);
      return [debian, digestOf(path)];
    });
    return { ...pinned, version, sha256: Object.fromEntries(digests) };
  });
  writeFileSync(PINS_PATH, JSON.stringify({ ...pins, packages }));
  // Or "npm run check" fails in a CI that goes on with the newest.
  execFileSync(join(import.meta.dirname, '../node_modules/.bin/biome'), ['format', '--write', PINS_PATH]);
}

type Apt = {
  readonly download: (name: string, version: string, architecture: DebianArchitecture, path: string) => void;
  readonly newestVersion: (name: string, architecture: DebianArchitecture) => string;
};

/** An apt with both architectures, the wanted suite and nothing installed; its lists are fetched anew. */
function openApt(folder: string, suite: string): Apt {
  const downloads = join(folder, 'downloads');
  for (const path of ['state/lists/partial', 'cache/archives/partial', 'downloads']) {
    mkdirSync(join(folder, path), { recursive: true });
  }
  writeFileSync(join(folder, 'status'), '');
  const sources = join(folder, 'sources.list');
  writeFileSync(sources, listSources(suite));
  const settings = {
    'Dir::State': join(folder, 'state'),
    'Dir::State::status': join(folder, 'status'),
    'Dir::Cache': join(folder, 'cache'),
    // Debian's container images switch these off; without them each call reads all lists again.
    'Dir::Cache::pkgcache': 'pkgcache.bin',
    'Dir::Cache::srcpkgcache': 'srcpkgcache.bin',
    'Dir::Etc::sourcelist': sources,
    'Dir::Etc::sourceparts': '-',
    'APT::Architecture': 'amd64',
    // Downloads into a folder that only this user may write.
    'APT::Sandbox::User': '',
    'Acquire::Languages': 'none',
  };
  const options = [
    ...Object.entries(settings).map(([name, value]) => `${name}=${value}`),
    ...ARCHITECTURES.map(({ debian }) => `APT::Architectures::=${debian}`),
  ].flatMap((option) => ['-o', option]);
  const run = (file: string, args: readonly string[]) =>
    execFileSync(file, [...options, ...args], {
      cwd: downloads,
      encoding: 'utf8',
      env: { ...process.env, LC_ALL: 'C' },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
  run('apt-get', ['-qq', 'update']);
  const newestVersion = (name: string, architecture: DebianArchitecture) => {
    const policy = run('apt-cache', ['policy', `${name}:${architecture}`]);
    const version = /^ {2}Candidate: (\S+)$/m.exec(policy)?.[1];
    if (version === undefined || version === '(none)')
      throw new Error(`Cannot find ${name}:${architecture} in ${suite}`);
    return version;
  };
  return {
    newestVersion,
    download: (name, version, architecture, path) => {
      try {
        run('apt-get', ['-qq', 'download', `${name}:${architecture}=${version}`]);
      } catch (cause) {
        throw new Error(
          `Cannot fetch ${name} ${version} for ${architecture}: Debian ${suite} has ${newestVersion(name, architecture)}; ` +
            'run "npm run build -- --update-debian", look at the change of image/debian.json, and commit it',
          { cause },
        );
      }
      // apt writes an epoch's colon as %3a.
      const file = readdirSync(downloads).find((candidate) => candidate.startsWith(`${name}_`));
      if (file === undefined) throw new Error(`Bug: apt-get downloaded no ${name}`);
      renameSync(join(downloads, file), path);
    },
  };
}

/** The machine's own Debian mirrors, with another suite. @throws where apt has none. */
function listSources(suite: string): string {
  const codename = /^VERSION_CODENAME=(\S+)$/m.exec(readFileSync('/etc/os-release', 'utf8'))?.[1] ?? '';
  const targets = execFileSync(
    'apt-get',
    ['indextargets', '--format', '$(REPO_URI) $(RELEASE) $(COMPONENT)', 'Created-By: Packages'],
    { encoding: 'utf8' },
  );
  const signedBy = existsSync(KEYRING) ? `[signed-by=${KEYRING}] ` : '';
  const lines = targets.split('\n').flatMap((line) => {
    const [uri = '', release = '', component = ''] = line.split(' ');
    if (component !== 'main' || !/^(-updates|-security)?$/.test(release.replace(codename, ''))) return [];
    return [`deb ${signedBy}${uri} ${release.replace(codename, suite)} main`];
  });
  if (lines.length === 0) {
    throw new Error(
      "Cannot fetch Debian's libraries: apt has no Debian archive here; build on Debian, or in a container of it",
    );
  }
  return `${[...new Set(lines)].sort().join('\n')}\n`;
}

function readPackage(pinned: PinnedPackage, architecture: DebianArchitecture, path: string): DebianPackage {
  const read = (args: readonly string[]) => execFileSync('dpkg-deb', args, { maxBuffer: 256 * 1024 * 1024 });
  const control = read(['--field', path]).toString('utf8');
  const source = /^Source: (\S+)/m.exec(control)?.[1] ?? pinned.name;
  return { ...pinned, architecture, source, control, entries: readTar(read(['--fsys-tarfile', path])) };
}

function digestOf(path: string): string | null {
  return existsSync(path) ? createHash('sha256').update(readFileSync(path)).digest('hex') : null;
}
