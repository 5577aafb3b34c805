// `node test/tools/install-collector.ts`: builds the tests' OpenTelemetry Collector by its own builder:
// Prometheus receiver and exporter, and one that prints; 3.5 minutes on two cores. Cached by version.
import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { COLLECTOR } from '../pods/front-programs.ts';
import { makeFolder } from '../support/folder.ts';
import { COMPLETE_MARKER, cachePath } from '../support/programs.ts';

const { name, version, folder } = COLLECTOR;

/** Static targets are all that the tests have: without these tags the SDKs of a dozen clouds are built. */
const BUILD_TAGS = 'remove_all_sd,grpcnotrace';

const path = cachePath(folder);
if (existsSync(join(path, COMPLETE_MARKER))) console.log(`${name} is already there: ${path}`);
else build();

function build(): void {
  console.log(`Building ${name}, which takes some minutes`);
  const directory = makeFolder();
  const run = (file: string, args: readonly string[]) =>
    execFileSync(file, args, {
      cwd: directory,
      stdio: ['ignore', 'ignore', 'inherit'],
      env: { ...process.env, CGO_ENABLED: '0', GOFLAGS: '', GOBIN: directory },
    });
  run('go', ['install', `go.opentelemetry.io/collector/cmd/builder@${version}`]);
  // JSON is YAML.
  const plan = {
    dist: { name: 'otelcol', output_path: './built', build_tags: BUILD_TAGS },
    receivers: [
      { gomod: `github.com/open-telemetry/opentelemetry-collector-contrib/receiver/prometheusreceiver ${version}` },
    ],
    exporters: [
      { gomod: `go.opentelemetry.io/collector/exporter/debugexporter ${version}` },
      // The newest that the Go proxy has.
      { gomod: 'github.com/open-telemetry/opentelemetry-collector-contrib/exporter/prometheusexporter v0.155.0' },
    ],
  };
  writeFileSync(join(directory, 'builder.yaml'), JSON.stringify(plan));
  run(join(directory, 'builder'), ['--config', 'builder.yaml', '--ldflags', '-s -w']);
  mkdirSync(join(path, 'bin'), { recursive: true });
  cpSync(join(directory, 'built/otelcol'), join(path, 'bin/otelcol'));
  writeFileSync(join(path, COMPLETE_MARKER), '');
}
