import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ConditionObservation } from '../../src/decide/model.ts';
import type { Condition } from '../../src/observe/condition-kind.ts';
import { combineContainers, containerKind, openPodSource, selectContainers } from '../../src/observe/container.ts';
import { RUNNING_AGE_MS } from '../../src/pod/pod-request.ts';
import { type ContainerState, type Pod, readPod } from '../../src/pod/pod-status.ts';
import { type ApiAnswerer, give, makePodEnvironment, openApiServer, refuse } from '../stand-in/api-server.ts';
import { gateOpenssl, makeAuthority } from '../stand-in/authority.ts';
import { readRecordedText } from '../support/recording.ts';
import { CONTEXT, UNDISTURBED } from './condition-context.ts';

const skip = gateOpenssl('test/observe/container.test.ts');
const authority = makeAuthority();
const ALIVE: ContainerState = { kind: 'alive', seen: 'running' };
const DONE = (exitCode: number): ContainerState => ({ kind: 'done', seen: `ended with ${exitCode}`, exitCode });
const WAITING: ContainerState = { kind: 'notStarted', seen: 'not started (ImagePullBackOff)' };

function makePod(states: Readonly<Record<string, ContainerState>>, always: readonly string[] = []): Pod {
  const containers = Object.entries(states).map(([name, state]) => ({
    name,
    state,
    isAlwaysRestarted: always.includes(name),
  }));
  return { uid: 'u', containers, initNames: ['setup', 'native'] };
}

const POD = makePod({ load: ALIVE, proxy: ALIVE, lastscrape: ALIVE });

function selectNames(pod: Pod, argument: string, sidecars: readonly string[] = [], own: string | null = null): string {
  const selected = selectContainers(pod, argument, sidecars, own === null ? null : { podUid: 'u', name: own });
  return 'problem' in selected ? selected.problem : selected.containers.map(({ name }) => name).join(' ');
}

/** lastscrape's container has another name. */
const UNNAMED = makePod({ load: ALIVE, watcher: ALIVE });
const NO_OWN = 'it is not known which container is lastscrape\'s own; name it "lastscrape", or in LASTSCRAPE_SIDECARS';

const SELECTIONS: readonly (readonly [string, Parameters<typeof selectNames>, string])[] = [
  ['one', [POD, 'load'], 'load'],
  ['every one but itself', [POD, '*'], 'load proxy'],
  ['every one but the sidecars and itself', [POD, '*', ['proxy']], 'load'],
  ['a native sidecar among the sidecars', [POD, '*', ['native', 'proxy']], 'load'],
  ['every one but itself, by the mounts', [UNNAMED, '*', [], 'watcher'], 'load'],
  [
    'a main container that is named lastscrape',
    [makePod({ lastscrape: ALIVE, watcher: ALIVE }), '*', [], 'watcher'],
    'lastscrape',
  ],
  ['itself among the sidecars, where nothing else says it', [UNNAMED, '*', ['watcher']], 'load'],
  ['a sidecar named alone', [POD, 'proxy', ['proxy']], 'proxy'],
  ['an unknown name', [POD, 'lode'], 'this pod has no such container; must be one of "load", "proxy"'],
  ['an init container', [POD, 'native'], 'it is an init container; must be one of "load", "proxy"'],
  [
    'lastscrape itself',
    [POD, 'lastscrape'],
    'it is lastscrape\'s own container; must be another of "load", "proxy", "lastscrape"',
  ],
  ['what an injector may have added, and has not', [POD, '*', ['istio-proxy', 'proxy']], 'load'],
  ['no container of its own, and an injected sidecar that is not there', [UNNAMED, '*', ['istio-proxy']], NO_OWN],
  [
    'an unknown sidecar',
    [POD, '*', ['cloud-proxy', 'proxy']],
    'LASTSCRAPE_SIDECARS names "cloud-proxy", which this pod does not have; it has "load", "proxy", "lastscrape", "setup", "native"',
  ],
  [
    'nothing that is left',
    [POD, '*', ['proxy', 'load']],
    'no container is left to watch of "load", "proxy", "lastscrape"; name fewer sidecars',
  ],
  ['no container of its own', [UNNAMED, '*'], NO_OWN],
  [
    'one that is always restarted',
    [makePod({ load: ALIVE, lastscrape: ALIVE }, ['load', 'lastscrape']), 'load'],
    'restartPolicy Always restarts "load" whatever the exit code; must be OnFailure or Never, as in a Job',
  ],
];

