// The npm package: the bundle for any machine with Node, and the plugin of kubectl. dist/npm/ is what `npm pack` takes.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Bundle } from './bundle.ts';

const FOLDER = join(import.meta.dirname, 'npm');

/** What the package is made from. */
export type NpmPlan = {
  readonly version: string;
  readonly bundle: Pick<Bundle, 'bytes' | 'assets'>;
  readonly license: Buffer;
  readonly notices: Buffer;
};

/** The files of the package, by name. */
export function listNpmFiles({ version, bundle, license, notices }: NpmPlan): ReadonlyMap<string, Buffer> {
  const manifest = {
    name: 'lastscrape',
    version,
    description: 'The last scrape, before the pod completes: explains what keeps a pod, and checks a configuration',
    license: 'Apache-2.0',
    keywords: ['kubernetes', 'prometheus', 'job', 'sidecar', 'kubectl-plugin'],
    bin: { lastscrape: 'lastscrape.cjs', 'kubectl-lastscrape': 'kubectl-lastscrape.cjs' },
    engines: { node: '>=22' },
  };
  return new Map([
    ['package.json', Buffer.from(`${JSON.stringify(manifest, null, 2)}\n`)],
    ...['lastscrape.cjs', 'kubectl-lastscrape.cjs', 'README.md'].map(
      (name) => [name, readFileSync(join(FOLDER, name))] as const,
    ),
    ['bundle.cjs', bundle.bytes],
    ...bundle.assets,
    ['LICENSE', license],
    ['THIRD-PARTY-NOTICES', notices],
  ]);
}

/** The manifest of the plugin for krew. `sha256`: of the packed package, which is at `uri`. */
export function writeKrewManifest(version: string, uri: string, sha256: string): string {
  const template = readFileSync(join(FOLDER, 'krew.yaml'), 'utf8');
  return template.replace('VERSION', version).replace('URI', uri).replace('SHA256', sha256);
}
