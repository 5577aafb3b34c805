// Textfiles as the source: one file, or all `*.prom` of a folder in the order of their names. An answer
// begins when all of it was found readable: it never breaks off, and only metrics are served. The file system
// may hang.

import { constants } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { close, fstat, open, read, readdir, stat } from '../../base/files.ts';
import { prepareThreadCall } from '../../base/thread-call.ts';
import type { LogEntry } from '../../decide/messages.ts';
import { BODY_MAX_BYTES, type ExpositionReader, openExposition, type Selector } from '../../exposition/exposition.ts';
import { formatLabels } from '../../exposition/exposition-text.ts';
import type { FamilyType } from '../../exposition/families.ts';
import { openReadableCheck } from '../../exposition/readable.ts';
import { makeReading } from '../../observe/exporter.ts';
import { type Body, filterFamilies, openBody, readFamilies } from '../../snapshot/body.ts';
import { type Beginning, openWarnings, readWhole, type Source, type WholeAnswer } from './source.ts';

type NoAnswer = Exclude<Beginning, { kind: 'answered' }>;
type Sink = (piece: Uint8Array) => void;
type Warn = (entry: LogEntry) => void;

const PIECE_BYTES = 64 * 1024;
const LINE_FEED = 0x0a;

/** Opens the file at `url`, a folder if its path ends in a slash; `warn` is called at most once. */
export function openFileSource(
  url: URL,
  metricNames: readonly string[],
  warn: Warn,
  selectors: readonly Selector[] = [],
): Source {
  const path = fileURLToPath(url);
  const warnOnce = openWarnings(warn);
  let newest: AbortSignal;
  const readAll = prepareThreadCall(async () => {
    const signal = newest;
    return { signal, answer: await readAnswer(path, openExposition(metricNames, selectors), signal, warnOnce) };
  });

  async function readOnce(signal: AbortSignal): Promise<Beginning<WholeAnswer>> {
    newest = signal;
    for (;;) {
      const result = await readAll({ signal });
      if (result.kind === 'pending') return { kind: 'failed', why: result.why };
      // What an earlier read found, which hung, is old.
      if (result.value.signal === signal) return result.value.answer;
    }
  }

  return {
    path: null,
    close: async () => {},
    // A signal of its own identifies this read.
    read: (signal) => readWhole(readOnce(AbortSignal.any([signal]))),
  };
}

/** Never rejects. */
async function readAnswer(
  path: string,
  exposition: ExpositionReader,
  signal: AbortSignal,
  warnOnce: Warn,
): Promise<Beginning<WholeAnswer>> {
  const whole = openBody();
  const sink: Sink = (piece) => {
    exposition.write(piece);
    whole.push(piece);
  };
  const isFolder = path.endsWith('/');
  const problem = await (isFolder ? readFolder(path, signal, sink, warnOnce) : readFile(path, signal, sink));
  if (problem !== null) return problem;
  if (whole.body.sizeBytes === 0) return failed(`${path} is empty`);
  whole.end();
  return { kind: 'answered', body: whole.body, reading: makeReading(exposition.end()) };
}

/** How long ago a file was changed that nobody is writing any more. */
const WRITTEN_MS = 1_000;

/**
 * null: all its files are in the sink, but for names that begin with a dot, as in a shell, and for those that
 * are left unfinished. Never rejects.
 */
async function readFolder(folder: string, signal: AbortSignal, sink: Sink, warnOnce: Warn): Promise<NoAnswer | null> {
  const names = await readdir(folder).catch((error) => describeProblem(folder, error));
  if ('kind' in names) return names;
  const merge = openMerge((fields) => warnOnce({ id: 'familyTwice', fields }));
  let leftOut: NoAnswer = { kind: 'refused' };
  let readCount = 0;
  let sizeBytes = 0;
  for (const name of names.filter((each) => /^[^.].*\.prom$/s.test(each)).toSorted()) {
    const path = join(folder, name);
    const file = openBody();
    const problem = await readFile(path, signal, file.push);
    // It was removed since.
    if (problem?.kind === 'refused') continue;
    if (problem !== null) {
      const changedAtMs = (await stat(path).catch(() => null))?.mtimeMs ?? Number.POSITIVE_INFINITY;
      if (signal.aborted || Date.now() - changedAtMs < WRITTEN_MS) return problem;
      warnOnce({ id: 'fileLeftOut', fields: { why: problem.why } });
      leftOut = problem;
      continue;
    }
    file.end();
    for await (const piece of filterFamilies(file.body.read(), await merge.add(path, file.body))) {
      sizeBytes += piece.length;
      if (sizeBytes > BODY_MAX_BYTES) return failed(`${folder} has too much in it`);
      sink(piece);
    }
    readCount++;
  }
  return readCount === 0 ? leftOut : null;
}

