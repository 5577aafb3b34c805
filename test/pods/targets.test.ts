// The presets against the real programs: enabled, switched off, at a wrong port.
// In a network namespace every program has its preset's ports.

import assert from 'node:assert/strict';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { type Child, startChild } from '../support/child.ts';
import { makeFolder } from '../support/folder.ts';
import { findFreePort } from '../support/listen.ts';
import { baseEnv, type Network, openNetwork } from '../support/network.ts';
import { findPrograms } from '../support/programs.ts';
import { assertRuns } from '../support/proof.ts';
import { findTarget, gateTargets, type Place, TARGET_PROGRAMS, type TargetProgram } from './target-programs.ts';

const programs = findPrograms();
const skip = gateTargets('test/pods/targets.test.ts');

/** QUIT_TIMEOUT, and as much again. */
const END_MS = 60_000;

type Result = { readonly code: number | null; readonly result: string; readonly hint: string };

/** One program in a network of its own, and a watcher that finds no main and only quits. */
type Fixture = {
  readonly place: Place;
  readonly network: Network;
  start(program: TargetProgram, isEnabled: boolean): Promise<Child>;
  /** `entry` is LASTSCRAPE_QUIT. */
  startWatcher(entry: string, quitTimeout?: string): Child;
  quit(entry: string, quitTimeout?: string): Promise<Result>;
  run(name: string, command: readonly string[]): Child;
};

async function withFixture(program: TargetProgram, play: (fixture: Fixture) => Promise<void>): Promise<void> {
  const directory = makeFolder();
  await using stack = new AsyncDisposableStack();
  const network = stack.use(await openNetwork(directory));
  const { quit: quitPort, service: servicePort } = program.ports;
  const place = { directory: join(directory, 'target'), quitPort, servicePort };
  mkdirSync(place.directory);
  const children: Child[] = [];
  const run = (name: string, command: readonly string[], env: Readonly<Record<string, string>> = {}) => {
    const child = startChild({
      name,
      command: network.wrap(command),
      env: { ...baseEnv(place.directory), ...env },
      cwd: place.directory,
    });
    children.push(child);
    return stack.use(child);
  };
  // As in a pod, it sees no process but its own, so that it has nothing but the quit endpoint.
  const alone = ['unshare', '--pid', '--fork', '--kill-child', '--mount-proc'];
  const startWatcher = (entry: string, quitTimeout = '30s') =>
    run('the watcher', [...alone, ...programs.watcher], {
      LASTSCRAPE_METRICS_URL: 'http://127.0.0.1:1/metrics',
      LASTSCRAPE_DONE_WHEN: 'port:1',
      LASTSCRAPE_START_TIMEOUT: '1ms',
      LASTSCRAPE_QUIT: entry,
      LASTSCRAPE_QUIT_TIMEOUT: quitTimeout,
      LASTSCRAPE_LOG_LEVEL: 'debug',
    });
  try {
    await play({
      place,
      network,
      run,
      async start(target, isEnabled) {
        const child = run(target.name, [findTarget(target) ?? '', ...target.args(place, isEnabled)]);
        const ports = new Set(isEnabled ? [place.quitPort, place.servicePort] : [place.servicePort]);
        for (const port of ports) await network.waitForPort(port);
        return child;
      },
      startWatcher,
      quit: (entry, quitTimeout) => ended(startWatcher(entry, quitTimeout)),
    });
  } catch (error) {
    process.stderr.write(`${children.map((child) => child.tail()).join('\n')}\n`);
    throw error;
  }
}

async function ended(watcher: Child): Promise<Result> {
  const { code } = await watcher.waitForExit(END_MS);
  const report = JSON.parse(watcher.lines.filter(({ stream }) => stream === 'stdout').at(-1)?.text ?? '{}');
  assert.equal(report.msg, 'report');
  const [target] = report.targets;
  return { code, result: target.result, hint: target.hint ?? '' };
}

/** The entry at its default ports, or with `wrongPort` for the one that is asked. */
function writeEntry({ entry }: TargetProgram, { place }: Fixture, wrongPort?: number): string {
  const port = wrongPort ?? place.quitPort;
  if (entry.includes('PORT')) return entry.replace('PORT', String(port));
  return wrongPort === undefined ? entry : `${entry}:${port}:${place.servicePort}`;
}

