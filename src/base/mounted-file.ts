// Reads small files that may change at any time, and whose mount may hang (a Secret), among them the file of
// headers, one `Name: value` a line: credentials stand nowhere else. Never shows a value.

import { readFile, stat } from './files.ts';
import { prepareThreadCall } from './thread-call.ts';
import type { Limits } from './waits.ts';

/** Values by name, as written. */
export type Headers = Readonly<Record<string, string>>;

/** The headers, or why the file cannot be used: the end of a sentence about it, without any value. */
export type HeadersFile = { readonly headers: Headers } | { readonly why: string };

/** Larger files are rejected. */
const FILE_MAX_BYTES = 64 * 1024;

/** Set by the request itself. */
const OWN_HEADERS: readonly string[] = [
  ...['accept-encoding', 'connection', 'content-encoding', 'content-length', 'content-type', 'expect', 'host'],
  ...['keep-alive', 'te', 'trailer', 'transfer-encoding', 'upgrade'],
];

/** Prepares to read the file at `path`, again at each call: a Secret may change. Never rejects. */
export function prepareHeadersFile(path: string): (limits: Limits) => Promise<HeadersFile> {
  const read = prepareSmallFile(path, FILE_MAX_BYTES);
  return async (limits) => {
    const file = await read(limits);
    if ('why' in file) return { why: `cannot be read: ${file.why}` };
    const parsed = parseHeaders(file.text);
    return 'why' in parsed ? { why: `cannot be used: ${parsed.why}` } : parsed;
  };
}

/** Parses headers; skips blank lines and comments (`#`). `why` names a line, never its value. */
export function parseHeaders(text: string): HeadersFile {
  const headers: Record<string, string> = {};
  const seen = new Set<string>();
  const lines = text.replace(/^\uFEFF/, '').split('\n');
  for (const [index, raw] of lines.entries()) {
    const line = raw.trim();
    if (line === '' || line.startsWith('#')) continue;
    const at = `line ${index + 1}`;
    const [, name = '', value = ''] = /^([!#$%&'*+.^_`|~\w-]+):[ \t]*(.*)$/s.exec(line) ?? [];
    if (name === '') return { why: `${at} is no header; must be "Name: value"` };
    if (!/^[\t\x20-\x7e\x80-\xff]+$/.test(value)) {
      return { why: `${at} has no value, or one that a header cannot have` };
    }
    const lower = name.toLowerCase();
    if (OWN_HEADERS.includes(lower)) return { why: `${at} is ${lower}, which lastscrape sets itself` };
    if (seen.has(lower)) return { why: `${at} is ${lower}, which an earlier line has` };
    seen.add(lower);
    headers[name] = value;
  }
  return { headers };
}

/**
 * What must never be shown of headers: values and their words, the parts of Basic credentials, and the values
 * of parameters (`Token token="…"`, cookies), which a receiver may repeat in its own notation.
 */
export function listSecrets(headers: Headers): readonly string[] {
  const values = Object.values(headers);
  const words = values.flatMap((value) => value.split(/\s+/)).filter((word) => word.length >= SECRET_MIN_LENGTH);
  const basic = words
    .map((word) => Buffer.from(word, 'base64').toString())
    .filter((text) => /^[\x20-\x7e]+$/.test(text));
  const passwords = basic.map((text) => text.slice(text.indexOf(':') + 1));
  const parts = values.flatMap((value) => value.split(/["'=;,\s]+/)).filter((part) => part.length >= PART_MIN_LENGTH);
  return [...values, ...words, ...basic, ...passwords, ...parts].filter((text) => text.length >= SECRET_MIN_LENGTH);
}

/** A shorter text is no secret, and may be a part of any word. */
const SECRET_MIN_LENGTH = 4;
/** Names of parameters are no secret; most are shorter. */
const PART_MIN_LENGTH = 8;

/** The text, or why it was not read: `ENOENT`, `it is longer than 64 KiB`. */
type SmallFile = { readonly text: string } | { readonly why: string };

/** Prepares to read the file at `path`; each call reads it again. Never rejects. */
export function prepareSmallFile(path: string, maxBytes: number): (limits: Limits) => Promise<SmallFile> {
  const call = prepareThreadCall(() => readWhole(path, maxBytes));
  return async (limits) => {
    const result = await call(limits);
    return result.kind === 'returned' ? result.value : { why: result.why };
  };
}

async function readWhole(path: string, maxBytes: number): Promise<SmallFile> {
  try {
    if ((await stat(path)).size > maxBytes) return { why: `it is longer than ${maxBytes / 1024} KiB` };
    return { text: await readFile(path, 'utf8') };
  } catch (error) {
    return { why: (error as NodeJS.ErrnoException).code ?? String(error) };
  }
}
