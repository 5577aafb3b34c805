// From dist/ to a registry: both architectures under one index, signatures, bill of materials and provenance as attestations, and then the
// same again as a user: what is there is read back and verified. Programs: skopeo, and cosign 3 with a key pair; no service of
// Sigstore is asked, so nothing of the release depends on one, and nothing of it stands in a public log.

import { type SpawnSyncReturns, spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { ARCHITECTURES } from './binary.ts';
import { sha256 } from './layout.ts';
import { packNpm, pushChart } from './release-extras.ts';

/** What is published, and where. */
export type Publication = {
  /** What `npm run build` made. */
  readonly dist: string;
  /** Says where it comes from: SLSA provenance, the predicate of an attestation. */
  readonly provenance: object;
  readonly version: string;
  /** HOST/NAME, without a tag: the tag is the version. */
  readonly registry: string;
  /** cosign's private key: a file, `env://NAME`, or a key management service; its password is in COSIGN_PASSWORD. */
  readonly key: string;
  /** The registry speaks HTTP. */
  readonly isPlainHttp: boolean;
  /** Gets the files to publish beside the image; emptied first. */
  readonly folder: string;
  /** The chart's folder. */
  readonly chart: string;
  /** Where those files will be, for krew's manifest; null: none is written. */
  readonly filesUrl: string | null;
};

/** What a release needs beside Node and npm, and where it comes from. */
const PROGRAMS: Readonly<Record<string, string>> = {
  skopeo: 'run "apt-get install skopeo" on Debian',
  helm: 'run ".ci/install-go-program helm" and put ~/.cache/lastscrape/bin on the PATH',
  cosign: 'run ".ci/install-go-program cosign" and put ~/.cache/lastscrape/bin on the PATH',
};

/** Debian's skopeo 1.9 copies both architectures in 2 s on loopback; a registry far away may be slow. */
const COMMAND_MS = 900_000;

/** What must be mended before anything is built or pushed; empty when nothing. */
export function listMissingPrograms(path: string): readonly string[] {
  return Object.entries(PROGRAMS)
    .filter(([name]) => !path.split(delimiter).some((folder) => existsSync(join(folder, name))))
    .map(([name, how]) => `there is no ${name}; ${how}`);
}

/**
 * Publishes it. May be repeated: what is there already is signed once more.
 *
 * @returns the image and the chart by their digests
 * @throws when dist/ is not whole or of another version, when the registry has another image of this version, or when what it has
 * afterwards cannot be verified.
 */
export function publish(publication: Publication): { readonly image: string; readonly chart: string } {
  const { dist, version, registry, isPlainHttp, folder, filesUrl } = publication;
  checkSums(dist);
  const { digest, platforms } = readLayout(dist, version);
  const tagged = `docker://${registry}:${version}`;
  const there = readManifest(tagged, isPlainHttp);
  if (there !== null && there !== digest) {
    throw new Error(
      `Cannot release ${registry}:${version}: the registry has another image of this version, ${there}; a version is released once: set the next one`,
    );
  }
  const tls = isPlainHttp ? ['--dest-tls-verify=false'] : [];
  // Its policy is about images from elsewhere: this one was just checked against its sums.
  const copy = ['--insecure-policy', 'copy', '--quiet', '--all', '--preserve-digests', ...tls];
  runProgram('skopeo', [...copy, `oci:${join(dist, 'image')}:${version}`, tagged]);

  const work = mkdtempSync(join(tmpdir(), 'lastscrape-release-'));
  try {
    const image = `${registry}@${digest}`;
    rmSync(folder, { recursive: true, force: true });
    mkdirSync(folder, { recursive: true });
    for (const { node } of ARCHITECTURES) {
      cpSync(join(dist, `lastscrape-linux-${node}`), join(folder, `lastscrape-linux-${node}`));
    }
    for (const name of ['sbom.cdx.json', 'THIRD-PARTY-NOTICES', 'SHA256SUMS'])
      cpSync(join(dist, name), join(folder, name));
    writeJson(folder, ATTESTED.slsaprovenance1, publication.provenance);
    packNpm(runProgram, dist, folder, version, filesUrl);
    const chart = pushChart(runProgram, publication.chart, work, registry, isPlainHttp);
    sign(publication, image, chart, work);
    verify(publication, [image, chart, ...platforms.map((platform) => `${registry}@${platform}`)]);
    const pushed = readManifest(tagged, isPlainHttp);
    if (pushed !== digest) throw new Error(`Cannot verify ${tagged}: the registry has ${pushed}; must be ${digest}`);
    return { image, chart };
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

/** What is attested of the index: cosign's name of the type, and the file of the predicate. */
const ATTESTED = { cyclonedx: 'sbom.cdx.json', slsaprovenance1: 'provenance.json' } as const;

/** Signs the index with both images and the chart, attests what is in ATTESTED, signs the sums. */
function sign({ key, isPlainHttp, folder }: Publication, image: string, chart: string, work: string): void {
  // Without these two cosign 3.1 asks Sigstore's services, also where a key signs.
  const configuration = { mediaType: 'application/vnd.dev.sigstore.signingconfig.v0.2+json' };
  const signingConfig = writeJson(work, 'signing-config.json', {
    ...configuration,
    rekorTlogConfig: {},
    tsaConfig: {},
  });
  const root = { mediaType: 'application/vnd.dev.sigstore.trustedroot+json;version=0.1' };
  const trustedRoot = writeJson(work, 'trusted-root.json', root);
  const how = ['--yes', '--key', key, '--signing-config', signingConfig, '--trusted-root', trustedRoot];
  const http = isPlainHttp ? ['--allow-http-registry'] : [];
  writeFileSync(join(folder, 'cosign.pub'), runProgram('cosign', ['public-key', '--key', key]));
  runProgram('cosign', ['sign', ...how, ...http, '--recursive', image]);
  runProgram('cosign', ['sign', ...how, ...http, chart]);
  for (const [type, file] of Object.entries(ATTESTED)) {
    const predicate = ['--type', type, '--predicate', join(folder, file)];
    runProgram('cosign', ['attest', ...how, ...http, ...predicate, image]);
  }
  const bundle = ['--bundle', join(folder, 'SHA256SUMS.sigstore.json')];
  runProgram('cosign', ['sign-blob', ...how, ...bundle, join(folder, 'SHA256SUMS')]);
}

/** As a user who has the public key. The first of the images is the index. */
function verify({ isPlainHttp, folder }: Publication, images: readonly string[]): void {
  const how = ['--key', join(folder, 'cosign.pub'), '--insecure-ignore-tlog=true'];
  const http = isPlainHttp ? ['--allow-http-registry'] : [];
  for (const image of images) runProgram('cosign', ['verify', ...how, ...http, image]);
  const [index = ''] = images;
  for (const [type, file] of Object.entries(ATTESTED)) {
    const attested = runProgram('cosign', ['verify-attestation', ...how, ...http, '--type', type, index]);
    const predicate: unknown = JSON.parse(readFileSync(join(folder, file), 'utf8'));
    // One line for each attestation: an earlier attempt left one, too.
    const isThere = attested
      .trim()
      .split('\n')
      .map((line) => JSON.parse(Buffer.from(JSON.parse(line).payload, 'base64').toString('utf8')).predicate)
      .some((each) => isDeepStrictEqual(each, predicate));
    if (!isThere) throw new Error(`Cannot verify ${index}: no attestation of it is ${file}`);
  }
  const bundle = ['--bundle', join(folder, 'SHA256SUMS.sigstore.json')];
  runProgram('cosign', ['verify-blob', ...how, ...bundle, join(folder, 'SHA256SUMS')]);
}

/** @throws unless SHA256SUMS holds for each of its files. */
function checkSums(dist: string): void {
  const lines = readFileSync(join(dist, 'SHA256SUMS'), 'utf8').trimEnd().split('\n');
  for (const line of lines) {
    const [sum, path = ''] = [line.slice(0, 64), line.slice(66)];
    if (existsSync(join(dist, path)) && sha256(readFileSync(join(dist, path))) === sum) continue;
    throw new Error(`Cannot release dist/: ${path} is not the one of SHA256SUMS; run "npm run build"`);
  }
}

/** The digests of the index and of what is in it. @throws when it is of another version. */
function readLayout(dist: string, version: string): { readonly digest: string; readonly platforms: readonly string[] } {
  const [named] = JSON.parse(readFileSync(join(dist, 'image/index.json'), 'utf8')).manifests;
  const built = named.annotations['org.opencontainers.image.ref.name'];
  if (built !== version)
    throw new Error(`Cannot release dist/: it is of ${built}; must be of ${version}: run "npm run build"`);
  const index = readFileSync(join(dist, `image/blobs/${named.digest.replace(':', '/')}`), 'utf8');
  const manifests: readonly { readonly digest: string }[] = JSON.parse(index).manifests;
  return { digest: named.digest, platforms: manifests.map(({ digest }) => digest) };
}

/** The digest of what a registry has under a name; `null` where it has nothing. */
function readManifest(image: string, isPlainHttp: boolean): string | null {
  const args = ['inspect', '--raw', ...(isPlainHttp ? ['--tls-verify=false'] : []), image];
  const ended = spawnProgram('skopeo', args);
  if (ended.status === 0) return `sha256:${sha256(ended.stdout)}`;
  // The two codes for it in the OCI distribution specification 1.1, as registries word them.
  if (/manifest unknown|name unknown/i.test(ended.stderr)) return null;
  throw new Error(describe('skopeo', args, ended));
}

function runProgram(name: string, args: readonly string[]): string {
  const ended = spawnProgram(name, args);
  if (ended.status !== 0) throw new Error(describe(name, args, ended));
  // helm push says on stderr what it pushed.
  return name === 'helm' ? ended.stdout + ended.stderr : ended.stdout;
}

function spawnProgram(name: string, args: readonly string[]): SpawnSyncReturns<string> {
  return spawnSync(name, args, {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: COMMAND_MS,
    maxBuffer: 2 ** 26,
  });
}

function describe(
  name: string,
  args: readonly string[],
  { status, signal, error, stderr }: SpawnSyncReturns<string>,
): string {
  return `Cannot run "${name} ${args.join(' ')}": ${error?.message ?? `it ended with ${signal ?? status}`}; it said: ${stderr?.trim()}`;
}

function writeJson(folder: string, name: string, value: object): string {
  const path = join(folder, name);
  writeFileSync(path, JSON.stringify(value));
  return path;
}
