// A job with client_golang before a front: the bytes of each format, direct, through it, and when it is gone.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { closedPort } from '../support/peer.ts';
import { frontProgram, gateFront, LASTSCRAPE } from './front-programs.ts';

const ACCEPTS = [
  'text/plain;version=0.0.4',
  'text/plain;version=1.0.0;escaping=allow-utf-8',
  'application/openmetrics-text;version=1.0.0;escaping=allow-utf-8',
  'application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited;escaping=allow-utf-8',
];
const END = '# EOF\n';

type Page = { readonly type: string; readonly bytes: Buffer };

async function ask(url: string, accept: string): Promise<Page> {
  const headers = { accept, 'x-prometheus-scrape-timeout-seconds': '10', 'user-agent': 'Prometheus/3' };
  const answer = await fetch(url, { headers });
  const bytes = Buffer.from(await answer.arrayBuffer());
  assert.equal(answer.status, 200, bytes.toString());
  return { type: answer.headers.get('content-type') ?? '', bytes };
}

/** The page of the front is that of the job, and our families behind it, before the last line. */
function compare(front: Page, job: Page, accept: string): void {
  assert.equal(front.type, job.type, accept);
  const isOpen = job.type.startsWith('application/openmetrics-text');
  const page = isOpen ? job.bytes.subarray(0, -END.length) : job.bytes;
  assert.ok(front.bytes.subarray(0, page.length).equals(page), accept);
  assert.ok(front.bytes.includes('lastscrape_source_up', page.length), accept);
  assert.equal(front.bytes.toString('latin1').endsWith(END), isOpen, accept);
}

const skip = gateFront('test/pods/front-formats.test.ts', ['goClient']);

test('client_golang through the front: the same bytes in every format, also when it is gone', { skip }, async (t) => {
  const job = spawn(frontProgram('goClient'), { stdio: ['pipe', 'pipe', 'inherit'] });
  t.after(() => job.kill('SIGKILL'));
  const [ready] = await once(job.stdout.setEncoding('utf8'), 'data');
  const source = `http://127.0.0.1:${/ready (\d+)/.exec(ready)?.[1]}/metrics`;
  const port = await closedPort();
  const [file = '', ...args] = LASTSCRAPE;
  const env = {
    LASTSCRAPE_METRICS_URL: source,
    LASTSCRAPE_FRONT: `127.0.0.1:${port}`,
    LASTSCRAPE_DONE_WHEN: 'sigterm',
    LASTSCRAPE_POLL: '100ms',
    LASTSCRAPE_SCRAPES: '5',
    LASTSCRAPE_TERMINATION_LOG: '/dev/null',
  };
  const watcher = spawn(file, args, { env, stdio: ['ignore', 'ignore', 'inherit'] });
  t.after(() => watcher.kill('SIGKILL'));
  const url = `http://127.0.0.1:${port}/metrics`;
  while ((await fetch(url).catch(() => null))?.status !== 200) await delay(50);
  job.stdin.write('\n'.repeat(5));
  for (let text = ''; !text.includes('row 5'); ) text += (await once(job.stdout, 'data'))[0];
  for (const accept of ACCEPTS) compare(await ask(url, accept), await ask(source, accept), accept);
  job.stdin.write('\n');
  for (let text = ''; !text.includes('row 6'); ) text += (await once(job.stdout, 'data'))[0];
  const last = await Promise.all(ACCEPTS.map((accept) => ask(source, accept)));
  assert.equal((await fetch(`http://127.0.0.1:${port}/-/snapshot`, { method: 'POST' })).status, 200);
  job.stdin.end();
  await once(job, 'exit');
  watcher.kill('SIGTERM');
  for (const [index, accept] of ACCEPTS.entries()) compare(await ask(url, accept), last[index] as Page, accept);
});
