import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Environment } from '../../src/base/parse.ts';
import { buildPolicy, type Config, readConfig, readFallbackConfig } from '../../src/config/config.ts';
import { formatDuration } from '../../src/config/values.ts';
import { VARIABLES } from '../../src/config/variables.ts';
import { KINDS } from '../../src/main.ts';
import { DEFAULT_LIMITS } from '../decide/phases.ts';
import { PROGRAM, readProblems, readValid } from './read-config.ts';
import { COMMAS, HTTP_URL, KEEPER_URL, MESSAGE, PERCENT, QUIT_URL, TOMBSTONE, WRONG } from './wrong-values.ts';

test('readConfig() has the defaults of the design where nothing is set', () => {
  const config = readValid({});
  assert.equal(config.metricsUrl.href, 'http://localhost:9646/metrics');
  const conditions = config.conditions.map(({ text, metricName }) => [text, metricName]);
  assert.deepEqual(conditions, [
    ['metric:locust_up', 'locust_up'],
    ['port:5557', null],
  ]);
  assert.deepEqual(config.limits, DEFAULT_LIMITS);
  const requests = config.targets.map(({ name, request }) => [name, request]);
  assert.deepEqual(requests, [['locust-exporter', 'POST http://localhost:9646/quitquitquit']]);
  assert.equal(config.quitTimeoutMs, 30_000);
  assert.deepEqual(config.terminationLog, { path: '/dev/termination-log', isChosen: false });
  assert.deepEqual(
    [config.isExitZero, config.isDryRun, config.logLevel, config.isExporterRead, config.front, config.hooksPath],
    [false, false, 'info', true, null, null],
  );
});

test('readConfig() takes an empty or blank value for not set', () => {
  const blank = Object.fromEntries(VARIABLES.map(({ name }, index) => [name, ' '.repeat(index % 3)]));
  const { terminationLog } = readValid(blank);
  assert.deepEqual(terminationLog, { path: '/dev/termination-log', isChosen: false });
  assert.equal(readValid(blank).limits.ttlMs, 90_000);
});

const DURATIONS: readonly (readonly [string, number])[] = [
  ['0', 0],
  ['90', 90_000],
  ['500ms', 500],
  ['90s', 90_000],
  ['1m30s', 90_000],
  ['2h', 7_200_000],
  ['1h2m3s4ms', 3_723_004],
  ['1m500ms', 60_500],
  ['0s', 0],
  [' 5s ', 5_000],
];
for (const [text, ms] of DURATIONS) {
  test(`readConfig() reads the duration "${text}" as ${ms} ms`, () => {
    assert.equal(readValid({ LASTSCRAPE_TTL: text }).limits.ttlMs, ms);
  });
}

function checkWrong(name: string, value: string, shown: string, must: string): void {
  test(`readConfig() says what ${name}=${value} must be`, () => {
    const head = ['DONE_WHEN', 'QUIT', 'PUSH_LABELS'].includes(name)
      ? JSON.stringify(shown)
      : `it is ${JSON.stringify(shown)};`;
    const message = `Cannot read LASTSCRAPE_${name}: ${head} must be ${must}`;
    assert.deepEqual(readProblems({ [`LASTSCRAPE_${name}`]: value }), [message]);
  });
}
for (const [name, must, byAdvice] of WRONG) {
  for (const [advice, values] of Object.entries(byAdvice)) {
    for (const value of values) checkWrong(name, value, value, must.replace('…', advice));
  }
}

