import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { LogEntry } from '../../src/decide/messages.ts';
import type { ConditionObservation, ExporterObservation, FrontObservation, Limits } from '../../src/decide/model.ts';
import type { Answer, Probe } from '../../src/decide/quit/quit-target.ts';
import { PUSH_MAX_MS } from '../../src/decide/quit/quitting.ts';
import type { ServedScrape } from '../../src/decide/serve/scrapers.ts';
import type { MainView } from '../../src/decide/serve/serve.ts';
import type { FrontEvent, State, TargetReport } from '../../src/decide/state.ts';
import type { Condition, ExporterReading } from '../../src/observe/condition-kind.ts';
import { beginObservation, type Sources } from '../../src/observe/observation.ts';
import type { Target } from '../../src/quit/target-kind.ts';
import { type LoopParts, runLoop } from '../../src/run/loop.ts';
import { ALIVE, ANSWERED, DEFAULT_LIMITS, DONE, REFUSED } from '../decide/phases.ts';
import { VirtualClock } from '../support/virtual-clock.ts';

const LIMITS: Limits = {
  ...DEFAULT_LIMITS,
  ttlMs: 10_000,
  settleMs: 1_000,
  startTimeoutMs: 60_000,
  terminationGraceMs: 5_000,
};

/** A front with a snapshot, and no answer on its way. */
const SEEN: FrontObservation = { answeredAtMs: 0, inFlightCount: 0 };

type Script = {
  /** When main ends, unless conditions of its own show that. Default: it is done from the beginning. */
  readonly endsAtMs?: number;
  readonly limits?: Partial<Limits>;
  readonly conditions?: readonly Condition[];
  readonly read?: Sources['readExporter'];
  readonly targets?: readonly Target[];
  readonly isDryRun?: boolean;
  readonly front?: NonNullable<LoopParts['front']>;
  readonly push?: LoopParts['push'];
  readonly callWebhook?: LoopParts['callWebhook'];
  readonly hasTombstone?: boolean;
};

function world(script: Script) {
  const clock = new VirtualClock();
  const first = new AbortController();
  const second = new AbortController();
  const log: LogEntry[] = [];
  const progress: string[] = [];
  let terminatedAtMs: number | null = null;
  const { endsAtMs = 0 } = script;
  const conditions = script.conditions ?? [buildCondition('port', () => (clock.nowMs() < endsAtMs ? ALIVE : DONE))];
  const targets = script.targets ?? [];
  const observeFront = script.front === undefined ? {} : { observeFront: () => SEEN };
  const sources: Sources = { conditions, readExporter: script.read ?? null, ...observeFront };
  const parts: LoopParts = {
    policy: {
      limits: { ...LIMITS, ...script.limits },
      conditions: conditions.map(({ metricName, isSignal = false }) => ({ isMetric: metricName !== null, isSignal })),
      targets: targets.map(({ name, request, force }) => ({
        name,
        request,
        needsMs: 0,
        canForce: force !== undefined,
      })),
      quitTimeoutMs: 30_000,
      isDryRun: script.isDryRun ?? false,
      front: script.front === undefined ? null : { port: 9_469 },
      ...(script.push === undefined ? {} : { push: { to: 'otlp', when: 'always' } }),
      hasWebhook: script.callWebhook !== undefined,
      ...(script.hasTombstone === true ? { tombstonePath: '/graveyard/lastscrape' } : {}),
    },
    clock,
    signals: {
      get terminatedAtMs() {
        return terminatedAtMs;
      },
      get secondName() {
        return second.signal.aborted ? ('SIGTERM' as const) : null;
      },
      first: first.signal,
      second: second.signal,
    },
    front: script.front ?? null,
    observe: (effect) => beginObservation(sources, clock, effect),
    targets,
    log: (entry) => log.push(entry),
    closeFront: async () => void progress.push('closeFront'),
    declareDead: async () => void progress.push('declareDead'),
    ...(script.push === undefined ? {} : { push: script.push }),
    ...(script.callWebhook === undefined ? {} : { callWebhook: script.callWebhook }),
    progress: (state) => progress.push(state.phase.kind),
  };
  return {
    clock,
    log,
    progress,
    run: () => clock.run(runLoop(parts)).then(({ state }) => state),
    signal() {
      if (terminatedAtMs === null) {
        terminatedAtMs = clock.nowMs();
        first.abort('interrupted');
      } else second.abort('interrupted');
    },
  };
}

