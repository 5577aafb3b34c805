// Measures LocustTests of the real operators on a cluster (`npm run measure -- --operator`): how many
// Succeeded, and of how many Prometheus holds Locust's own total, for each operator and interval, with the
// image alone, with the policy, and with neither. It asserts nothing. `--runs=N` of each (10), `--at-once=N`
// (6); `--operators=`, `--routes=` take a part of the table, and `--results=FILE` adds it to what is in the
// file already: the table is of all of that, with `--runs=0` without a cluster.
import { appendFileSync, existsSync, readFileSync } from 'node:fs';
import { applyPolicy, openFixture } from '../cluster/fixture.ts';
import { installOperator, listOperators, NOT_RUN } from '../cluster/operator.ts';
import { EXPORTER_IMAGES, type OperatorResult, type Route, runOperatorTest } from '../cluster/operator-test.ts';
import { setFixture } from '../cluster/scenario.ts';
import { describePrograms, findPrograms } from '../support/programs.ts';

const ROUTES: readonly Route[] = ['image', 'policy', 'neither'];
const INTERVALS = [5, 15] as const;

/** Runs them and prints the table. */
export async function measureOperators(): Promise<void> {
  const runCount = Number(readOption('runs') ?? 10);
  const atOnce = Number(readOption('at-once') ?? 6);
  const routes = ROUTES.filter((route) => (readOption('routes') ?? route).split(',').includes(route));
  const builds = listOperators().filter(({ version }) =>
    (readOption('operators') ?? version).split(',').includes(version),
  );
  const file = readOption('results');
  if (runCount === 0 && file !== undefined) return printTable(readResults(file));
  if (builds.length === 0) return void process.stderr.write(NOT_RUN);

  const results: OperatorResult[] = [];
  await using fixture = await openFixture();
  setFixture(fixture);
  if (routes.includes('policy')) await applyPolicy(fixture);
  for (const build of builds) {
    await using operator = await installOperator(fixture, build);
    for (const image of new Set(routes.map((route) => EXPORTER_IMAGES[route]))) {
      await operator.setExporterImage(image);
      const tests = routes
        .filter((route) => EXPORTER_IMAGES[route] === image)
        .flatMap((route) =>
          INTERVALS.flatMap((interval) => Array.from({ length: runCount }, (_, index) => ({ route, interval, index }))),
        );
      await Promise.all(
        Array.from({ length: atOnce }, async () => {
          for (let test = tests.shift(); test !== undefined; test = tests.shift()) {
            const { route, interval, index } = test;
            const result = await runOperatorTest(fixture, operator.version, route, interval, index);
            process.stderr.write(`${JSON.stringify(result)}\n`);
            results.push(result);
            if (file !== undefined) appendFileSync(file, `${JSON.stringify(result)}\n`);
          }
        }),
      );
    }
  }
  const exporter = findPrograms().exporters.at(-1);
  console.log(
    `Programs: ${describePrograms({ ...findPrograms(), exporters: exporter ? [exporter] : [] }, ['locust']).join(', ')}`,
  );
  printTable(file === undefined || !existsSync(file) ? results : readResults(file));
}

function readOption(name: string): string | undefined {
  return process.argv.find((each) => each.startsWith(`--${name}=`))?.slice(name.length + 3);
}

function readResults(file: string): readonly OperatorResult[] {
  return readFileSync(file, 'utf8')
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line));
}

function printTable(results: readonly OperatorResult[]): void {
  console.log(
    '\n| operator | interval | in the pod | LocustTest | final total stored | ended after Locust (s) | missing requests |',
  );
  console.log('|---|---:|---|---|---:|---:|---:|');
  const cells = Map.groupBy(results, ({ operator, intervalSeconds, route }) =>
    [operator, `${intervalSeconds} s`, NAMES[route]].join(' | '),
  );
  for (const [cell, all] of [...cells].sort(([left], [right]) => left.localeCompare(right, 'en', { numeric: true }))) {
    const phases = [...Map.groupBy(all, ({ phase }) => phase)].map(([phase, { length }]) => `${phase} ${length}`);
    const lost = all.filter(({ stored, printed }) => stored !== printed);
    const missing = lost.map(({ stored = 0, printed }) => printed - stored);
    const after = all.flatMap(({ completedAfterSeconds }) => completedAfterSeconds ?? []);
    console.log(
      `| ${cell} | ${phases.join(', ')} | ${all.length - lost.length} of ${all.length} | ${describeSpan(after)} | ${describeSpan(missing)} |`,
    );
  }
  console.log('\nConditions of the LocustTests:');
  const byStatus = Map.groupBy(results, ({ operator, route, phase, conditions }) =>
    [operator, NAMES[route], phase, conditions.join(', ')].join('; '),
  );
  for (const [status, { length }] of byStatus) console.log(`- ${length} × ${status}`);
}

function describeSpan(numbers: readonly number[]): string {
  return numbers.length === 0 ? '' : `${Math.min(...numbers)} to ${Math.max(...numbers)}`;
}

const NAMES: Readonly<Record<Route, string>> = {
  image: 'lastscrape in its place',
  policy: 'the exporter and the policy',
  both: 'lastscrape in its place, and the policy',
  neither: 'the exporter',
};