/** A variable, a wrong value with a secret, how it is shown, and what it must be. */
const SECRET: readonly (readonly [name: string, value: string, shown: string, must: string])[] = [
  // What is no path may be what the file should hold.
  ['TOMBSTONE', 'lastscrape', '***', TOMBSTONE],
  ['TERMINATION_LOG', 'none', '***', MESSAGE],
  ['HAND_OVER', 'http://u:s3cret@keeper', 'http://***@keeper', KEEPER_URL],
  ['METRICS_URL', 'http://me:s3cret@localhost/metrics?a=s3cret', 'http://***@localhost/metrics?***', HTTP_URL],
  ['QUIT', 'https://u:p@localhost/quit?k=v', 'https://***@localhost/quit?***', QUIT_URL],
  ['QUIT', 'http://u:hunter50%@localhost/quit', 'http://***@localhost/quit', PERCENT],
  ['QUIT', 'POST https://hooks.a.test/services/T0/s3cret', 'POST https://hooks.a.test/***', QUIT_URL],
  [
    'PUSH_LABELS',
    'Authorization: Bearer s3cret',
    'Authorization: ***',
    `NAME=VALUE such as "job=checkout", with a name of letters, digits and "_" that does not begin with "__"`,
  ],
  [
    'PUSH_LABELS',
    'X-Scope-OrgID=s3cret',
    'X-Scope-OrgID=***',
    `NAME=VALUE such as "job=checkout", with a name of letters, digits and "_" that does not begin with "__"`,
  ],
  ['PUSH_LABELS', 'token="s3cret"', 'token=***', 'written without quotes, as token=…'],
  ...[
    ['https://hooks.a.test/services/T0/s3cret', 'https://hooks.a.test/***'] as const,
    ['slack+https://hooks.a.test/services/T0/s3cret', 'slack+https://hooks.a.test/***'] as const,
  ].map(
    ([value, shown]) =>
      [
        'PUSH',
        value,
        shown,
        '"pushgateway+", "remote-write+" or "otlp+" and an http: or https: URL, such as "pushgateway+http://pushgateway:9091", or "none"',
      ] as const,
  ),
  [
    'QUIT',
    'POST http://u:p@localhost:1/a;GET http://localhost:2/b',
    'POST http://***@localhost:1/a;GET http://localhost:2/b',
    COMMAS.replace('…', 'POST http://***@localhost:1/a,GET http://localhost:2/b'),
  ],
];
for (const row of SECRET) checkWrong(...row);

test('readConfig() names the entries that are empty, and those that cannot stand together', () => {
  const read = (name: string, value: string) => readProblems({ [`LASTSCRAPE_${name}`]: value });
  for (const [value, place, count] of [
    ['port:5557,,metric:a', 2, 3],
    [',port:5557', 1, 2],
    ['port:5557,', 2, 2],
  ] as const) {
    const problem = `Cannot read LASTSCRAPE_DONE_WHEN: entry ${place} of ${count} is empty; must be left out, with its comma`;
    assert.deepEqual(read('DONE_WHEN', value), [problem]);
  }
  assert.deepEqual(read('QUIT', 'locust-exporter,none'), [
    'Cannot read LASTSCRAPE_QUIT: "none" must be the only entry: "none" stops nothing',
  ]);
});

test('readConfig() names all problems at once', () => {
  const problems = readProblems({
    LASTSCRAPE_TTL: 'x',
    LASTSCRAPE_DONE_WHEN: 'a:1,,b:2',
    LASTSCRAPE_SCRAPES: '-',
    LASTSCRAPE_TLL: '1',
  });
  assert.equal(problems.length, 6);
});

