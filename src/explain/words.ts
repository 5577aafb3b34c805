// Words for a person: times, names, lists, and foreign texts. Pure: the clock is a parameter.

import { cut, joinNames, UNPRINTABLE } from '../base/text.ts';

const UNITS = [
  ['day', 86_400_000],
  ['hour', 3_600_000],
  ['minute', 60_000],
  ['second', 1_000],
] as const;

/** `12 minutes`, `3 hours 5 minutes`: the two largest units, without seconds next to minutes. */
export function formatAge(ms: number): string {
  let leftMs = Math.max(0, ms);
  const counts = UNITS.map(([unit, unitMs]) => {
    const count = Math.floor(leftMs / unitMs);
    leftMs -= count * unitMs;
    return { count, text: `${count} ${unit}${count === 1 ? '' : 's'}` };
  });
  const first = counts.findIndex(({ count }) => count > 0);
  const shown = counts.slice(first, first < 2 ? first + 2 : first + 1).filter(({ count }) => count > 0);
  return first < 0 ? 'less than a second' : shown.map(({ text }) => text).join(' ');
}

/** The latest and, negated, the earliest moment of a Date (ECMAScript, "Time Values and Time Range"). */
const DATE_MAX_MS = 8.64e15;

/** RFC 3339, UTC, whole seconds; at most the latest Date, as after a grace of 2^63 s. */
export function formatTime(atMs: number): string {
  return new Date(Math.max(-DATE_MAX_MS, Math.min(atMs, DATE_MAX_MS))).toISOString().replace(/\.\d+Z$/, 'Z');
}

/** Epoch of an RFC 3339 time; null: it is not one. */
export function readTime(value: unknown): number | null {
  const atMs = typeof value === 'string' ? Date.parse(value) : Number.NaN;
  return Number.isNaN(atMs) ? null : atMs;
}

/** `, as a does`, `, as a and b do`: what others do as well; blank without others. */
export function addOthers(others: readonly { readonly name: string }[]): string {
  const names = joinNames(others.map(({ name }) => name));
  return names === '' ? '' : `, as ${names} ${others.length === 1 ? 'does' : 'do'}`;
}

/** A foreign text on one line, cut, without what could move a terminal's cursor. */
export function quoteText(text: string, maxLength = 240): string {
  return cut(text.replace(UNPRINTABLE, ' ').replace(/ +/g, ' ').trim(), maxLength);
}

/** A name, without what could move a cursor: the JSON may come from anywhere. */
export function readName(value: unknown): string {
  return typeof value === 'string' ? quoteText(value) : '';
}

/** A word for a shell. */
export function quoteShell(text: string): string {
  return /^[\w./:=@%+,-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}
