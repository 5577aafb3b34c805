// `npm run mutate`: changes single tokens in a copy, and shows which no test notices. `--count` mutants (200)
// by `--seed` (1), of files below `--only`, of lines changed `--since` a commit; `--quick`: the first round
// of tests. Fails when one survives that `mutants-accepted.json` does not explain. Not in CI: takes minutes.

import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  chmodSync,
  cpSync,
  existsSync,
  globSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { dirname, join, normalize } from 'node:path';
import { parseArgs } from 'node:util';
import { type Mutant, MutantFinder } from './mutants.ts';

/** Survivors that no test can notice, or need not: file, function, change (`< → <=`), reason. */
type Accepted = Readonly<Record<string, Readonly<Record<string, Readonly<Record<string, string>>>>>>;

/** Tests that run together; those of a later round only where the ones before noticed nothing. */
type Round = readonly string[];

const FILES = ['src/{base,config,decide,exposition,front,observe,pod,quit,run,snapshot,tell}/**/*.ts'];
/** Tests that may notice a mutant outside decide/, besides its own. */
const OTHER_TESTS = ['test/{base,config,exposition,front,observe,pod,quit,run,snapshot,tell}/**/*.test.ts'];
/** The whole front, which shows what the rules of serving come to. */
const STORIES = 'test/front/stories.test.ts';
/** It plays all sequences: 40 s. */
const EXHAUSTIVE: Round = ['test/decide/run/exhaustive.test.ts'];
/** A mutant may make a test wait for its own time limit, or for ever. */
const TIME_LIMIT_FACTOR = 4;
const TIME_LIMIT_MIN_MS = 20_000;

const ROOT = join(import.meta.dirname, '../..');
const ACCEPTED: Accepted = JSON.parse(readFileSync(join(import.meta.dirname, 'mutants-accepted.json'), 'utf8'));

const { values: options } = parseArgs({
  options: {
    seed: { type: 'string', default: '1' },
    count: { type: 'string', default: '200' },
    only: { type: 'string', multiple: true, default: ['src/'] },
    since: { type: 'string' },
    quick: { type: 'boolean', default: false },
  },
});

const startedMs = performance.now();
const copies = Array.from({ length: availableParallelism() }, () => mkdtempSync(join(tmpdir(), 'lastscrape-mutate-')));
/** A copy of the unmodified code, which edits during a run do not reach. */
const CODE = mkdtempSync(join(tmpdir(), 'lastscrape-mutate-'));
let noticedCount = 0;
let acceptedCount = 0;
const survivors: Mutant[] = [];
/** Of each round, by its tests. */
const limits = new Map<string, Promise<number>>();
const running = new Set<ChildProcess>();
process.once('SIGINT', () => process.exit(130));
process.once('exit', () => {
  for (const child of running) child.kill('SIGKILL');
  for (const copy of [CODE, ...copies]) rmSync(copy, { recursive: true, force: true, maxRetries: 3 });
});
for (const copy of [CODE, ...copies]) {
  // Some tests run lastscrape as another user.
  chmodSync(copy, 0o755);
  for (const name of ['src', 'bin', 'test', 'fixtures', 'image', 'package.json', 'tsconfig.json', 'README.md']) {
    cpSync(join(ROOT, name), join(copy, name), { recursive: true });
  }
  symlinkSync(join(ROOT, 'node_modules'), join(copy, 'node_modules'));
}
const mutants = chooseMutants(options);
console.log(`${mutants.length} mutants, seed ${options.seed}`);
const queue = [...mutants];
await Promise.all(
  copies.map(async (copy) => {
    for (let mutant = queue.shift(); mutant !== undefined; mutant = queue.shift()) {
      await tryMutant(copy, mutant);
    }
  }),
);
const minutes = ((performance.now() - startedMs) / 60_000).toFixed(1);
console.log(
  `${noticedCount} noticed, ${acceptedCount} accepted, ${survivors.length} survived; ${minutes} minutes\n`,
  survivors
    .map((mutant) => `${mutant.file}:${mutant.line} ${mutant.within}\n  ${describeChange(mutant)}\n  ${mutant.is}`)
    .join('\n'),
);
process.exitCode = survivors.length === 0 ? 0 : 1;