for (const program of TARGET_PROGRAMS) {
  const { name } = program;
  const isPreset = !program.entry.includes('PORT');

  describe(name, { concurrency: 3, skip }, () => {
    it('enabled: it is stopped, and its process ended with 0', async () => {
      await withFixture(program, async (fixture) => {
        const target = await fixture.start(program, true);
        assert.deepEqual(await fixture.quit(writeEntry(program, fixture)), { code: 0, result: 'stopped', hint: '' });
        const exit = await target.waitForExit(END_MS);
        assert.deepEqual({ code: exit.code, signal: exit.signal }, { code: 0, signal: null });
      });
    });

    it('switched off: it is not taken for gone, and the hint names what must be set', async () => {
      await withFixture(program, async (fixture) => {
        const target = await fixture.start(program, false);
        const isSeen = program.offHint !== null || !isPreset;
        const entry = isSeen ? writeEntry(program, fixture) : `${program.entry}:${fixture.place.quitPort}`;
        const { code, result, hint } = await fixture.quit(entry, '2s');
        if (program.offHint === null) {
          // Nothing distinguishes it from one that is gone, unless the port of its service is named.
          assert.deepEqual([code, result], [0, 'alreadyGone']);
          if (isPreset) {
            const named = await fixture.quit(`${entry}:${fixture.place.servicePort}`, '2s');
            assert.deepEqual([named.code, named.result], [69, 'failed']);
            assert.match(named.hint, /^its quit port refuses while \d+ answers/);
          }
        } else {
          assert.deepEqual([code, result], [69, 'failed']);
          assert.match(hint, program.offHint);
        }
        assertRuns(target);
      });
    });

    it('at a wrong port: it lives on, and with a port of its service it is not taken for gone', async () => {
      await withFixture(program, async (fixture) => {
        const target = await fixture.start(program, true);
        const { code, result, hint } = await fixture.quit(writeEntry(program, fixture, await findFreePort()), '2s');
        if (isPreset) {
          assert.deepEqual([code, result], [69, 'failed']);
          assert.match(hint, new RegExp(`refuses while ${fixture.place.servicePort} answers`));
        } else {
          assert.deepEqual([code, result], [0, 'alreadyGone']);
        }
        assertRuns(target);
      });
    });
  });
}

describe('other answers of real programs', { concurrency: 3, skip }, () => {
  const cloudSql = findRow('cloud-sql-proxy');
  it('the Cloud SQL proxy with --debug only: the admin port is open and has no quit endpoint', async () => {
    await withFixture(cloudSql, async (fixture) => {
      const debug: TargetProgram = { ...cloudSql, args: (place) => ['--debug', ...cloudSql.args(place, false)] };
      const target = await fixture.start(debug, true);
      const { code, result, hint } = await fixture.quit(writeEntry(cloudSql, fixture), '2s');
      assert.deepEqual([code, result], [69, 'failed']);
      assert.equal(hint, 'it answered 404: quitting is switched off; it needs --quitquitquit');
      assertRuns(target);
    });
  });

  const wrongMethods = [
    ['envoy', 'GET http://localhost:PORT/quitquitquit', /^it answered 405: it wants another method$/],
    ['cloud-sql-proxy', 'PUT http://localhost:PORT/quitquitquit', /^it answered 400: look into its log$/],
    ['prometheus', 'GET http://localhost:PORT/-/quit', /^it answered 405: it wants another method$/],
    ['statsd-exporter', 'GET http://localhost:PORT/-/quit', /^it answered 200 and lives on/],
    ['POST http://localhost:PORT/stop', 'GET http://localhost:PORT/stop', /^it answered 405/],
  ] as const;
  for (const [entry, wrong, expected] of wrongMethods) {
    const program = findRow(entry);
    it(`${program.name} does not end by another method: ${wrong}`, async () => {
      await withFixture(program, async (fixture) => {
        const target = await fixture.start(program, true);
        const { code, result, hint } = await fixture.quit(wrong.replace('PORT', String(fixture.place.quitPort)), '1s');
        assert.deepEqual([code, result], [69, 'failed']);
        assert.match(hint, expected);
        assertRuns(target);
      });
    });
  }

  it('an unlisted mesh proxy still answers at the end: one line names what to add, and it lives on', async () => {
    const [envoy, pushgateway] = [findRow('envoy'), findRow('pushgateway')];
    await withFixture(pushgateway, async (fixture) => {
      // The port on which the Envoy of an Istio sidecar shows its health.
      const place = { ...fixture.place, servicePort: 15021 };
      const proxy = fixture.run('Envoy', [findTarget(envoy) ?? '', ...envoy.args(place, false)]);
      await fixture.network.waitForPort(place.servicePort);
      await fixture.start(pushgateway, true);
      const watcher = fixture.startWatcher(`pushgateway:${place.quitPort}`);
      assert.equal((await watcher.waitForExit(END_MS)).code, 0);
      const warned = watcher.lines.flatMap(({ text }) => (text.includes('"warn"') ? [JSON.parse(text)] : []));
      const entries = warned.map(({ msg, port, add }) => [msg, port, add]);
      assert.deepEqual(entries, [
        [
          'a mesh proxy still runs: list it last in LASTSCRAPE_QUIT, unless it is a native sidecar',
          15021,
          'istio, as the last entry of LASTSCRAPE_QUIT',
        ],
      ]);
      assertRuns(proxy);
    });
  });
});

function findRow(entry: string): TargetProgram {
  return TARGET_PROGRAMS.find((each) => each.entry === entry) ?? assert.fail(`there is no row for ${entry}`);
}
