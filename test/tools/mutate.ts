// `npm run mutate`: breaks the code in stated ways, one at a time, in a copy, and shows which test notices. Not in CI: takes minutes.
// `npm run mutate -- TEXT`: only those whose name contains TEXT. Fails when one survives, or no longer fits the code.

import { spawnSync } from 'node:child_process';
import { cpSync, globSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

type Mutation = {
  readonly name: string;
  readonly file: string;
  readonly find: string;
  readonly replace: string;
  /** Where the tests are that should notice. */
  readonly tests: string;
};

const DECIDE = 'test/decide/*.test.ts';

const MUTATIONS: readonly Mutation[] = [
  {
    name: 'counts own looks as scrapes',
    file: 'src/decide/scrape-count.ts',
    find: 'ownCount: count.ownCount + 1,\n    isNobody',
    replace: 'ownCount: count.ownCount,\n    isNobody',
    tests: DECIDE,
  },
  {
    name: 'takes a time-out for "refused"',
    file: 'src/net/dial.ts',
    find: "code === 'ECONNREFUSED')",
    replace: "code === 'ECONNREFUSED' || code === 'timed out')",
    tests: 'test/net/dial.test.ts',
  },
  {
    name: 'takes no attempt at all for "refused"',
    file: 'src/net/dial.ts',
    find: 'codes.length > 0 && ',
    replace: '',
    tests: 'test/net/dial.test.ts',
  },
  {
    name: 'takes EADDRNOTAVAIL beside a refusal for "refused"',
    file: 'src/net/dial.ts',
    find: "code === 'ECONNREFUSED')",
    replace: "code === 'ECONNREFUSED' || code === 'EADDRNOTAVAIL')",
    tests: 'test/net/dial.test.ts',
  },
  {
    name: 'takes a 200 for a stopped target',
    file: 'src/decide/quit.ts',
    find: '    const answer = newestOf(',
    replace:
      "    if (event.answer.kind === 'answered' && event.answer.status === 200) return { state, move: { kind: 'ended', result: 'stopped' } };\n    const answer = newestOf(",
    tests: '{test/decide/quit.test.ts,test/decide/transcripts.test.ts}',
  },
  {
    name: 'takes a refused quit port for gone while the service answers',
    file: 'src/decide/quit.ts',
    find: "if (event.answer.kind === 'refused') return gone(state);",
    replace: "if (event.answer.kind === 'refused' || event.answer.kind === 'disabled') return gone(state);",
    tests: 'test/decide/quit.test.ts',
  },
  {
    name: 'asks a target again before it had its time',
    file: 'src/decide/quit.ts',
    find: 'isTaken(state.answer) ? state.needsMs : 0',
    replace: '0',
    tests: 'test/decide/quit.test.ts',
  },
  {
    name: 'forgets the ports of the service in the proof',
    file: 'src/act/http-target.ts',
    find: 'findListener([quitPort, ...servicePorts], timeoutMs, signal)',
    replace: 'findListener([quitPort], timeoutMs, signal)',
    tests: 'test/act/http-target.test.ts',
  },
  {
    name: 'forgets the header that a preset wants',
    file: 'src/act/presets.ts',
    find: "    headers: () => ({ 'x-vault-request': 'true' }),\n",
    replace: '',
    tests: 'test/act/presets.test.ts',
  },
  {
    name: 'says nothing of a mesh proxy that is not the last',
    file: 'src/decide/target-warnings.ts',
    find: 'if (isMesh && later.length > 0)',
    replace: 'if (isMesh && later.length > 99)',
    tests: 'test/decide/target-warnings.test.ts',
  },
  {
    name: 'starts the baseline after the settle time',
    file: 'src/decide/step.ts',
    find: '    count: series.count,\n    isExporterRestarted: series.isExporterRestarted,\n    goneSinceMs',
    replace:
      '    count: beginCount(turn.look.atMs),\n    isExporterRestarted: series.isExporterRestarted,\n    goneSinceMs',
    tests: 'test/decide/transcripts.test.ts',
  },
  {
    name: 'forgets the scrape in flight at the baseline',
    file: 'src/decide/scrape-count.ts',
    find: 'const inFlightCount = Math.max(counters.inFlightCount - 1, trail.givenUpCount);',
    replace: 'const inFlightCount = 0 * trail.givenUpCount;',
    tests: DECIDE,
  },
  {
    name: 'forgets own requests that were given up',
    file: 'src/decide/scrape-count.ts',
    find: 'return { ...trail, givenUpCount: trail.givenUpCount + 1 };',
    replace: 'return trail;',
    tests: DECIDE,
  },
  {
    name: 'believes locust_up 0 before Locust was ever alive',
    file: 'src/decide/step.ts',
    find: '  if (turn.facts.wasAliveBefore) {',
    replace: '  if (turn.facts.wasAliveBefore || seen.isDone) {',
    tests: DECIDE,
  },
  {
    name: 'parses an empty value as 0',
    file: 'src/wire/exposition.ts',
    find: 'if (digits === undefined) return null;',
    replace: "if (digits === undefined) return { value: Number(line.split(' ')[1] ?? ''), labels: labelsText };",
    tests: 'test/wire/exposition.test.ts',
  },
  {
    name: 'counts a look that the exporter answered with 500 as an own scrape',
    file: 'src/observe/exporter.ts',
    find: 'result.status}`, false)',
    replace: 'result.status}`, true)',
    tests: 'test/observe/exporter.test.ts',
  },
  {
    name: 'reads a body that came with 500',
    file: 'src/observe/exporter.ts',
    find: 'if (result.status !== 200)',
    replace: 'if (result.status < 200)',
    tests: 'test/observe/exporter.test.ts',
  },
  {
    name: 'forgets the settle time',
    file: 'src/decide/step.ts',
    find: ' && look.atMs - series.sinceMs >= afterMs;',
    replace: ' && afterMs >= 0 && look.atMs >= 0;',
    tests: DECIDE,
  },
  {
    name: 'believes one look',
    file: 'src/decide/step.ts',
    find: 'series.provenCount >= 2',
    replace: 'series.provenCount >= 1',
    tests: DECIDE,
  },
  {
    name: 'ignores a second signal',
    file: 'src/signals.ts',
    find: "      second.abort('interrupted');\n",
    replace: '',
    tests: 'test/binary/phases.test.ts',
  },
  {
    name: 'lets debug fill the pipe',
    file: 'src/log.ts',
    find: 'if (isDebugFull) return;',
    replace: '',
    tests: 'test/log.test.ts',
  },
];

const root = join(import.meta.dirname, '../..');
const copy = mkdtempSync(join(tmpdir(), 'lastscrape-mutate-'));
let survivorCount = 0;
try {
  for (const folder of ['src', 'bin', 'test', 'fixtures', 'package.json', 'README.md', 'docs']) {
    cpSync(join(root, folder), join(copy, folder), { recursive: true });
  }
  symlinkSync(join(root, 'node_modules'), join(copy, 'node_modules'));
  const [wanted = ''] = process.argv.slice(2);
  for (const mutation of MUTATIONS.filter(({ name }) => name.includes(wanted))) {
    const path = join(copy, mutation.file);
    const before = readFileSync(path, 'utf8');
    const isThere = before.split(mutation.find).length === 2;
    writeFileSync(
      path,
      before.replace(mutation.find, () => mutation.replace),
    );
    const noticed = isThere ? failingTests(mutation.tests) : [];
    writeFileSync(path, before);
    if (noticed.length === 0) survivorCount++;
    console.log(`${noticed.length > 0 ? 'noticed ' : 'SURVIVED'}  ${mutation.name}`);
    for (const name of noticed.slice(0, 3)) console.log(`            ${name}`);
    if (noticed.length > 3) console.log(`            and ${noticed.length - 3} more`);
    if (!isThere) console.log(`            Cannot mutate ${mutation.file}: the text to replace must stand in it once`);
  }
} finally {
  rmSync(copy, { recursive: true });
}
console.log(survivorCount === 0 ? 'every mutation was noticed' : `${survivorCount} survived`);
process.exitCode = survivorCount === 0 ? 0 : 1;

/** The names of the tests that fail; the test runner's own time limit ends what hangs. */
function failingTests(tests: string): string[] {
  const files = globSync(tests, { cwd: copy });
  if (files.length === 0) throw new Error(`Cannot find any test at "${tests}"`);
  const run = spawnSync(process.execPath, ['--test', '--test-timeout=120000', '--test-reporter=tap', ...files], {
    cwd: copy,
    encoding: 'utf8',
    maxBuffer: 256 * 1024 * 1024,
  });
  return [...run.stdout.matchAll(/^\s*not ok \d+ - (.*)$/gm)]
    .map(([, name = '']) => name.trim())
    .filter((name) => !name.endsWith('.ts'));
}