function readReports({ phase }: State): readonly TargetReport[] {
  return phase.kind === 'quitting' ? phase.reports : [];
}

function reading(look: ExporterObservation): ExporterReading {
  return { observation: look, metric: () => ({ kind: 'unknown', why: 'absent' }), hasRequests: false };
}

function readUntilAborted(signal: AbortSignal): Promise<ExporterReading> {
  return new Promise((resolve) => {
    const fail = () => resolve(reading({ kind: 'failed', why: String(signal.reason), mayCount: true }));
    signal.addEventListener('abort', fail);
  });
}

function buildCondition(text: string, look: () => ConditionObservation, metricName: string | null = null): Condition {
  return { text, metricName, observe: async () => look() };
}

/** A target that answers and shows its port as given; `asked` and `probed` say how often. */
function buildTarget(name: string, answers: readonly Answer[], probes: readonly Probe[], onAsk = () => {}) {
  const seen = { asked: 0, probed: 0 };
  const target: Target = {
    name,
    request: `POST ${name}`,
    ask: async () => {
      onAsk();
      return answers[Math.min(seen.asked++, answers.length - 1)] as Answer;
    },
    probe: async () => probes[Math.min(seen.probed++, probes.length - 1)] as Probe,
    hint: (answer) => `hint for ${answer?.kind}`,
  };
  return { target, seen };
}

const DROPPED: Answer = { kind: 'dropped' };
const OK: Answer = { kind: 'answered', status: 200, isHtml: false };

test('runLoop() watches, holds for the TTL, quits, and leaves no timer behind', async () => {
  const { clock, progress, run } = world({
    endsAtMs: 5_000,
    targets: [buildTarget('exporter', [DROPPED], ['refused']).target],
    hasTombstone: true,
    read: async () => reading(ANSWERED),
  });
  const state = await run();
  const targets = readReports(state);
  assert.deepEqual(progress, ['waiting', 'running', 'holding', 'quitting', 'declareDead', 'quitting']);
  assert.equal(state.phase.kind === 'quitting' && state.phase.outcome, 'expired');
  assert.deepEqual([targets[0]?.result, clock.timerCount], ['stopped', 0]);
});

test('runLoop() reports a hold again when a signal comes in it: the report then says what the pod may lack', async () => {
  const { clock, progress, signal, run } = world({
    endsAtMs: 5_000,
    read: async () => reading(ANSWERED),
  });
  clock.after(12_000, signal);
  await run();
  assert.deepEqual(progress, ['waiting', 'running', 'holding', 'holding', 'quitting']);
});

test('runLoop() gives the read 1 s at most after a signal, and probes the port', async () => {
  const texts: string[] = [];
  const interrupted = world({
    conditions: [
      buildCondition('port', () => {
        texts.push(`port at ${interrupted.clock.nowMs()}`);
        return ALIVE;
      }),
    ],
    read: async (signal) => {
      if (interrupted.clock.nowMs() > 0) return reading(REFUSED);
      interrupted.clock.after(700, () => interrupted.signal());
      return readUntilAborted(signal);
    },
  });
  const state = await interrupted.run();
  assert.equal(texts[0], 'port at 1000', 'it had a second');
  assert.deepEqual(readEnd(state), ['terminated', 5_700, null]);
});

test('runLoop() wakes from its pause at a signal', async () => {
  const { clock, run, signal, log } = world({
    limits: { pollMs: 600_000, terminationGraceMs: 0 },
    endsAtMs: Number.POSITIVE_INFINITY,
  });
  clock.after(3_000, signal);
  const state = await run();
  assert.equal(state.phase.kind === 'quitting' && state.phase.sinceMs, 3_000);
  assert.ok(log.some(({ id }) => id === 'terminating'));
});

