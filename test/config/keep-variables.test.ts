import assert from 'node:assert/strict';
import { test } from 'node:test';
import { KEEP_VARIABLES, readKeepConfig } from '../../src/config/keep-variables.ts';

test('readKeepConfig() has defaults', () => {
  assert.deepEqual(readKeepConfig({ LASTSCRAPE_KEEPER_SIZE: ' ' }), {
    config: {
      listenAt: { host: null, port: 9470, text: '9470' },
      serveAt: { host: null, port: 9471, text: '9471' },
      folder: '/var/lib/lastscrape',
      maxBytes: 268_435_456,
      maxPages: 10_000,
      auth: 'token',
      terminationGraceMs: 25_000,
    },
  });
});

test('readKeepConfig() takes what Kubernetes sets for a Service of that name for none of its variables', () => {
  const env = { LASTSCRAPE_KEEPER_PORT: 'tcp://10.0.0.1:9470', LASTSCRAPE_KEEPER_SERVICE_HOST: '10.0.0.1' };
  assert.ok('config' in readKeepConfig({ ...env, LASTSCRAPE_KEEPER_PORT_9470_TCP_ADDR: '10.0.0.1' }));
  assert.ok(KEEP_VARIABLES.every(({ name }) => !/_(PORT|SERVICE)/.test(name)));
});

const SIZE = 'a size such as "256Mi" or "1Gi", at least "16Mi"';
const WRONG: readonly (readonly [name: string, value: string, problem: string])[] = [
  ['SIZE', '15Mi', `it is "15Mi"; must be ${SIZE}`],
  ['SIZE', '256', `it is "256"; must be ${SIZE}`],
  ['PAGES', '0', 'it is "0"; must be a whole number from 1 to 999999'],
  ['PAGES', 'all', 'it is "all"; must be a whole number from 1 to 999999'],
  ['AUTH', 'no', 'it is "no"; must be "token" or "none"'],
  ['FOLDER', 'pages', 'it is "pages"; must be an absolute path such as "/var/lib/lastscrape"'],
];
for (const [name, value, problem] of WRONG) {
  test(`readKeepConfig() refuses LASTSCRAPE_KEEPER_${name}=${value}`, () => {
    const problems = [`Cannot read LASTSCRAPE_KEEPER_${name}: ${problem}`];
    assert.deepEqual(readKeepConfig({ [`LASTSCRAPE_KEEPER_${name}`]: value }), { problems });
  });
}

test('readKeepConfig() reads sizes, and finds all problems at once', () => {
  const found = readKeepConfig({ LASTSCRAPE_KEEPER_SIZE: '1Gi', LASTSCRAPE_KEEPER_FOLDER: '/a/' });
  assert.ok('config' in found);
  assert.deepEqual([found.config.maxBytes, found.config.folder], [1024 ** 3, '/a']);
  const { problems } = readKeepConfig({
    LASTSCRAPE_KEEPER_LISTEN: '9471',
    LASTSCRAPE_KEEPER_FODLER: '/a',
    LASTSCRAPE_KEEPER_QQQQQQ: '1',
    LASTSCRAPE_TERMINATION_GRACE: 'x',
  }) as { problems: readonly string[] };
  assert.deepEqual(problems, [
    'Cannot use LASTSCRAPE_KEEPER_FODLER: unknown variable; did you mean LASTSCRAPE_KEEPER_FOLDER?',
    problems[1],
    'Cannot read LASTSCRAPE_TERMINATION_GRACE: it is "x"; must be a duration such as "90s", "1m30s" or "500ms"',
    'Cannot use LASTSCRAPE_KEEPER_SERVE: port 9471 is the one of LASTSCRAPE_KEEPER_LISTEN; must be another',
  ]);
  assert.match(problems[1] ?? '', /^Cannot use LASTSCRAPE_KEEPER_QQQQQQ: unknown variable; /);
});
