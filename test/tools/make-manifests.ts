// `npm exec -- node test/tools/make-manifests.ts`: rewrites the manifests of deploy/ that deploy/chart renders. Wants helm.

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { RENDERED, ROOT, renderManifest } from '../deploy/chart.ts';

for (const file of Object.keys(RENDERED)) writeFileSync(join(ROOT, file), renderManifest(file));
