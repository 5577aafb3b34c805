// `node test/tools/install-cluster.ts`: builds Prometheus with Kubernetes discovery from its Go module
// (Debian's has none), and keeps the definitions that some manifests are for. Cached by version.

import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, renameSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { CLUSTER_PROMETHEUS_PATH, CLUSTER_PROMETHEUS_VERSION } from '../cluster/prometheus-path.ts';
import { makeFolder } from '../support/folder.ts';
import { DEFINITIONS, definitionPath, downloadDefinition } from './definitions.ts';

const PROGRAM = 'github.com/prometheus/prometheus/cmd/prometheus';

if (existsSync(CLUSTER_PROMETHEUS_PATH)) {
  console.log(`Prometheus with Kubernetes discovery is already there: ${CLUSTER_PROMETHEUS_PATH}`);
} else {
  const directory = makeFolder();
  const go = (...args: readonly string[]) =>
    execFileSync('go', args, { cwd: directory, stdio: ['ignore', 'ignore', 'inherit'] });
  console.log(`Building Prometheus ${CLUSTER_PROMETHEUS_VERSION}, which takes some minutes`);
  go('mod', 'init', 'local/prometheus');
  // `go install` refuses it, since its go.mod replaces a module.
  go('get', '-tool', `${PROGRAM}@${CLUSTER_PROMETHEUS_VERSION}`);
  go(
    ...['build', '-tags', 'remove_all_sd,enable_kubernetes_sd', '-trimpath', '-ldflags', '-s -w', '-o'],
    'built',
    PROGRAM,
  );
  mkdirSync(dirname(CLUSTER_PROMETHEUS_PATH), { recursive: true });
  // Beside its place first: another file system cannot be renamed from.
  cpSync(join(directory, 'built'), `${CLUSTER_PROMETHEUS_PATH}.part`);
  renameSync(`${CLUSTER_PROMETHEUS_PATH}.part`, CLUSTER_PROMETHEUS_PATH);
}

for (const definition of DEFINITIONS) {
  const path = definitionPath(definition);
  if (existsSync(path)) continue;
  console.log(`Downloading ${definition.name} ${definition.version}`);
  writeFileSync(`${path}.part`, downloadDefinition(definition));
  renameSync(`${path}.part`, path);
}
