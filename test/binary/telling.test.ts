// The program as a process, with a push and a webhook: what arrives, in which order, and receivers that fail.

import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { gateOpenssl, makeAuthority } from '../stand-in/authority.ts';
import { makeFolder } from '../support/folder.ts';
import { openPeer } from '../support/peer.ts';
import { gateNamespaces } from '../support/pid-namespace.ts';
import { openHttp, openHttps } from '../support/receiver.ts';
import { until } from '../support/until.ts';
import { COMMAND, openPod, type Pod, startWatcher, type Watcher } from '../support/watcher.ts';

const skip = gateOpenssl('test/binary/telling.test.ts');
const folder = makeFolder();

async function runToTheEnd(
  pod: Pod,
  env: Readonly<Record<string, string>>,
  whileHeld: (watcher: Watcher) => Promise<void> = async () => {},
) {
  const watcher = startWatcher({ ...pod.env, LASTSCRAPE_TTL: '1s', ...env });
  await watcher.said('main is running');
  pod.locust.kill();
  await whileHeld(watcher);
  return watcher.ended;
}

type Push = { readonly to: string; readonly result: string; readonly why?: string };

function readPush(report: Readonly<Record<string, unknown>> | undefined): Push {
  return report?.['push'] as Push;
}

test('unscraped: the last numbers are pushed, then the exporter quits, then the webhook is called', async () => {
  await using pod = await openPod();
  const order: string[] = [];
  await using gateway = await openHttp((response) => {
    order.push(`push, exporter ${pod.exporter.isOpen ? 'open' : 'gone'}`);
    response.end();
  });
  await using hook = await openHttp((response) => {
    order.push(`webhook, exporter ${pod.exporter.isOpen ? 'open' : 'gone'}`);
    response.end();
  });
  const { code, report, log } = await runToTheEnd(pod, {
    LASTSCRAPE_PUSH: `pushgateway+http://localhost:${gateway.port}`,
    LASTSCRAPE_PUSH_LABELS: 'job=checkout',
    LASTSCRAPE_WEBHOOK: `http://localhost:${hook.port}/hook`,
  });
  assert.deepEqual(order, ['push, exporter open', 'webhook, exporter gone']);
  assert.equal(code, 0);
  assert.equal(report?.['outcome'], 'expired');
  const [{ method, url, body } = assert.fail('nothing was pushed')] = gateway.seen;
  assert.deepEqual([method, url], ['PUT', '/metrics/job/checkout']);
  assert.match(body, /^locust_up\S* 0$/m);
  assert.match(body, /^locust_users\S* \d+$/m, 'what vanished with Locust is there as it last was');
  const told = JSON.parse(hook.seen[0]?.body ?? '');
  const push = readPush(report);
  assert.deepEqual([push.to, push.result], ['pushgateway', 'accepted']);
  assert.deepEqual([told.outcome, told.push, told.targets], ['expired', push, report?.['targets']]);
  assert.match(
    told.text,
    /^Not scraped within 1 s after main ended; last numbers pushed \(pushgateway\); locust-exporter stopped\nnothing has /,
  );
  assert.deepEqual(pod.message()['push'], push);
  const messages = log.map(({ msg }) => msg);
  assert.deepEqual(messages, [
    ...['watching', 'main is running', 'main ended', 'quitting', 'pushing the last numbers'],
    ...['the last numbers were pushed', 'target stopped', 'the webhook accepted the report', 'report'],
  ]);
});

