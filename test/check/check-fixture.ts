// A fixture of `--check` (fixtures/check/README.md): an environment, what the host around it shows, and all that is printed.

import assert from 'node:assert/strict';
import { inspect } from '../../src/check/inspect.ts';
import { formatPlan } from '../../src/check/plan.ts';
import type { Surroundings } from '../../src/check/surroundings.ts';
import { type Config, readConfig } from '../../src/config/config.ts';
import type { ConditionObservation } from '../../src/decide/model.ts';
import type { ForceResult } from '../../src/decide/quit/quit-target.ts';
import { KINDS } from '../../src/main.ts';
import type { Condition, ExporterReading } from '../../src/observe/condition-kind.ts';
import type { Target } from '../../src/quit/target-kind.ts';
import { readThresholdReadings } from '../decide/threshold-readings.ts';
import { CONTEXT } from '../observe/condition-context.ts';

/** Between what goes in and what comes out. */
const OUTPUT = '--- output\n';

/** What the host shows: by the name of what it is asked for, the texts in the order given. */
type Shown = ReadonlyMap<string, readonly string[]>;

/** The fixture with its output written again. */
export async function playCheck(fixture: string): Promise<string> {
  const end = fixture.indexOf(OUTPUT);
  const head = end < 0 ? fixture : fixture.slice(0, end);
  const env: Record<string, string> = {};
  const shown = new Map<string, string[]>();
  for (const line of head.split('\n').filter((each) => each !== '' && !each.startsWith('#'))) {
    const [, name, value = ''] = /^([A-Za-z_-]+)=(.*)$/.exec(line) ?? [];
    const [, subject = '', text = ''] = /^shows (.+?): (.*)$/.exec(line) ?? [];
    assert.ok(name !== undefined || subject !== '', `"${line}" is neither NAME=VALUE nor "shows WHAT: TEXT"`);
    if (name === undefined) shown.set(subject, [...(shown.get(subject) ?? []), text]);
    else env[name] = value;
  }
  return `${head}${OUTPUT}${await check(env, shown)}`;
}

async function check(env: Readonly<Record<string, string>>, shown: Shown): Promise<string> {
  const program = { pid: 7, kill: () => assert.fail('no signal'), pod: CONTEXT.pod };
  const result = readConfig(env, KINDS, program);
  if (!('config' in result))
    return `${result.problems.map((problem) => `stderr: ${problem}\n`).join('')}exit code 78\n`;
  const used = new Set<string>();
  const take = (subject: string): readonly string[] => {
    used.add(subject);
    return shown.get(subject) ?? [];
  };
  const config: Config = {
    ...result.config,
    conditions: result.config.conditions.map((condition) => script(condition, take)),
    targets: result.config.targets.map((target) => scriptTarget(target, take)),
  };
  const found = await inspect(config, surround(env, take), new AbortController().signal);
  const unused = [...shown.keys()].filter((subject) => !used.has(subject));
  assert.deepEqual(unused, [], 'what the host shows is not wanted');
  const problems = found.problems.map((problem) => `stderr: ${problem}\n`).join('');
  return `${formatPlan(config, found)}${problems}exit code ${found.problems.length === 0 ? 0 : 78}\n`;
}

type Take = (subject: string) => readonly string[];

function surround(env: Readonly<Record<string, string>>, take: Take): Surroundings {
  const problemOf = (path: string) => take(path)[0] ?? null;
  const isPod = take('pod')[0] !== 'no';
  const hasFront = env['LASTSCRAPE_FRONT'] !== undefined;
  const forbid = async () => assert.fail('a front counts by itself');
  return {
    env,
    isPod,
    readExporter: async () => readShown(take('exporter')[0] ?? 'refused'),
    describeNamespace: async () => take('process namespace')[0] ?? 'shared; PID 1 is "pause"',
    isRunningBeside: hasFront ? forbid : async () => take('lastscrape')[0] !== undefined,
    findOthers: async () =>
      (take('others')[0] ?? '')
        .split(',')
        .filter((pid) => pid !== '')
        .map(Number),
    findMessageProblem: ({ path }) => problemOf(path),
    findTombstoneProblem: async (path) => problemOf(path),
    findListenProblem: async ({ text }) => {
      assert.ok(isPod, 'the ports here are not those of the pod');
      const problem = take(`front ${text}`)[0];
      return problem === undefined ? null : { isTaken: problem === 'taken', problem };
    },
    findListeners: async (config, { isTried }) => {
      assert.equal(isTried, isPod, 'elsewhere the network is another one');
      const names = [...(config.push === null ? [] : ['push']), ...(config.webhook === null ? [] : ['webhook'])];
      return names.map((name) => ({ name, problems: isTried ? take(name) : [] }));
    },
  };
}

