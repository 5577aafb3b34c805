// Whatever is set wrongly, the pod's main starts: lastscrape, as a native sidecar, does not end before its signal, and
// --ready, by which the kubelet holds main back, does not fail. Every variable, every kind of wrong value.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { parse } from 'yaml';
import type { Environment } from '../../src/base/parse.ts';
import { findFrontProblem } from '../../src/check/ready.ts';
import { VARIABLES } from '../../src/config/variables.ts';
import { main } from '../../src/main.ts';
import { makeFolder } from '../support/folder.ts';
import { openHost } from '../support/host.ts';
import { findFreePort } from '../support/listen.ts';
import { openPort } from '../support/watcher.ts';

const folder = makeFolder();

/** A lastscrape with these variables; `said` is resolved when it has said what it does, or what is wrong. */
function openRun(env: Environment) {
  const said = Promise.withResolvers<void>();
  const { host, out } = openHost(
    { LASTSCRAPE_TERMINATION_LOG: join(folder, 'message'), ...env },
    {
      stdout: () => said.resolve(),
      stderr: (text) => {
        out.stderr += text;
        said.resolve();
      },
    },
  );
  return { host, out, said: said.promise };
}

/** Runs lastscrape with these variables, asks whether main may start, and ends it. @returns why it may not */
async function findObstacle(env: Environment): Promise<string | null> {
  const { host, out, said } = openRun(env);
  const state = { ended: null as number | null };
  const run = main(host).then(({ code }) => {
    state.ended = code;
  });
  await said;
  // What would end at once has ended by then.
  for (let count = 0; count < 50; count++) await turn();
  const endedWith = state.ended;
  const ready = openHost(env, { argv: ['--ready'] });
  const { code } = endedWith === null ? await main(ready.host) : { code: 0 };
  out.signal('SIGTERM');
  out.signal('SIGTERM');
  await run;
  if (endedWith !== null) return `it ended with ${endedWith}: ${out.stderr}`;
  return code === 0 ? null : `--ready ended with ${code}: ${ready.out.stderr}`;
}

const DEPLOY = new URL('../../deploy/', import.meta.url);
/** Manifests in which lastscrape is a native sidecar. */
const MANIFESTS = ['migrate/sleep.yaml', 'migrate/pushgateway.yaml', 'job/front/job.yaml'];

/** What the policy for labelled Jobs sets, or a manifest. */
async function readGivenVariables(manifest: string | null = null): Promise<Environment> {
  const port = await findFreePort();
  const own = { LASTSCRAPE_METRICS_URL: `http://localhost:${port + 1}/metrics`, LASTSCRAPE_FRONT: `127.0.0.1:${port}` };
  if (manifest === null) {
    return {
      ...own,
      LASTSCRAPE_DONE_WHEN: 'sigterm',
      LASTSCRAPE_POLL: '250ms',
      LASTSCRAPE_TERMINATION_GRACE: '95s',
      LASTSCRAPE_EXIT_ZERO: 'true',
    };
  }
  const { spec } = parse(readFileSync(new URL(manifest, DEPLOY), 'utf8'));
  const sidecar = spec.template.spec.initContainers.find(({ name }: { name: string }) => name === 'lastscrape');
  const env = Object.fromEntries(sidecar.env.map((each: { name: string; value: string }) => [each.name, each.value]));
  const url = String(env['LASTSCRAPE_METRICS_URL']).replace(/:\d+/, `:${port + 1}`);
  return { ...env, ...own, LASTSCRAPE_METRICS_URL: url };
}

const VALUES = [
  ...['x', '-1', '0', '1ms', '1e99', 'true', 'yes', 'None'],
  ...['sigterm', 'port:1', 'http://localhost', '{{ a }}', 'a\nb', 'ü,,'],
];

/** What main's end may be called by mistake, and conditions that do not fit a native sidecar, or this pod. */
const CONDITIONS = [
  ...['sigtrem', 'SIGTERM', 'sigterm:30s', 'term', 'kubelet'],
  ...['port:8000x', 'container:report', 'process:'],
];

for (const { name } of VARIABLES) {
  test(`${name} with a wrong value: main starts`, async () => {
    const given = await readGivenVariables();
    const fronts = name === 'LASTSCRAPE_METRICS_URL' ? [`http://${given['LASTSCRAPE_FRONT']}/metrics`] : [];
    // Without EXIT_ZERO the signal alone makes it stay.
    const values = name === 'LASTSCRAPE_EXIT_ZERO' ? VALUES : [...VALUES, ...fronts];
    for (const value of values) {
      assert.equal(await findObstacle({ ...given, [name]: value }), null, value);
    }
  });

  test(`${name} by a mistyped name: main starts`, async () => {
    const { [name]: value = '2', ...given } = await readGivenVariables();
    const [, first = '', rest = ''] = /^(LASTSCRAPE_.)(.*)$/.exec(name) ?? [];
    const swapped = `${first}${rest.slice(1, 2)}${rest.slice(0, 1)}${rest.slice(2)}`;
    for (const wrong of [`${name}S`, name.replace('LASTSCRAPE', 'LASTSCAPE'), name.toLowerCase(), swapped]) {
      assert.equal(await findObstacle({ ...given, [wrong]: value }), null, wrong);
    }
  });
}

for (const manifest of [null, ...MANIFESTS]) {
  test(`${manifest ?? 'the policy for labelled Jobs'}: main starts, whatever LASTSCRAPE_DONE_WHEN is`, async () => {
    const given = await readGivenVariables(manifest);
    for (const value of [...VALUES, ...CONDITIONS]) {
      assert.equal(await findObstacle({ ...given, LASTSCRAPE_DONE_WHEN: value }), null, value);
    }
  });
}

test('a front whose port is taken: lastscrape stays, and main waits no longer than --ready does', async () => {
  const taken = await openPort();
  const env = { ...(await readGivenVariables()), LASTSCRAPE_FRONT: `127.0.0.1:${taken.port}` };
  assert.equal(await findObstacle(env), null);
  taken.close();
});

test('findFrontProblem() waits for a front that comes late, not longer than it is told, and not after a signal', async () => {
  const port = await findFreePort();
  const front = { host: '127.0.0.1', port, text: String(port) };
  const never = new AbortController().signal;
  const why = `Cannot reach the front at 127.0.0.1:${port}: refused; is lastscrape in this pod?`;
  assert.equal(await findFrontProblem(front, never, 0), why);
  assert.match((await findFrontProblem(front, AbortSignal.abort('interrupted'))) ?? '', /^Cannot reach the front at /);
  const waited = findFrontProblem(front, never, 60_000);
  const server = createServer().listen(port, '127.0.0.1');
  await once(server, 'listening');
  assert.equal(await waited, null);
  server.close();
});

test('--ready outside of a lastscrape container fails where nothing listens, or where it is not said', async () => {
  const env = { LASTSCRAPE_FRONT: 'none' };
  const none = openHost(env, { argv: ['--ready'] });
  assert.equal((await main(none.host)).code, 78);
  assert.equal(none.out.stderr, 'Cannot wait for the front: LASTSCRAPE_FRONT is not set\n');
  const wrong = openHost({ LASTSCRAPE_FRONT: 'x' }, { argv: ['--ready'] });
  assert.equal((await main(wrong.host)).code, 78);
  assert.match(wrong.out.stderr, /^Cannot read LASTSCRAPE_FRONT: /);
});
