// The judges: what Prometheus and its operator are made of, asked what is right. Small Go programs, a folder
// each: of this folder's module; the operator's and 2.42's have a module of their own, whose Prometheus is older.
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

export const OLD_JUDGE = openModule(
  'the judge of what Prometheus 2.42 reads',
  'judge-2.42',
  join(SOURCE, 'exposition-2.42'),
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
export function gateJudge(file: string, judges = JUDGES): string | false {
  return gatePrograms(file, listMissingJudges(judges), () => [judges.folder]);
}

/** Asks a judge: a line of JSON for each question, one for each answer, in their order. */
export async function askJudge<Answer>(
  name: 'exposition' | 'http' | 'operator' | 'exposition-2.42',
  questions: Iterable<unknown>,
): Promise<Answer[]> {
  const { folder } = name === 'operator' ? OPERATOR_JUDGE : name === 'exposition-2.42' ? OLD_JUDGE : JUDGES;
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