/** Names of the environment, by what each may be meant for; empty: near nothing; null: not meant for lastscrape. */
const NAMES: readonly (readonly [meant: string | null, names: string])[] = [
  ['LASTSCRAPE_METRICS_URL', 'LASTSCRAPE_URL LASTSCRAPE_METRIC_URL Lastscrape_Metrics_Url'],
  ['LASTSCRAPE_RUN_TIMEOUT, LASTSCRAPE_QUIT_TIMEOUT or LASTSCRAPE_START_TIMEOUT', 'LASTSCRAPE_TIMEOUT'],
  ['LASTSCRAPE_TTL', 'LASTSCRAPE_ttl lastscrape_ttl lastscrape_tll lastscrape.ttl LASTSCRAPETTL LAST_SCRAPE_TTL'],
  ['LASTSCRAPE_TTL', 'LASTSCRAPE_TLL LASTSCRAP_TTL LASTSCARPE_TTL LASTSCROPE_TTL LASTCRAPE_TTL LASSTSCRAPE_TTL'],
  ['LASTSCRAPE_QUIT', 'LASTSCRAPER_QUIT'],
  ['LASTSCRAPE_METRICS_URL', 'LASTSCRAPE_METRICSURL LASTSCRAPE_EXPORTER_URL LASTSCRAPE_METRICS'],
  ['LASTSCRAPE_DONE_WHEN', 'LASTSCRAPE_DONE LASTSCRAPE_DONE_IF LASTSCRAPE_WHEN_DONE'],
  ['LASTSCRAPE_START_TIMEOUT', 'LASTSCRAPE_STARTUP_TIMEOUT'],
  ['LASTSCRAPE_TERMINATION_GRACE', 'LASTSCRAPE_GRACE'],
  ['', 'LASTSCRAPE_ LASTSCRAPE_INTERVAL LASTSCRAPE_XYZ LASTSCRAPE_MAXIMUM_HISTORY_LOG LASTSCRAPE_MODE'],
  [null, 'OTHER_VARIABLE TTL SCRAPE_TTL FASTSCRAPE_TTL LOGSCRAPE_TTL LS_TTL LASTSCRAP_TLL LAST_SCRAPE_PORT'],
  [null, 'LAST_SCRAPE_SERVICE_HOST LAST_SCRAPE_TTL_PORT LAST_SCRAPE_FOO LAST_TTL LASTSCRAPE lastscrape_xyz LS_COLORS'],
  // Kubernetes sets these for a Service named lastscrape….
  [null, 'LASTSCRAPE_SERVICE_HOST LASTSCRAPE_SERVICE_PORT LASTSCRAPE_SERVICE_PORT_HTTP LASTSCRAPE_PORT'],
  [null, 'LASTSCRAPE_PORT_80_TCP LASTSCRAPE_PORT_80_TCP_PROTO LASTSCRAPE_PORT_80_UDP_PORT'],
  [null, 'LASTSCRAPE_METRICS_PORT_9_SCTP_ADDR LASTSCRAPE_METRICS_SERVICE_HOST'],
  // Main's hook reads it, maybe from an envFrom of both.
  [null, 'LASTSCRAPE_SNAPSHOT_URL'],
];
for (const [meant, names] of NAMES) {
  for (const name of names.split(' ')) {
    test(`readConfig() takes ${name} for ${meant === null ? "another program's" : meant || 'none of its variables'}, also blank`, () => {
      const advice = meant === '' ? 'see lastscrape --help' : `did you mean ${meant}?`;
      const problems = meant === null ? [] : [`Cannot use ${name}: unknown variable; ${advice}`];
      for (const value of ['', 'tcp://10.0.0.1:80']) assert.deepEqual(readProblems({ [name]: value }), problems);
      assert.ok(!VARIABLES.some((variable) => variable.name === name));
    });
  }
}

test('readConfig() is short about a long name', () => {
  assert.ok((readProblems({ [`LASTSCRAPE_${'X'.repeat(5_000)}`]: '' })[0]?.length ?? 999) < 200);
});

test('readConfig() finds a preset by each of its other names, and no two presets by one', () => {
  const names = KINDS.targets.flatMap(({ usage, otherNames = [] }) => otherNames.map((name) => ({ usage, name })));
  assert.ok(names.length > 15);
  for (const { usage, name } of names.filter((each) => each.name !== each.usage)) {
    assert.match(readProblems({ LASTSCRAPE_QUIT: name })[0] ?? '', new RegExp(`did you mean "${usage}"\\?$`), name);
  }
});

test('readConfig() knows EXIT_ZERO and TERMINATION_LOG also where other values are wrong', () => {
  const result = readConfig(
    { LASTSCRAPE_TTL: 'x', LASTSCRAPE_EXIT_ZERO: 'true', LASTSCRAPE_TERMINATION_LOG: '/tmp/x' },
    KINDS,
    PROGRAM,
  );
  assert.ok(!('config' in result));
  assert.deepEqual([result.isExitZero, result.terminationLog], [true, { path: '/tmp/x', isChosen: true }]);
  assert.deepEqual(result.unreadable, ['LASTSCRAPE_TTL']);
  const wrong = readConfig({ LASTSCRAPE_TERMINATION_LOG: 'Authorization: Bearer s3cret' }, KINDS, PROGRAM);
  assert.ok(!('config' in wrong));
  assert.deepEqual(wrong.terminationLog, { path: '/dev/termination-log', isChosen: false });
});

