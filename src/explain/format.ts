// Explanations → the text for a person, and the JSON for a program. Pure.

import { wrap } from '../base/text.ts';
import type { Command, Explanation, Finding } from './finding.ts';
import { formatAge, formatTime } from './words.ts';

const LABEL_WIDTH = 9;
/** How many other pods with the same findings are named. */
const NAMES_MAX = 20;

/** What was explained, at which moment (epoch). */
type Explained = {
  readonly explanations: readonly Explanation[];
  /** Kinds of a list that are neither pod nor Job. */
  readonly others: readonly string[];
  readonly nowMs: number;
};

/** The text for a person: what is kept first, then what has ended, a line each. */
export function formatExplained({ explanations, others, nowMs }: Explained): string {
  const kept = explanations.filter(({ state }) => state !== 'ended');
  const ended = explanations.filter(({ state }) => state === 'ended');
  const blocks = [
    ...group(kept).map((each) => formatKept(each, nowMs)),
    ended.map(formatEnded).join(''),
    others.length === 0
      ? ''
      : `Not explained: ${others.length} of another kind (${[...new Set(others)].join(', ')}).\n`,
  ];
  return blocks.filter(Boolean).join('\n');
}

/** The JSON for a program; docs/explain.md has its fields. */
export function formatJson({ explanations, others, nowMs }: Explained, version: string): string {
  const objects = explanations.map(({ more, findings, ...object }) => ({
    ...object,
    ...(more !== '' && { more }),
    findings: findings.map(({ reason, container, isStuck, summary, since: { atMs, what }, ...rest }) => ({
      reason,
      container,
      stuck: isStuck,
      summary,
      since: atMs === null ? null : formatTime(atMs),
      seconds: atMs === null ? null : Math.max(0, Math.floor((nowMs - atMs) / 1_000)),
      sinceWhat: what,
      ...rest,
    })),
  }));
  return `${JSON.stringify({ version, at: formatTime(nowMs), objects, notExplained: others }, null, 2)}\n`;
}

/** Objects with the same findings, such as the pods of one Job, are explained once. */
function group(explanations: readonly Explanation[]): readonly (readonly Explanation[])[] {
  const groups = Map.groupBy(explanations, ({ kind, namespace, findings, target }) =>
    JSON.stringify([
      kind,
      namespace,
      target,
      findings.map(({ reason, container, change }) => [reason, container, change]),
    ]),
  );
  return [...groups.values()];
}

function formatKept([first, ...more]: readonly Explanation[], nowMs: number): string {
  const { findings = [] } = first ?? {};
  const blocks = findings.map((finding, index) => formatFinding(finding, findings[index - 1], nowMs));
  if (first?.target !== undefined) blocks.push(`${label('Targets', first.target.text)}\n`);
  const names = more.slice(0, NAMES_MAX).map(({ name }) => name);
  const alike = `${names.join(', ')}${more.length > NAMES_MAX ? ` and ${more.length - NAMES_MAX} more` : ''}`;
  if (more.length > 0) blocks.push(`${label('Also', `the same keeps ${alike}`)}\n`);
  return blocks.join('\n');
}

function formatFinding(finding: Finding, before: Finding | undefined, nowMs: number): string {
  const { summary, since, why, change, first, see, now } = finding;
  const isSameMoment = before?.since.atMs === since.atMs && before.since.what === since.what;
  const parts = [
    `${summary}.`,
    since.atMs === null || isSameMoment
      ? ''
      : label('Since', `${formatTime(since.atMs)}, ${formatAge(nowMs - since.atMs)} ago: ${since.what}`),
    why === '' || why === before?.why ? '' : label('Why', why),
    change === null ? '' : label('Change', change.what),
    change?.lines == null ? '' : `\n${change.lines.trimEnd()}\n`,
    first === null ? '' : formatCommand('First', first),
    see === null ? '' : formatCommand('See', see),
    now === null ? '' : formatCommand('Now', now),
  ];
  return `${parts.filter(Boolean).join('\n').replace(/\n$/, '')}\n`;
}

/** Not wrapped: a person copies it. */
function formatCommand(name: string, { what, line }: Command): string {
  return `${label(name, `${what}:`)}\n${' '.repeat(LABEL_WIDTH)}${line}`;
}

function formatEnded({ summary, more }: Explanation): string {
  return `${summary}.\n${more === '' ? '' : `${wrap(more).join('\n')}\n`}`;
}

function label(name: string, text: string): string {
  return wrap(text, name.padEnd(LABEL_WIDTH), ' '.repeat(LABEL_WIDTH)).join('\n');
}
