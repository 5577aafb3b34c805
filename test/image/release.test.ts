// A release to a real registry on loopback; pulled back and verified. And what a release refuses.

import assert from 'node:assert/strict';
import { type SpawnSyncReturns, spawn, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { cpSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { text as readText } from 'node:stream/consumers';
import { after, before, describe, test } from 'node:test';
import { parse } from 'yaml';
import { buildProvenance } from '../../image/provenance.ts';
import { listFiles } from '../../image/release-compare.ts';
import { publish } from '../../image/release-publish.ts';
import { readVersion } from '../../image/release-version.ts';
import { type Child, startChild } from '../support/child.ts';
import { makeFolder } from '../support/folder.ts';
import { baseEnv } from '../support/network.ts';
import { findOnPath, gateFull, gateMissing } from '../support/programs.ts';
import { DIST, gateDist, ROOT, readDist, readDistJson, readIndex } from './dist.ts';

const FILE = 'test/image/release.test.ts';
const HOW_TO_INSTALL = {
  'docker-registry': 'apt-get install docker-registry',
  skopeo: 'apt-get install skopeo',
  cosign: '.ci/install-go-program cosign", with ~/.cache/lastscrape/bin on the PATH; "',
  helm: '.ci/install-go-program helm", with ~/.cache/lastscrape/bin on the PATH; "',
};
const skip =
  gateFull(`npm run release in ${FILE}`) ||
  gateDist(FILE) ||
  gateMissing(
    FILE,
    Object.entries(HOW_TO_INSTALL)
      .filter(([program]) => findOnPath(program) === undefined)
      .map(([program, how]) => `there is no ${program}; run "${how}"`.replace('; ""', '')),
  );
const skipActionlint = gateMissing(
  FILE,
  findOnPath('actionlint') === undefined ? ['there is no actionlint; run ".ci/install-go-program actionlint"'] : [],
);

const VERSION = readVersion(ROOT);
/** It takes 1 s; the rest is for a busy machine. */
const REGISTRY_START_MS = 30_000;
/** It takes 5 s. */
const RELEASE_MS = 300_000;
/** The password of every account and key here is "test"; this is bcrypt's of it, as htpasswd writes it. */
const ACCOUNTS = 'releaser:$2a$04$x3mX6b/xFit17SKcPxKtyuyNQS1.LrTSL2QqG5R3U/6qiYBxGcAIa\n';

const [{ digest: INDEX } = { digest: '' }] =
  skip === false ? readDistJson<{ manifests: readonly { digest: string }[] }>('image/index.json').manifests : [];

describe('npm run release', { skip, timeout: RELEASE_MS }, () => {
  const stack = new AsyncDisposableStack();
  let directory: string;
  let registry: string;
  let env: Record<string, string>;

  before(async () => {
    directory = makeFolder();
    const server: Child = stack.use(startRegistry(directory));
    const { text } = await server.waitForLine(/listening on 127\.0\.0\.1:\d+/, REGISTRY_START_MS);
    registry = `127.0.0.1:${/127\.0\.0\.1:(\d+)/.exec(text)?.[1]}/team/lastscrape`;
    env = { ...baseEnv(directory), COSIGN_PASSWORD: 'test', REGISTRY_USER: 'releaser', REGISTRY_PASSWORD: 'test' };
    for (const prefix of ['own', 'other']) await run('cosign', ['generate-key-pair', '--output-key-prefix', prefix]);
    await run('skopeo', [
      'login',
      '--tls-verify=false',
      '--authfile',
      'auth.json',
      '--username',
      'releaser',
      '--password',
      'test',
      registry.replace(/\/.*/, ''),
    ]);
  });
  after(async () => {
    await stack.disposeAsync();
  });

  /** Runs a program in the test's folder; it must end well. */
  async function run(name: string, args: readonly string[]): Promise<string> {
    const ended = await start(name, args);
    assert.equal(ended.status, 0, `${name} ${args.join(' ')}: ${ended.stderr}`);
    return ended.stdout;
  }

  function start(name: string, args: readonly string[]): Promise<Ended> {
    return untilEnded([name, ...args], { ...env, REGISTRY_AUTH_FILE: join(directory, 'auth.json') }, directory);
  }

  /** The script of a machine, with what was built here already, and the name that is released to. */
  function release(name: string, change: Record<string, string> = {}): Promise<Ended> {
    const options = [
      '--plain-http',
      '--built',
      '--key',
      join(directory, 'own.key'),
      '--folder',
      join(directory, 'files'),
      '--files-url',
      'https://example.com/files',
    ];
    return untilEnded([join(ROOT, '.ci/release'), name, ...options], { ...env, ...change }, directory);
  }

  function verify(key: string, image: string): Promise<Ended> {
    return start('cosign', ['verify', '--key', key, '--insecure-ignore-tlog=true', image]);
  }

  /** What is attested of the index, by the release's own key. */
  async function readAttestation(type: string) {
    const how = ['--key', 'own.pub', '--insecure-ignore-tlog=true', '--type', type];
    const { payload } = JSON.parse(await run('cosign', ['verify-attestation', ...how, `${registry}@${INDEX}`]));
    const attestation = JSON.parse(Buffer.from(payload, 'base64').toString('utf8'));
    assert.equal(`sha256:${attestation.subject[0].digest.sha256}`, INDEX);
    return attestation;
  }

  test('pushes both architectures under one index, which are pulled back as they were', async () => {
    const { status, stdout, stderr } = await release(registry);
    assert.equal(status, 0, stderr);
    assert.match(stdout, new RegExp(`^Pushed, signed and verified: ${registry}@${INDEX}$`, 'm'));
    assert.match(stdout, /^Login Succeeded!$/m);

    const back = [
      'copy',
      '--quiet',
      '--all',
      '--src-tls-verify=false',
      `docker://${registry}:${VERSION}`,
      'oci:back:back',
    ];
    await run('skopeo', back);
    const blobs = listFiles(join(DIST, 'image/blobs'));
    assert.ok(blobs.length >= 7);
    assert.deepEqual(listFiles(join(directory, 'back/blobs')), blobs);
    for (const blob of blobs)
      assert.ok(readDist(`image/blobs/${blob}`).equals(readFileSync(join(directory, 'back/blobs', blob))), blob);
  });

  test('signs the index and each image, for its own key only', async () => {
    for (const digest of [INDEX, ...readIndex().manifests.map((manifest) => manifest.digest)]) {
      const { status, stderr } = await verify('own.pub', `${registry}@${digest}`);
      assert.equal(status, 0, stderr);
      assert.notEqual((await verify('other.pub', `${registry}@${digest}`)).status, 0);
    }
    const published = readFileSync(join(directory, 'files/cosign.pub'), 'utf8');
    assert.equal(published, readFileSync(join(directory, 'own.pub'), 'utf8'));
  });

  test('pushes the chart next to the image, signed, and helm pulls it as it is in the checkout', async () => {
    const charts = `${registry.replace(/[^/]*$/, '')}charts`;
    const login = ['--plain-http', '--registry-config', join(directory, 'auth.json')];
    await run('helm', ['pull', `oci://${charts}/lastscrape`, '--version', VERSION, '--untar', ...login]);
    const files = listFiles(join(ROOT, 'deploy/chart'));
    assert.deepEqual(listFiles(join(directory, 'lastscrape')), files);
    for (const file of files.filter((name) => name !== 'Chart.yaml')) {
      const pulled = readFileSync(join(directory, 'lastscrape', file), 'utf8');
      assert.equal(pulled, readFileSync(join(ROOT, 'deploy/chart', file), 'utf8'), file);
    }
    const image = `${charts}/lastscrape:${VERSION}`;
    assert.equal((await verify('own.pub', image)).status, 0);
    assert.notEqual((await verify('other.pub', image)).status, 0);
  });

  test('attests the bill of materials', async () => {
    const { predicate } = await readAttestation('cyclonedx');
    assert.deepEqual(predicate, JSON.parse(readDist('sbom.cdx.json').toString('utf8')));
  });

  test('attests where the image comes from: the commit, the pins of Node and Debian, the machine', async () => {
    const { predicateType, predicate } = await readAttestation('slsaprovenance1');
    assert.equal(predicateType, 'https://slsa.dev/provenance/v1');
    assert.deepEqual(predicate, JSON.parse(readFileSync(join(directory, 'files/provenance.json'), 'utf8')));
    const { buildDefinition, runDetails } = predicate;
    const [source, ...pins] = buildDefinition.resolvedDependencies;
    const { metadata } = JSON.parse(readDist('sbom.cdx.json').toString('utf8'));
    const commit = metadata.component.properties.find(({ name }: { name: string }) => name === 'lastscrape:commit');
    assert.deepEqual(source, { name: 'lastscrape', digest: { gitCommit: commit.value } });
    const nodes = pins.filter(({ uri }: { uri: string }) => uri.startsWith('pkg:npm/node-linux-'));
    assert.deepEqual(
      nodes.map(({ digest: { sha512 } }: { digest: { sha512: string } }) => sha512.length),
      [128, 128],
    );
    const { components } = JSON.parse(readDist('sbom.cdx.json').toString('utf8'));
    const debian = components.filter(({ purl }: { purl: string }) => purl.startsWith('pkg:deb/')).length;
    assert.ok(debian > 0 && pins.length === debian + 2, `${pins.length} pins of ${debian} packages`);
    assert.equal(runDetails.builder.id, 'urn:lastscrape:builder:own-machine');
  });

  test('writes the files to publish next to the image, and signs their sums', async () => {
    const files = [
      'SHA256SUMS',
      'SHA256SUMS.sigstore.json',
      'THIRD-PARTY-NOTICES',
      'cosign.pub',
      'provenance.json',
      'sbom.cdx.json',
    ];
    assert.deepEqual(
      listFiles(join(directory, 'files')),
      [...files, `lastscrape-${VERSION}.tgz`, 'krew.yaml', 'lastscrape-linux-arm64', 'lastscrape-linux-x64'].sort(),
    );
    const { spec } = parse(readFileSync(join(directory, 'files/krew.yaml'), 'utf8'));
    const packed = readFileSync(join(directory, `files/lastscrape-${VERSION}.tgz`));
    assert.equal(spec.platforms[0].sha256, createHash('sha256').update(packed).digest('hex'));
    assert.equal(spec.platforms[0].uri, `https://example.com/files/lastscrape-${VERSION}.tgz`);
    const how = ['--insecure-ignore-tlog=true', '--bundle', 'files/SHA256SUMS.sigstore.json'];
    await run('cosign', ['verify-blob', '--key', 'own.pub', ...how, 'files/SHA256SUMS']);
    const unsigned = (await start('cosign', ['verify-blob', '--key', 'own.pub', ...how, 'files/sbom.cdx.json'])).status;
    assert.notEqual(unsigned, 0);
    const sums = spawnSync('sha256sum', ['--check', '--ignore-missing', '--quiet', 'SHA256SUMS'], {
      cwd: join(directory, 'files'),
    });
    assert.equal(sums.status, 0);
  });

  test('may be repeated, but never replaces a version that is there', async () => {
    assert.equal((await release(registry)).status, 0);
    const taken = registry.replace('team', 'taken');
    const other = `docker://${taken}:${VERSION}`;
    const one = ['copy', '--quiet', '--override-arch', 'amd64', '--src-tls-verify=false', '--dest-tls-verify=false'];
    await run('skopeo', [...one, `docker://${registry}:${VERSION}`, other]);
    const before = await run('skopeo', ['inspect', '--raw', '--tls-verify=false', other]);
    const { status, stderr } = await release(taken);
    assert.equal(status, 1);
    assert.match(
      stderr,
      /^Cannot release .*: the registry has another image of this version, sha256:[0-9a-f]{64}; a version is released once: set the next one$/m,
    );
    assert.equal(await run('skopeo', ['inspect', '--raw', '--tls-verify=false', other]), before);
  });

  test('prints the message of skopeo where the registry refuses access', async () => {
    const wrong = await release(registry, { REGISTRY_PASSWORD: 'wrong' });
    assert.notEqual(wrong.status, 0);
    assert.match(wrong.stderr, /invalid username\/password/);
    const { status, stderr } = await release(registry, { REGISTRY_USER: '' });
    assert.equal(status, 1);
    assert.match(stderr, /^Cannot run "skopeo inspect .*": it ended with 1; it said: .*authentication required/m);
  });

  test('refuses a dist/ that is not whole, or of another version', () => {
    const dist = join(directory, 'dist');
    mkdirSync(dist);
    for (const name of [
      'lastscrape-linux-x64',
      'lastscrape-linux-arm64',
      'image',
      'npm',
      'SHA256SUMS',
      'THIRD-PARTY-NOTICES',
    ]) {
      symlinkSync(join(DIST, name), join(dist, name));
    }
    const plan = {
      dist,
      provenance: {},
      registry: registry.replace('team', 'broken'),
      key: 'none',
      isPlainHttp: true,
      folder: directory,
      chart: join(ROOT, 'deploy/chart'),
      filesUrl: null,
    };
    writeFileSync(join(dist, 'sbom.cdx.json'), '{}');
    assert.throws(() => publish({ ...plan, version: VERSION }), {
      message: 'Cannot release dist/: sbom.cdx.json is not the one of SHA256SUMS; run "npm run build"',
    });
    cpSync(join(DIST, 'sbom.cdx.json'), join(dist, 'sbom.cdx.json'));
    assert.throws(() => publish({ ...plan, version: '97.98.99' }), {
      message: `Cannot release dist/: it is of ${VERSION}; must be of 97.98.99: run "npm run build"`,
    });
  });
});

type Ended = { readonly status: number | null; readonly stdout: string; readonly stderr: string };

/** Runs a program to its end; what it says is read meanwhile, as is what the registry says. */
async function untilEnded(command: readonly string[], env: Record<string, string>, cwd: string): Promise<Ended> {
  const [file = '', ...args] = command;
  const child = spawn(file, args, { cwd, env, stdio: ['ignore', 'pipe', 'pipe'] });
  const [[status], stdout, stderr] = await Promise.all([
    once(child, 'close'),
    readText(child.stdout),
    readText(child.stderr),
  ]);
  return { status, stdout, stderr };
}

function startRegistry(directory: string): Child {
  writeFileSync(join(directory, 'htpasswd'), ACCOUNTS);
  const settings = {
    version: 0.1,
    log: { level: 'info', accesslog: { disabled: true } },
    storage: { filesystem: { rootdirectory: join(directory, 'registry') } },
    auth: { htpasswd: { realm: 'test', path: join(directory, 'htpasswd') } },
    http: { addr: '127.0.0.1:0' },
  };
  writeFileSync(join(directory, 'registry.yml'), JSON.stringify(settings));
  const command = ['docker-registry', 'serve', 'registry.yml'];
  return startChild({ name: 'the registry', command, env: baseEnv(directory), cwd: directory });
}

/** Runs the program in a copy of what it is made of, with no program on the PATH but git. */
function runIn(checkout: string, args: readonly string[]): SpawnSyncReturns<string> {
  return spawnSync(process.execPath, [join(checkout, 'image/release.ts'), ...args], {
    encoding: 'utf8',
    env: { PATH: join(checkout, '.git/programs') },
  });
}

test('release refuses a checkout that cannot be found again, and lists everything missing at once', () => {
  const checkout = makeFolder();
  for (const path of ['package.json', 'image', 'src/base/version.ts']) {
    cpSync(join(ROOT, path), join(checkout, path), {
      recursive: true,
      filter: (from) => !from.includes('node_modules'),
    });
  }
  const git = (...args: readonly string[]) => {
    const identity = ['-c', 'user.name=test', '-c', 'user.email=test@localhost', '-c', 'commit.gpgsign=false'];
    const { status, stderr } = spawnSync('git', [...identity, ...args], { cwd: checkout, encoding: 'utf8' });
    assert.equal(status, 0, stderr);
  };
  git('init', '--quiet');
  mkdirSync(join(checkout, '.git/programs'));
  symlinkSync(findOnPath('git') ?? '', join(checkout, '.git/programs/git'));
  const missing = [
    `Cannot release ${VERSION}: there is no --key; make one with "cosign generate-key-pair"`,
    `Cannot release ${VERSION}: there is no skopeo; run "apt-get install skopeo" on Debian`,
    `Cannot release ${VERSION}: there is no helm; run ".ci/install-go-program helm" and put ~/.cache/lastscrape/bin on the PATH`,
    `Cannot release ${VERSION}: there is no cosign; run ".ci/install-go-program cosign" and put ~/.cache/lastscrape/bin on the PATH`,
  ];
  const say = () => runIn(checkout, ['--registry', 'localhost/lastscrape']).stderr.trim().split('\n');
  assert.deepEqual(say(), [
    ...missing,
    `Cannot release ${VERSION}: the checkout has changes; commit them`,
    `Cannot release ${VERSION}: the commit has no tag v${VERSION}; "git tag -s v${VERSION}"`,
  ]);
  git('add', '--all');
  git('commit', '--quiet', '--message=test');
  git('tag', `v${VERSION}0`);
  assert.deepEqual(say(), [
    ...missing,
    `Cannot release ${VERSION}: the commit has no tag v${VERSION}; "git tag -s v${VERSION}"`,
  ]);
  git('tag', `v${VERSION}`);
  assert.deepEqual(say(), missing);

  const { stderr } = runIn(checkout, ['--registry', 'localhost/lastscrape:1', '--key', 'k']);
  assert.match(
    stderr,
    /^Cannot release .*: --registry is "localhost\/lastscrape:1"; must be HOST\/NAME, without a tag$/m,
  );
});

test('buildProvenance() names the workflow, its run and the repository on a machine of GitHub', {
  skip: gateDist(FILE),
}, () => {
  const env = {
    GITHUB_SERVER_URL: 'https://github.com',
    GITHUB_REPOSITORY: 'team/lastscrape',
    GITHUB_WORKFLOW_REF: 'team/lastscrape/.github/workflows/release.yml@refs/tags/v1.2.3',
    GITHUB_RUN_ID: '7',
    GITHUB_RUN_ATTEMPT: '2',
  };
  // biome-ignore lint/suspicious/noExplicitAny: JSON for others
  const { buildDefinition, runDetails }: any = buildProvenance({ root: ROOT, dist: DIST, version: '1.2.3', env });
  assert.equal(buildDefinition.resolvedDependencies[0].uri, 'git+https://github.com/team/lastscrape@refs/tags/v1.2.3');
  assert.equal(runDetails.builder.id, `https://github.com/${env.GITHUB_WORKFLOW_REF}`);
  assert.equal(runDetails.metadata.invocationId, 'https://github.com/team/lastscrape/actions/runs/7/attempts/2');
});

test('release refuses a command line that it does not understand, and does nothing', () => {
  for (const args of [
    [],
    ['--registry', 'a/b', '--set-version', '1.2.3'],
    ['--set-version', '1.2.3', '--key', 'k'],
    ['--push'],
  ]) {
    const { status, stdout, stderr } = spawnSync(process.execPath, [join(ROOT, 'image/release.ts'), ...args], {
      encoding: 'utf8',
    });
    assert.deepEqual([status, stdout], [1, ''], args.join(' '));
    assert.match(stderr, /^Cannot read the command line.*; must be "npm run release/, args.join(' '));
  }
  assert.equal(readVersion(ROOT), VERSION);
});

test('actionlint reads the workflows, and they run nothing but scripts of the repository', {
  skip: skipActionlint,
}, () => {
  const { status, stdout } = spawnSync('actionlint', ['-no-color'], { cwd: ROOT, encoding: 'utf8' });
  assert.equal(status, 0, stdout);
  const commands = ['ci', 'release'].map((name) => {
    const workflow = readFileSync(join(ROOT, `.github/workflows/${name}.yml`), 'utf8');
    return [...workflow.matchAll(/^ *- run: (\S+)/gm)].map(([, command]) => command);
  });
  assert.deepEqual(commands, [
    ['git', '.ci/run'],
    ['git', '.ci/release', 'gh', '.ci/chart-repository'],
  ]);
});

test('issue templates are forms as GitHub wants them', () => {
  const folder = join(ROOT, '.github/ISSUE_TEMPLATE');
  const forms = listFiles(folder).filter((file) => file !== 'config.yml');
  assert.deepEqual(forms, ['bug.yml', 'program.yml']);
  for (const file of forms) {
    const { name, description, body } = parse(readFileSync(join(folder, file), 'utf8'));
    assert.ok(name.length > 3 && description.length > 3, file);
    // https://docs.github.com/communities/using-templates-to-encourage-useful-issues-and-pull-requests/syntax-for-githubs-form-schema
    for (const { type, id, attributes } of body) {
      assert.ok(
        ['input', 'textarea'].includes(type) && /^[\w-]+$/.test(id) && attributes.label !== '',
        `${file}: ${id}`,
      );
    }
    const ids = body.map(({ id }: { id: string }) => id);
    assert.equal(new Set(ids).size, ids.length, file);
  }
});