test('readConfig() ignores blanks around entries, and keeps their order', () => {
  const config = readValid({
    LASTSCRAPE_DONE_WHEN: ' port:[::1]:80 , file:/a b , metric:x ',
    LASTSCRAPE_QUIT: 'get http://localhost:1/a%2Cb , locust-exporter',
  });
  const texts = config.conditions.map(({ text }) => text);
  assert.deepEqual(texts, ['port:[::1]:80', 'file:/a b', 'metric:x']);
  const metricNames = config.conditions.map(({ metricName }) => metricName);
  assert.deepEqual(metricNames, [null, null, 'x']);
  const names = config.targets.map(({ name }) => name);
  assert.deepEqual(names, ['GET http://localhost:1/a%2Cb', 'locust-exporter']);
});

test('readConfig() does not read the exporter where there is no metric and nothing to hold for', () => {
  const read = (env: Environment) => readValid({ LASTSCRAPE_DONE_WHEN: 'port:1', ...env }).isExporterRead;
  assert.equal(read({}), true);
  assert.equal(read({ LASTSCRAPE_SCRAPES: '0' }), false);
  assert.equal(read({ LASTSCRAPE_TTL: '0' }), false);
  assert.equal(read({ LASTSCRAPE_TTL: '0', LASTSCRAPE_DONE_WHEN: 'metric:a' }), true);
  assert.equal(read({ LASTSCRAPE_TTL: '0', LASTSCRAPE_FRONT: '9469' }), true);
  assert.equal(read({ LASTSCRAPE_TTL: '0', LASTSCRAPE_FAIL_IF: 'a > 1' }), true);
});

test('readConfig() takes the path of a tombstone, and writes none by default', () => {
  assert.equal(readValid({ LASTSCRAPE_TOMBSTONE: 'none' }).tombstonePath, null);
  const chosen = readValid({ LASTSCRAPE_TOMBSTONE: '/graveyard/lastscrape' });
  assert.equal(chosen.tombstonePath, '/graveyard/lastscrape');
  assert.equal(buildPolicy(chosen).tombstonePath, '/graveyard/lastscrape');
  assert.ok(!('tombstonePath' in buildPolicy(readValid({}))));
});

test('readConfig() takes names of containers for sidecars only', () => {
  const seesAll = (sidecars: string) =>
    readValid({ LASTSCRAPE_SIDECARS: sidecars, LASTSCRAPE_DONE_WHEN: 'container:*' }).conditions[0]?.waitsForAll;
  assert.deepEqual([seesAll(''), seesAll(' istio-proxy, b-1 ')], [true, false]);
  assert.deepEqual(readProblems({ LASTSCRAPE_SIDECARS: 'istio-proxy' }), [
    'Cannot use LASTSCRAPE_SIDECARS: only container:* uses it; add that to LASTSCRAPE_DONE_WHEN, or unset LASTSCRAPE_SIDECARS',
  ]);
  assert.deepEqual(readProblems({ LASTSCRAPE_SIDECARS: 'istio-proxy', LASTSCRAPE_DONE_WHEN: 'container:*' }), []);
  assert.deepEqual(readProblems({ LASTSCRAPE_SIDECARS: 'a,B,none,', LASTSCRAPE_DONE_WHEN: 'container:*' }), [
    'Cannot read LASTSCRAPE_SIDECARS: "B" must be the name of a container such as "istio-proxy"',
    'Cannot read LASTSCRAPE_SIDECARS: entry 4 of 4 is empty; must be left out, with its comma',
  ]);
});

test('readConfig() says nothing of sidecars where DONE_WHEN is wrong, which may be why nothing goes by them', () => {
  const problems = readProblems({ LASTSCRAPE_SIDECARS: 'istio-proxy', LASTSCRAPE_DONE_WHEN: 'contaner:*' });
  assert.equal(problems.length, 1);
  assert.match(problems[0] ?? '', /^Cannot read LASTSCRAPE_DONE_WHEN: /);
});

