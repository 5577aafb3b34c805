// One answer of the Locust source: the exposition, written when read, and what the conditions see in it.

import { openExposition, type Selector } from '../../exposition/exposition.ts';
import { type Family, listLines } from '../../exposition/exposition-text.ts';
import type { ExporterReading } from '../../observe/condition.ts';
import { makeReading } from '../../observe/exporter.ts';
import type { Body } from '../../snapshot/body.ts';
import { makeWrittenBody } from '../../snapshot/written-body.ts';

export type LocustAnswer = { readonly body: Body; readonly reading: ExporterReading };

export type AnswerParts = {
  /** Listed again for each pass over the lines. */
  readonly listFamilies: () => readonly Family[];
  /** The total row of the families that count. */
  readonly totals: readonly Family[];
  readonly metricNames: readonly string[];
  /** What is judged: all samples of these families are read. */
  readonly selectors: readonly Selector[];
};

const PIECE_LENGTH = 64 * 1024;
/** The header of a family and two samples: a condition needs no more. */
const READ_LINES_COUNT = 3;

/** Makes the answer of what the families show now. */
export function makeLocustAnswer({ listFamilies, totals, metricNames, selectors }: AnswerParts): LocustAnswer {
  const exposition = openExposition(metricNames, selectors);
  const judged = new Set(selectors.map(({ name }) => name));
  const families = new Set<string>();
  for (const family of listFamilies()) {
    const text = takeLines(family, judged.has(family.name) ? Number.POSITIVE_INFINITY : READ_LINES_COUNT);
    if (text !== '') families.add(family.name);
    exposition.write(Buffer.from(text));
  }
  // A judged total was read above: here it would be a second sample.
  for (const family of totals) {
    if (!judged.has(family.name)) exposition.write(Buffer.from(takeLines(family, READ_LINES_COUNT)));
  }
  const write = (push: (piece: Uint8Array) => void) => writeFamilies(listFamilies(), push);
  return { body: makeWrittenBody({ families, write }), reading: makeReading(exposition.end()) };
}

function writeFamilies(families: readonly Family[], push: (piece: Uint8Array) => void): void {
  let text = '';
  for (const family of families) {
    for (const line of listLines(family)) {
      text += line;
      if (text.length <= PIECE_LENGTH) continue;
      push(encode(text));
      text = '';
    }
  }
  push(encode(text));
}

function takeLines(family: Family, count: number): string {
  let text = '';
  let taken = 0;
  for (const line of listLines(family)) {
    text += line;
    taken++;
    if (taken === count) break;
  }
  return text;
}

const encoded = Buffer.allocUnsafeSlow(2 * PIECE_LENGTH);

/** Overwritten by the next. */
function encode(text: string): Uint8Array {
  return Buffer.byteLength(text) > encoded.length ? Buffer.from(text) : encoded.subarray(0, encoded.write(text));
}
