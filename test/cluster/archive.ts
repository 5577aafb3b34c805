// Packs a folder into a container image with one layer, as an OCI archive; for the images of the tests only.

import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { sha256 } from '../../image/layout.ts';

/** What the image says of its program. */
export type ImageConfig = {
  readonly entrypoint: readonly string[];
  /** Numeric, `UID:GID`. */
  readonly user: string;
  readonly env?: readonly string[];
  readonly workingDir?: string;
};

/** Makes `file`, an archive of the folder `root` under the whole name, such as `localhost/exporter:1`. */
export function packFolder(root: string, name: string, config: ImageConfig, file: string): void {
  const folder = mkdtempSync(join(tmpdir(), 'lastscrape-archive-'));
  try {
    const layout = join(folder, 'layout');
    mkdirSync(join(layout, 'blobs/sha256'), { recursive: true });
    const add = (mediaType: string, bytes: Buffer) => {
      const digest = sha256(bytes);
      writeFileSync(join(layout, 'blobs/sha256', digest), bytes);
      return { mediaType, digest: `sha256:${digest}`, size: bytes.length };
    };
    const addJson = (kind: string, value: object) =>
      add(`application/vnd.oci.image.${kind}.v1+json`, Buffer.from(JSON.stringify(value)));
    const tar = join(folder, 'layer.tar');
    execFileSync('tar', ['--create', '--file', tar, '--owner=0', '--group=0', '--directory', root, '.']);
    const layer = add('application/vnd.oci.image.layer.v1.tar', readFileSync(tar));
    const { entrypoint, user, env = [], workingDir = '/' } = config;
    const described = addJson('config', {
      architecture: process.arch === 'x64' ? 'amd64' : process.arch,
      os: 'linux',
      config: { Entrypoint: entrypoint, User: user, Env: env, WorkingDir: workingDir },
      rootfs: { type: 'layers', diff_ids: [layer.digest] },
    });
    packLayout(layout, addJson('manifest', { schemaVersion: 2, config: described, layers: [layer] }), name, file);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Makes `file`, an archive of the OCI layout in `layout` with its one image under the whole name. */
export function packNamed(layout: string, name: string, file: string): void {
  const { manifests } = JSON.parse(readFileSync(join(layout, 'index.json'), 'utf8'));
  const folder = mkdtempSync(join(tmpdir(), 'lastscrape-archive-'));
  try {
    execFileSync('cp', ['--recursive', `${layout}/.`, folder]);
    packLayout(folder, manifests[0], name, file);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

// containerd takes the name from its own annotation; other tools take the tag from the standard one.
function packLayout(layout: string, image: object, name: string, file: string): void {
  const annotations = {
    'io.containerd.image.name': name,
    'org.opencontainers.image.ref.name': name.slice(name.lastIndexOf(':') + 1),
  };
  writeFileSync(join(layout, 'oci-layout'), JSON.stringify({ imageLayoutVersion: '1.0.0' }));
  writeFileSync(
    join(layout, 'index.json'),
    JSON.stringify({ schemaVersion: 2, manifests: [{ ...image, annotations }] }),
  );
  execFileSync('tar', ['--create', '--file', file, '--directory', layout, '.']);
}
