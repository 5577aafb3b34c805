// Keeps the exporter's last exposition where no front does: what the polls read anyway, packed. As with a front nothing that was
// seen is lost when the end comes: what has vanished from an answer after it is taken along. An exporter that went away or was
// started anew after main's end begins at 0, and is not believed.

import { chooseSnapshot, type MainView } from '../decide/answer.ts';
import { watchForLostNumbers } from '../front/lost-numbers.ts';
import type { ExporterReading } from '../observe/condition.ts';
import type { Tap } from '../observe/exporter.ts';
import { openBody } from './body.ts';
import { openSnapshotStore, type Snapshot } from './snapshot.ts';

export type Keeper = {
  readonly openTap: () => Tap;
  /** What is known of main from now on. */
  readonly tell: (view: MainView) => void;
  /** The last exposition, once everything that came is in it; null: none could be read. */
  readonly newest: () => Promise<Snapshot | null>;
};

/** Opens a keeper; `findMoment`: now, by both clocks. `metricNames`: the conditions' metrics. */
export function openKeeper(metricNames: readonly string[], findMoment: () => Snapshot['readAt']): Keeper {
  const snapshots = openSnapshotStore();
  let view: MainView = { main: 'living', wasAlive: false, endedAtMs: null };
  // The newest answer waits until it is known what it showed of main: it may be the first after the end.
  let keepNewest: (() => Promise<unknown>) | null = null;
  // The one that is next: joining a long one may take longer than the pause between two polls, and none of them may wait for many.
  let next: (() => Promise<unknown>) | null = null;
  let keeping: Promise<unknown> | null = null;
  const numbers = watchForLostNumbers();

  function showsEnd({ metric }: ExporterReading): boolean {
    const isZero = (name: string) => {
      const value = metric(name);
      return value.kind === 'value' && value.value === 0;
    };
    return metricNames.length > 0 && metricNames.every(isZero);
  }
  function settle(): void {
    if (keepNewest !== null && !numbers.areLost) next = keepNewest;
    keepNewest = null;
    if (next !== null) keeping ??= keepNext();
  }
  async function keepNext(): Promise<void> {
    while (next !== null) {
      const keep = next;
      next = null;
      await keep();
    }
    keeping = null;
  }

  return {
    openTap() {
      settle();
      const { body, push, end, breakOff } = openBody();
      const readAt = findMoment();
      return {
        write: push,
        end(reading) {
          const isReadable = end();
          numbers.onAnswer(reading);
          // One without a sample is not readable.
          if (isReadable) keepNewest = () => snapshots.keep(body, readAt, chooseSnapshot(view, showsEnd(reading)));
        },
        breakOff(isRefused) {
          breakOff('cut');
          if (isRefused) numbers.onRefusal();
        },
      };
    },
    tell(now) {
      view = now;
      numbers.tell(now);
      settle();
    },
    async newest() {
      settle();
      await keeping;
      return snapshots.newest();
    },
  };
}
