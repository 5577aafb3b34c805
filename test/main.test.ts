import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import type { Environment } from '../src/base/parse.ts';
import { VERSION } from '../src/base/version.ts';
import type { Kinds } from '../src/config/config.ts';
import { KINDS, main } from '../src/main.ts';
import type { Condition } from '../src/observe/condition-kind.ts';
import type { Host } from '../src/run/host.ts';
import { closeInTime } from '../src/run/parts.ts';
import { makeFolder } from './support/folder.ts';
import { openHost as openAnyHost } from './support/host.ts';

const folder = makeFolder();
const messagePath = join(folder, 'message');

const openHost = (env: Environment, more: Partial<Host> = {}) =>
  openAnyHost({ LASTSCRAPE_TERMINATION_LOG: messagePath, ...env }, more);

/** Ends at once: nothing runs, nothing is waited for or asked. */
const SHORT = {
  LASTSCRAPE_METRICS_URL: 'http://127.0.0.1:1/metrics',
  LASTSCRAPE_DONE_WHEN: 'port:1',
  LASTSCRAPE_START_TIMEOUT: '1ms',
  LASTSCRAPE_QUIT: 'none',
};

function readLast(text: string): Record<string, unknown> {
  return JSON.parse(text.trimEnd().split('\n').at(-1) ?? '');
}

