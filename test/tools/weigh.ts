// `npm run weigh`: what the project weighs, and at most may. A budget that is not met yet is held at what it
// weighs today, and falls with it to the plan's.

import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { FILES, listFloors, listFolderImports, ROOT, readSource } from './house.ts';

/** One figure. `most`: what it may be today; `plan`: what it is to become, where that is less. */
export type Weight = {
  readonly name: string;
  readonly is: number;
  readonly most: number;
  readonly plan?: number;
  readonly where?: string;
};

/** A function: its lines from head to closing brace, and how many `let` its own block has. */
type Block = { readonly place: string; readonly lineCount: number; readonly letCount: number };

/** Heads of blocks that are no functions. */
const NO_FUNCTION =
  /^\s*(if|for|while|switch|else|try|catch|finally|do|case|return|type|export type|\}|const \w+(: [^=]+)? =) /;

/** Finds functions by their indentation: a block ends at the first brace in the column of its head. */
function listFunctions(file: string): readonly Block[] {
  const lines = readSource(file).split('\n');
  return lines.flatMap((head, start) => {
    const isFunction = head.includes('=> {') || /\bfunction\b/.test(head) || /\)(: [^=]*)? \{$/.test(head);
    if (!head.endsWith('{') || !isFunction || (NO_FUNCTION.test(head) && !/=> \{$|function/.test(head))) return [];
    const indent = head.length - head.trimStart().length;
    const length = lines.slice(start + 1).findIndex((line) => line.startsWith(`${' '.repeat(indent)}}`));
    const own = lines.slice(start + 1, start + 1 + length);
    const letCount = own.filter((line) => line.startsWith(`${' '.repeat(indent + 2)}let `)).length;
    return [{ place: `${file}:${start + 1}`, lineCount: length + 2, letCount }];
  });
}

export function weigh(): readonly Weight[] {
  const functions = FILES.filter((file) => file.startsWith('src/')).flatMap(listFunctions);
  const longest = functions.toSorted((one, other) => other.lineCount - one.lineCount)[0];
  const busiest = functions.toSorted((one, other) => other.letCount - one.letCount)[0];
  const largest = countLines(['src'])
    .filter(({ path }) => path.endsWith('.ts'))
    .toSorted((one, other) => other.count - one.count)[0];
  const sources = countLines(['src']);
  const frameworks = countLines([
    'test/cluster/frameworks',
    'test/cluster/frameworks.ts',
    'test/tools/install-frameworks.ts',
  ]);
  const keeper = countLines(['src/keeper', 'src/decide/keep']);
  return [
    { name: 'src/ without the keeper: lines', is: sum(sources) - sum(keeper), most: 21_440, plan: 18_000 },
    { name: 'the keeper and its rules: lines', is: sum(keeper), most: 1_200 },
    { name: 'src/: files', is: sources.length, most: 162, plan: 140 },
    { name: 'src/: entries at its root', is: new Set(sources.map(({ path }) => path.split('/')[1])).size, most: 15 },
    { name: 'src/: floors of folders', is: listFloors(listFolderImports()).length, most: 10 },
    { name: 'src/: lines of the longest file', is: largest?.count ?? 0, most: 350, where: largest?.path ?? '' },
    {
      name: 'src/: lines of the longest function',
      is: longest?.lineCount ?? 0,
      most: 90,
      plan: 80,
      where: longest?.place ?? '',
    },
    { name: 'src/: most `let` in one function', is: busiest?.letCount ?? 0, most: 5, where: busiest?.place ?? '' },
    { name: 'src/: comments beyond 110 columns', is: countLongComments(), most: 0 },
    {
      name: 'test/ without the keeper: lines of TypeScript',
      is: sum(countLines(['test/*.ts'])) - sum(countLines(['test/keeper', 'test/decide/keep'])) - sum(frameworks),
      most: 49_460,
      plan: 45_000,
    },
    { name: 'the frameworks on a cluster: lines of TypeScript', is: sum(frameworks), most: 1_015 },
    { name: 'fixtures/: lines', is: sum(countLines(['fixtures'])), most: 45_000 },
    { name: 'README.md: lines', is: sum(countLines(['README.md'])), most: 200 },
    { name: 'README.md: words', is: countWords(['README.md']), most: 1_600 },
    { name: 'README, docs/, deploy/: words', is: countWords(PAGES), most: 18_500 },
  ];
}

const PAGES = ['README.md', 'docs/*.md', 'deploy/*.md'];

function countWords(patterns: readonly string[]): number {
  return sum(listFiles(patterns).map((path) => ({ count: readSource(path).split(/\s+/).filter(Boolean).length })));
}

function countLongComments(): number {
  const lines = FILES.filter((file) => file.startsWith('src/')).flatMap((file) => readSource(file).split('\n'));
  return lines.filter((line) => /^\s*(\/\/|\/?\*)/.test(line) && line.length > 110).length;
}

function countLines(patterns: readonly string[]): readonly { readonly path: string; readonly count: number }[] {
  return listFiles(patterns).map((path) => ({ path, count: readSource(path).split('\n').length - 1 }));
}

/** The files that git knows, also those that are not committed yet. */
function listFiles(patterns: readonly string[]): readonly string[] {
  const listed = execFileSync(
    'git',
    ['ls-files', '-z', '--cached', '--others', '--exclude-standard', '--', ...patterns],
    {
      cwd: ROOT,
      encoding: 'utf8',
    },
  );
  return listed.split('\0').filter((path) => path !== '' && existsSync(join(ROOT, path)));
}

function sum(files: readonly { readonly count: number }[]): number {
  return files.reduce((total, { count }) => total + count, 0);
}

if (import.meta.main) {
  const weights = weigh();
  for (const { name, is, most, plan = most, where = '' } of weights) {
    const verdict = is > most ? 'OVER' : is > plan ? 'late' : 'ok  ';
    const planned = plan === most ? '' : `; the plan: ${plan}`;
    console.log(`${verdict} ${name}: ${is}, at most ${most}${planned}${where === '' ? '' : ` (${where})`}`);
  }
  if (weights.some(({ is, most }) => is > most)) process.exitCode = 1;
}