test('runLoop() gives up at once at the second signal, while watching', async () => {
  const { clock, run, signal } = world({ endsAtMs: Number.POSITIVE_INFINITY });
  clock.after(3_000, signal);
  clock.after(3_200, signal);
  const state = await run();
  assert.deepEqual([state.phase.kind, clock.nowMs()], ['running', 3_200]);
});

test('runLoop() gives up at once at the second signal, while quitting, and says which targets it got to', async () => {
  const stopped = buildTarget('one', [DROPPED], ['refused']);
  const living = buildTarget('two', [OK], ['open']);
  const quitting = world({
    limits: { scrapesWantedCount: 0 },
    endsAtMs: 500,
    targets: [stopped.target, living.target],
  });
  quitting.clock.after(6_000, quitting.signal);
  quitting.clock.after(6_100, quitting.signal);
  const targets = readReports(await quitting.run());
  const results = targets.map(({ target, result }) => [target, result]);
  assert.deepEqual(results, [['one', 'stopped']]);
  assert.equal(quitting.clock.nowMs(), 6_100);
});

test('runLoop() shortens what a target has when the signal comes while it is asked', async () => {
  const living = buildTarget('one', [OK], ['open']);
  const { clock, run, signal } = world({
    limits: { scrapesWantedCount: 0, terminationGraceMs: 3_000, startTimeoutMs: 1_000 },
    targets: [living.target],
  });
  clock.after(5_000, signal);
  const targets = readReports(await run());
  assert.deepEqual([targets[0]?.result, clock.nowMs()], ['failed', 8_000]);
});

test('runLoop() ends a request that hangs at the next signal, the first or the second', async () => {
  for (const signalsMs of [[2_000], [500, 2_000]]) {
    const ends: [number, string][] = [];
    const { target } = buildTarget('exporter', [], ['refused']);
    const scene = world({
      targets: [{ ...target, ask: (_, signal) => hang(scene.clock, ends)(signal) }],
      limits: { startTimeoutMs: 1_000 },
    });
    for (const atMs of signalsMs) scene.clock.after(atMs, scene.signal);
    await scene.run();
    assert.deepEqual(ends, [[2_000, 'interrupted']]);
    assert.equal(scene.clock.timerCount, 0);
  }
});

test('runLoop() waits longer than a timer of Node can', async () => {
  const { clock, run } = world({
    limits: { pollMs: 40 * 86_400_000, runTimeoutMs: 60 * 86_400_000 },
    endsAtMs: Number.POSITIVE_INFINITY,
  });
  const state = await run();
  assert.equal(state.phase.kind === 'quitting' && state.phase.outcome, 'timedOut');
  assert.ok(clock.nowMs() >= 60 * 86_400_000);
});

test('runLoop() rejects when a part throws: a bug', async () => {
  const { run } = world({
    read: () => {
      throw new Error('Bug: never');
    },
  });
  await assert.rejects(run(), /Bug: never/);
});

test('runLoop() passes on a signal in the middle of an observation at once, and tightens its limits', async () => {
  const hanging = world({
    endsAtMs: Number.POSITIVE_INFINITY,
    read: readUntilAborted,
  });
  let loggedAtMs = -1;
  hanging.clock.after(4_000, () => {
    hanging.signal();
    loggedAtMs = hanging.log.findIndex(({ id }) => id === 'terminating') < 0 ? -1 : hanging.clock.nowMs();
  });
  const state = await hanging.run();
  assert.equal(loggedAtMs, 4_000);
  assert.deepEqual(readEnd(state), ['terminated', 4_000 + LIMITS.terminationGraceMs, null]);
});

