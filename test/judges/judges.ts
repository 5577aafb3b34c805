// The judges: what Prometheus is made of, asked what is right. Small Go programs of this folder's module, a
// folder each; `install-programs.ts` builds them.

import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { COMPLETE_MARKER, cachePath, gatePrograms } from '../support/programs.ts';

const SOURCE = import.meta.dirname;

const hash = createHash('sha256');
for (const file of globSync('{go.mod,go.sum,*/*.go}', { cwd: SOURCE }).sort()) {
  hash.update(readFileSync(join(SOURCE, file)));
}

/** What `install-programs.ts` builds. */
export const JUDGES = {
  name: 'the judges of what Prometheus reads',
  source: SOURCE,
  folder: `judges-${hash.digest('hex').slice(0, 12)}`,
};

/** Why the tests that ask a judge are skipped; `false`: it is there. @throws with CI=true otherwise */
export function gateJudge(file: string): string | false {
  const isThere = existsSync(join(cachePath(JUDGES.folder), COMPLETE_MARKER));
  const missing = isThere ? [] : [`${JUDGES.name}: run "npm exec -- node test/tools/install-programs.ts" (needs Go)`];
  return gatePrograms(file, missing, () => [JUDGES.folder]);
}

/** Asks a judge: a line of JSON for each question, one for each answer, in their order. */
export async function askJudge<Answer>(name: string, questions: Iterable<unknown>): Promise<Answer[]> {
  const child = spawn(join(cachePath(JUDGES.folder), 'bin', name), { stdio: ['pipe', 'pipe', 'inherit'] });
  const answers: Answer[] = [];
  const read = (async () => {
    for await (const line of createInterface({ input: child.stdout })) answers.push(JSON.parse(line));
  })();
  for (const question of questions) {
    if (!child.stdin.write(`${JSON.stringify(question)}\n`)) await new Promise((go) => child.stdin.once('drain', go));
  }
  child.stdin.end();
  await read;
  return answers;
}
