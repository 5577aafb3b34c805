// Plays a golden transcript: lines that begin with `>` are what was seen, the lines below each are what was decided.
// The grammar is in fixtures/transcripts/README.md.

import type { Target } from '../../src/act/target.ts';
import { readConfig } from '../../src/config.ts';
import type {
  ConditionObservation,
  ExporterObservation,
  LogEntry,
  Observation,
  ScrapeCounters,
} from '../../src/decide/model.ts';
import {
  type Answer,
  beginQuit,
  nextQuitMove,
  type Probe,
  type QuitEvent,
  type QuitState,
  shareQuit,
} from '../../src/decide/quit.ts';
import { buildReport, fitReport, type TargetReport } from '../../src/decide/report.ts';
import { initialState, quitDeadlineMs, type State, step } from '../../src/decide/step.ts';
import { KINDS } from '../../src/main.ts';

/** The transcript with every line of output made anew. */
export function playTranscript(text: string): string {
  const settings: Record<string, string> = {};
  const out: string[] = [];
  let player: Player | null = null;
  for (const line of text.split('\n')) {
    if (line.startsWith('set ')) {
      const [name = '', value = ''] = line.slice(4).split('=', 2) as [string, string];
      settings[`LASTSCRAPE_${name}`] = value;
      out.push(line);
    } else if (line.startsWith('>')) {
      player ??= new Player(settings);
      out.push(line, ...player.play(line.slice(1).trim()).map((decided) => `    ${decided}`));
    } else if (line.trim() === '' || line.startsWith('#')) {
      out.push(line.trim());
    }
    // Anything else is output of the last time.
  }
  return out.join('\n');
}

const SELF = { version: '0.1.0', pid: 1, kill: () => {} };

class Player {
  readonly #conditions: readonly string[];
  readonly #limits;
  readonly #targets: readonly Target[];
  readonly #quitTimeoutMs: number;
  #state: State | null = null;
  #terminatedAtMs: number | null = null;
  #quit: QuitState | null = null;
  #targetStartedAtMs = 0;
  #reports: TargetReport[] = [];

  constructor(settings: Record<string, string>) {
    const result = readConfig(settings, KINDS, SELF);
    if (!('config' in result)) throw new Error(result.problems.join('\n'));
    this.#limits = result.config.limits;
    this.#conditions = result.config.conditions.map(({ text }) => text.replace(/:.*/, ''));
    this.#targets = result.config.targets;
    this.#quitTimeoutMs = result.config.quitTimeoutMs;
  }