test('readFallbackConfig() takes what can be read, holds and stops nothing', () => {
  const read = (env: Environment, unreadable: readonly string[]) => readFallbackConfig(env, unreadable, KINDS, PROGRAM);
  const texts = ({ conditions }: Config) => conditions.map(({ text }) => text);
  const kept = read({ LASTSCRAPE_DONE_WHEN: 'port:1', LASTSCRAPE_TTL: 'x', LASTSCRAPE_POLL: '5s' }, ['LASTSCRAPE_TTL']);
  assert.deepEqual([texts(kept), kept.limits.ttlMs, kept.limits.pollMs], [['port:1'], 90_000, 5_000]);
  assert.deepEqual([kept.limits.scrapesWantedCount, kept.targets], [0, []]);
  const env = { LASTSCRAPE_DONE_WHEN: 'container:*', LASTSCRAPE_SIDECARS: 'proxy' };
  assert.deepEqual(texts(read(env, ['LASTSCRAPE_DONE_WHEN'])), ['metric:locust_up', 'port:5557']);
  assert.deepEqual(texts(read(env, ['LASTSCRAPE_SIDECARS'])), ['container:*']);
});

test('readFallbackConfig() waits 60 s at most for a main that DONE_WHEN does not describe', () => {
  const read = (startTimeout: string, unreadable: readonly string[]) =>
    readFallbackConfig({ LASTSCRAPE_START_TIMEOUT: startTimeout }, unreadable, KINDS, PROGRAM).limits.startTimeoutMs;
  const table: readonly (readonly [startTimeout: string, guessedMs: number, knownMs: number])[] = [
    ['0', 60_000, 0],
    ['', 60_000, 600_000],
    ['5s', 5_000, 5_000],
  ];
  for (const [startTimeout, guessedMs, knownMs] of table) {
    assert.equal(read(startTimeout, ['LASTSCRAPE_DONE_WHEN']), guessedMs, startTimeout);
    assert.equal(read(startTimeout, ['LASTSCRAPE_TTL']), knownMs, startTimeout);
  }
});

test('formatDuration() writes what readConfig() reads', () => {
  for (const ms of [0, 1, 100, 1_000, 90_000, 3_723_004, 7_200_000]) {
    assert.equal(readValid({ LASTSCRAPE_TTL: formatDuration(ms) }).limits.ttlMs, ms);
  }
});

test('readFallbackConfig() does without values that are wrong only without those that cannot be read', () => {
  const env = {
    LASTSCRAPE_METRICS_URL: 'file:///shared/job.prom',
    LASTSCRAPE_FRONT: 'x',
    LASTSCRAPE_DONE_WHEN: 'port:1',
  };
  const config = readFallbackConfig(env, ['LASTSCRAPE_FRONT'], KINDS, PROGRAM);
  assert.deepEqual([config.front, config.metricsUrl.href], [null, 'http://localhost:9646/metrics']);
  const texts = config.conditions.map(({ text }) => text);
  assert.deepEqual(texts, ['port:1']);
});

test('readFallbackConfig() does without the front where its default is the port of the source or of main', () => {
  for (const env of [
    { LOCUST_EXPORTER_URI: 'http://localhost:9646', LASTSCRAPE_TTL: 'soon' },
    { LASTSCRAPE_METRICS_URL: 'locust+http://localhost:9646', LASTSCRAPE_TTL: 'soon' },
    { LOCUST_EXPORTER_URI: 'http://localhost:8089', LASTSCRAPE_DONE_WHEN: 'port:9646', LASTSCRAPE_TTL: 'soon' },
  ]) {
    const result = readConfig(env, KINDS, PROGRAM);
    assert.ok('unreadable' in result);
    const { front, conditions } = readFallbackConfig(env, result.unreadable, KINDS, PROGRAM);
    assert.deepEqual([front, conditions.at(-1)?.text], [null, env.LASTSCRAPE_DONE_WHEN ?? 'port:5557']);
  }
});

test('readFallbackConfig() fails where a default is wrong: a bug', () => {
  const read = () => readFallbackConfig({}, [], { conditions: [], targets: [] }, PROGRAM);
  assert.throws(read, /^Error: Bug: defaults are wrong: Cannot read LASTSCRAPE_DONE_WHEN/);
});

