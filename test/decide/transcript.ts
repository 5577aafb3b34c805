// Plays a golden transcript: `>` lines are what was seen, those below each what was decided (its README.md).

import assert from 'node:assert/strict';
import { buildPolicy, readConfig } from '../../src/config/config.ts';
import { type LogEntry, MESSAGES } from '../../src/decide/messages.ts';
import {
  type ConditionObservation,
  type ExporterObservation,
  type FrontObservation,
  findSourceKind,
  type Observation,
  type Policy,
  type ScrapeCounters,
} from '../../src/decide/model.ts';
import type { Answer, ForceResult, Probe } from '../../src/decide/quit/quit-target.ts';
import { buildReport, fitReport } from '../../src/decide/report/report.ts';
import { viewMain } from '../../src/decide/run/facts.ts';
import { begin, step } from '../../src/decide/run/step.ts';
import type { ScraperRequest } from '../../src/decide/serve/scrapers.ts';
import {
  type AnswerKind,
  beginSource,
  chooseAnswer,
  observeSource,
  type SourceResult,
  type SourceState,
  takeAnswer,
  takeRefusal,
  takeView,
} from '../../src/decide/serve/serve.ts';
import type {
  Decision,
  HandOverResult,
  PushResult,
  QuitEnd,
  QuitState,
  WatchEvent,
  WebhookResult,
} from '../../src/decide/state.ts';
import { KINDS } from '../../src/main.ts';
import { CONTEXT } from '../observe/condition-context.ts';
import { readThresholdReadings } from './threshold-readings.ts';

/** The transcript with every line of output made again. */
export function playTranscript(text: string): string {
  const settings: Record<string, string> = {};
  const out: string[] = [];
  let player: Player | null = null;
  for (const line of text.split('\n')) {
    if (line.startsWith('set ')) {
      const equalsAt = line.indexOf('=');
      settings[`LASTSCRAPE_${line.slice(4, equalsAt)}`] = line.slice(equalsAt + 1);
      out.push(line);
    } else if (line === '> restarted') {
      player = null;
      out.push(line);
    } else if (line.startsWith('>')) {
      player ??= new Player(settings);
      const on = player;
      out.push(
        line,
        ...new Set(
          listScrapes(line.slice(1).trim())
            .flatMap((each) => on.play(each))
            .map((decided) => `    ${decided}`),
        ),
      );
    } else if (line.trim() === '' || line.startsWith('#')) {
      out.push(line.trim());
    }
    // Anything else is output of the last time.
  }
  return out.join('\n');
}

/** Of `1s scrape=10.0.0.1..64` one from each of these addresses, 50 ms apart. */
function listScrapes(line: string): readonly string[] {
  const [, start, head, first, last, rest] = /^([\d.]+)s (scrape=[\d.]+\.)(\d+)\.\.(\d+)(.*)$/.exec(line) ?? [];
  if (start === undefined) return [line];
  const count = Number(last) - Number(first) + 1;
  return Array.from(
    { length: count },
    (_, index) => `${(Number(start) + index * 0.05).toFixed(2)}s ${head}${Number(first) + index}${rest}`,
  );
}

const SELF = { pid: 1, kill: () => {}, pod: CONTEXT.pod };

type Fields = ReadonlyMap<string, string | undefined>;

/** Feeds what a line shows to `step`, as the loop does, and puts down what it decides. */
class Player {
  readonly #conditions: readonly string[];
  readonly #policy: Policy;
  #decision: Decision | null = null;
  #source: SourceState;
  #unreadWhy: string | undefined;

  constructor(settings: Record<string, string>) {
    const result = readConfig(settings, KINDS, SELF);
    if (!('config' in result)) throw new Error(result.problems.join('\n'));
    this.#policy = buildPolicy(result.config);
    this.#conditions = result.config.conditions.map(({ text }) => text.replace(/:.*/, ''));
    this.#source = beginSource(findSourceKind(result.config.metricsUrl));
  }