/** A front on which `scrape()` is one that was just handed over; `views` are what it got, without repetitions. */
function buildFront(nowMs: () => number) {
  const events: FrontEvent[] = [];
  const views: string[] = [];
  let listeners: (() => void)[] = [];
  const front: NonNullable<LoopParts['front']> = {
    takeEvent: () => events.shift() ?? null,
    onEvent: (callback) => {
      listeners.push(callback);
      if (events.length > 0) callback();
      return () => {
        listeners = listeners.filter((each) => each !== callback);
      };
    },
    tell: ({ main, endedAtMs }: MainView) => {
      const view = endedAtMs === null ? main : `${main} at ${endedAtMs}`;
      if (views.at(-1) !== view) views.push(view);
    },
  };
  const scrape = (address = 'a', isByRefusal = true) => {
    const request = { startedAtMs: nowMs(), address, agent: 'Prometheus', connection: 1, openConnections: [] };
    const scrape: ServedScrape = { ...request, atMs: nowMs(), served: 'snapshot', isByRefusal, readAtMs: 0 };
    events.push({ kind: 'requested', request }, { kind: 'scraped', scrape, front: SEEN });
    for (const listener of listeners) listener();
  };
  return { front, scrape, views, countListeners: () => listeners.length, countLeft: () => events.length };
}

/** A main that ends at 5 s behind a front, with whatever else; it is observed every 500 ms from then on. */
function frontWorld(script: Script = {}) {
  const front = buildFront(() => watched.clock.nowMs());
  const watched: ReturnType<typeof world> = world({
    endsAtMs: 5_000,
    read: async () => reading(REFUSED),
    ...script,
    front: front.front,
    limits: { scrapesWantedCount: 1, ...script.limits },
  });
  return { ...watched, ...front };
}

function readEnd({ phase }: State) {
  assert.ok(phase.kind === 'quitting');
  return [phase.outcome, phase.sinceMs, phase.scrapesSeenCount];
}

test('runLoop() informs the front of each change of what is known of main', async () => {
  const { views, run, countListeners } = frontWorld();
  assert.deepEqual(readEnd(await run()), ['expired', 15_000, 0]);
  assert.deepEqual(views, ['living', 'ending', 'ended at 5000']);
  assert.equal(countListeners(), 0, 'nothing listens any more');
});

test('runLoop() goes on with its pause after a scrape that ends nothing', async () => {
  const observedAtMs: number[] = [];
  const { clock, scrape, run } = frontWorld({
    limits: { scrapesWantedCount: 3 },
    read: async () => {
      observedAtMs.push(clock.nowMs());
      return reading(REFUSED);
    },
  });
  clock.after(1_300, scrape);
  clock.after(1_700, scrape);
  clock.after(7_300, scrape);
  clock.after(8_100, scrape);
  clock.after(8_200, scrape);
  assert.deepEqual(readEnd(await run()), ['scraped', 7_300, 3], 'what was taken by refusal counts');
  assert.deepEqual(observedAtMs.slice(0, 3), [0, 1_000, 2_000]);
});

test('runLoop() passes on every scrape that came at the same moment', async () => {
  const { clock, scrape, run, countLeft, countListeners } = frontWorld({ limits: { scrapesWantedCount: 2 } });
  clock.after(7_777, () => {
    scrape('a');
    scrape('b');
  });
  assert.deepEqual(readEnd(await run()), ['scraped', 7_777, 2]);
  assert.deepEqual([countLeft(), countListeners()], [0, 0]);
});

test('runLoop() passes on how late an observation is: a process that stood still gives up no scraper', async () => {
  const { clock, scrape, run } = frontWorld({ limits: { scrapesWantedCount: 'auto' } });
  for (const atMs of [2_000, 3_000, 4_000, 9_300]) clock.after(atMs, () => scrape('a', false));
  for (const atMs of [2_500, 3_500, 4_500, 9_800]) clock.after(atMs, () => scrape('b', false));
  clock.after(5_100, () => clock.standStill(4_000));
  const [outcome, , count] = readEnd(await run());
  assert.deepEqual([outcome, count], ['scraped', 2]);
});