test('a last answer that may be cut is asked for again before it is pushed', async () => {
  const flag = join(folder, 'ended');
  const pages = ['a 1\nb 1\nc 1\n', 'a 2\nb 2\nc 2\n', 'a 3\nb 3\n', 'a 4\n', 'a 5\n'];
  await using exporter = await openPeer((socket, _, count) => {
    if (count === 2) writeFileSync(flag, '');
    socket.end(`HTTP/1.0 200 OK\r\n\r\n${pages[count] ?? ''}`);
  });
  await using gateway = await openHttp();
  const { report } = await startWatcher({
    LASTSCRAPE_METRICS_URL: exporter.url.href,
    LASTSCRAPE_DONE_WHEN: `file:${flag}`,
    LASTSCRAPE_POLL: '100ms',
    LASTSCRAPE_SETTLE: '0',
    LASTSCRAPE_SCRAPES: '0',
    LASTSCRAPE_QUIT: 'none',
    LASTSCRAPE_PUSH: `pushgateway+http://localhost:${gateway.port}`,
    LASTSCRAPE_PUSH_WHEN: 'always',
  }).ended;
  assert.equal(readPush(report).result, 'accepted');
  assert.match(gateway.seen[0]?.body ?? '', /^a 5$/m);
});

test('secrets appear only in the requests, even where a receiver echoes them', async () => {
  await using pod = await openPod();
  const headersFile = join(folder, 'headers');
  writeFileSync(headersFile, 'Authorization: Bearer s3cretToken\n');
  const echo = (response: import('node:http').ServerResponse, seen: { headers: object; url: string }) =>
    response.writeHead(403).end(`no: ${JSON.stringify(seen.headers)} ${seen.url}`);
  await using gateway = await openHttp(echo);
  await using hook = await openHttp(echo);
  const { code, stdout, stderr, report } = await runToTheEnd(pod, {
    LASTSCRAPE_LOG_LEVEL: 'debug',
    LASTSCRAPE_PUSH: `otlp+http://localhost:${gateway.port}/services/s3cretPush?key=s3cretKey`,
    LASTSCRAPE_PUSH_HEADERS_FILE: headersFile,
    LASTSCRAPE_WEBHOOK: `http://localhost:${hook.port}/services/s3cretPath`,
    LASTSCRAPE_WEBHOOK_HEADERS_FILE: headersFile,
  });
  assert.equal(code, 0, 'never an exit code');
  assert.equal(gateway.seen[0]?.headers.authorization, 'Bearer s3cretToken');
  assert.equal(hook.seen[0]?.headers.authorization, 'Bearer s3cretToken');
  assert.match(JSON.stringify(report?.['push']), /"result":"failed".*HTTP 403: no: /);
  assert.match(stdout, /the webhook did not accept the report/);
  for (const text of [stdout, stderr, JSON.stringify(pod.message())]) assert.doesNotMatch(text, /s3cret/);
});

test('a file that is not there yet: a warning at the start, and the push has it at the end', async () => {
  await using pod = await openPod();
  await using gateway = await openHttp();
  const headersFile = join(folder, 'late');
  const wanted = `the headers file ${headersFile} cannot be read: ENOENT`;
  const { log, report } = await runToTheEnd(
    pod,
    {
      LASTSCRAPE_TTL: '1s',
      LASTSCRAPE_PUSH: `pushgateway+http://localhost:${gateway.port}`,
      LASTSCRAPE_PUSH_HEADERS_FILE: headersFile,
    },
    async ({ said }) => {
      await said('a file for the push or the webhook cannot be used: it is read again before sending');
      writeFileSync(headersFile, 'Authorization: Bearer late\n');
    },
  );
  assert.equal(log.find(({ msg }) => msg?.toString().startsWith('a file for the push'))?.['why'], wanted);
  assert.equal(readPush(report).result, 'accepted');
  assert.equal(gateway.seen[0]?.headers.authorization, 'Bearer late');
});

test('TLS: a webhook whose authority is given, in the program itself', { skip }, async () => {
  await using pod = await openPod();
  const authority = makeAuthority();
  const caFile = join(folder, 'ca.pem');
  writeFileSync(caFile, authority.ca);
  await using hook = await openHttps(authority.sign(['DNS:localhost']));
  const env = {
    LASTSCRAPE_SCRAPES: '0',
    LASTSCRAPE_QUIT: 'none',
    LASTSCRAPE_WEBHOOK: `https://localhost:${hook.port}/`,
  };
  const { log } = await runToTheEnd(pod, { ...env, LASTSCRAPE_CA_FILE: caFile });
  assert.ok(log.some(({ msg }) => msg === 'the webhook accepted the report'));
  assert.equal(JSON.parse(hook.seen[0]?.body ?? '').outcome, 'released');
});

