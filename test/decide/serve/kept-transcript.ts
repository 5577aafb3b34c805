// Plays a transcript of the law of what is kept (fixtures/transcripts/kept/README.md).

import { addCall, replacePages } from '../../../src/decide/serve/calls.ts';
import {
  type Fate,
  type Known,
  type Step,
  takeFailed,
  takeMain,
  takeRefused,
  takeWhole,
  type WholeAnswer,
} from '../../../src/decide/serve/kept.ts';
import { beginPages, listKept, RICH_ACCEPT, TEXT_ACCEPT, takeUse } from '../../../src/decide/serve/pages.ts';
import { beginSource, type MainView, type SourceKind } from '../../../src/decide/serve/serve.ts';

const ACCEPTS: Readonly<Record<string, string>> = { text: TEXT_ACCEPT, rich: RICH_ACCEPT };
const nameAccept = (accept: string) => Object.keys(ACCEPTS).find((name) => ACCEPTS[name] === accept) ?? accept;

/** By the clock of `start=`. */
const STORY_STARTED_MS = 100_000;

type Fields = ReadonlyMap<string, string>;
type KnownHere = Known<string, string>;

/** The transcript with its decisions written again. */
export function playKept(text: string): string {
  const kind = (/^set kind=(\w+)$/m.exec(text)?.[1] ?? 'program') as SourceKind;
  const pages = beginPages<string>(/^set text=wanted$/m.test(text), true);
  let known: KnownHere = { source: beginSource(kind), pages, calls: [], unreadWhy: null };
  const out: string[] = [];
  for (const line of text.split('\n')) {
    // An indented line is a decision of the last run.
    if (!line.startsWith(' ')) out.push(line);
    if (!line.startsWith('>')) continue;
    const [, at = '', what = '', ...words] = line.split(/\s+/);
    const earlier = known;
    const played = playLine(known, what, words, readMs(at));
    ({ known } = played);
    out.push(...played.lines.map((each) => `    ${each}`));
    if (nameJudged(known) !== nameJudged(earlier)) out.push(`    judged: ${nameJudged(known)}`);
    if (namePages(known) !== namePages(earlier)) out.push(`    pages: ${namePages(known)}`);
  }
  return out.join('\n');
}

type Played = { readonly known: KnownHere; readonly lines: readonly string[] };

function playLine(known: KnownHere, what: string, words: readonly string[], nowMs: number): Played {
  const [first = ''] = words;
  const accept = ACCEPTS[first] ?? first;
  switch (what) {
    case 'main':
    case 'refused': {
      const main = (first === 'lives' ? 'living' : first) as MainView['main'];
      const view = { main, wasAlive: true, endedAtMs: main === 'ended' ? nowMs : null };
      const step = what === 'refused' ? takeRefused(known) : takeMain(known, view);
      return { known: step.known, lines: step.fate === null ? [] : [`what vanished is ${step.fate}`] };
    }
    case 'used':
      return { known: { ...known, pages: takeUse(known.pages, accept, nowMs) }, lines: [] };
    case 'called':
      return { known: { ...known, calls: addCall(known.calls, words.map(Number)).calls }, lines: [] };
    case 'unreadable':
    case 'failed': {
      const failed = { accept, why: words.slice(1).join(' '), isUnreadable: what === 'unreadable' };
      return describe(takeFailed(known, failed));
    }
    case 'whole': {
      const fields = new Map(words.slice(1).map((word) => word.split('=') as [string, string]));
      return playWhole(known, readAnswer(accept, fields, nowMs), fields, nowMs);
    }
    default:
      throw new Error(`cannot read "${what}"`);
  }
}

function readAnswer(accept: string, fields: Fields, nowMs: number) {
  const format = (fields.get('as') ?? 'text') as 'text' | 'openMetrics' | 'protobuf';
  const number = (name: string) => (fields.has(name) ? Number(fields.get(name)) : null);
  const finishedCount = number('count');
  const scrapes = finishedCount === null ? null : { finishedCount, inFlightCount: 1 };
  const judged = number('judge');
  const thresholds = fields.has('judge')
    ? [Number.isNaN(judged) ? ({ kind: 'none' } as const) : ({ kind: 'value', value: Number(judged) } as const)]
    : [];
  return {
    accept,
    body: { sizeBytes: (number('mb') ?? 1) * 1e6, type: { format, contentType: format } },
    readAtMs: readMs(fields.get('began') ?? `${nowMs / 1_000}s`),
    exporter: { kind: 'answered', scrapes, thresholds, totals: { requests: null, failures: null, users: null } },
    metrics: fields.has('up') ? [number('up')] : [],
    startSeconds: number('start'),
    startedAtMs: (number('start') ?? 0) * 1_000 - STORY_STARTED_MS,
    ...(!fields.has('cut') && { isShort: false }),
  } as const;
}

/** Answers what the law asks, until it says what becomes of the read. */
function playWhole(before: KnownHere, answer: WholeAnswer, fields: Fields, nowMs: number): Played {
  const step = takeWhole(before, answer, { nowMs, open: () => `${answer.accept} at ${nowMs}` });
  const { known, fate } = step;
  if (fate.kind !== 'findAll' && fate.kind !== 'findShort') return describe(step);
  const page = nameAccept(fate.page.accept);
  const [question, is] =
    fate.kind === 'findAll'
      ? [`does it have all that ${page} has?`, !fields.has('lacks')]
      : [`is it short of ${page}?`, fields.has('short')];
  const seen = fate.kind === 'findAll' ? { hasAll: is } : { isShort: is };
  const next = playWhole(known, { ...answer, ...seen }, fields, nowMs);
  return { known: next.known, lines: [`${question} ${is ? 'yes' : 'no'}`, ...next.lines] };
}

function describe({ known, fate, log }: Step<string, string, Fate<string>>): Played {
  if (fate.kind === 'dropped') {
    const logged = log === undefined ? [] : [`log ${log.id}`];
    return { known, lines: [`drop${fate.isShort ? ' as short' : ''}: ${fate.why}`, ...logged] };
  }
  const page = nameAccept(fate.page.accept);
  if (fate.kind === 'older')
    return { known, lines: [`older than ${page}: ${fate.isLiving ? 'remember' : 'join'} the rest`] };
  if (fate.kind !== 'renewed' && fate.kind !== 'joined') throw new Error(`Bug: ${fate.kind} was not asked`);
  const put = fate.aside.map(({ accept }) => `put ${nameAccept(accept)} aside: it is owed`);
  const calls = put.length > 0 ? replacePages(known.calls, fate.aside) : known.calls;
  return { known: { ...known, calls }, lines: [...put, `${fate.kind === 'renewed' ? 'renew' : 'join'} ${page}`] };
}

function nameJudged({ source: { thresholds } }: KnownHere): string {
  return thresholds.map((each) => (each.kind === 'value' ? each.value : each.kind)).join();
}

function namePages({ pages }: KnownHere): string {
  return listKept(pages)
    .map(({ accept }) => nameAccept(accept))
    .join(', ');
}

/** `1.5s` */
function readMs(text: string): number {
  const ms = Math.round(Number(/^(\d+(?:\.\d+)?)s$/.exec(text)?.[1]) * 1_000);
  if (Number.isNaN(ms)) throw new Error(`no time: "${text}"`);
  return ms;
}
