// A kind of receiver: how an exposition becomes requests, and what an answer means; and what the kinds share.
// Sends nothing. One file for each kind, and a row of PUSH_KINDS in telling.ts.

import { openByteBuffer } from '../../base/byte-buffer.ts';
import type { Label } from '../../exposition/lexer.ts';
import type { Family } from '../../exposition/samples.ts';

/** One HTTP request of a push. May be sent more than once, and does not depend on the other requests. */
export type PushRequest = {
  readonly method: 'POST' | 'PUT';
  /** Path and query. */
  readonly path: string;
  /** Headers of the encoding; the sender adds others. */
  readonly headers: Readonly<Record<string, string>>;
  /**
   * Made for each try, valid until the next; streamed if it may be long. `nowMs`: the time of the try, since
   * the epoch, for samples without a timestamp. An earlier one would be "out of order" where a scrape has
   * stored anything later in the series, even that it went stale.
   */
  readonly body: (nowMs: number) => AsyncIterable<Uint8Array> | Uint8Array;
};

export type EncodeParts = {
  /** Reads the exposition from its start, with every call. */
  readonly families: () => AsyncGenerator<Family>;
  /** Labels of every series, `job` and `instance` among them if known; each name once. */
  readonly labels: readonly Label[];
  /** As configured, without the kind. */
  readonly url: URL;
};

/** `retry`: the same request may be accepted later. `refused`: it never will be. */
export type PushJudgement = 'accepted' | 'retry' | 'refused';

export type PushKind = {
  /** Stands before the `+` of LASTSCRAPE_PUSH. */
  readonly name: 'pushgateway' | 'remote-write' | 'otlp';
  /** Path and query of the requests, for the labels of the push; also shown by `--check`. */
  readonly findPath: (url: URL, labels: readonly Label[]) => string;
  /** Yields the requests in the order to send them, each made when needed. @throws as `families` does. */
  readonly encode: (parts: EncodeParts) => AsyncGenerator<PushRequest>;
  /** Judges an answer; `text` is its body, as far as it was read. */
  readonly judge: (status: number, text: string) => PushJudgement;
};

/** Judges by the status alone: trouble of the receiver may pass, trouble of the request does not. */
export function judgeStatus(status: number): PushJudgement {
  if (status >= 200 && status < 300) return 'accepted';
  return status >= 500 || status === 408 || status === 429 ? 'retry' : 'refused';
}

/**
 * Makes the function that renames labels of a sample with a name of the target's, as Prometheus does without
 * `honor_labels` (scrape/scrape.go of 2.42, `resolveConflictingExposedLabels`): `exported_` until the name is
 * free.
 */
export function openLabelExporter(targetLabels: readonly Label[]): (labels: readonly Label[]) => readonly Label[] {
  const targetNames = new Set(targetLabels.map(([name]) => name));
  const isTargets = ([name]: Label) => targetNames.has(name);

  return (labels) => {
    if (!labels.some(isTargets)) return labels;
    const taken = new Set([...targetNames, ...labels.map(([name]) => name)]);
    return labels.map((label) => {
      if (!isTargets(label)) return label;
      let name = label[0];
      while (taken.has(name)) name = `exported_${name}`;
      taken.add(name);
      return [name, label[1]];
    });
  };
}

/** Sorts labels by code units, which is the order of the bytes for every name but those beyond U+FFFF. */
export function compareNames([left]: Label, [right]: Label): number {
  return left < right ? -1 : 1;
}

/** The most points of a request: as many as Prometheus sends at once by default (`max_samples_per_send`). */
const POINT_MAX_COUNT = 2000;
/** 1 MiB, nginx's default limit, less what Snappy and the end of the JSON add; one point may be longer. */
const REQUEST_MAX_BYTES = 1024 * 1024 - 16 * 1024;

/** A request that is filled with points until it is full. */
export type Batch = {
  /** Points since the last `take`. */
  readonly pointCount: number;
  /** Whether this point belongs to the next request. */
  readonly isFullFor: (point: string) => boolean;
  readonly add: (point: string) => void;
  /** Writes what stands between points. */
  readonly write: (text: string) => void;
  /** Makes the bytes of the request, the same memory each time; the batch is empty then. */
  readonly take: () => (nowMs: number) => Buffer;
};

/** Stands in a point for the time of the try: as long, in each encoding, as any from 2001 to 2109. */
export const SOME_TIME_MS = 1e12;
const LAST_TIME_MS = 2 ** 42 - 1;

/**
 * Opens an empty batch; with `latin1` each letter of a text is a byte. `formatEnd`: what points that were
 * written with SOME_TIME_MS end with, at another time. Default: they have times of their own.
 */
export function openBatch(encoding: 'utf8' | 'latin1', formatEnd: (nowMs: number) => string = () => ''): Batch {
  const buffer = openByteBuffer();
  /** Where the points end. */
  let ends: number[] = [];
  return {
    get pointCount() {
      return ends.length;
    },
    isFullFor(point) {
      const isTooLong = buffer.sizeBytes + Buffer.byteLength(point, encoding) > REQUEST_MAX_BYTES;
      return ends.length === POINT_MAX_COUNT || (ends.length > 0 && isTooLong);
    },
    add(point) {
      buffer.write(point, encoding);
      ends.push(buffer.sizeBytes);
    },
    write: (text) => buffer.write(text, encoding),
    take() {
      const [bytes, taken] = [buffer.take(), ends];
      ends = [];
      return (nowMs) => {
        const end = formatEnd(Math.min(Math.max(SOME_TIME_MS, nowMs), LAST_TIME_MS));
        for (const at of taken) bytes.write(end, at - end.length, 'latin1');
        return bytes;
      };
    },
  };
}
