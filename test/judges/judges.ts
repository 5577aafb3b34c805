// The judges: what Prometheus and its operator are made of, asked what is right. Small Go programs, a folder
// each: of this folder's module, and the operator's of a module of its own, whose Prometheus is older.
// `install-programs.ts` builds them.

import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { COMPLETE_MARKER, cachePath, gatePrograms } from '../support/programs.ts';

const SOURCE = import.meta.dirname;

/** A Go module that `install-programs.ts` builds. */
export type Judges = { readonly name: string; readonly source: string; readonly folder: string };

export const JUDGES = openModule('the judges of what Prometheus reads', 'judges', SOURCE, '{exposition,http}/*.go');

export const OPERATOR_JUDGE = openModule(
  'the Prometheus operator, asked for its configuration',
  'operator-judge',
  join(SOURCE, 'operator'),
  '*.go',
);

/** Named by what is in it. */
function openModule(name: string, folder: string, source: string, programs: string): Judges {
  const hash = createHash('sha256');
  for (const file of globSync(['go.mod', 'go.sum', programs], { cwd: source }).sort()) {
    hash.update(readFileSync(join(source, file)));
  }
  return { name, source, folder: `${folder}-${hash.digest('hex').slice(0, 12)}` };
}

/** What to install before these can be asked; empty where it is there. */
export function listMissingJudges({ name, folder }: Judges): readonly string[] {
  if (existsSync(join(cachePath(folder), COMPLETE_MARKER))) return [];
  return [`${name}: run "npm exec -- node test/tools/install-programs.ts" (needs Go)`];
}

/** Why the tests that ask a judge are skipped; `false`: it is there. @throws with CI=true otherwise */
export function gateJudge(file: string): string | false {
  return gatePrograms(file, listMissingJudges(JUDGES), () => [JUDGES.folder]);
}

/** Asks a judge: a line of JSON for each question, one for each answer, in their order. */
export async function askJudge<Answer>(
  name: 'exposition' | 'http' | 'operator',
  questions: Iterable<unknown>,
): Promise<Answer[]> {
  const { folder } = name === 'operator' ? OPERATOR_JUDGE : JUDGES;
  const child = spawn(join(cachePath(folder), 'bin', name), { stdio: ['pipe', 'pipe', 'inherit'] });
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