test('runLoop() sees a standstill within a long pause, though the next observation is hardly late', async () => {
  const { clock, scrape, run } = frontWorld({ limits: { scrapesWantedCount: 'auto', pollMs: 5_000 } });
  for (const atMs of [300, 1_100, 5_900]) clock.after(atMs, () => scrape('a', false));
  for (const atMs of [500, 1_300, 6_600]) clock.after(atMs, () => scrape('b', false));
  clock.after(1_400, () => clock.standStill(4_000));
  const [outcome, , count] = readEnd(await run());
  assert.deepEqual([outcome, count], ['scraped', 2]);
});

test('runLoop() passes on a scrape that came during an observation before the observation', async () => {
  const slow = frontWorld({
    read: async () => {
      if (slow.clock.nowMs() > 7_000) await new Promise<void>((resolve) => slow.clock.after(400, resolve));
      return reading(REFUSED);
    },
  });
  slow.clock.after(7_600, slow.scrape);
  const [outcome, atMs, count] = readEnd(await slow.run());
  assert.deepEqual([outcome, count], ['scraped', 1]);
  assert.ok(Number(atMs) > 7_600 && Number(atMs) < 8_000, `by that very observation: ${atMs}`);
  assert.equal(slow.countLeft(), 0);
});

test('runLoop() informs the front at once of a signal that is the end of main, in the middle of an observation', async () => {
  const signal: Condition = {
    text: 'sigterm',
    metricName: null,
    isSignal: true,
    observe: async () => ({ kind: 'notObserved' }),
  };
  let viewsAtSignal: readonly string[] = [];
  const hanging = frontWorld({
    conditions: [signal],
    limits: { terminationGraceMs: 5_000 },
    read: async (aborted) => (hanging.clock.nowMs() >= 3_400 ? reading(REFUSED) : readUntilAborted(aborted)),
  });
  hanging.clock.after(3_400, () => {
    hanging.signal();
    viewsAtSignal = [...hanging.views];
  });
  hanging.clock.after(6_000, hanging.scrape);
  assert.deepEqual(readEnd(await hanging.run()), ['scraped', 6_000, 1]);
  assert.equal(viewsAtSignal.at(-1), 'ended at 3400');
});

test('an observation that is due is not kept waiting, however many scrape', async () => {
  const request = { startedAtMs: 0, address: '10.0.0.1', agent: 'Prometheus', connection: 1, openConnections: [] };
  const scrape: ServedScrape = { ...request, atMs: 0, served: 'live', isByRefusal: false, readAtMs: 0 };
  const observedAtMs: number[] = [];
  let scrapesCount = 0;
  let isThere = false;
  const busy = world({
    conditions: [
      buildCondition('port', () => {
        observedAtMs.push(busy.clock.nowMs());
        if (observedAtMs.length === 3) for (const send of [busy.signal, busy.signal]) send();
        return ALIVE;
      }),
    ],
    front: {
      takeEvent() {
        if (!isThere) return null;
        isThere = false;
        return { kind: 'scraped', scrape, front: SEEN };
      },
      // One every 100 ms.
      onEvent(callback) {
        if (++scrapesCount > 1_000) throw new Error('nothing is observed any more');
        busy.clock.standStill(100);
        isThere = true;
        callback();
        return () => {};
      },
      tell() {},
    },
  });
  await busy.run();
  assert.equal(observedAtMs.length, 3);
  // No later than one scrape takes.
  const areInTime = observedAtMs.every((atMs, index) => atMs <= index * (LIMITS.pollMs + 100) + 100);
  assert.ok(areInTime, String(observedAtMs));
});

/** Ends when its signal comes; `endedAtMs` says when and why. */
function hang(clock: VirtualClock, endedAtMs: [number, string][]) {
  return (signal: AbortSignal) =>
    new Promise<never>((resolve) => {
      const end = () => {
        endedAtMs.push([clock.nowMs(), String(signal.reason)]);
        resolve({ kind: 'failed', why: String(signal.reason), tries: 1 } as never);
      };
      if (signal.aborted) end();
      else signal.addEventListener('abort', end);
    });
}

