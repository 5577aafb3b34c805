// A run that hands over to a real keeper: what Prometheus gets of it afterwards, and what happens where the keeper
// does not take it.

import assert from 'node:assert/strict';
import { mkdirSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { test } from 'node:test';
import { askKeeper, handOver, readDownward, writeLine } from '../../src/tell/hand-over.ts';
import { startChild } from '../support/child.ts';
import { makeFolder } from '../support/folder.ts';
import { findFreePort, listen } from '../support/listen.ts';
import { answerWith, openPeer } from '../support/peer.ts';
import { inTime, startKeeper, until } from './keeper.ts';

const ROOT = join(import.meta.dirname, '../..');
const TIMEOUT_MS = 60_000;

/** A program with a page, whose number can be changed, and lastscrape before it, which hands over to that URL. */
async function startRun(handOver: string, env: Readonly<Record<string, string>> = {}) {
  const folder = makeFolder();
  const page = { text: 'jobs_done_total 1\n' };
  const program = createServer((_, response) =>
    response.writeHead(200, { 'content-type': 'text/plain' }).end(page.text),
  );
  const port = await listen(program);
  const front = await findFreePort();
  const child = startChild({
    name: 'lastscrape',
    command: [process.execPath, join(ROOT, 'bin/lastscrape.ts')],
    env: {
      LASTSCRAPE_METRICS_URL: `http://127.0.0.1:${port}/metrics`,
      LASTSCRAPE_FRONT: `127.0.0.1:${front}`,
      LASTSCRAPE_DONE_WHEN: 'sigterm',
      LASTSCRAPE_HAND_OVER: handOver,
      LASTSCRAPE_HAND_OVER_FOLDER: folder,
      LASTSCRAPE_TERMINATION_LOG: join(folder, 'message'),
      LASTSCRAPE_POLL: '100ms',
      POD_NAME: 'import-x7k2p',
      POD_NAMESPACE: 'shop',
      POD_UID: 'uid-1',
      ...env,
    },
    cwd: folder,
  });
  const frontUrl = `http://127.0.0.1:${front}/metrics`;
  const scrape = async () => {
    const headers = { 'x-prometheus-scrape-timeout-seconds': '10', accept: 'text/plain' };
    return (await fetch(frontUrl, { headers })).text();
  };
  await until('the front', TIMEOUT_MS, async () => (await scrape()).includes('jobs_done_total') || undefined);
  return {
    child,
    folder,
    front,
    page,
    scrape,
    /** Main ends: its page goes, and the kubelet sends SIGTERM. */
    end(): void {
      program.closeAllConnections();
      program.close();
      process.kill(child.pid, 'SIGTERM');
    },
    /** The report, once it has ended. */
    async report(): Promise<Record<string, unknown>> {
      await child.exited;
      return JSON.parse(child.lines.at(-1)?.text ?? '{}');
    },
    [Symbol.asyncDispose]: async () => {
      program.closeAllConnections();
      program.close();
      await child[Symbol.asyncDispose]();
    },
  };
}

test(
  'a run ends at once, and the keeper serves its last page with the same labels, formats and families',
  inTime(async (isLate) => {
    await using keeper = await startKeeper();
    await using run = await startRun(new URL(keeper.handOverUrl).origin);
    writeFileSync(join(run.folder, 'labels'), 'app="shop"\nbatch.kubernetes.io/job-name="import"');
    writeFileSync(
      join(run.folder, 'annotations'),
      `a/b="say \\"hi\\""\nlong="${'x'.repeat(2_000)}"\nprometheus.io/port="9469"\nkubernetes.io/config.seen="2026-11-24T01:13:33Z"`,
    );
    run.page.text = 'jobs_done_total 41\n';
    assert.match(await run.scrape(), /jobs_done_total 41/);
    run.page.text = 'jobs_done_total 42\n';
    process.kill(run.child.pid, 'SIGTERM');
    if (await isLate(run.child)) return 'late';
    const { outcome, handOver, exitCode, summary } = await run.report();
    assert.deepEqual([outcome, exitCode], ['handedOver', 0], JSON.stringify(run.child.lines, null, 1));
    assert.deepEqual(
      { ...(handOver as object), seconds: 0 },
      { to: new URL(keeper.handOverUrl).origin, result: 'accepted', seconds: 0 },
    );
    assert.match(String(summary), /^Handed over to http:/);
    const [target] = await keeper.listTargets();
    assert.equal(target?.labels['instance'], `127.0.0.1:${run.front}`);
    assert.equal(target.labels['__meta_kubernetes_namespace'], 'shop');
    assert.equal(target.labels['__meta_kubernetes_pod_name'], 'import-x7k2p');
    assert.equal(target.labels['__meta_kubernetes_pod_label_app'], 'shop');
    assert.equal(target.labels['__meta_kubernetes_pod_annotation_a_b'], 'say "hi"');
    assert.equal(target.labels['__meta_kubernetes_pod_controller_name'], 'import');
    assert.equal(
      Object.keys(target.labels).some((name) => /long|prometheus_io|config_seen/.test(name)),
      false,
    );
    const { text, type } = await keeper.scrape(target.labels['__metrics_path__'] ?? '');
    assert.match(text, /^jobs_done_total 42\n/, 'read once more at the end');
    assert.match(text, /^lastscrape_main_ended 1$/m, 'with the families of a held page');
    assert.match(type ?? '', /^text\/plain/);
    return 'played';
  }),
);

/** What stands in the keeper's place: what it answers, and the reason that the run shows. */
const FAULTS: readonly (readonly [name: string, why: RegExp, answer: Parameters<typeof openPeer>[0] | null])[] = [
  ['is not there', /refuses connections$/, null],
  [
    'refuses',
    /^HTTP 507: the keeper is full$/,
    (socket) => socket.write(answerWith('the keeper is full\n', '507 Full')),
  ],
  ['says 200', /^HTTP 200$/, (socket) => socket.write(answerWith('', '200 OK'))],
  ['answers nonsense', /./, (socket) => socket.write('SSH-2.0-x\r\n\r\n')],
  ['closes the connection', /./, (socket) => socket.destroy()],
  ['hangs', /did not answer in the time that was left$/, () => {}],
];

for (const [name, why, answer] of FAULTS) {
  test(`where the keeper ${name}, the pod is held until it is scraped, with the numbers that it had`, async () => {
    await using peer = answer === null ? undefined : await openPeer(answer);
    await using run = await startRun(`http://127.0.0.1:${peer?.port ?? (await findFreePort())}`);
    run.page.text = 'jobs_done_total 7\n';
    assert.match(await run.scrape(), /jobs_done_total 7/);
    run.end();
    await run.child.waitForLine(/the hand-over failed: the pod is held instead/, TIMEOUT_MS);
    assert.match(await run.scrape(), /jobs_done_total 7/);
    const { outcome, handOver } = await run.report();
    assert.equal(outcome, 'scraped');
    const { result, why: seen } = handOver as { result: string; why: string };
    assert.equal(result, 'failed');
    assert.match(seen, why);
  });
}

test('a second signal while it hands over ends the run at once', async () => {
  await using peer = await openPeer(() => {});
  await using run = await startRun(`http://127.0.0.1:${peer.port}`);
  run.end();
  await until('the request', TIMEOUT_MS, async () => peer.requests.length === 1 || undefined);
  process.kill(run.child.pid, 'SIGINT');
  const { outcome, handOver } = await run.report();
  assert.deepEqual([outcome, handOver], ['terminated', undefined]);
});

test('--check asks the keeper whether it would take a page', async () => {
  await using keeper = await startKeeper({ LASTSCRAPE_KEEPER_PAGES: '2' });
  const check = async (name: string) => {
    const folder = makeFolder();
    mkdirSync(join(folder, 'pod'));
    const child = startChild({
      name: 'check',
      command: [process.execPath, join(ROOT, 'bin/lastscrape.ts'), '--check'],
      env: {
        KUBERNETES_SERVICE_HOST: '127.0.0.1',
        LASTSCRAPE_FRONT: '9469',
        LASTSCRAPE_DONE_WHEN: 'sigterm',
        LASTSCRAPE_METRICS_URL: 'http://127.0.0.1:1/metrics',
        LASTSCRAPE_HAND_OVER: new URL(keeper.handOverUrl).origin,
        POD_NAME: name,
        POD_NAMESPACE: 'shop',
        POD_UID: 'uid-1',
      },
      cwd: folder,
    });
    await child.exited;
    return child.lines.map(({ text }) => text).find((text) => text.includes('  keeper http:'));
  };
  assert.match((await check('job-1')) ?? '', /: would take a page of this pod/);
  assert.equal(await keeper.handOver(), '201 kept');
  assert.match((await check('job-2')) ?? '', /: would take nothing now: HTTP 507: this namespace takes up half/);
  assert.match((await check('No')) ?? '', /: would take nothing now: HTTP 400: .*pod\.name/);
  assert.equal(await keeper.metric('pages'), 1);
});

test('a keeper forgets what a pod takes back', async () => {
  await using keeper = await startKeeper();
  const folder = makeFolder();
  const to = {
    url: new URL(new URL(keeper.handOverUrl).origin),
    env: { POD_NAME: 'job-1', POD_NAMESPACE: 'shop', POD_UID: 'uid-1' },
    folder,
    target: { container: '', portName: '', port: 9469 },
    signal: AbortSignal.timeout(TIMEOUT_MS),
  };
  const page = { accept: '', contentType: 'text/plain', sizeBytes: 4 };
  const read = async function* () {
    yield Buffer.from('a 1\n');
  };
  assert.deepEqual(await handOver(to, { pages: [{ ...page, read }], endedAtSeconds: 1 }), { kind: 'accepted' });
  assert.equal((await keeper.listTargets()).length, 1);
  assert.deepEqual(await askKeeper('withdraw', to), { kind: 'accepted' });
  assert.deepEqual(await keeper.listTargets(), []);
});

test('writeLine() leaves out the longest annotations until a keeper takes the line, and no label', () => {
  const annotations = Object.fromEntries(
    Array.from({ length: 60 }, (_, index) => [`a${index}`, 'x'.repeat(300 + index)]),
  );
  const pod = { namespace: 'a', name: 'b', uid: 'c', ip: '', node: '', labels: { app: 'shop' }, annotations };
  const target = { container: '', portName: '', port: 1 };
  const { line, leftOutCount } = writeLine({ pod, target, endedAtSeconds: 1, formats: [] }, 16_384);
  assert.ok(line.length <= 16_384 && line.length > 15_900, `${line.length}`);
  const written = JSON.parse(line.toString()).pod;
  assert.equal(Object.keys(written.annotations).length, 60 - leftOutCount);
  assert.equal(written.annotations.a0, annotations['a0']);
  assert.equal(written.annotations.a59, undefined);
  assert.deepEqual(written.labels, { app: 'shop' });
  const short = { ...pod, annotations: { a: 'b' } };
  assert.equal(writeLine({ pod: short, target, endedAtSeconds: 1, formats: [] }, 16_384).leftOutCount, 0);
  const labels = { ...short, labels: { app: 'x'.repeat(20_000) } };
  assert.equal(
    writeLine({ pod: labels, target, endedAtSeconds: 1, formats: [] }, 16_384).leftOutCount,
    1,
    'nothing is left to leave out',
  );
});

test('readDownward() reads labels as the kubelet quotes them', () => {
  assert.deepEqual(
    readDownward('a="1"\nb.c/d="x\\ny\\t\\"z\\""\n\nbad\nnoquote=1\ne="\\x00\\a\\v"\nf="\\U0001f600"\ng="\\q"'),
    {
      a: '1',
      'b.c/d': 'x\ny\t"z"',
      e: '\0\x07\v',
      f: '😀',
    },
  );
});
