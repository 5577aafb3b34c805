// What is released beside the image: the npm package with krew's manifest, and the chart.

import { appendFileSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { sha256 } from './layout.ts';
import { writeKrewManifest } from './npm.ts';

/** Runs a program. @throws with what it says @returns its stdout and stderr */
export type Run = (name: string, args: readonly string[]) => string;

/**
 * Packs dist/npm into a folder, adds its sum to SHA256SUMS there, and, where the folder will be read from `filesUrl`, writes krew's
 * manifest.
 */
export function packNpm(run: Run, dist: string, folder: string, version: string, filesUrl: string | null): void {
  run('npm', ['pack', '--silent', '--pack-destination', folder, join(dist, 'npm')]);
  const file = `lastscrape-${version}.tgz`;
  const sum = sha256(readFileSync(join(folder, file)));
  appendFileSync(join(folder, 'SHA256SUMS'), `${sum}  ${file}\n`);
  if (filesUrl === null) return;
  writeFileSync(join(folder, 'krew.yaml'), writeKrewManifest(version, `${filesUrl}/${file}`, sum));
}

/** Pushes the chart to `charts` beside the image HOST/NAME. @returns it by its digest */
export function pushChart(run: Run, chart: string, work: string, registry: string, isPlainHttp: boolean): string {
  run('helm', ['package', chart, '--destination', work]);
  const [file = ''] = readdirSync(work).filter((name) => name.endsWith('.tgz'));
  const repository = `${dirname(registry)}/charts`;
  const login = process.env['REGISTRY_AUTH_FILE'];
  const said = run('helm', [
    ...['push', join(work, file), `oci://${repository}`],
    ...(isPlainHttp ? ['--plain-http'] : []),
    ...(login === undefined ? [] : ['--registry-config', login]),
  ]);
  const [, digest] = /^Digest: (sha256:[0-9a-f]{64})$/m.exec(said) ?? [];
  if (digest === undefined) throw new Error(`Cannot sign the chart: helm push named no digest; it said: ${said}`);
  return `${repository}/lastscrape@${digest}`;
}
