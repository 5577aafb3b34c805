// Keeps the exporter's last exposition where no front does: what the polls read anyway, packed. As with a front nothing that was
// seen is lost when the end comes: what has vanished from an answer after it is taken along.

import { chooseSnapshot, type MainView } from '../decide/answer.ts';
import type { ExporterReading } from '../observe/condition.ts';
import type { Tap } from '../observe/exporter.ts';
import { openBody } from '../serve/body.ts';
import { openSnapshotStore, type Snapshot } from '../serve/snapshot.ts';

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

  function showsEnd({ metric }: ExporterReading): boolean {
    const isZero = (name: string) => {
      const value = metric(name);
      return value.kind === 'value' && value.value === 0;
    };
    return metricNames.length > 0 && metricNames.every(isZero);
  }

  return {
    openTap() {
      const { body, push, end, breakOff } = openBody();
      const readAt = findMoment();
      return {
        write: push,
        end(reading) {
          end();
          const how = chooseSnapshot(view, showsEnd(reading));
          body.ended.then((ended) => {
            if (ended.kind === 'whole' && ended.isReadable && body.sizeBytes > 0) snapshots.keep(body, readAt, how);
          });
        },
        breakOff: () => breakOff('cut'),
      };
    },
    tell(now) {
      view = now;
    },
    newest: () => snapshots.newest(),
  };
}