for (const [name, parameters, expected] of SELECTIONS) {
  test(`selectContainers() finds ${name}`, () => assert.equal(selectNames(...parameters), expected));
}

const COMBINATIONS: readonly (readonly [string, Readonly<Record<string, ContainerState>>, ConditionObservation])[] = [
  [
    'alive where one is',
    { a: DONE(1), b: WAITING, c: ALIVE },
    { kind: 'alive', seen: 'container c running', exitCodes: { a: 1 } },
  ],
  [
    'not started where one was not',
    { a: DONE(0), b: WAITING },
    { kind: 'notStarted', why: 'container b not started (ImagePullBackOff)', exitCodes: { a: 0 } },
  ],
  [
    'done where all are',
    { a: DONE(0), b: DONE(137) },
    {
      kind: 'done',
      seen: 'container a ended with 0, container b ended with 137',
      provesWasAlive: true,
      exitCodes: { a: 0, b: 137 },
    },
  ],
];

for (const [name, states, expected] of COMBINATIONS) {
  test(`combineContainers() is ${name}`, () =>
    assert.deepEqual(combineContainers(makePod(states).containers), expected));
}

function recorded(file: string): string {
  return readRecordedText(`kubernetes-1.36.3/${file}.json`);
}

const giveNever: ApiAnswerer = (_, response) => give(response, recorded('never'));
const forbid: ApiAnswerer = (_, response) => refuse(response, 403);

/** Watches with these entries the pod that the server gives, with a clock that the test moves. */
async function watch(entries: readonly string[], answer: ApiAnswerer, sidecars: readonly string[] = []) {
  const server = await openApiServer({ authority, answer });
  const { environment, advance } = makePodEnvironment(server.accountFolder);
  const pod = openPodSource(server.env, environment);
  const conditions = entries.map((entry) => {
    const parsed = containerKind.read(entry, { pid: 1, pod, sidecars });
    assert.ok('value' in parsed, entry);
    return parsed.value;
  });
  return {
    ...{ server, conditions, advance },
    observe: (index = 0) => (conditions[index] as Condition).observe(UNDISTURBED),
    async [Symbol.asyncDispose]() {
      await pod.close();
      await server[Symbol.asyncDispose]();
    },
  };
}

test('observe() follows a container from its start through restarts, and asks every 5 s meanwhile', {
  skip,
}, async () => {
  let file = 'on-failure.1-waiting';
  await using watched = await watch(['fails', 'good'], (_, response) => give(response, recorded(file)));
  const { server, observe, advance } = watched;
  const why = 'container fails not started (PodInitializing)';
  assert.deepEqual(await observe(), { kind: 'notStarted', why, exitCodes: {} });
  file = 'on-failure.2-running';
  assert.equal((await observe()).kind, 'notStarted', 'served again');
  advance(RUNNING_AGE_MS);
  assert.deepEqual(await observe(), { kind: 'alive', seen: 'container fails running', exitCodes: {} });
  for (const [next, seen] of [
    ['on-failure.3-ended', 'ended with 3, to be restarted'],
    ['on-failure.4-crash-loop', 'to be restarted (CrashLoopBackOff)'],
  ]) {
    file = next as string;
    advance(RUNNING_AGE_MS);
    assert.deepEqual(await observe(), { kind: 'alive', seen: `container fails ${seen}`, exitCodes: {} });
  }
  assert.equal(server.requests.length, 4);
  const done = { kind: 'done', seen: 'container good ended with 0', provesWasAlive: true };
  assert.deepEqual(await observe(1), { ...done, answerNumber: 4, exitCodes: { good: 0 } });
  assert.equal(server.requests.length, 4, 'conditions share an answer');
});

