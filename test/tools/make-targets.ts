// `node test/tools/make-targets.ts`: records fixtures/targets, what real Prometheis answer to /api/v1/targets: Debian's,
// and the one of the cluster tests (test/tools/install-cluster.ts).
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { CLUSTER_PROMETHEUS_PATH } from '../cluster/prometheus-path.ts';
import { formatFixture } from '../explain/fixture.ts';
import { askPrometheus } from '../explain/targets.ts';

for (const [name, program] of Object.entries({ '2.42': 'prometheus', '3.10': CLUSTER_PROMETHEUS_PATH })) {
  const path = join(import.meta.dirname, '../../fixtures/targets', `${name}.json`);
  writeFileSync(path, `${formatFixture(await askPrometheus([program]))}\n`);
}
