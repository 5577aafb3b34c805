// Keeps the exporter's last exposition where no front does: what the polls read anyway, packed. Never decides
// what an answer becomes: decide/serve/serve.ts does.

import type { ExporterObservation } from '../decide/model.ts';
import {
  beginSource,
  findVanishedFate,
  type MainView,
  type SourceAnswer,
  takeAnswer,
  takeRefusal,
  takeView,
} from '../decide/serve/serve.ts';
import type { Reading } from '../exposition/exposition.ts';
import type { PageType } from '../exposition/format.ts';
import { openReadableCheck } from '../exposition/readable.ts';
import { type Body, openBody } from './body.ts';
import { type Moment, openSnapshotStore, readMetrics, type Snapshot } from './snapshot.ts';

/** What an answer shows. */
type ShownByAnswer = {
  readonly observation: ExporterObservation;
  readonly metric: (name: string) => Reading;
  /** It ended with its connection. Default: false. */
  readonly mayBeCut?: boolean;
};

export type Keeper = ReturnType<typeof openKeeper>;

type Answer = Pick<SourceAnswer, 'exporter' | 'metrics'> & {
  readonly body: Body;
  readonly readAt: Moment;
  readonly mayBeCut: boolean;
};

/** One answer as it comes; its head, if it has one, comes first. */
function openPage() {
  let open = openBody();
  let check = openReadableCheck();
  return {
    begin(type: PageType): void {
      open = openBody(type);
      check = openReadableCheck(type.format);
    },
    write(piece: Uint8Array): void {
      open.push(piece);
      check.write(piece);
    },
    /** null: not readable, such as a body without a sample. */
    end(): Body | null {
      open.end();
      return check.end() === null ? open.body : null;
    },
    breakOff: () => open.breakOff('cut'),
  };
}

/** Opens a keeper; `findMoment`: now, by both clocks. `metricNames`: the conditions' metrics. */
export function openKeeper(metricNames: readonly string[], findMoment: () => Moment) {
  const snapshots = openSnapshotStore();
  let state = beginSource('program');
  // Waits until it is known what its poll showed of main: it may be the first after the end.
  let newest: Answer | null = null;
  // Joining a long answer may take longer than the pause between two polls: only the newest one waits for it.
  let next: (() => Promise<unknown>) | null = null;
  let keeping: Promise<void> | null = null;
  let isUnsure = false;

  function settle(): void {
    if (newest !== null) {
      const { body, readAt, mayBeCut, ...shown } = newest;
      const { becomes, ...taken } = takeAnswer(state, { readAtMs: readAt.atMs, ...shown });
      ({ state } = taken);
      if (becomes === 'renewed' || becomes === 'joined') {
        next = async () => {
          isUnsure = mayBeCut && (await snapshots.isShort(body, readAt));
          if (!isUnsure) await snapshots.keep(body, readAt, becomes);
        };
      }
      newest = null;
    }
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
    /** Takes one answer as it comes. */
    openTap() {
      settle();
      const page = openPage();
      const readAt = findMoment();
      return {
        ...page,
        end({ observation, metric, mayBeCut = false }: ShownByAnswer): void {
          const body = page.end();
          if (body === null) return;
          newest = { body, readAt, exporter: observation, metrics: readMetrics(metricNames, metric), mayBeCut };
        },
        /** `isRefused`: nothing listens there. */
        breakOff(isRefused: boolean): void {
          page.breakOff();
          if (!isRefused) return;
          state = takeRefusal(state);
          // It may be main, and have ended.
          snapshots.takeVanished('restored', findMoment().atMs);
        },
      };
    },
    /** What is known of main from now on. */
    tell(view: MainView): void {
      const fate = findVanishedFate(state.view, view);
      state = takeView(state, view);
      if (fate !== null) snapshots.takeVanished(fate, findMoment().atMs);
      settle();
    },
    /**
     * The last exposition, with everything that came so far; null: none could be read. `ask` reads the
     * exporter once more if the last answer may be cut.
     */
    async newest(ask?: () => Promise<unknown>): Promise<Snapshot | null> {
      settle();
      await keeping;
      if (isUnsure) {
        await ask?.();
        settle();
        await keeping;
      }
      return snapshots.newest();
    },
  };
}