  play(line: string): string[] {
    const [time = '', ...words] = line.split(/\s+/);
    const atMs = Math.round(Number(/^(\d+(?:\.\d+)?)s$/.exec(time)?.[1] ?? Number.NaN) * 1000);
    if (Number.isNaN(atMs)) throw new Error(`no time in "> ${line}"`);
    const fields = new Map(words.map((word) => word.split('=', 2) as [string, string | undefined]));
    if (fields.has('SIGTERM') || fields.has('SIGINT')) this.#terminatedAtMs ??= atMs;
    if (this.#state?.phase.kind === 'quitting') return this.#playQuit(atMs, fields);
    return this.#playLook(atMs, fields);
  }

  #playLook(atMs: number, fields: ReadonlyMap<string, string | undefined>): string[] {
    const startedAtMs = atMs - seconds(fields.get('took') ?? '0s');
    const before = this.#state ?? initialState(startedAtMs);
    const look: Observation = {
      startedAtMs,
      atMs,
      terminatedAtMs: this.#terminatedAtMs,
      exporter: exporterOf(fields),
      conditions: this.#conditions.map((kind) => conditionOf(kind, fields)),
    };
    const decision = step(before, look, this.#limits);
    this.#state = decision.state;
    const lines = decision.notes.map(noteLine);
    if (before.phase.kind !== decision.state.phase.kind) lines.push(`state ${decision.state.phase.kind}`);
    if (decision.next.kind === 'quit') return [...lines, ...this.#beginTarget(atMs)];
    const { atMs: nextMs, deadlineMs } = decision.next;
    lines.push(`look at ${inSeconds(nextMs)}${deadlineMs === null ? '' : `, decide by ${inSeconds(deadlineMs)}`}`);
    return lines;
  }

  #playQuit(atMs: number, fields: ReadonlyMap<string, string | undefined>): string[] {
    if (this.#quit === null) return ['nothing is left to do'];
    if (fields.has('SIGTERM')) {
      this.#quit = shareQuit(this.#quit, atMs, this.#quitEndsMs(), this.#targets.length - this.#reports.length);
      return [`${this.#target()} must be gone by ${inSeconds(this.#quit.endsByMs)}`];
    }
    const answer = fields.get('answer');
    const probe = fields.get('probe');
    const forced = fields.get('forced');
    const event: QuitEvent =
      forced !== undefined
        ? { kind: 'forced', isPossible: forced === 'yes' }
        : answer !== undefined
          ? { kind: 'asked', answer: answerOf(answer) }
          : { kind: 'probed', probe: (probe ?? 'unknown') as Probe };
    return this.#move(event, atMs);
  }

  #beginTarget(atMs: number): string[] {
    const leftCount = this.#targets.length - this.#reports.length;
    if (leftCount === 0) return [this.#report(atMs)];
    this.#targetStartedAtMs = atMs;
    const { needsMs, force } = this.#targets[this.#reports.length] as Target;
    const canForce = force !== undefined;
    this.#quit = beginQuit(atMs, this.#quitTimeoutMs, this.#quitEndsMs(), leftCount, needsMs, canForce);
    return [
      `${this.#target()} must be gone by ${inSeconds(this.#quit.endsByMs)}`,
      ...this.#move({ kind: 'begun' }, atMs),
    ];
  }

  #move(event: QuitEvent, atMs: number): string[] {
    const { state, move } = nextQuitMove(this.#quit as QuitState, event, atMs);
    this.#quit = state;
    switch (move.kind) {
      case 'ask':
        return [`ask ${this.#target()}, for ${inSeconds(move.timeoutMs)} at most`];
      case 'probe':
        return [`look whether it listens at ${inSeconds(atMs + move.afterMs)}`];
      case 'force':
        return [`force ${this.#target()}, ${move.count === 0 ? 'for the first time' : 'again'}`];
      case 'ended': {
        const target = this.#target();
        this.#reports.push({ target, result: move.result, seconds: (atMs - this.#targetStartedAtMs) / 1000 });
        this.#quit = null;
        return [`${target}: ${move.result}`, ...this.#beginTarget(atMs)];
      }
    }
  }

  #report(nowMs: number): string {
    const report = buildReport({
      state: this.#state as State,
      limits: this.#limits,
      targets: this.#reports,
      targetCount: this.#targets.length,
      nowMs,
      toTime: (atMs) => `+${inSeconds(atMs)}`,
      isFinished: true,
      version: '0.1.0',
    });
    return `report ${JSON.stringify(fitReport(report))}`;
  }

  #quitEndsMs(): number | null {
    const phase = this.#state?.phase;
    return phase?.kind === 'quitting' ? quitDeadlineMs(phase.sinceMs, this.#terminatedAtMs, this.#limits) : null;
  }

  #target(): string {
    return (this.#targets[this.#reports.length] as Target).name;
  }
}

function exporterOf(fields: ReadonlyMap<string, string | undefined>): ExporterObservation {
  const exporter = fields.get('exporter');
  if (exporter === 'none') return { kind: 'none' };
  if (exporter === 'refused') return { kind: 'refused' };
  if (exporter === 'timeout') return { kind: 'failed', why: 'timed out', mayCount: true };
  if (exporter?.startsWith('http')) return { kind: 'failed', why: `HTTP ${exporter.slice(4)}`, mayCount: false };
  if (exporter !== undefined) throw new Error(`no such exporter: ${exporter}`);
  const scrapes: ScrapeCounters | null = fields.has('count')
    ? { finishedCount: Number(fields.get('count')), inFlightCount: Number(fields.get('inflight') ?? 1) }
    : null;
  const numberOf = (name: string) => (fields.has(name) ? Number(fields.get(name)) : null);
  return {
    kind: 'answered',
    scrapes,
    totals: { requests: numberOf('requests'), failures: numberOf('failures'), users: numberOf('users') },
  };
}

function conditionOf(kind: string, fields: ReadonlyMap<string, string | undefined>): ConditionObservation {
  const value = fields.get(kind);
  if (kind === 'metric') {
    const isRead = fields.get('exporter') === undefined;
    if (!isRead || value === undefined || value === '?')
      return fields.get('exporter') === 'none'
        ? { kind: 'notObserved' }
        : { kind: 'unknown', why: 'locust_up unknown' };
    if (value !== '0') return { kind: 'alive', seen: `locust_up ${value}` };
    return { kind: 'done', seen: 'locust_up 0', provesWasAlive: fields.has('rows') };
  }
  if (value?.startsWith('ended:')) {
    const exitCode = Number(value.slice('ended:'.length));
    const seen = `${kind} load ended with ${exitCode}`;
    return { kind: 'done', seen, provesWasAlive: true, exitCodes: { load: exitCode } };
  }
  switch (value) {
    case 'missing':
      if (kind === 'tombstone') return { kind: 'notStarted', why: 'tombstone not there yet' };
      return { kind: 'alive', seen: `${kind} missing` };
    case 'open':
    case 'born':
      return { kind: 'alive', seen: `${kind} ${value}` };
    case 'refused':
      return { kind: 'done', seen: `${kind} refused`, provesWasAlive: false };
    case 'exists':
      return { kind: 'done', seen: `${kind} exists`, provesWasAlive: true };
    case 'died':
      return { kind: 'done', seen: `${kind} died`, provesWasAlive: true };
    case 'unborn':
      return { kind: 'done', seen: `${kind} died, never born`, provesWasAlive: false, provesNeverRan: true };
    case 'running':
    case 'backoff':
      return { kind: 'alive', seen: `${kind} ${value}` };
    case 'notstarted':
      return { kind: 'notStarted', why: `${kind} not started` };
    case 'forbidden':
      return { kind: 'blind', why: `${kind} unknown: HTTP 403`, problem: 'HTTP 403; create the Role' };
    case 'halfwritten':
      return { kind: 'unknown', why: `${kind} half written` };
    case 'timeout':
    case undefined:
      return value === undefined ? { kind: 'notObserved' } : { kind: 'unknown', why: `${kind} unknown: timed out` };
    default:
      throw new Error(`no such look: ${kind}=${value}`);
  }
}

function answerOf(answer: string): Answer {
  if (answer === 'dropped' || answer === 'refused') return { kind: answer };
  if (answer === 'signalled') return { kind: 'signalled', signal: 'TERM', pids: [12] };
  if (answer === 'timeout') return { kind: 'failed', why: 'timed out', wasSent: true };
  return { kind: 'answered', status: Number(answer), isHtml: false };
}

function noteLine({ level, msg, fields }: LogEntry): string {
  const values = Object.entries(fields).map(([name, value]) => ` ${name}=${JSON.stringify(value)}`);
  return `${level} "${msg}"${values.join('')}`;
}

function seconds(text: string): number {
  return Math.round(Number(text.slice(0, -1)) * 1000);
}

function inSeconds(ms: number): string {
  return `${Math.round(ms) / 1000}s`;
}