/** A family that two files have, in ways that one page cannot show: it is taken from the first. */
type Twice = { readonly family: string; readonly file: string; readonly first: string };

type Known = { type: FamilyType; readonly series: Set<string> };

/**
 * Of all families that several files have: more are not compared, since their names would not fit in memory.
 */
const SERIES_MAX_COUNT = 50_000;

/** Merges files as node_exporter does: families of the same type become one, if no series is in two. */
function openMerge(onTwice: (fields: Twice) => void) {
  /** The first file that has a family. */
  const firsts = new Map<string, { readonly path: string; readonly body: Body }>();
  /** Of the families that more than one file has. */
  const known = new Map<string, Known>();
  let seriesCount = 0;

  async function read(body: Body, families: ReadonlySet<string>): Promise<ReadonlyMap<string, Known>> {
    const found = new Map(
      [...families].map((family): [string, Known] => [family, { type: 'untyped', series: new Set() }]),
    );
    const pieces = filterFamilies(body.read(), (each) => families.has(each));
    for await (const { name: family, type, samples } of readFamilies(pieces)) {
      const own = found.get(family);
      if (own !== undefined) own.type = type;
      for (const { name, labels } of samples) {
        if (seriesCount++ >= SERIES_MAX_COUNT) continue;
        own?.series.add(name + formatLabels(labels.toSorted(([one], [other]) => (one < other ? -1 : 1))));
      }
    }
    return found;
  }

  return {
    /**
     * Adds a file; returns what of it is kept: its samples, and its headers where no file before has them.
     */
    async add(path: string, body: Body): Promise<(family: string, isSamples: boolean) => boolean> {
      const families = await body.families();
      const shared = families.intersection(firsts);
      const unread = Map.groupBy(shared.difference(known), (each) => firsts.get(each)?.body);
      for (const [first, names] of unread) {
        if (first !== undefined) for (const [name, each] of await read(first, new Set(names))) known.set(name, each);
      }
      for (const [family, { type, series }] of shared.size === 0 ? [] : await read(body, shared)) {
        const before = known.get(family) ?? { type, series: new Set() };
        const isOther = type !== before.type && type !== 'untyped' && before.type !== 'untyped';
        if (isOther || !series.isDisjointFrom(before.series)) {
          onTwice({ family, file: path, first: firsts.get(family)?.path ?? '' });
          shared.delete(family);
        } else for (const each of series) before.series.add(each);
      }
      const own = families.difference(firsts);
      for (const family of own) firsts.set(family, { path, body });
      return (family, isSamples) => own.has(family) || (isSamples && shared.has(family));
    },
  };
}

/**
 * null: it is in the sink, whole and readable. Opened once, so that a rename over it changes nothing. Never
 * rejects.
 */
async function readFile(path: string, signal: AbortSignal, sink: Sink): Promise<NoAnswer | null> {
  // A FIFO would wait for its writer.
  const flags = constants.O_RDONLY | constants.O_NONBLOCK;
  const file = await open(path, flags).catch((error) => describeProblem(path, error));
  if (typeof file !== 'number') return file;
  try {
    return await copyFile(file, path, signal, sink);
  } catch (error) {
    return describeProblem(path, error);
  } finally {
    await close(file).catch(() => {});
  }
}

async function copyFile(file: number, path: string, signal: AbortSignal, sink: Sink): Promise<NoAnswer | null> {
  const before = await fstat(file);
  const isChanging = `${path} is being written`;
  // The variable may name any file of this container: only metrics are served, and no line is quoted.
  const check = openReadableCheck('text', { isQuoted: false });
  if (!before.isFile()) return failed(`${path} is no file`);
  if (before.size > BODY_MAX_BYTES) return failed(`${path} is too long`);
  let last = LINE_FEED;
  for (let at = 0; at < before.size; ) {
    if (signal.aborted) return failed(String(signal.reason));
    const piece = Buffer.allocUnsafeSlow(Math.min(PIECE_BYTES, before.size - at));
    const { bytesRead } = await read(file, piece, 0, piece.length, at);
    if (bytesRead === 0) return failed(isChanging);
    sink(piece.subarray(0, bytesRead));
    check.write(piece.subarray(0, bytesRead));
    last = piece[bytesRead - 1] as number;
    at += bytesRead;
  }
  const after = await fstat(file);
  if (after.size !== before.size || after.mtimeMs !== before.mtimeMs) return failed(isChanging);
  if (last !== LINE_FEED) return failed(`${path} does not end with a line feed`);
  const why = check.end();
  return why === null ? null : failed(`${path} cannot be served: ${why}`);
}

function failed(why: string): NoAnswer {
  return { kind: 'failed', why };
}

function describeProblem(path: string, error: unknown): NoAnswer {
  const { code } = error as NodeJS.ErrnoException;
  return code === 'ENOENT' ? { kind: 'refused' } : failed(`${path} cannot be read: ${code}`);
}