test('the version equals the one of package.json', () => {
  assert.equal(VERSION, JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')).version);
});

test("main() exits by a second signal that comes after the last decision, but SIGTERM is main's end each time", async () => {
  for (const [second, code] of [
    ['SIGINT', 130],
    ['SIGTERM', 1],
    [null, 1],
  ] as const) {
    const { host, out } = openHost(
      { ...SHORT, LASTSCRAPE_DONE_WHEN: 'sigterm', LASTSCRAPE_SCRAPES: '0', LASTSCRAPE_FAIL_IF: 'a > 1' },
      {
        stdout: (text) => {
          out.stdout += text;
          if (text.includes('"msg":"main is running"')) out.signal('SIGTERM');
          if (second !== null && text.includes('"msg":"releasing the pod"')) out.signal(second);
        },
      },
    );
    const exit = await main(host);
    assert.deepEqual([exit.code, readLast(out.stdout)['exitCode']], [code, code], String(second));
  }
});

test('main() takes an option by the names that people write', async () => {
  for (const [starts, options] of [
    [`lastscrape ${VERSION} (from source, Node 24.0.0)\n`, ['--version', '-v', '-V', 'version']],
    ['lastscrape: holds', ['--help', '-h', 'help']],
    ['The configuration is valid', ['--check', 'check']],
  ] as const) {
    for (const option of options) {
      const { host, out } = openHost(SHORT, { argv: [option] });
      assert.deepEqual(await main(host), { code: 0, isUrgent: false }, option);
      assert.ok(out.stdout.startsWith(starts), option);
    }
  }
  for (const argv of [['--verison'], ['-x'], [''], ['-h', '-v']]) {
    const { host, out } = openHost(SHORT, { argv });
    assert.equal((await main(host)).code, 64);
    assert.equal(
      out.stderr,
      `Cannot read the command line: it is "${argv.join(' ')}"; must be empty, --check, --ready, --version, --help, explain or keep\n`,
    );
  }
});

test('main() writes the report as the last line and as the termination message', async () => {
  const { host, out } = openHost(SHORT);
  assert.deepEqual(await main(host), { code: 0, isUrgent: false });
  const { time, level, msg, ...fields } = readLast(out.stdout);
  assert.deepEqual([level, msg], ['info', 'report']);
  assert.match(String(time), /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
  assert.deepEqual(JSON.parse(readFileSync(messagePath, 'utf8')), fields);
  const { quit, dryRun } = JSON.parse(out.stdout.split('\n')[0] ?? '');
  assert.deepEqual([quit, dryRun], ['none', undefined]);
});

test('main() reports at every log level', async () => {
  const { host, out } = openHost({ ...SHORT, LASTSCRAPE_LOG_LEVEL: 'error' });
  await main(host);
  assert.equal(out.stdout.trimEnd().split('\n').length, 1);
});

test('main() warns once where the message cannot be written, and goes on', async () => {
  const { host, out } = openHost({ ...SHORT, LASTSCRAPE_TERMINATION_LOG: join(folder, 'no', 'such', 'folder') });
  assert.equal((await main(host)).code, 0);
  assert.equal(out.stdout.split('the termination message cannot be written').length, 2);
});

test('main() answers a bug with one error line, the report, 70, and no tombstone that would stop others', async () => {
  let calls = 0;
  const tombstone = join(folder, 'lastscrape');
  const { host, out } = openHost(
    { ...SHORT, LASTSCRAPE_TOMBSTONE: tombstone },
    {
      nowMs: () => {
        if (calls++ > 3) throw new Error('Bug: the clock broke');
        return calls;
      },
    },
  );
  assert.deepEqual(await main(host), { code: 70, isUrgent: true });
  const errors = out.stdout.split('\n').filter((line) => line.includes('"level":"error"'));
  assert.equal(errors.length, 1);
  assert.deepEqual([readLast(out.stdout)['outcome'], readLast(out.stdout)['exitCode']], ['bug', 70]);
  assert.equal(JSON.parse(readFileSync(messagePath, 'utf8')).outcome, 'bug');
  assert.equal(existsSync(tombstone), false);
});

test('main() answers an uncaught error in the same way, and EXIT_ZERO makes it 0', async () => {
  for (const [isExitZero, code] of [
    ['false', 70],
    ['true', 0],
  ] as const) {
    const { host, out } = openHost({ ...SHORT, LASTSCRAPE_EXIT_ZERO: isExitZero });
    await main(host);
    assert.equal(out.onUncaught('thrown text'), code);
    const last = [readLast(out.stdout)['summary'], readLast(out.stdout)['exitCode']];
    assert.deepEqual(last, ['Bug in lastscrape: thrown text', 70]);
  }
});

test('main() reports what cannot work in this pod like a wrong configuration, all of it', async () => {
  const env = { ...SHORT, LASTSCRAPE_DONE_WHEN: 'process:main', LASTSCRAPE_QUIT: 'signal:one, signal:two' };
  const { host, out } = openHost(env);
  assert.deepEqual(await main(host), { code: 78, isUrgent: false });
  const problems = out.stderr.trimEnd().split('\n');
  const why =
    'the containers of this pod do not share a process namespace (PID 1 is lastscrape, or started it); set shareProcessNamespace: true in the spec of the pod';
  assert.deepEqual(problems, [
    `Cannot use "process:main" of LASTSCRAPE_DONE_WHEN: ${why}`,
    `Cannot use "signal:one" of LASTSCRAPE_QUIT: ${why}`,
    `Cannot use "signal:two" of LASTSCRAPE_QUIT: ${why}`,
  ]);
  const message = JSON.parse(readFileSync(messagePath, 'utf8'));
  assert.deepEqual([message.outcome, message.exitCode], ['misconfigured', 78]);
  const zero = openHost({ ...env, LASTSCRAPE_EXIT_ZERO: 'true' });
  assert.equal((await main(zero.host)).code, 0);
  const check = openHost({ ...env, KUBERNETES_SERVICE_HOST: '127.0.0.1' }, { argv: ['--check'] });
  assert.equal((await main(check.host)).code, 78);
  assert.deepEqual(check.out.stderr.trimEnd().split('\n'), problems);
  assert.match(check.out.stdout, /^ {2}process:main: cannot work in this pod: see the end$/m);
});

test('main() exits with 0 where the sidecars of an entry that cannot work are left over', async () => {
  const env = {
    ...SHORT,
    LASTSCRAPE_DONE_WHEN: 'container:*',
    LASTSCRAPE_SIDECARS: 'proxy',
    LASTSCRAPE_METRICS_URL: 'http://localhost:1/metrics',
    LASTSCRAPE_EXIT_ZERO: 'true',
  };
  const { host, out } = openHost(env);
  assert.deepEqual(await main(host), { code: 0, isUrgent: false });
  assert.match(out.stderr, /^Cannot use "container:\*" of LASTSCRAPE_DONE_WHEN: /);
});

test('main() listens for signals before it checks the entries', async () => {
  const order: string[] = [];
  const { host } = openHost({ ...SHORT, LASTSCRAPE_DONE_WHEN: 'container:load' });
  const env = Object.defineProperty({ ...host.env }, 'KUBERNETES_SERVICE_HOST', {
    get: () => void order.push('asks where the API server is'),
  });
  assert.equal((await main({ ...host, env, onSignal: () => order.push('listens') })).code, 78);
  assert.deepEqual(order, ['listens', 'asks where the API server is']);
});

test('main() goes by a signal that came before the first look', async () => {
  const { host, out } = openHost(
    { ...SHORT, LASTSCRAPE_START_TIMEOUT: '1h' },
    { onSignal: (listener) => listener('SIGTERM') },
  );
  assert.deepEqual(await main(host), { code: 0, isUrgent: false });
  assert.equal(readLast(out.stdout)['summary'], 'Terminated before main was ever seen alive');
});

test('main() reports a bug while the configuration is read like any other, and EXIT_ZERO makes it 0', async () => {
  for (const [isExitZero, code] of [
    ['false', 70],
    ['true', 0],
  ] as const) {
    const { host, out } = openHost({ ...SHORT, LASTSCRAPE_EXIT_ZERO: isExitZero });
    const env = Object.defineProperty({ ...host.env }, 'LASTSCRAPE_QUIT', {
      enumerable: true,
      get: () => {
        throw new Error('Bug: http://user:hunter2@localhost/ broke');
      },
    });
    assert.deepEqual(await main({ ...host, env }), { code, isUrgent: true });
    const [error = '{}'] = out.stdout.split('\n');
    const logged = [JSON.parse(error).level, JSON.parse(error).msg];
    assert.deepEqual(logged, ['error', 'bug in lastscrape: please report it']);
    assert.match(JSON.parse(error).reportTo, /^in the issues of the repository /);
    const { outcome, exitCode, summary } = JSON.parse(readFileSync(messagePath, 'utf8'));
    assert.deepEqual([outcome, exitCode], ['bug', 70]);
    assert.equal(summary, 'Bug in lastscrape: Bug: http://***@localhost/ broke');
    assert.ok(!out.stdout.includes('hunter2'));
    const check = openHost({}, { env, argv: ['--check'] });
    assert.deepEqual(await main(check.host), { code: 70, isUrgent: true });
    assert.match(check.out.stderr, /^Bug in lastscrape: please report it in the issues of .*: .*\n/);
  }
});

test('main() says why it does not wait any longer for a main that could not be observed', async () => {
  const { host, out } = openHost({ ...SHORT, LASTSCRAPE_DONE_WHEN: 'prt:1', LASTSCRAPE_EXIT_ZERO: 'true' });
  assert.deepEqual(await main(host), { code: 0, isUrgent: false });
  assert.equal(
    out.stderr.trimEnd().split('\n').at(-1),
    'Stopped waiting for main, which was never seen: metric:locust_up,port:5557 showed nothing alive for 1ms; the errors above still stand',
  );
});

/** The tables with a condition `stuck:` of which one part never ends. */
function withStuck(part: Partial<Condition>): Kinds {
  const condition: Condition = {
    text: 'stuck:',
    metricName: null,
    observe: async () => ({ kind: 'done', seen: 'gone', provesWasAlive: true }),
    ...part,
  };
  const kind = { name: 'stuck', usage: 'stuck:', meaning: '', read: () => ({ value: condition }) };
  return { ...KINDS, conditions: [...KINDS.conditions, kind] };
}

test('main() obeys a second signal at once while entries are checked', async () => {
  for (const [name, isExitZero, code] of [
    ['SIGINT', 'false', 130],
    ['SIGTERM', 'false', 0],
    ['SIGINT', 'true', 0],
  ] as const) {
    const env = { ...SHORT, LASTSCRAPE_DONE_WHEN: 'stuck:', LASTSCRAPE_EXIT_ZERO: isExitZero };
    const { host, out } = openHost(env);
    const check = () => {
      out.signal('SIGTERM');
      setImmediate(() => out.signal(name));
      return new Promise<null>(() => {});
    };
    assert.deepEqual(await main(host, withStuck({ check })), { code, isUrgent: true });
    assert.equal(readLast(out.stdout)['outcome'], 'terminated');
  }
});

test('main() gives a check up at the first signal', async () => {
  for (const part of ['check', 'inspect'] as const) {
    const env = { ...SHORT, LASTSCRAPE_DONE_WHEN: 'stuck:', KUBERNETES_SERVICE_HOST: '127.0.0.1' };
    const { host, out } = openHost(env, { argv: ['--check'] });
    const hang = () => {
      out.signal('SIGTERM');
      return new Promise<never>(() => {});
    };
    assert.deepEqual(await main(host, withStuck({ [part]: hang })), { code: 130, isUrgent: true });
    assert.equal(out.stdout + out.stderr, '');
  }
});

test('closeInTime() does not wait for what hangs once the signal came, and says so', async () => {
  const never = { close: () => new Promise<void>(() => {}) };
  assert.equal(await closeInTime(never, AbortSignal.abort()), false);
  assert.equal(await closeInTime({ close: async () => {} }, new AbortController().signal), true);
  assert.equal(await closeInTime(null, AbortSignal.abort()), true);
});

test('main() prints no secret of a URL, wherever it stands', async () => {
  const secret = 'http://user:hunter2@127.0.0.1:1/quit?token=hunter2';
  const { host, out } = openHost({ ...SHORT, LASTSCRAPE_QUIT: `POST ${secret}`, LASTSCRAPE_LOG_LEVEL: 'debug' });
  await main(host);
  const wrong = openHost({ ...SHORT, LASTSCRAPE_QUIT: `FROB ${secret}`, LASTSCRAPE_METRICS_URL: secret });
  await main(wrong.host);
  const check = openHost({ ...SHORT, LASTSCRAPE_QUIT: secret }, { argv: ['--check'] });
  await main(check.host);
  const all = out.stdout + wrong.out.stderr + check.out.stdout + readFileSync(messagePath, 'utf8');
  assert.ok(all.includes('***') && !all.includes('hunter2'), all);
});