test('runLoop() pushes between the hold and what comes before quitting, and sends the webhook the state by then', async () => {
  const told: string[] = [];
  const scene = world({
    endsAtMs: 5_000,
    limits: { scrapesWantedCount: 0 },
    targets: [buildTarget('exporter', [DROPPED], ['refused']).target],
    push: async () => {
      told.push(`push after ${scene.progress.at(-1)}`);
      return { kind: 'accepted', requestsCount: 2 };
    },
    callWebhook: async (state) => {
      told.push(`tell of ${readReports(state).map(({ result }) => result)}`);
      return { kind: 'accepted', status: 200, tries: 1 };
    },
    front: buildFront(() => 0).front,
    hasTombstone: true,
  });
  const state = await scene.run();
  assert.deepEqual(told, ['push after closeFront', 'tell of stopped']);
  const phases = scene.progress.slice(scene.progress.indexOf('quitting'));
  assert.deepEqual(phases, ['quitting', 'closeFront', 'quitting', 'declareDead', 'quitting']);
  assert.deepEqual(state.phase.kind === 'quitting' && state.phase.push, { to: 'otlp', result: 'accepted', seconds: 0 });
  assert.equal(scene.clock.timerCount, 0);
});

test('runLoop() gives up a push and a webhook that hang, each at its limit', async () => {
  const ends: [number, string][] = [];
  const scene = world({
    endsAtMs: 5_000,
    limits: { scrapesWantedCount: 0 },
    push: (signal) => hang(scene.clock, ends)(signal),
    callWebhook: (_, signal) => hang(scene.clock, ends)(signal),
  });
  const state = await scene.run();
  const sinceMs = state.phase.kind === 'quitting' ? state.phase.sinceMs : 0;
  assert.deepEqual(ends, [
    [sinceMs + 30_000, 'no time is left'],
    [sinceMs + 50_000, 'no time is left'],
  ]);
  assert.equal(scene.clock.timerCount, 0);
});

test('runLoop() gives a push another second where the process stood still over its limit', async () => {
  for (const [lateMs, secondMs, givenUpMs] of [
    [1_999, 0, 1_999],
    [2_000, 0, 3_000],
    [2_000, 9_000, 11_500],
  ] as const) {
    const ends: [number, string][] = [];
    let limitMs = 0;
    const scene = world({
      endsAtMs: 5_000,
      limits: { scrapesWantedCount: 0 },
      push(signal) {
        limitMs = scene.clock.nowMs() + PUSH_MAX_MS;
        scene.clock.standStill(PUSH_MAX_MS + lateMs);
        // Over its last second as well.
        if (secondMs > 0) scene.clock.after(500, () => scene.clock.standStill(secondMs));
        return hang(scene.clock, ends)(signal);
      },
    });
    await scene.run();
    assert.deepEqual(ends, [[limitMs + givenUpMs, 'no time is left']]);
    assert.equal(scene.clock.timerCount, 0);
  }
});

test('runLoop() gives a push that hangs what is left of the grace from the first signal on, and nothing from the second', async () => {
  for (const [secondMs, expected] of [
    [null, [12_000, 'no time is left']],
    [500, [8_500, 'interrupted']],
  ] as const) {
    const ends: [number, string][] = [];
    const scene = world({
      endsAtMs: 5_000,
      limits: { scrapesWantedCount: 0, terminationGraceMs: 5_000 },
      targets: [buildTarget('exporter', [DROPPED], ['refused']).target],
      push: (signal) => hang(scene.clock, ends)(signal),
      hasTombstone: true,
    });
    scene.clock.after(8_000, scene.signal);
    if (secondMs !== null) scene.clock.after(8_000 + secondMs, scene.signal);
    const state = await scene.run();
    assert.deepEqual(ends, [expected]);
    assert.equal(readReports(state).length, secondMs === null ? 1 : 0);
    assert.equal(scene.progress.includes('declareDead'), secondMs === null);
    assert.equal(scene.clock.timerCount, 0);
  }
});