test('observe() proves "done" once for each answer, with an answer for each observation at first', {
  skip,
}, async () => {
  await using watched = await watch(['load'], giveNever);
  const { server, observe, advance } = watched;
  const numbers: unknown[] = [];
  for (let count = 0; count < 21; count++) {
    const observation = await observe();
    assert.ok(observation.kind === 'done');
    numbers.push(observation.answerNumber);
    advance(500);
  }
  assert.deepEqual(numbers, [...Array(20).keys()].map((index) => index + 1).concat(20));
  assert.equal(server.requests.length, 20);
  advance(RUNNING_AGE_MS);
  const done = { kind: 'done', seen: 'container load ended with 3', provesWasAlive: true };
  assert.deepEqual(await observe(), { ...done, answerNumber: 21, exitCodes: { load: 3 } });
});

test('observe() says what keeps it from seeing, and what to do', { skip }, async () => {
  await using forbidden = await watch(['load'], forbid);
  const observed = await forbidden.observe();
  assert.ok(observed.kind === 'blind');
  assert.equal(observed.why, 'container load unknown: HTTP 403');
  assert.match(String(observed.problem), /kubectl create role lastscrape/);
  await using broken = await watch(['load'], (_, response) => response.writeHead(503).end());
  const unseen = await broken.observe();
  assert.ok(unseen.kind === 'blind' && unseen.problem === undefined);
  await using mistyped = await watch(['lode'], giveNever);
  const problem = 'this pod has no such container; must be one of "load"';
  assert.deepEqual(await mistyped.observe(), { kind: 'blind', why: `container lode unknown: ${problem}`, problem });
});

test('check() finds what can never work, and asks three times before it believes a refusal', { skip }, async () => {
  await using mistyped = await watch(['load', '*', 'lode'], giveNever);
  const problems = [];
  for (const { check } of mistyped.conditions) problems.push(await check?.());
  assert.deepEqual(problems, [null, null, 'this pod has no such container; must be one of "load"']);
  assert.equal(mistyped.server.requests.length, 1);
  await using forbidden = await watch(['load', '*'], forbid);
  for (const { check } of forbidden.conditions) assert.match(String(await check?.()), /create the Role/);
  assert.equal(forbidden.server.requests.length, 3, 'for all conditions together');
  await using allowed = await watch(['load'], (request, response, count) =>
    (count < 2 ? forbid : giveNever)(request, response, count),
  );
  assert.equal(await allowed.conditions[0]?.check?.(), null);
  await using broken = await watch(['load'], (_, response) => response.writeHead(500).end());
  assert.equal(await broken.conditions[0]?.check?.(), null, 'that may pass');
  assert.equal(broken.server.requests.length, 1);
});

test('inspect() shows the states of the containers', { skip }, async () => {
  const body = recorded('on-failure.3-ended');
  const sidecars = ['noimage', 'native'];
  await using watched = await watch(['*', 'good', 'lode'], (_, response) => give(response, body), sidecars);
  const lines = [];
  for (const { inspect } of watched.conditions) lines.push(await inspect?.());
  assert.deepEqual(lines, [
    ['fails ended with 3, to be restarted', 'good ended with 0', 'oom ended with 137 (OOMKilled), to be restarted'],
    ['good ended with 0'],
    ['this pod has no such container; must be one of "fails", "good", "oom", "noimage"'],
  ]);
  await using missing = await watch(['load'], (_, response) => refuse(response, 404));
  const unknown = 'unknown: pod load-tests/load-x7k2p is not there (HTTP 404)';
  assert.deepEqual(await missing.conditions[0]?.inspect?.(), [unknown]);
});

test('read() takes the name of a container, or all', () => {
  for (const argument of ['load', 'a', '1-a', '*', 'a'.repeat(63)])
    assert.ok('value' in containerKind.read(argument, CONTEXT), argument);
  for (const argument of ['', 'Load', '-a', 'a-', 'a.b', 'a b', '**', 'a*', 'a'.repeat(64), 'a/b']) {
    const taken = containerKind.read(argument, CONTEXT);
    assert.deepEqual(taken, { problem: 'the name of a container such as "load", or "*"' }, argument);
  }
});

test('selectContainers() works on what a real API server said', () => {
  const reading = readPod(recorded('rules'));
  assert.ok('pod' in reading);
  assert.equal(selectNames(reading.pod, '*', ['in']), 'notin onfailure');
});
