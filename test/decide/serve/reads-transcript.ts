// Plays a transcript of the law of reads (fixtures/transcripts/reads/README.md).

import type { ExporterObservation } from '../../../src/decide/model.ts';
import { findRestFactor, REST_FACTORS, type Wanted } from '../../../src/decide/serve/budget.ts';
import {
  beginReads,
  endRead,
  type ObservationNeed,
  type Reads,
  type ReadsEvent,
  type ReadsSettings,
  stepReads,
} from '../../../src/decide/serve/reads.ts';

type Mutable = { -readonly [Key in keyof ReadsSettings]: ReadsSettings[Key] };

/** The transcript with its decisions written again. */
export function playReads(text: string): string {
  const settings: Mutable = { pollMs: 250, restFactor: REST_FACTORS.usual, observing: 'takes' };
  let reads: Reads | null = null;
  let names = new Map<string, number>();
  let cpuMs = 0;
  const out: string[] = [];
  for (const line of text.split('\n')) {
    const [, setting = '', value = ''] = /^set (\w+)=(.*)$/.exec(line) ?? [];
    if (setting === 'front' && value === 'none') settings.observing = 'contains';
    if (setting === 'push') settings.restFactor = findRestFactor({ isOnlyEvidence: false, isBeside: value === 'none' });
    if (setting === 'poll') settings.pollMs = readMs(value);
    if (setting === 'end')
      settings.restFactor = findRestFactor({ isOnlyEvidence: value === 'metric', isHooked: value === 'hook' });
    // An indented line is a decision of the last run.
    if (!line.startsWith(' ')) out.push(line);
    if (!line.startsWith('>')) continue;
    const [, at = '', ...words] = line.split(/\s+/);
    const nowMs = readMs(at);
    reads ??= beginReads(settings);
    cpuMs += readMs(/^cpu=(.*)$/.exec(words[2] ?? '')?.[1] ?? '0s');
    const step = stepReads(reads, readEvent(words, nowMs, names, cpuMs), nowMs);
    ({ reads } = step);
    for (const move of step.moves) {
      if (move.kind === 'cut') out.push(`    cut ${nameRead(names, move.read.id)}: ${move.why}`);
      else {
        const isAgain = move.read.again === 'begun';
        if (!isAgain) names = new Map(names).set(`r${names.size + 1}`, move.read.id);
        const sharers = move.read.sharers.map(({ id, need }) => (need === 'scrape' ? `scrape ${-id}` : need));
        out.push(
          `    read ${move.read.accept}${isAgain ? ' again' : ''} as ${nameRead(names, move.read.id)} for ${sharers.join(', ')}`,
        );
      }
    }
    out.push(step.wakeAtMs === Number.POSITIVE_INFINITY ? '    wait' : `    wait until ${step.wakeAtMs / 1_000}s`);
  }
  return out.join('\n');
}

function readEvent(
  words: readonly string[],
  nowMs: number,
  names: ReadonlyMap<string, number>,
  cpuMs: number,
): ReadsEvent {
  const [what = '', ...rest] = words;
  const read = names.get(rest[0] ?? '') ?? 0;
  switch (what) {
    case 'scrape': {
      const [id, accept = 'text', timeout = '10s'] = rest;
      const request = { id: -Number(id), need: 'scrape', accept, untilMs: nowMs + readMs(timeout) } as const;
      return { kind: 'asked', request };
    }
    case 'gone':
      return { kind: 'gaveUp', id: -Number(rest[0]) };
    case 'head':
      return { kind: 'headCame', read };
    case 'short':
      return endRead(read, ENDS.whole, cpuMs, true);
    case 'whole':
    case 'refused':
    case 'failed':
      return endRead(read, ENDS[what], cpuMs);
    case 'main':
      return { kind: 'main', isCharged: rest[0] === 'lives', wanted: rest.slice(1).map(readWanted) };
    case 'observation':
      return { kind: 'observation', need: (rest[0] ?? 'own') as ObservationNeed };
    case 'due':
    case 'closed':
      return { kind: what };
    default:
      throw new Error(`cannot read "${words.join(' ')}"`);
  }
}

const ENDS: Readonly<Record<'whole' | 'refused' | 'failed', ExporterObservation>> = {
  whole: { kind: 'answered', scrapes: null, totals: { requests: null, failures: null, users: null } },
  refused: { kind: 'refused' },
  failed: { kind: 'failed', why: 'HTTP 500', mayCount: false },
};

/** `text` or `text/spare` */
function readWanted(word: string): Wanted {
  const [accept = '', spare] = word.split('/');
  return spare === undefined ? { accept } : { accept, isSpare: true };
}

function nameRead(names: ReadonlyMap<string, number>, id: number): string {
  return [...names].find(([, each]) => each === id)?.[0] ?? '?';
}

/** `1.5s` */
function readMs(text: string): number {
  const ms = Math.round(Number(/^(\d+(?:\.\d+)?)s$/.exec(text)?.[1]) * 1_000);
  if (Number.isNaN(ms)) throw new Error(`no time: "${text}"`);
  return ms;
}