test('a signal in the middle of a push that hangs: what is left of the grace counts, and the exporter still quits', async () => {
  await using pod = await openPod();
  await using silent = await openPeer(() => {});
  const { code, report } = await runToTheEnd(
    pod,
    { LASTSCRAPE_TERMINATION_GRACE: '2s', LASTSCRAPE_PUSH: `pushgateway+http://localhost:${silent.port}` },
    async ({ child }) => {
      await until('a request', 30_000, async () => (silent.requests.length > 0 ? true : undefined));
      child.kill('SIGTERM');
    },
  );
  assert.equal(code, 0);
  const push = readPush(report);
  assert.equal(push.result, 'failed');
  assert.match(push.why ?? '', /^localhost:\d+ did not answer in the time that was left$/);
  assert.equal(pod.exporter.isOpen, false);
});

test('killed in the middle of a push and started again: it is pushed again', async () => {
  await using pod = await openPod();
  await using silent = await openPeer(() => {});
  const { code } = await runToTheEnd(
    pod,
    { LASTSCRAPE_PUSH: `pushgateway+http://localhost:${silent.port}` },
    async ({ child }) => {
      await until('a request', 30_000, async () => (silent.requests.length > 0 ? true : undefined));
      assert.equal(pod.message()['summary'], 'Unfinished: quitting');
      child.kill('SIGKILL');
    },
  );
  assert.equal(code, null);
  await using gateway = await openHttp();
  const again = await startWatcher({
    ...pod.env,
    LASTSCRAPE_TTL: '1s',
    LASTSCRAPE_PUSH: `pushgateway+http://localhost:${gateway.port}`,
  }).ended;
  assert.equal(readPush(again.report).result, 'accepted');
  assert.equal(gateway.seen.length, 1);
});

test('a name service that never answers: the webhook is given up within the grace, and the process ends', {
  skip: gateNamespaces('test/binary/telling.test.ts'),
}, async () => {
  writeFileSync(join(folder, 'resolv.conf'), 'nameserver 127.0.0.1\noptions timeout:5 attempts:5\n');
  writeFileSync(join(folder, 'nsswitch.conf'), 'hosts: dns\n');
  const service = `require('dgram').createSocket('udp4').bind(53, '127.0.0.1', () => console.log('bound'))`;
  const script = [
    'ip link set lo up',
    ...['resolv.conf', 'nsswitch.conf'].map((file) => `mount --bind '${folder}/${file}' /etc/${file}`),
    `mkfifo '${folder}/bound'`,
    `'${process.execPath}' -e "${service}" > '${folder}/bound' & service=$!`,
    `read bound < '${folder}/bound'`,
    '"$@" & program=$!',
    "trap 'kill -TERM $program' TERM",
    'wait $program || wait $program; code=$?',
    'kill $service; exit $code',
  ].join('\n');
  const command = ['unshare', '-n', '-m', 'sh', '-c', script, 'sh', ...COMMAND];
  const watcher = startWatcher(
    {
      PATH: process.env['PATH'] ?? '',
      LASTSCRAPE_DONE_WHEN: 'sigterm',
      LASTSCRAPE_SCRAPES: '0',
      LASTSCRAPE_TERMINATION_GRACE: '3s',
      LASTSCRAPE_WEBHOOK: 'http://slow.example/hook',
    },
    [],
    command,
  );
  await watcher.said('watching');
  watcher.child.kill('SIGTERM');
  const { code, log } = await watcher.ended;
  const failed = log.find(({ msg }) => msg === 'the webhook did not accept the report');
  assert.deepEqual([code, failed?.['why']], [0, 'slow.example:80 did not answer in the time that was left']);
});
