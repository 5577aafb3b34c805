// What happens in a run, drawn from its seed.

import type { Limits } from '../../../src/decide/model.ts';
import { ACCEPTS } from './page.ts';
import type { ScraperPlan } from './scraper.ts';
import type { Family, Fault, SourcePlan } from './source.ts';
import { openRandom, type Random } from './world.ts';

/**
 * How main's end is seen, and whose numbers are read: by the signal or by a closed port, its own or an
 * exporter's, which outlives it; or by the exporter's metric. `portAlone`: no front serves the exporter.
 */
export type Shape = 'signalOwn' | 'signalExporter' | 'portOwn' | 'portExporter' | 'metricExporter' | 'portAlone';

export type Scenario = {
  readonly seed: number;
  readonly shape: Shape;
  readonly limits: Limits;
  readonly endMs: number;
  /** When signals come, the first at least 200 ms after main's end where it means that. */
  readonly signalsMs: readonly number[];
  readonly source: SourcePlan;
  readonly scrapers: readonly ScraperPlan[];
  /** Our own process does nothing; with its whole node what comes meanwhile is lost. */
  readonly standstills: readonly { readonly fromMs: number; readonly ms: number; readonly isOfNode: boolean }[];
  readonly snapshotsMs: readonly number[];
  readonly pushWhen: 'always' | 'expired';
  /** Each program on the port ends with a call of /-/snapshot, one for each of `source.downs`. */
  readonly isInTurn?: boolean;
};

export function isBySignal(shape: Shape): boolean {
  return shape === 'signalOwn' || shape === 'signalExporter';
}

export function isOwn(shape: Shape): boolean {
  return shape === 'signalOwn' || shape === 'portOwn';
}

export function drawScenario(seed: number): Scenario {
  if (seed % 16 === 5) return { ...draw(seed, 'portAlone'), scrapers: [], snapshotsMs: [] };
  const scenario = draw(seed);
  if (seed % 16 === 4) return takeTurns(scenario);
  return seed % 16 === 15 ? hangPatient(scenario) : scenario;
}

/** Two programs in turn on one port. That it is another shows by its start, or since nothing answers in between. */
function takeTurns(scenario: Scenario): Scenario {
  const random = openRandom(scenario.seed + 0.25);
  const showsStart = random.chance(0.5);
  const intervalMs = random.pick([1_000, 2_000, 5_000]);
  // By then the intervals of all are known.
  const firstEndMs = 3 * intervalMs + random.between(0, 5_000);
  const fromMs = firstEndMs + (showsStart ? random.between(20, 3_000) : 8_000);
  const endMs = fromMs + random.between(500, 8_000);
  const ends = { fromMs: 0, toMs: Number.POSITIVE_INFINITY, frozenAtMs: endMs };
  // A closed port is main's end only once the settle time is over, which is longer than what is between the two.
  const shape = showsStart && random.chance(0.3) ? 'portOwn' : 'signalOwn';
  const signalMs = endMs + (shape === 'portOwn' ? 60_000 : random.between(200, 2_000));
  // The last one may outlive main's end, and be restarted then: what it counts from 0 is not main's.
  const isRestarted = showsStart && shape === 'signalOwn' && random.chance(0.5);
  const closedMs = isRestarted ? signalMs + random.between(1_600, 6_000) : endMs;
  const scrapers = Array.from({ length: random.pick([1, 2, 3]) }, (_, index) => ({
    ...{ address: `10.0.0.${index}`, agent: 'Prometheus/3', hasHeader: true, keeps: random.chance(0.5) },
    ...{ accept: random.pick([undefined, ACCEPTS.openMetrics, ACCEPTS.protobuf]), intervalMs, timeoutMs: intervalMs },
    ...{ firstMs: random.between(0, intervalMs), untilMs: Number.POSITIVE_INFINITY, faultsProbability: 0 },
  }));
  return {
    ...scenario,
    shape,
    limits: {
      ...scenario.limits,
      ...{ scrapesWantedCount: 'auto', ttlMs: 60_000, terminationGraceMs: 70_000, pollMs: 1_000, settleMs: 4_000 },
    },
    endMs,
    signalsMs: [signalMs],
    source: {
      ...{ families: ['a', 'b'].map((letter) => ({ name: `job_${letter}_total`, stepMs: 50, ...ends })), showsStart },
      ...{ formats: random.pick(['text', 'asked']), tookMs: random.pick([2, 20]), faults: [], hasLength: true },
      downs: [
        { fromMs: firstEndMs, toMs: fromMs },
        { fromMs: closedMs, toMs: isRestarted ? closedMs + 20 : Number.POSITIVE_INFINITY },
      ],
      ...{ hasCounters: false, upUntilMs: null },
    },
    scrapers,
    standstills: [],
    snapshotsMs: [firstEndMs, endMs].map((atMs) => atMs - random.between(150, 400)),
    isInTurn: true,
  };
}

