// The exporter's page where no front serves it, read by the law of reads (decide/serve/reads.ts). Each read
// begins and ends within one observation: the count of scrapes subtracts our own requests, one by one.

import type { Clock } from '../base/waits.ts';
import { TEXT_ACCEPT } from '../decide/serve/pages.ts';
import { beginReads, endRead, type ReadsEvent, stepReads } from '../decide/serve/reads.ts';
import type { MainView } from '../decide/serve/serve.ts';
import type { ExporterReading } from './condition-kind.ts';
import { type Exporter, NOT_READ } from './exporter.ts';

/**
 * The reads of observations, one after the other.
 *
 *     const reads = openExporterReads(openExporter(url, names), { clock, pollMs: 1_000, restFactor: 100 });
 *     const reading = await reads.observe(signal, isFresh);   // NOT_READ where none is due
 */
export type ExporterReads = {
  /** Reads if one is due, with `isFresh` in any case. Never rejects. */
  readonly observe: (signal: AbortSignal, isFresh: boolean) => Promise<ExporterReading>;
  /** What is known of main from now on. */
  readonly takeView: (view: MainView) => void;
};

/** `pollMs`, `restFactor`: as the law has them. */
export function openExporterReads(
  exporter: Pick<Exporter, 'read'>,
  { clock, ...settings }: { readonly clock: Clock; readonly pollMs: number; readonly restFactor: number },
): ExporterReads {
  let reads = beginReads(settings);

  function take(event: ReadsEvent) {
    const step = stepReads(reads, event, clock.nowMs());
    ({ reads } = step);
    return step.moves.find(({ kind }) => kind === 'begin') ?? null;
  }
  const tell = (isLiving: boolean) => take({ kind: 'told', isLiving, wanted: [{ accept: TEXT_ACCEPT }] });

  tell(true);
  return {
    async observe(signal, isFresh) {
      const move = take({ kind: 'look', isLast: isFresh });
      // What is not due now waits for the next look, or a read would begin that nobody makes.
      take({ kind: 'closed' });
      if (move?.kind !== 'begin') return NOT_READ;
      const reading = await exporter.read(signal);
      take(endRead(move.read.id, reading.observation));
      return reading;
    },
    takeView({ main }) {
      tell(main === 'living');
    },
  };
}
