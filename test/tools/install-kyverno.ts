// `node test/tools/install-kyverno.ts`: builds Kyverno's admission controller from its Go module, 12 minutes on two cores,
// in a copy: `go install` refuses it, since its go.mod replaces a module. Cached by version.

import { execFileSync } from 'node:child_process';
import { chmodSync, cpSync, existsSync, readdirSync, renameSync } from 'node:fs';
import { join } from 'node:path';
import { makeFolder } from '../support/folder.ts';
import { cachePath } from '../support/programs.ts';
import { KYVERNO_DEFINITION } from './definitions.ts';

const { module, version } = KYVERNO_DEFINITION;
/** .ci/run names it. */
const path = cachePath(`kyverno-${version}`);

if (existsSync(path)) console.log(`Kyverno ${version} is already there: ${path}`);
else {
  console.log(`Building Kyverno ${version}, which takes some minutes`);
  const directory = makeFolder();
  const go = (args: readonly string[], cwd: string) =>
    execFileSync('go', args, { cwd, encoding: 'utf8', env: { ...process.env, CGO_ENABLED: '0', GOFLAGS: '' } });
  cpSync(JSON.parse(go(['mod', 'download', '-json', `${module}@v${version}`], directory)).Dir, directory, {
    recursive: true,
  });
  // Files of a module cannot be written, nor what is in its folders removed.
  for (const each of ['.', ...readdirSync(directory, { recursive: true, encoding: 'utf8' })]) {
    chmodSync(join(directory, each), 0o755);
  }
  go(['build', '-trimpath', '-ldflags', '-s -w', '-o', `${path}.part`, './cmd/kyverno'], directory);
  renameSync(`${path}.part`, path);
}
