// Where a release comes from, as the predicate of an attestation: SLSA provenance v1 (https://slsa.dev/spec/v1.0/provenance).
// What it says can be checked: the same commit and pins give the same bytes.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { readOrigin } from './release-compare.ts';

/** What is known of a build besides its result. */
export type ProvenancePlan = {
  readonly root: string;
  readonly dist: string;
  readonly version: string;
  /** Variables of the machine, of which GitHub's are read. */
  readonly env: Readonly<Record<string, string | undefined>>;
};

type Descriptor = { readonly uri?: string; readonly name?: string; readonly digest: Readonly<Record<string, string>> };

/** Builds it from the commit in dist/, the pins of Node and Debian, and the machine: a workflow of GitHub, or one's own. */
export function buildProvenance({ root, dist, version, env }: ProvenancePlan): object {
  const { commit, createdSeconds } = readOrigin(dist);
  const { GITHUB_SERVER_URL: server, GITHUB_REPOSITORY: repository, GITHUB_WORKFLOW_REF: workflow } = env;
  const isHosted = server !== undefined && repository !== undefined && workflow !== undefined;
  const source = isHosted ? { uri: `git+${server}/${repository}@refs/tags/v${version}` } : { name: 'lastscrape' };
  const run = `${server}/${repository}/actions/runs/${env['GITHUB_RUN_ID']}/attempts/${env['GITHUB_RUN_ATTEMPT']}`;
  return {
    buildDefinition: {
      buildType: 'urn:lastscrape:build:1',
      externalParameters: { version },
      internalParameters: { created: new Date(createdSeconds * 1000).toISOString() },
      resolvedDependencies: [{ ...source, digest: { gitCommit: commit } }, ...listNodes(root), ...listDebian(root)],
    },
    runDetails: {
      builder: { id: isHosted ? `${server}/${workflow}` : 'urn:lastscrape:builder:own-machine' },
      ...(isHosted && { metadata: { invocationId: run } }),
    },
  };
}

/** The Node of each architecture, by the lock's digest. */
function listNodes(root: string): readonly Descriptor[] {
  const { packages } = JSON.parse(readFileSync(join(root, 'image/package-lock.json'), 'utf8'));
  return Object.entries<{ version: string; integrity: string }>(packages).flatMap(([path, { version, integrity }]) => {
    const [, name] = /^node_modules\/(node-linux-\w+)$/.exec(path) ?? [];
    if (name === undefined) return [];
    const sha512 = Buffer.from(integrity.replace('sha512-', ''), 'base64').toString('hex');
    return [{ uri: `pkg:npm/${name}@${version}`, digest: { sha512 } }];
  });
}

function listDebian(root: string): readonly Descriptor[] {
  type Pin = { readonly name: string; readonly version: string; readonly sha256: Readonly<Record<string, string>> };
  const pins: readonly Pin[] = JSON.parse(readFileSync(join(root, 'image/debian.json'), 'utf8')).packages;
  return pins.flatMap(({ name, version, sha256 }) =>
    Object.entries(sha256).map(([architecture, digest]) => ({
      uri: `pkg:deb/debian/${encodeURIComponent(name)}@${encodeURIComponent(version)}?arch=${architecture}`,
      digest: { sha256: digest },
    })),
  );
}