/** `refused`, `failed WHY`, or `200` with `counter=`, `numbers=` of FAIL_IF, and with the metrics that are there. */
function readShown(text: string): ExporterReading {
  const [kind = '', ...words] = text.split(' ');
  const values = new Map(words.map((word) => word.split(/=(.*)/) as [string, string]));
  const counter = values.get('counter');
  const unread = (observation: ExporterReading['observation'], why: string): ExporterReading => ({
    observation,
    metric: () => ({ kind: 'unknown', why }),
    hasRequests: false,
  });
  if (kind === 'refused') return unread({ kind: 'refused' }, 'the exporter refuses connections');
  if (kind === 'failed') return unread({ kind: 'failed', why: words.join(' '), mayCount: false }, words.join(' '));
  assert.equal(kind, '200', text);
  return {
    observation: {
      kind: 'answered',
      scrapes: counter === undefined ? null : { finishedCount: Number(counter), inFlightCount: 1 },
      totals: { requests: null, failures: null, users: null },
      thresholds: readThresholdReadings(values.get('numbers')),
    },
    metric: (name) => {
      const value = values.get(name);
      return value === undefined
        ? { kind: 'unknown', why: 'not in the exposition' }
        : { kind: 'value', value: Number(value) };
    },
    hasRequests: values.has('rows'),
  };
}

/** The condition as the host shows it: `alive SEEN`, `done SEEN`, `refused SEEN`, `notStarted WHY`, `unknown WHY`, `inspect LINE`, `cannot PROBLEM`. */
function script(condition: Condition, take: Take): Condition {
  if (condition.metricName !== null || condition.isSignal === true) return condition;
  const { inspect: inspectCondition, check: checkCondition, ...rest } = condition;
  const texts = () => take(condition.text).map((text) => text.split(/ (.*)/s) as [string, string]);
  const all = (kind: string) => texts().flatMap(([each, text]) => (each === kind ? [text] : []));
  return {
    ...rest,
    observe: async () => observeShown(texts().find(([kind]) => kind !== 'inspect' && kind !== 'cannot')),
    ...(inspectCondition === undefined ? {} : { inspect: async () => all('inspect') }),
    ...(checkCondition === undefined ? {} : { check: async () => all('cannot')[0] ?? null }),
  };
}

function observeShown([kind, text]: readonly [string, string] = ['', '']): ConditionObservation {
  switch (kind) {
    case 'alive':
      return { kind, seen: text };
    case 'done':
      return { kind, seen: text, provesWasAlive: true };
    case 'refused':
      return { kind: 'done', seen: text, provesWasAlive: false };
    case 'notStarted':
    case 'unknown':
    case 'blind':
      return { kind, why: text };
    default:
      return assert.fail(
        `the host must show a condition as alive, done, refused, notStarted, unknown or blind, not "${kind}"`,
      );
  }
}

/** The target as the host shows it: the lines of `inspect`, or `cannot PROBLEM`. */
function scriptTarget(target: Target, take: Take): Target {
  const { check: checkTarget, inspect: _, force: _force, ...rest } = target;
  const forbid = async (): Promise<never & ForceResult> => assert.fail('a check asks no target to end');
  return {
    ...rest,
    ask: forbid,
    probe: forbid,
    inspect: async () => take(target.name).filter((text) => !text.startsWith('cannot ')),
    ...(checkTarget === undefined
      ? {}
      : {
          check: async () =>
            take(target.name)
              .find((text) => text.startsWith('cannot '))
              ?.slice('cannot '.length) ?? null,
        }),
  };
}