  play(line: string): string[] {
    const [time = '', ...words] = line.split(/\s+/);
    const atMs = Math.round(Number(/^(\d+(?:\.\d+)?)s$/.exec(time)?.[1] ?? Number.NaN) * 1000);
    if (Number.isNaN(atMs)) throw new Error(`no time in "> ${line}"`);
    const fields = new Map(words.map((word) => word.split(/=(.*)/) as [string, string | undefined]));
    const isSignal = fields.has('SIGTERM') || fields.has('SIGINT');
    const startedAtMs = atMs - seconds(fields.get('took') ?? '0s');
    const before = this.#decision ?? begin(startedAtMs, this.#policy);
    const lines: string[] = [];
    let now = before;
    const take = (decision: Decision) => {
      now = decision;
      lines.push(...decision.log.filter(({ id }) => MESSAGES[id].level !== 'debug').map(formatEntry));
    };
    const watch = (event: WatchEvent) => {
      if (now.kind === 'watching') take(step({ kind: 'watching', state: now.state, event }, this.#policy));
    };
    const quit = (end: QuitEnd) => {
      if (now.kind !== 'quitting') return;
      take(step({ kind: 'quitting', state: now.state, event: { ...end, atMs } }, this.#policy));
    };
    if (fields.has('handover') && now.kind === 'handingOver') {
      const why = fields.get('handover')?.replaceAll('_', ' ') ?? '';
      const leftOut = fields.has('leftout') && { annotationsLeftOut: Number(fields.get('leftout')) };
      const result: HandOverResult = why === 'kept' ? { kind: 'accepted', ...leftOut } : { kind: 'failed', why };
      const event = { kind: 'handedOver', sinceMs: now.next.sinceMs, atMs, result } as const;
      take(step({ kind: 'handingOver', state: now.state, event }, this.#policy));
    }
    const signal = { kind: 'signalled', atMs } as const;
    if (isSignal && now.kind === 'watching') watch(signal);
    else if (isSignal && now.kind === 'quitting') {
      take(step({ kind: 'quitting', state: now.state, event: { ...signal, planned: now.next } }, this.#policy));
    }
    const isAlone = (isSignal && fields.size === 1) || fields.has('handover') || fields.has('call');
    if (fields.has('call')) {
      this.#readSource(fields, 'answered', startedAtMs);
      this.#source = { ...this.#source, calledAtMs: startedAtMs };
    }
    if (fields.has('scrape') && now.kind === 'watching') {
      const { becomes, result } = this.#readSource(fields, readSource(fields), startedAtMs);
      const served = (fields.get('served') ?? becomes) as AnswerKind;
      const isTaken = served !== 'unavailable' && !fields.has('hung') && !fields.has('uncounted');
      lines.push(`answer ${served === 'unavailable' ? '503' : served}${isTaken ? '' : ', not counted'}`);
      if (!fields.has('uncounted')) {
        watch({ kind: 'requested', request: readRequest(fields, startedAtMs), planned: now.next });
      }
      if (isTaken && now.kind === 'watching') {
        const readAtMs = served === 'snapshot' ? (this.#source.answeredAtMs ?? 0) : startedAtMs;
        const isByRefusal = served === 'snapshot' && result === 'refused';
        const scrape = { ...readRequest(fields, startedAtMs), atMs, served, readAtMs, isByRefusal };
        const front = observeSource(this.#source, Number(fields.get('serving') ?? 0));
        watch({ kind: 'scraped', scrape, front, planned: now.next });
      }
    } else if (!isAlone && now.kind === 'watching') {
      const isFresh = before.next.kind === 'observe' && before.next.isFresh;
      watch({ kind: 'observed', observation: this.#readObservation(startedAtMs, atMs, fields, isFresh) });
    } else if (!isAlone && now.kind === 'quitting') {
      quit(readQuitEnd(fields));
    }
    // What always succeeds at once is no line of a story.
    while (now.next.kind === 'closeFront' || now.next.kind === 'declareDead') {
      quit({ kind: now.next.kind === 'closeFront' ? 'frontClosed' : 'declaredDead' });
    }
    this.#decision = now;
    const { phase } = before.state;
    if (now.state.phase.kind !== phase.kind) lines.push(`state ${now.state.phase.kind}`);
    return [...lines, ...this.#describeTarget(before, now), this.#describeNext(now, atMs)];
  }

  #readObservation(startedAtMs: number, atMs: number, fields: Fields, isFresh: boolean): Observation {
    const readAtMs = atMs - seconds(fields.get('after') ?? '0s');
    const allowedMs = seconds(fields.get('allowed') ?? '25s');
    const conditions = this.#conditions.map((kind, index) => {
      // A second condition of one kind has its field with a number: `metric2=`.
      const number = this.#conditions.slice(0, index + 1).filter((each) => each === kind).length;
      return readCondition(kind, number === 1 ? kind : `${kind}${number}`, fields);
    });
    const exporter = readExporter(fields);
    if (exporter.kind === 'failed') this.#unreadWhy = exporter.why;
    if (exporter.kind === 'answered' || exporter.kind === 'refused') {
      this.#readSource(fields, exporter.kind, startedAtMs);
    }
    const unread = this.#unreadWhy !== undefined && { unreadWhy: this.#unreadWhy };
    const seen = { ...observeSource(this.#source, Number(fields.get('serving') ?? 0)), ...unread };
    const front = this.#policy.front !== null ? { front: { ...seen, ...readCalls(fields) }, isFresh } : {};
    const dueAtMs = startedAtMs - seconds(fields.get('late') ?? '0s');
    return { dueAtMs, startedAtMs, readAtMs, atMs, allowedMs, exporter, conditions, ...front };
  }

  /** One read of the source, as a front takes it: what a scrape by it gets. `snapshot=no`: the answer is not readable. */
  #readSource(fields: Fields, read: SourceResult, readAtMs: number): { becomes: AnswerKind; result: SourceResult } {
    if (this.#decision !== null) this.#source = takeView(this.#source, viewMain(this.#decision.state));
    const before = this.#source;
    if (read === 'refused') this.#source = takeRefusal(before);
    if (read !== 'answered') this.#unreadWhy = read === 'refused' ? 'connection refused' : 'timed out';
    if (fields.get('snapshot') === 'no') this.#unreadWhy = 'a line that Prometheus refuses';
    let result = read;
    if (read === 'answered' && fields.get('snapshot') !== 'no') {
      const names = this.#conditions.filter((kind) => kind === 'metric');
      const values = names.map((name, index) => fields.get(index === 0 ? name : `${name}${index + 1}`));
      const metrics = values.map((value) => (value === undefined || value === '?' ? null : Number(value)));
      const taken = takeAnswer(before, { readAtMs, exporter: readExporter(fields), metrics });
      this.#source = taken.state;
      if (taken.becomes === 'ignored') result = 'ignored';
    }
    return { becomes: chooseAnswer(before, result), result };
  }

  /** By when the target must be gone that is asked from now on, or that got less time. */
  #describeTarget(before: Decision, now: Decision): string[] {
    const target = now.state.phase.kind === 'quitting' ? now.state.phase.target : null;
    const old = before.state.phase.kind === 'quitting' ? before.state.phase.target : null;
    if (target === null || (old?.beganAtMs === target.beganAtMs && old.endsByMs === target.endsByMs)) return [];
    return [`${this.#nameTarget(now.state as QuitState)} must be gone by ${inSeconds(target.endsByMs)}`];
  }

  #describeNext({ state, next }: Decision, atMs: number): string {
    switch (next.kind) {
      case 'observe': {
        const limit = next.readByMs === null ? '' : `, decide by ${inSeconds(next.readByMs)}`;
        // Without a front every observation reads the exporter.
        const fresh = next.isFresh && this.#policy.front !== null ? ', with a read' : '';
        return `observe at ${inSeconds(next.atMs)}${limit}${fresh}`;
      }
      case 'ask':
        return `ask ${this.#nameTarget(state)}, for ${inSeconds(next.timeoutMs)} at most`;
      case 'closeFront':
      case 'declareDead':
        return next.kind;
      case 'push':
      case 'callWebhook':
        return `${next.kind === 'push' ? 'push' : 'tell the webhook'}, until ${inSeconds(next.untilMs)}, after a signal for ${inSeconds(next.graceMs)} at most`;
      case 'handOver':
      case 'withdraw':
        return `${next.kind === 'handOver' ? 'hand over' : 'take it back'}, until ${inSeconds(next.untilMs)}`;
      case 'probe':
        return `probe at ${inSeconds(next.atMs)}, for ${inSeconds(next.timeoutMs)} at most`;
      case 'force':
        return `force ${this.#nameTarget(state)}, ${next.count === 0 ? 'for the first time' : 'again'}`;
      case 'done': {
        const report = buildReport({
          state,
          policy: this.#policy,
          source: { kind: this.#source.kind, at: 'localhost:9646' },
          nowMs: atMs,
          toTime: (ms) => `+${inSeconds(ms)}`,
          stage: next,
          version: '0.1.0',
        });
        return `report ${JSON.stringify(fitReport(report))}`;
      }
    }
  }

  #nameTarget({ phase }: Decision['state']): string {
    const index = phase.kind === 'quitting' ? phase.reports.length : 0;
    return this.#policy.targets[index]?.name ?? '';
  }
}

/** How the read for a scrape went. */
function readCalls(fields: Fields): Partial<FrontObservation> {
  const [takenCount, refusedCount = 0, droppedCount = 0] = fields.get('pushes')?.split(',').map(Number) ?? [];
  const hook = fields.get('hook');
  return {
    ...(takenCount !== undefined && {
      pushes: { changedAtMs: null, takenCount, refusedCount, droppedCount, why: '400: no line feed' },
    }),
    ...(hook !== undefined && { hookCallsCount: Number(hook) }),
    ...(fields.has('owed') && { hasOwedPage: true }),
    ...(fields.has('lost') && { lostCallsCount: Number(fields.get('lost')) }),
  };
}

function readSource(fields: Fields): SourceResult {
  const source = fields.get('source') ?? 'answered';
  if (source === 'answered' || source === 'refused' || source === 'failed') return source;
  throw new Error(`no such source: ${source}`);
}

/** `scrape=A`: from the address A, on its connection 1; `scrape=A:2` on another one; `open=1,3`: its other open ones. */
function readRequest(fields: Fields, startedAtMs: number): ScraperRequest {
  const [address = '', connection = '1'] = (fields.get('scrape') ?? '').split(':');
  return {
    startedAtMs,
    address,
    agent: fields.get('agent') ?? 'Prometheus/3.0.0',
    connection: Number(connection),
    openConnections: (fields.get('open') ?? '').split(',').filter(Boolean).map(Number),
  };
}

function readQuitEnd(fields: Fields): QuitEnd {
  const answer = fields.get('answer');
  const forced = fields.get('forced');
  const pushed = fields.get('pushed');
  if (pushed !== undefined) {
    const result: PushResult =
      pushed === 'yes' ? { kind: 'accepted', requestsCount: 1 } : { kind: 'failed', why: 'HTTP 503: too busy' };
    return { kind: 'pushed', result };
  }
  const told = fields.get('told');
  if (told !== undefined) {
    const result: WebhookResult =
      told === 'yes' ? { kind: 'accepted', status: 200, tries: 1 } : { kind: 'failed', why: 'HTTP 503', tries: 3 };
    return { kind: 'webhookCalled', result };
  }
  if (forced !== undefined) {
    const result: ForceResult =
      forced === 'yes'
        ? { kind: 'signalled', signal: 'TERM', pids: [12] }
        : { kind: 'impossible', why: 'not forced: hidden' };
    return { kind: 'forced', result, leaves: {} };
  }
  if (answer !== undefined) {
    return { kind: 'asked', answer: readAnswer(answer), hint: `hint for ${answer}`, leaves: {} };
  }
  return { kind: 'probed', probe: (fields.get('probe') ?? 'unknown') as Probe };
}

function readExporter(fields: Fields): ExporterObservation {
  const exporter = fields.get('exporter');
  if (exporter === 'none') return { kind: 'none' };
  if (exporter === 'refused') return { kind: 'refused' };
  if (exporter === 'timeout') return { kind: 'failed', why: 'timed out', mayCount: true };
  if (exporter?.startsWith('http')) return { kind: 'failed', why: `HTTP ${exporter.slice(4)}`, mayCount: false };
  if (exporter !== undefined) throw new Error(`no such exporter: ${exporter}`);
  const scrapes: ScrapeCounters | null = fields.has('count')
    ? { finishedCount: Number(fields.get('count')), inFlightCount: Number(fields.get('inflight') ?? 1) }
    : null;
  const readNumber = (name: string) => (fields.has(name) ? Number(fields.get(name)) : null);
  const thresholds = readThresholdReadings(fields.get('numbers'));
  return {
    kind: 'answered',
    scrapes,
    totals: { requests: readNumber('requests'), failures: readNumber('failures'), users: readNumber('users') },
    ...(thresholds.length === 0 ? {} : { thresholds }),
    ...(fields.has('lastscrape') ? { isFront: true } : {}),
  };
}

function readCondition(kind: string, field: string, fields: Fields): ConditionObservation {
  const value = fields.get(field);
  if (kind === 'metric') {
    const name = field === 'metric' ? 'locust_up' : 'locust_users';
    const isRead = fields.get('exporter') === undefined;
    if (!isRead || value === undefined || value === '?')
      return fields.get('exporter') === 'none' ? { kind: 'notObserved' } : { kind: 'unknown', why: `${name} unknown` };
    if (value !== '0') return { kind: 'alive', seen: `${name} ${value}` };
    return { kind: 'done', seen: `${name} 0`, provesWasAlive: fields.has('rows') };
  }
  if (value?.startsWith('ended:')) {
    const exitCode = Number(value.slice('ended:'.length));
    const seen = `${kind} load ended with ${exitCode}`;
    return { kind: 'done', seen, provesWasAlive: true, exitCodes: { load: exitCode } };
  }
  if (value === undefined) return { kind: 'notObserved' };
  return SHOWN[value]?.(kind) ?? assert.fail(`no such observation: ${kind}=${value}`);
}

const showAlive = (value: string) => (kind: string) => ({ kind: 'alive', seen: `${kind} ${value}` }) as const;

/** What a kind of condition shows, by the words of a line. */
const SHOWN: Readonly<Record<string, (kind: string) => ConditionObservation>> = {
  ...Object.fromEntries(['open', 'born', 'running', 'backoff'].map((value) => [value, showAlive(value)])),
  missing: (kind) =>
    kind === 'tombstone' ? { kind: 'notStarted', why: 'tombstone not there yet' } : showAlive('missing')(kind),
  refused: (kind) => ({ kind: 'done', seen: `${kind} refused`, provesWasAlive: false }),
  exists: (kind) => ({ kind: 'done', seen: `${kind} exists`, provesWasAlive: true }),
  died: (kind) => ({ kind: 'done', seen: `${kind} died`, provesWasAlive: true }),
  unborn: (kind) => ({ kind: 'done', seen: `${kind} died, never born`, provesWasAlive: false, provesNeverRan: true }),
  notstarted: (kind) => ({ kind: 'notStarted', why: `${kind} not started` }),
  forbidden: (kind) => ({ kind: 'blind', why: `${kind} unknown: HTTP 403`, problem: 'HTTP 403; create the Role' }),
  unreachable: (kind) => ({ kind: 'blind', why: `${kind} unknown: no answer` }),
  halfwritten: (kind) => ({ kind: 'unknown', why: `${kind} half written` }),
  timeout: (kind) => ({ kind: 'unknown', why: `${kind} unknown: timed out` }),
};

function readAnswer(answer: string): Answer {
  if (answer === 'dropped' || answer === 'refused') return { kind: answer };
  if (answer === 'signalled') return { kind: 'signalled', signal: 'TERM', pids: [12] };
  if (answer === 'signalled-before') return { kind: 'signalled', signal: 'TERM', pids: [] };
  if (answer === 'timeout') return { kind: 'failed', why: 'timed out', wasSent: true };
  return { kind: 'answered', status: Number(answer), isHtml: false };
}

function formatEntry({ id, fields }: LogEntry): string {
  const { level, text } = MESSAGES[id];
  const values = Object.entries(fields).map(([name, value]) => ` ${name}=${JSON.stringify(value)}`);
  return `${level} "${text}"${values.join('')}`;
}

function seconds(text: string): number {
  return text.endsWith('ms') ? Number(text.slice(0, -2)) : Math.round(Number(text.slice(0, -1)) * 1000);
}

function inSeconds(ms: number): string {
  return `${Math.round(ms) / 1000}s`;
}
