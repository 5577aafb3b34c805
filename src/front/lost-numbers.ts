// Whether an exporter still shows the numbers of this run: one that went away or was started anew after main's end begins at 0.
// For those who keep its answers; decide/numbers.ts has the same rule for observations.

import type { MainView } from '../decide/answer.ts';
import type { ExporterReading } from '../observe/condition.ts';

export type LostNumbers = {
  /** Since main's end is known or being proven. */
  readonly areLost: boolean;
  /** An answer came whole. */
  readonly onAnswer: (reading: ExporterReading) => void;
  readonly onRefusal: () => void;
  /** What is known of main from now on. */
  readonly tell: (view: MainView) => void;
};

/** Opens the watch over one exporter. */
export function watchForLostNumbers(): LostNumbers {
  let main: MainView['main'] = 'living';
  let finishedCount = 0;
  let hasAnswered = false;
  // By the newest read that tells.
  let isGone = false;
  let areLost = false;
  const settle = () => {
    areLost = main !== 'living' && (areLost || isGone);
  };

  return {
    get areLost() {
      return areLost;
    },
    onAnswer({ observation }) {
      const before = finishedCount;
      if (observation.kind === 'answered') finishedCount = observation.scrapes?.finishedCount ?? before;
      isGone = finishedCount < before;
      hasAnswered = true;
      settle();
    },
    onRefusal() {
      isGone ||= hasAnswered;
      settle();
    },
    tell(view) {
      main = view.main;
      settle();
    },
  };
}
