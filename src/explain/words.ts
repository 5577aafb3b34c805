// Words for a person: times, names, lists, and foreign texts. Pure: the clock is a parameter.

import { cut, joinNames, UNPRINTABLE } from '../base/text.ts';
import { formatDuration } from '../config/values.ts';

/** `45s`, `12m`, `3h5m`: without seconds next to minutes. */
export function formatAge(ms: number): string {
  const stepMs = ms < 60_000 ? 1_000 : 60_000;
  return formatDuration(Math.max(0, Math.floor(ms / stepMs) * stepMs));
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