/** Settings, the variables that cannot be read, and what is waited for: with a signal, that alone. */
const SIGNAL_FALLBACKS: readonly (readonly [env: Environment, unreadable: readonly string[], doneWhen: string])[] = [
  [{ LASTSCRAPE_DONE_WHEN: 'sigterm', LASTSCRAPE_TTL: 'x' }, ['LASTSCRAPE_TTL'], 'sigterm'],
  [{ LASTSCRAPE_DONE_WHEN: 'port:80, sigterm', LASTSCRAPE_TTL: 'x' }, ['LASTSCRAPE_TTL'], 'sigterm'],
  [{ LASTSCRAPE_DONE_WHEN: 'prt:80,sigterm' }, ['LASTSCRAPE_DONE_WHEN'], 'sigterm'],
  [{ LASTSCRAPE_DONE_WHEN: 'port:80;sigterm' }, ['LASTSCRAPE_DONE_WHEN'], 'sigterm'],
  [{ LASTSCRAPE_DONE_WHEN: 'SIGTERM' }, ['LASTSCRAPE_DONE_WHEN'], 'sigterm'],
  [{ LASTSCRAPE_DONE_WHEN: 'sigterm:' }, ['LASTSCRAPE_DONE_WHEN'], 'sigterm'],
  [{ LASTSCRAPE_DONE_WHEN: 'sigterm,x', LASTSCRAPE_RUN_TIMEOUT: '1h' }, ['LASTSCRAPE_DONE_WHEN'], 'sigterm'],
  [{ LASTSCRAPE_DONE_WHEN: 'container:*,sigterm,x', LASTSCRAPE_SIDECARS: 'a' }, ['LASTSCRAPE_DONE_WHEN'], 'sigterm'],
  [{ LASTSCRAPE_DONE_WHEN: 'file:/sigterm/x', LASTSCRAPE_TTL: 'x' }, ['LASTSCRAPE_TTL'], 'file:/sigterm/x'],
  [{ LASTSCRAPE_DONE_WHEN: 'file:/a b sigterm', LASTSCRAPE_TTL: 'x' }, ['LASTSCRAPE_TTL'], 'file:/a b sigterm'],
  [{ LASTSCRAPE_DONE_WHEN: 'process: term', LASTSCRAPE_TTL: 'x' }, ['LASTSCRAPE_TTL'], 'process:term'],
  [{ LASTSCRAPE_DONE_WHEN: 'signal:nginx' }, ['LASTSCRAPE_DONE_WHEN'], 'metric:locust_up,port:5557'],
  [{ LASTSCRAPE_DONE_WHEN: 'process: xterm,prt:9' }, ['LASTSCRAPE_DONE_WHEN'], 'metric:locust_up,port:5557'],
];
for (const [env, unreadable, doneWhen] of SIGNAL_FALLBACKS) {
  test(`readFallbackConfig() waits for ${doneWhen} with ${JSON.stringify(env)}`, () => {
    const config = readFallbackConfig({ LASTSCRAPE_FRONT: '9469', ...env }, unreadable, KINDS, PROGRAM);
    assert.equal(config.conditions.map(({ text }) => text).join(), doneWhen);
    assert.deepEqual([config.limits.scrapesWantedCount, config.targets, config.front?.port], [0, [], 9469]);
    assert.equal(config.limits.startTimeoutMs, doneWhen.startsWith('metric:') ? 60_000 : 600_000);
  });
}

test('readConfig() has no advice for an entry of several lines', () => {
  const [problem = ''] = readProblems({ LASTSCRAPE_QUIT: 'is\ntio' });
  assert.match(problem, /^Cannot read LASTSCRAPE_QUIT: "is\\ntio" must be one of|must be /);
  assert.doesNotMatch(problem, /did you mean/);
});

test('readConfig() is quick about any length of digits', () => {
  assert.equal(readProblems({ LASTSCRAPE_TTL: `${'1'.repeat(100_000)}_` }).length, 1);
  for (const long of ['a'.repeat(100_000), '1:'.repeat(50_000), ':1'.repeat(50_000), `[${':'.repeat(100_000)}`]) {
    assert.equal(readProblems({ LASTSCRAPE_FRONT: `${long}_`, LASTSCRAPE_DONE_WHEN: `${long}_` }).length, 2);
  }
  assert.ok(
    readProblems({ LASTSCRAPE_QUIT: ':1'.repeat(30_000), LASTSCRAPE_METRICS_URL: '/'.repeat(60_000) }).join().length <
      1_000,
  );
});
