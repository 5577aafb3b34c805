import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Answer } from '../../src/decide/quit/quit-target.ts';
import { presetKind } from '../../src/quit/http-target.ts';
import { PRESETS } from '../../src/quit/programs.ts';
import type { Target, TargetContext } from '../../src/quit/target-kind.ts';
import { answerWith, openPeer } from '../support/peer.ts';

const NEVER = new AbortController().signal;
const LIMIT_MS = 30_000;

function context(metricsUrl = 'http://localhost:9646/metrics', env = {}): TargetContext {
  return { metricsUrl: new URL(metricsUrl), env, pid: 1, kill: () => {} };
}

/** The target of an entry, the problem, or null where no preset takes it; there must not be two that do. */
function read(entry: string, given = context()): Target | string | null {
  const taken = PRESETS.flatMap((preset) => presetKind(preset).read(entry, given) ?? []);
  assert.ok(taken.length <= 1, `${entry} is taken by ${taken.length} presets`);
  const [parsed] = taken;
  if (parsed === undefined) return null;
  return 'problem' in parsed ? parsed.problem : parsed.value;
}

function target(entry: string, given = context()): Target {
  const found = read(entry, given);
  assert.ok(found !== null && typeof found !== 'string', `${entry}: ${found}`);
  return found;
}

const REQUESTS: readonly (readonly [entry: string, request: string])[] = [
  ['locust-exporter', 'POST http://localhost:9646/quitquitquit'],
  ['locust-exporter:1234', 'POST http://localhost:1234/quitquitquit'],
  ['istio', 'POST http://localhost:15020/quitquitquit'],
  ['istio:16020', 'POST http://localhost:16020/quitquitquit'],
  ['envoy', 'POST http://localhost:9901/quitquitquit'],
  ['linkerd', 'POST http://localhost:4191/shutdown'],
  ['cloud-sql-proxy', 'POST http://localhost:9091/quitquitquit'],
  ['cloud-sql-proxy:9092:6432', 'POST http://localhost:9092/quitquitquit'],
  ['alloydb-proxy', 'POST http://localhost:9091/quitquitquit'],
  ['dapr', 'POST http://localhost:3500/v1.0/shutdown'],
  ['consul-dataplane', 'POST http://localhost:20600/graceful_shutdown'],
  ['vault-agent', 'POST http://localhost:8200/agent/v1/quit'],
  ['prometheus', 'POST http://localhost:9090/-/quit'],
  ['prometheus:80', 'POST http://localhost/-/quit'],
  ['pushgateway', 'POST http://localhost:9091/-/quit'],
  ['statsd-exporter', 'POST http://localhost:9102/-/quit'],
];

test('read() makes the request that the table says, with another port where one is given', () => {
  for (const [entry, request] of REQUESTS) {
    assert.equal(target(entry).name, entry);
    assert.equal(target(entry).request, request, entry);
  }
});

test('read() wants a port for a preset of METRICS_URL where that is a file', () => {
  const given = context('file:///shared/job.prom');
  assert.match(
    String(read('locust-exporter', given)),
    /^locust-exporter:PORT where LASTSCRAPE_METRICS_URL has no port/,
  );
  assert.equal(target('locust-exporter:9646', given).request, 'POST http://localhost:9646/quitquitquit');
  assert.equal(target('istio', given).request, 'POST http://localhost:15020/quitquitquit');
});

test('read() takes its own name only, and ports that exist', () => {
  for (const entry of ['', 'none', 'locust', 'Istio', 'istio ', 'istiod', 'http://localhost/', 'signal:envoy']) {
    assert.equal(read(entry), null, entry);
  }
  for (const ports of [':', ':0', ':65536', ':x', ':1:', ':1:0', ':1:2:3', ':-1', '::1', ':123456', ': 1']) {
    const must = 'envoy, envoy:PORT or envoy:PORT:SERVICE_PORT, with ports from 1 to 65535';
    assert.equal(read(`envoy${ports}`), must, ports);
  }
});

test('read() asks the Locust exporter at the host and port of METRICS_URL, without its path and query', () => {
  for (const [metricsUrl, request] of [
    ['http://127.0.0.1:1/a/b?c=d', 'POST http://127.0.0.1:1/quitquitquit'],
    ['http://[::1]/metrics', 'POST http://[::1]/quitquitquit'],
  ] as const) {
    assert.equal(target('locust-exporter', context(metricsUrl)).request, request);
  }
});

test('ask() gets what the Locust exporter gives: the end of the connection', async () => {
  await using peer = await openPeer((socket) => socket.end());
  const answer = await target('locust-exporter', context(peer.url.href)).ask(LIMIT_MS, NEVER);
  assert.deepEqual(answer, { kind: 'dropped' });
  assert.equal(peer.requests[0]?.split('\r\n')[0], 'POST /quitquitquit HTTP/1.1');
});

/** The value of a header that a preset sends with this environment; undefined: it is not sent. */
async function readHeader(preset: string, name: string, env: Readonly<Record<string, string>>) {
  await using peer = await openPeer((socket) => socket.write(answerWith('')));
  await target(`${preset}:${peer.port}`, context(undefined, env)).ask(LIMIT_MS, NEVER);
  const line = peer.requests[0]?.split('\r\n').find((each) => each.toLowerCase().startsWith(`${name}: `));
  return line?.slice(name.length + 2);
}

