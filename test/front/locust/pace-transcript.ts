// Plays a transcript of Locust's page and CSV (fixtures/transcripts/locust/README.md).

import {
  findDoubt,
  isUp,
  PACE_START,
  type PaceEvent,
  type PaceState,
  stepPace,
} from '../../../src/front/locust/pace.ts';

/** The transcript with its decisions written again. */
export function playPace(text: string): string {
  let state = PACE_START;
  let isWaiting = false;
  const out: string[] = [];
  for (const line of text.split('\n')) {
    if (!line.startsWith('>')) {
      // An indented line is a decision of the last run.
      if (!line.startsWith(' ')) out.push(line);
      continue;
    }
    const [, seconds, what = ''] = /^> (\d+(?:\.\d+)?)s (\S+)$/.exec(line) ?? [];
    const event = readEvent(what);
    if (seconds === undefined || event === null) throw new Error(`cannot read "${line}"`);
    const step = stepPace(state, event, Math.round(Number(seconds) * 1_000));
    state = step.state;
    isWaiting ||= event.kind === 'asked';
    const isAnswered: boolean = isWaiting && step.isAnswered;
    if (isAnswered) isWaiting = false;
    const decided = [
      ...(step.readsPage ? ['read page'] : []),
      ...(step.readsCsv ? ['read csv'] : []),
      ...(isAnswered ? [`answer ${describe(state)}`] : []),
      step.wakeAtMs === Number.POSITIVE_INFINITY ? 'wait' : `wait until ${step.wakeAtMs / 1_000}s`,
    ];
    out.push(line, ...decided.map((each) => `    ${each}`));
  }
  return out.join('\n');
}

const PLAIN: ReadonlyMap<string, PaceEvent> = new Map<string, PaceEvent>([
  ['asked', { kind: 'asked' }],
  ['ending', { kind: 'ending' }],
  ['due', { kind: 'due' }],
  ['csv=cut', { kind: 'csv', end: 'hurt', mark: '' }],
  ['csv=none', { kind: 'csv', end: 'other', mark: '' }],
  ['page=other', { kind: 'page', view: { kind: 'other' } }],
  ['page=down', { kind: 'page', view: { kind: 'down' } }],
  ['page=cut', { kind: 'page', view: { kind: 'unknown', why: 'cut' } }],
]);

function readEvent(what: string): PaceEvent | null {
  const [kind, value = ''] = what.split('=', 2);
  const [state = '', mark = ''] = value.split(':', 2);
  if (PLAIN.has(what) || mark === '') return PLAIN.get(what) ?? null;
  if (kind === 'csv') return { kind, end: 'whole', mark };
  return kind === 'page' ? { kind, view: { kind: 'stats', state: state === '?' ? null : state, mark } } : null;
}

function describe(state: PaceState): string {
  const doubt = findDoubt(state);
  return `${isUp(state.view) ? 'up' : 'down'}${doubt === null ? '' : ` (${doubt})`}`;
}