/** The first `count` in the seed's order, which a change elsewhere in the code does not move. */
function chooseMutants({ only, since, count, seed }: typeof options): Mutant[] {
  using finder = new MutantFinder(CODE);
  const files = globSync(FILES, { cwd: CODE }).filter(
    (file) => only.some((path) => file.startsWith(path)) && !file.endsWith('.d.ts') && listRounds(file).length > 0,
  );
  const found = files.sort().flatMap((file) => finder.find(file));
  const possible = new Set(found.map((mutant) => `${mutant.file} ${mutant.within}: ${describeChange(mutant)}`));
  const stale = listAccepted(files).filter((row) => !possible.has(row));
  if (stale.length > 0) throw new Error(`Cannot find accepted mutants; drop or renew their rows:\n${stale.join('\n')}`);
  const changed = new Map(since === undefined ? [] : files.map((file) => [file, listChangedLines(file, since)]));
  const ranked = found
    .filter(({ file, line }) => changed.get(file)?.has(line) ?? true)
    .map((mutant) => ({ mutant, rank: hash(seed, mutant) }))
    .sort((left, right) => (left.rank < right.rank ? -1 : 1));
  const chosen: Mutant[] = [];
  const words = new Set<string>();
  for (const { mutant } of ranked) {
    if (chosen.length === Number(count)) break;
    // A word can become any other one of its file: once is enough.
    const word = mutant.token.startsWith("'") ? `${mutant.file} ${mutant.start}` : null;
    if ((word !== null && words.has(word)) || !finder.isTyped(mutant)) continue;
    if (word !== null) words.add(word);
    chosen.push(mutant);
  }
  return chosen;
}

/** Counted from 1. */
function listChangedLines(file: string, since: string): ReadonlySet<number> {
  const hunks = execFileSync('git', ['diff', '--unified=0', since, '--', file], { cwd: ROOT, encoding: 'utf8' });
  const ranges = [...hunks.matchAll(/^@@ .* \+(\d+)(?:,(\d+))? @@/gm)].map(([, from, count = '1']) =>
    [from, count].map(Number),
  );
  return new Set(ranges.flatMap(([from = 0, count]) => Array.from({ length: count ?? 0 }, (_, index) => from + index)));
}

/** The rows of these files, and of files that are gone. */
function listAccepted(files: readonly string[]): readonly string[] {
  return Object.entries(ACCEPTED)
    .filter(([file]) => files.includes(file) || !existsSync(join(CODE, file)))
    .flatMap(([file, functions]) =>
      Object.entries(functions).flatMap(([name, changes]) =>
        Object.keys(changes).map((change) => `${file} ${name}: ${change}`),
      ),
    );
}

function describeChange({ token, replacement }: Mutant): string {
  return `${token} → ${replacement || '(nothing)'}`;
}

function hash(seed: string, { file, within, was, is }: Mutant): string {
  return createHash('sha256')
    .update(JSON.stringify([seed, file, within, was, is]))
    .digest('hex');
}

/** A file's tests: its own and the rules', then those of what imports it; none: only programs test it. */
function listRounds(file: string): readonly Round[] {
  if (file.startsWith('src/decide/')) {
    return [
      globSync(['test/decide/**/*.test.ts', STORIES], { cwd: CODE }).filter((test) => !EXHAUSTIVE.includes(test)),
      EXHAUSTIVE,
    ];
  }
  const own = file.replace(/^src\/(.*)\.ts$/, 'test/$1.test.ts');
  const others = globSync(OTHER_TESTS, { cwd: CODE }).filter(
    (test) => test !== own && listImports(test).includes(file),
  );
  return [existsSync(join(CODE, own)) ? [own] : [], others].filter((round) => round.length > 0);
}