test('ask() sends the headers that a program wants, and no token where none is set', async () => {
  assert.equal(await readHeader('vault-agent', 'x-vault-request', {}), 'true');
  assert.equal(await readHeader('dapr', 'dapr-api-token', { DAPR_API_TOKEN: ' s3cret\n' }), 's3cret');
  assert.equal(await readHeader('dapr', 'dapr-api-token', { DAPR_API_TOKEN: 'ä' }), 'ä');
  assert.equal(await readHeader('dapr', 'dapr-api-token', { DAPR_API_TOKEN: '  ' }), undefined);
  assert.equal(await readHeader('dapr', 'dapr-api-token', {}), undefined);
  assert.equal(await readHeader('envoy', 'dapr-api-token', { DAPR_API_TOKEN: 's3cret' }), undefined);
});

test('read() takes no token that a header cannot carry, and does not show it', () => {
  for (const token of ['s3cret\nhost: x', 's3cret\u0000', 's3cret€', 's3cret\u007f']) {
    assert.equal(
      read('dapr', context(undefined, { DAPR_API_TOKEN: token })),
      'dapr with a DAPR_API_TOKEN that a header can carry: without line breaks, other control characters, and characters beyond Latin-1',
    );
    assert.notEqual(typeof read('envoy', context(undefined, { DAPR_API_TOKEN: token })), 'string');
  }
});

test('inspect() names what a preset needs to quit, but where an open port shows that it has it', async () => {
  await using open = await openPeer(() => {});
  const inspect = async (preset: string) => (await target(`${preset}:${open.port}`).inspect?.())?.[0];
  assert.equal(await inspect('cloud-sql-proxy'), `answers on ${open.port}; it quits only with --quitquitquit`);
  assert.equal(await inspect('consul-dataplane'), `answers on ${open.port}`);
  assert.equal(await inspect('envoy'), `answers on ${open.port}`);
});

test('read() gives the time that a program needs, and whether it carries scrapes and reports', () => {
  assert.equal(target('istio').isMesh, true);
  assert.equal(target('dapr').isMesh, false);
  assert.equal(target('consul-dataplane').needsMs, 30_000);
});

const answered = (status: number, isHtml = false): Answer => ({ kind: 'answered', status, isHtml });
const DISABLED: Answer = { kind: 'disabled', port: 5432 };

const HINTS: readonly (readonly [preset: string, answer: Answer, hint: RegExp])[] = [
  ['locust-exporter', answered(200, true), /before v0\.5\.0 has no \/quitquitquit$/],
  ['locust-exporter', answered(200), /lives on/],
  ['locust-exporter', { kind: 'dropped' }, /listens again/],
  ['istio', answered(403), /^it answered 403: .*loopback only/],
  ['istio', answered(404), /not pilot-agent/],
  ['istio', answered(405), /another method/],
  ['istio', DISABLED, /status\.sidecar\.istio\.io\/port/],
  ['envoy', answered(404), /not the admin interface/],
  ['envoy', DISABLED, /^its quit port refuses while 5432 answers: it needs an admin listener/],
  ['linkerd', answered(404), /switched off; it needs .*proxy-admin-shutdown: enabled$/],
  ['linkerd', answered(403), /loopback only/],
  ['linkerd', answered(500), /drains open connections/],
  ['cloud-sql-proxy', answered(404), /switched off; it needs --quitquitquit$/],
  ['cloud-sql-proxy', answered(400), /look into its log/],
  ['cloud-sql-proxy', DISABLED, /^its quit port refuses while 5432 answers: it needs --quitquitquit$/],
  ['alloydb-proxy', DISABLED, /--quitquitquit$/],
  ['dapr', answered(401), /the same DAPR_API_TOKEN$/],
  ['dapr', answered(404), /not the HTTP port of daprd/],
  ['consul-dataplane', DISABLED, /enable-sidecar-proxy-lifecycle/],
  ['consul-dataplane', answered(404), /graceful-shutdown-path/],
  ['consul-dataplane', answered(200), /^it answered 200: it waits .*QUIT_TIMEOUT must be longer$/],
  ['vault-agent', answered(404), /enable_quit = true/],
  ['vault-agent', answered(400), /TLS/],
  ['prometheus', answered(403), /switched off; it needs --web\.enable-lifecycle$/],
  ['prometheus', answered(200, true), /page of HTML/],
  ['pushgateway', answered(403), /--web\.enable-lifecycle$/],
  ['statsd-exporter', answered(404), /--web\.enable-lifecycle$/],
  ['statsd-exporter', answered(403), /wants credentials/],
];

for (const [preset, answer, expected] of HINTS) {
  test(`hint() of ${preset} knows ${JSON.stringify(answer)}`, () => {
    const hint = target(preset).hint(answer);
    assert.match(hint, expected);
    assert.ok(hint.length <= 160, 'there is room for it in the report');
  });
}
