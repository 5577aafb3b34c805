// `npm exec -- node test/tools/make-manifests.ts`: rewrites what deploy/chart renders in deploy/. Wants helm.

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DERIVED, deriveManifest, RENDERED, ROOT, renderManifest, renderParts } from '../deploy/chart.ts';

for (const file of Object.keys(RENDERED)) writeFileSync(join(ROOT, file), renderManifest(file));
const parts = renderParts();
for (const file of DERIVED) writeFileSync(join(ROOT, file), deriveManifest(file, parts));