function listImports(test: string): readonly string[] {
  const direct = readImports(test).flatMap((path) => (path.startsWith('test/') ? readImports(path) : [path]));
  return [...direct, ...direct.flatMap(readImports)];
}

function readImports(file: string): readonly string[] {
  if (!existsSync(join(CODE, file))) return [];
  const found = readFileSync(join(CODE, file), 'utf8').matchAll(/(?:from |import\()'(\.[^']+)'/g);
  return [...found].map(([, path = '']) => normalize(join(dirname(file), path)));
}

/** The time limit of a round, from a run of the code as it is, once. @throws where that fails already. */
function findTimeLimit(round: Round): Promise<number> {
  const measure = async () => {
    const beganMs = performance.now();
    // A busy machine may fail a test once.
    const failed = (await findFailure(CODE, round, 600_000)) && (await findFailure(CODE, round, 600_000));
    if (failed !== null) throw new Error(`Cannot mutate: "${failed}" fails without any change`);
    return Math.max(TIME_LIMIT_MIN_MS, TIME_LIMIT_FACTOR * (performance.now() - beganMs));
  };
  const key = round.join();
  const limit = limits.get(key) ?? measure();
  limits.set(key, limit);
  return limit;
}

async function tryMutant(copy: string, mutant: Mutant): Promise<void> {
  const { file, line, within, text } = mutant;
  const path = join(copy, file);
  const before = readFileSync(path, 'utf8');
  const reason = ACCEPTED[file]?.[within]?.[describeChange(mutant)];
  const rounds = options.quick ? listRounds(file).slice(0, 1) : listRounds(file);
  let noticed: string | null = null;
  writeFileSync(path, text);
  // An accepted mutant is not worth the longest round.
  for (const round of reason === undefined ? rounds : rounds.slice(0, 1)) {
    noticed = await findFailure(copy, round, await findTimeLimit(round));
    if (noticed !== null) break;
  }
  writeFileSync(path, before);
  const place = `${file}:${line}  ${describeChange(mutant)}`;
  if (noticed !== null) {
    noticedCount++;
    const hint = reason === undefined ? '' : '; drop its row of accepted mutants';
    console.log(`noticed   ${place}  by "${noticed}"${hint}`);
  } else if (reason !== undefined) {
    acceptedCount++;
    console.log(`accepted  ${place}: ${reason}`);
  } else {
    survivors.push(mutant);
    console.log(`SURVIVED  ${place}`);
  }
}

/**
 * The first test that fails, or null. Runs in its own namespaces: signals and requests of a mutant reach
 * nothing else, and what a test leaves behind ends with it.
 */
function findFailure(copy: string, tests: Round, limitMs: number): Promise<string | null> {
  const inside = ['ip link set lo up; exec "$@"', 'sh', process.execPath, '--max-old-space-size=1024', '--test'];
  const command = ['--net', '--pid', '--fork', '--kill-child', '--mount-proc', 'sh', '-c', ...inside];
  // Only tests without processes and ports of their own get on in one process.
  const isPure = tests.every((test) => /^test\/(config|decide|exposition|tell\/receivers)\//.test(test));
  const isolation = isPure ? ['--test-isolation=none'] : ['--test-concurrency=1'];
  const flags = [...isolation, '--test-reporter=tap', ...tests];
  const child = spawn('unshare', [...command, ...flags], { cwd: copy, stdio: ['ignore', 'pipe', 'pipe'] });
  running.add(child);
  let failed: string | null = null;
  let output = '';
  const end = (name: string) => {
    failed ??= name;
    child.kill('SIGKILL');
  };
  const timer = setTimeout(() => end(`no end after ${limitMs / 1000} s`), limitMs);
  child.stderr.resume();
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
    output += chunk;
    const name = /^\s*not ok \d+ - (.*)$/m.exec(output)?.[1];
    if (name !== undefined) end(name.trim());
  });
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code) => {
      clearTimeout(timer);
      running.delete(child);
      resolve(failed ?? (code === 0 ? null : `exit code ${code}`));
    });
  });
}