/** A request that a patient scraper waits for hangs, while another scraper comes every 2 s. */
function hangPatient(scenario: Scenario): Scenario {
  const { endMs, limits, source } = scenario;
  const fromMs = Math.max(500, endMs - 9_000);
  const base = {
    agent: 'Prometheus/3',
    hasHeader: true,
    untilMs: Number.POSITIVE_INFINITY,
    keeps: true,
    faultsProbability: 0,
  };
  return {
    ...scenario,
    limits: { ...limits, pollMs: 1_000 },
    source: { ...source, tookMs: 20, faults: [{ kind: 'hangOnce', fromMs, toMs: fromMs + 500, ms: 0 }] },
    scrapers: [
      { ...base, address: '10.0.0.1', timeoutMs: 30_000, intervalMs: 30_000, firstMs: fromMs },
      { ...base, address: '10.0.0.2', timeoutMs: 2_000, intervalMs: 2_000, firstMs: 300 },
    ],
  };
}

function draw(seed: number, only?: Shape): Scenario {
  const random = openRandom(seed);
  const drawn = random.pick<Shape>(['signalOwn', 'signalExporter', 'portOwn', 'portExporter', 'metricExporter']);
  const shape = only ?? drawn;
  const endMs = random.between(1_500, random.pick([5_000, 5_000, 8_000, 20_000]));
  const afterMs = endMs + random.between(200, 2_000);
  // With a metric alone only the signal ends a run whose exporter is gone.
  const lateMs = random.chance(0.2) ? endMs + random.between(-3_000, 8_000) : endMs + 40_000;
  const signalsMs = [isBySignal(shape) ? afterMs : lateMs];
  if (random.chance(0.03)) signalsMs.push(Number(signalsMs[0]) + random.between(1, 10_000));
  const limits: Limits = {
    scrapesWantedCount:
      shape === 'portAlone' ? random.pick([0, 1]) : random.pick(['auto', 'auto', 'auto', 'auto', 0, 1, 2]),
    ttlMs: random.pick([0, 3_000, 6_000, 10_000, 15_000]),
    settleMs: random.pick([0, 1_000, 3_000]),
    startTimeoutMs: 60_000,
    runTimeoutMs: 0,
    terminationGraceMs: random.pick([0, 5_000, 10_000, 15_000]),
    pollMs: random.pick([250, 1_000, 1_000, 1_000, 1_000, 1_000, 5_000, 5_000]),
  };
  return {
    seed,
    shape,
    limits,
    endMs,
    signalsMs,
    source: drawSource(random, shape, endMs),
    scrapers: drawScrapers(random, endMs),
    standstills: drawStandstills(random, [
      endMs,
      endMs + limits.ttlMs,
      afterMs,
      afterMs + limits.ttlMs,
      afterMs + limits.terminationGraceMs,
    ]),
    snapshotsMs: random.chance(0.2) ? [endMs - random.between(1, 500)] : [],
    pushWhen: random.pick(['always', 'expired']),
  };
}

function drawSource(random: Random, shape: Shape, endMs: number): SourcePlan {
  const isMain = isOwn(shape);
  const families = ['a', 'b', 'c', 'd', 'e'].slice(0, random.between(2, 5)).flatMap((letter): Family[] => {
    const isOfMain = isMain || random.chance(0.7);
    const isLost = random.chance(0.25);
    const name = `job_${letter}_total`;
    const family = {
      name,
      stepMs: random.between(50, 900),
      fromMs: random.chance(0.2) ? random.between(0, endMs) : 0,
      // Some families of main go with it; some go while it lives.
      toMs: isLost ? (random.chance(0.7) && isOfMain ? endMs : random.between(0, endMs)) : Number.POSITIVE_INFINITY,
      frozenAtMs: isOfMain ? endMs : Number.POSITIVE_INFINITY,
    };
    // Where a page is cut there, no family is missing.
    return letter !== 'a' && random.chance(0.3) ? [family, { ...family, name: `${name}{part="1"}` }] : [family];
  });
  const downs: { fromMs: number; toMs: number }[] = [];
  if (random.chance(0.2)) downs.push(drawDown(random, random.between(1_000, endMs)));
  if (isMain) {
    downs.push({ fromMs: endMs, toMs: Number.POSITIVE_INFINITY });
  } else if (random.chance(0.3)) {
    const down = drawDown(random, endMs + random.between(-1_000, 8_000));
    downs.push(random.chance(0.3) ? { ...down, toMs: Number.POSITIVE_INFINITY } : down);
  }
  const hasLength = random.chance(0.6);
  // A family cannot be joined with a page of another format.
  const isAlternating = hasLength && families.every(({ toMs }) => toMs > endMs) && random.chance(0.2);
  return {
    families,
    formats: isAlternating ? 'alternating' : random.pick(['text', 'asked', 'asked']),
    tookMs: random.pick([2, 2, 20, 200, 1_500]),
    faults: Array.from({ length: random.pick([0, 0, 1, 1, 2]) }, () => drawFault(random, endMs)),
    downs: mergeDowns(downs),
    hasLength,
    hasCounters: !isMain && random.chance(0.6),
    upUntilMs: shape === 'metricExporter' ? endMs : null,
  };
}

