// The bill of materials: Node, the npm packages in the bundle, the Debian packages in the image, with versions, licences and
// digests. CycloneDX 1.6, the same bytes for the same input.

import type { Bundle } from './bundle.ts';
import type { DebianPackage } from './debian.ts';
import { sha256 } from './layout.ts';
import type { NpmPackage } from './licences.ts';

/** What it lists. */
export type SbomPlan = {
  readonly version: string;
  readonly commit: string;
  readonly createdSeconds: number;
  readonly bundle: Bundle;
  readonly binaries: Readonly<Record<string, Buffer>>;
  /** `process.versions` of the Node in the binary. */
  readonly nodeVersions: Readonly<Record<string, string | undefined>>;
  readonly npmPackages: readonly NpmPackage[];
  readonly debianPackages: readonly DebianPackage[];
};

/** Writes it as JSON. */
export function writeSbom(plan: SbomPlan): string {
  const { version, commit, bundle, nodeVersions, npmPackages, debianPackages } = plan;
  const node = nodeVersions['node'] ?? '';
  const program = `pkg:generic/lastscrape@${version}`;
  const nodeComponent = {
    type: 'platform',
    'bom-ref': `pkg:generic/node@${node}`,
    name: 'node',
    version: node,
    description: 'In the binary; its sections that are not loaded and most of the data of ICU are taken out',
    licenses: [{ license: { id: 'MIT' } }],
    cpe: `cpe:2.3:a:nodejs:node.js:${node}:*:*:*:*:*:*:*`,
    purl: `pkg:generic/node@${node}`,
    properties: Object.entries(nodeVersions)
      .filter(([name, built]) => name !== 'node' && built !== '' && built !== undefined)
      .map(([name, built]) => ({ name: `node:built-in:${name}`, value: built })),
  };
  const npmComponents = npmPackages.map(({ name, version: packageVersion, license }) => {
    const purl = `pkg:npm/${name.replace('@', '%40')}@${packageVersion}`;
    return {
      type: 'library',
      'bom-ref': purl,
      name,
      version: packageVersion,
      description: 'In the binary',
      licenses: [{ license: { id: license } }],
      purl,
    };
  });
  const debianComponents = debianPackages.map(
    ({ name, version: packageVersion, architecture, source, license, sha256: digests }) => {
      const purl = `pkg:deb/debian/${encodeURIComponent(name)}@${encodeURIComponent(packageVersion)}?arch=${architecture}&distro=debian-13`;
      return {
        type: 'library',
        'bom-ref': purl,
        name,
        version: packageVersion,
        description: `In the image for ${architecture}`,
        hashes: [{ alg: 'SHA-256', content: digests[architecture] }],
        licenses: [{ expression: license }],
        purl,
        properties: [{ name: 'debian:source', value: source }],
      };
    },
  );
  const components = [nodeComponent, ...npmComponents, ...debianComponents];
  const content = {
    metadata: {
      timestamp: new Date(plan.createdSeconds * 1000).toISOString().replace('.000Z', 'Z'),
      component: {
        type: 'application',
        'bom-ref': program,
        name: 'lastscrape',
        version,
        licenses: [{ license: { id: 'Apache-2.0' } }],
        purl: program,
        properties: [
          { name: 'lastscrape:commit', value: commit },
          { name: 'lastscrape:bundle:sha256', value: sha256(bundle.bytes) },
          ...[...bundle.assets].map(([name, bytes]) => ({ name: `lastscrape:${name}:sha256`, value: sha256(bytes) })),
          ...Object.entries(plan.binaries).map(([name, bytes]) => ({
            name: `lastscrape:binary:linux-${name}:sha256`,
            value: sha256(bytes),
          })),
        ],
      },
    },
    components,
    dependencies: [
      { ref: program, dependsOn: components.map((component) => component['bom-ref']) },
      ...components.map((component) => ({ ref: component['bom-ref'], dependsOn: [] })),
    ],
  };
  const digest = sha256(JSON.stringify(content));
  // A version 8 UUID (RFC 9562) of the content: the same for the same content.
  const serial = `${digest.slice(0, 8)}-${digest.slice(8, 12)}-8${digest.slice(13, 16)}-8${digest.slice(17, 20)}-${digest.slice(20, 32)}`;
  const bom = {
    bomFormat: 'CycloneDX',
    specVersion: '1.6',
    serialNumber: `urn:uuid:${serial}`,
    version: 1,
    ...content,
  };
  return `${JSON.stringify(bom, null, 2)}\n`;
}
