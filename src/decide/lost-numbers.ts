// Whether an exporter still shows the numbers of this run: one that went away or was restarted after main's
// end counts from 0. Pure.

import type { ExporterObservation } from './model.ts';

/** What is remembered of one exporter; plain data. */
export type Continuity = {
  /** promhttp's newest counter of finished scrapes; null: none yet. */
  readonly finishedCount: number | null;
  readonly hasAnswered: boolean;
  /** Since its last answer it refused, or that answer's counter had fallen. */
  readonly isInterrupted: boolean;
  /** It was interrupted while main's end was known or being proven; false again once main is alive. */
  readonly isLost: boolean;
};

export const UNSEEN: Continuity = { finishedCount: null, hasAnswered: false, isInterrupted: false, isLost: false };

/** What is remembered after one more read, or after main changed (`none`: the exporter was not read). */
export function advanceContinuity(
  before: Continuity,
  exporter: ExporterObservation,
  isMainLiving: boolean,
): Continuity {
  const now = advance(before, exporter);
  return { ...now, isLost: !isMainLiving && (now.isLost || now.isInterrupted) };
}

function advance(before: Continuity, exporter: ExporterObservation): Continuity {
  if (exporter.kind === 'refused') return { ...before, isInterrupted: before.isInterrupted || before.hasAnswered };
  if (exporter.kind !== 'answered') return before;
  const finishedCount = exporter.scrapes?.finishedCount ?? before.finishedCount;
  const isInterrupted = before.finishedCount !== null && finishedCount !== null && finishedCount < before.finishedCount;
  return { ...before, finishedCount, hasAnswered: true, isInterrupted };
}