function drawDown(random: Random, fromMs: number) {
  return { fromMs, toMs: fromMs + random.pick([20, 300, random.between(1, 4_000)]) };
}

/** In order of time, none within another. */
function mergeDowns(downs: readonly { fromMs: number; toMs: number }[]) {
  const merged: { fromMs: number; toMs: number }[] = [];
  for (const down of downs.toSorted((a, b) => a.fromMs - b.fromMs)) {
    const last = merged.at(-1);
    if (last !== undefined && down.fromMs <= last.toMs) last.toMs = Math.max(last.toMs, down.toMs);
    else merged.push({ ...down });
  }
  return merged;
}

function drawFault(random: Random, endMs: number): Fault {
  const kind = random.pick(['slow', 'hang', 'hangOnce', 'error', 'error', 'cut', 'drop', 'endless'] as const);
  const fromMs = random.pick([
    random.between(0, endMs),
    endMs - random.between(0, 13_000),
    endMs + random.between(0, 4_000),
  ]);
  const toMs = fromMs + random.pick([500, random.between(500, 6_000), 60_000]);
  return { kind, fromMs, toMs, ms: random.pick([700, 1_500, 3_000]) };
}

function drawScrapers(random: Random, endMs: number): readonly ScraperPlan[] {
  const count = random.pick([1, 1, 2, 2, 3]);
  const isHa = count === 2 && random.chance(0.6);
  const sharedMs = random.pick([1_000, 2_000, 5_000, 10_000]);
  const { openMetrics, protobuf } = ACCEPTS;
  const accepts = random.pick([
    [undefined],
    [undefined],
    [openMetrics],
    [protobuf],
    [undefined, openMetrics, protobuf],
  ]);
  const sharedAccept = random.pick(accepts);
  const plans = Array.from({ length: count }, (_, index): ScraperPlan => {
    const isOnce = index > 0 && !isHa && random.chance(0.3);
    const hasHeader = isHa || random.chance(0.8);
    const intervalMs = isHa
      ? sharedMs
      : random.pick(hasHeader ? [1_000, 2_000, 5_000, 10_000, 30_000] : [5_000, 10_000]);
    return {
      address: `10.0.0.${isHa ? 1 : index + 1}`,
      agent: hasHeader ? 'Prometheus/3' : 'Telegraf/1',
      accept: isHa ? sharedAccept : random.pick(accepts),
      hasHeader,
      timeoutMs: hasHeader ? random.pick([intervalMs, intervalMs, 1_000]) : 5_000,
      intervalMs: isOnce ? 1_000_000 : intervalMs,
      firstMs: isOnce ? endMs - random.between(-2_000, 8_000) : random.between(0, intervalMs),
      untilMs: random.chance(0.15) ? endMs + random.between(-6_000, 6_000) : Number.POSITIVE_INFINITY,
      keeps: isHa || random.chance(0.7),
      faultsProbability: random.chance(0.25) ? 0.3 : 0,
    };
  });
  // One that is gone may be replaced by one with another address.
  return plans.flatMap((plan) =>
    plan.untilMs < Number.POSITIVE_INFINITY && random.chance(0.5) ? [plan, replace(random, plan)] : [plan],
  );
}

function replace(random: Random, plan: ScraperPlan): ScraperPlan {
  const firstMs = Math.max(0, plan.untilMs) + random.between(0, plan.intervalMs);
  return { ...plan, address: plan.address.replace(/^10\.0/, '10.1'), firstMs, untilMs: Number.POSITIVE_INFINITY };
}

function drawStandstills(random: Random, moments: readonly number[]) {
  if (!random.chance(0.2)) return [];
  const ms = random.pick([300, 2_500, 5_000, 12_000]);
  const fromMs = Math.max(0, random.pick(moments) - random.between(0, ms));
  // What is lost for a moment only is sent again; a short one within a pause is not noticed.
  return [{ fromMs, ms, isOfNode: random.chance(0.5) && ms >= 5_000 }];
}
