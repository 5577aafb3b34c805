// Text for a person: cut to a length, joined or broken into lines, without what can be secret in a URL (user,
// password, query), or what a mistyped one may stand for. Pure.

import { orNull } from './parse.ts';

/** The text, or its beginning and `…`: at most `maxLength` UTF-16 units, never half a surrogate pair. */
export function cut(text: string, maxLength: number): string {
  if (text.length <= maxLength) return text;
  return `${text.slice(0, maxLength - 1).replace(/[\ud800-\udbff]$/, '')}…`;
}

/** What a terminal obeys, or turns other text round: controls, line separators, bidirectional marks. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what it finds
export const UNPRINTABLE = /[\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g;

/** JSON on one line, which a terminal shows as it is; the same value is read back. */
export function formatJson(value: unknown): string {
  return JSON.stringify(value).replace(UNPRINTABLE, (each) => `\\u${each.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

/** `a`, `a and b`, `a, b and c`. */
export function joinNames(names: readonly string[], last: 'and' | 'or' = 'and'): string {
  return names.length <= 1 ? names.join() : `${names.slice(0, -1).join(', ')} ${last} ${names.at(-1)}`;
}

/** `"a"`, `"a" or "b"`, `"a", "b" or "c"`. */
export function joinQuoted(names: readonly string[]): string {
  const quoted = names.map((name) => `"${name}"`);
  return joinNames(quoted, 'or');
}

const WIDTH = 100;

/** Breaks a text between words, but not within quotes: a person copies the commands in them. */
export function wrap(text: string, first = '', rest = ''): string[] {
  const lines: string[] = [];
  let line = first;
  for (const word of text.match(/"[^"]*"\S*|\S+/g) ?? []) {
    if (line.length + word.length > WIDTH && line !== first) {
      lines.push(line.trimEnd());
      line = rest;
    }
    line += `${word} `;
  }
  return [...lines, line.trimEnd()];
}

/** Copies a text: a part of a text keeps the whole of it in memory. */
export function copyText(text: string): string {
  return Buffer.from(text).toString();
}

/**
 * Redacts an entry that may not be a URL: all before the last `@` and after the first `?`, but for a method
 * and a scheme. Hides too much rather than too little.
 */
export function redactEntry(text: string): string {
  const [, head = '', rest = ''] = /^((?:[A-Za-z]+ +)?(?:[A-Za-z][A-Za-z0-9+.-]*:\/\/)?)(.*)$/s.exec(text) ?? [];
  const atAt = rest.lastIndexOf('@');
  const shown = atAt === -1 ? rest : `***${rest.slice(atAt)}`;
  const queryAt = shown.indexOf('?');
  const entry = `${head}${queryAt === -1 ? shown : `${shown.slice(0, queryAt)}?***`}`;
  return redactUrl(entry.replace(ELSEWHERE, '$1/***'));
}

/** The path of a URL of another host than loopback may be a chat tool's secret; its scheme may be missing. */
const ELSEWHERE =
  /((?:(?<![a-z0-9+.-])(?!file:|locust\+)[a-z][a-z0-9+.-]*:\/\/(?!(?:\*\*\*@)?(?:localhost|127\.[\d.]+|\[::1\])(?::\d+)?\/)|(?<![^\s,;])(?=[\w.-]+\.[a-z]+[:/]))[^/\s]+)\/[^\s?]+/gi;

/** Prints a URL without user, password and query. */
export function redactHref({ protocol, host, pathname, search, username, password }: URL): string {
  const user = username === '' && password === '' ? '' : '***@';
  return `${protocol}//${user}${host}${pathname}${search === '' ? '' : '?***'}`;
}

/** Prints only scheme and host: the path of a chat tool's URL is its secret. */
export function redactPath({ protocol, host, pathname, search }: URL): string {
  return `${protocol}//${host}${pathname === '/' && search === '' ? '' : '/***'}`;
}

/** The same for an entry that may not be a URL: hides all after the host, or everything without a scheme. */
export function redactPathEntry(text: string): string {
  const [, head = '', host = '', rest = ''] = /^([A-Za-z][A-Za-z0-9+.-]*:\/\/)([^/?#@]*)(.*)$/s.exec(text) ?? [];
  if (head === '') return text.length <= 8 ? text : '***';
  if (rest.startsWith('@') || /^[^?#]*@/.test(rest)) return `${head}***`;
  return `${head}${host}${rest === '' || rest === '/' ? rest : '/***'}`;
}

/**
 * Redacts every URL in a text. Hides too much rather than too little where one is malformed: a raw comma in a
 * password splits a list there, and leaves `//user:pass` or `word@host`.
 */
export function redactUrl(text: string): string {
  return text
    .replace(/\/\/[^\s,]*@/g, '//***@')
    .replace(/\/\/[^\s,/@[]*:(?!\d*(?:[/?#,\s]|$))[^\s,/]*/g, '//***')
    .replace(/(^|,)[^\s,/]*@/g, '$1***@')
    .replace(/\?[^\s,]*/g, '?***');
}

const UTF8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** Null: the bytes are not UTF-8. */
export function decodeUtf8(bytes: Uint8Array): string | null {
  return orNull(() => UTF8.decode(bytes));
}

/** Least share of common pairs, from 0 to 1, of near texts: EXPORTER_URL has 0.32 of METRICS_URL. */
const NEAR_SCORE = 0.31;
/** Texts this close to the best score are near too: TIMEOUT is a part of three variables. */
const SAME_SCORE = 0.1;

/** The known texts nearest to another, by the pairs of letters they share; nearest first, at most three. */
export function findNearest(text: string, known: readonly string[], leastScore = NEAR_SCORE): readonly string[] {
  const pairs = new Set(listPairs(text));
  const rate = (own: readonly string[]) =>
    (2 * own.filter((pair) => pairs.has(pair)).length) / (pairs.size + own.length);
  const scored = known.map((each) => ({ each, score: rate(listPairs(each)) }));
  const least = Math.max(leastScore, ...scored.map(({ score }) => score - SAME_SCORE));
  const near = scored.filter(({ score }) => score >= least).sort((one, other) => other.score - one.score);
  return near.slice(0, 3).map(({ each }) => each);
}

/** Neighbouring letters in lower case, the ends of the text too. */
function listPairs(text: string): readonly string[] {
  const folded = ` ${text.toLowerCase()} `;
  return Array.from({ length: folded.length - 1 }, (_, at) => folded.slice(at, at + 2));
}
