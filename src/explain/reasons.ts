// The tables of reasons: a new one is a row of a file in reasons/, or a file there and a line here. Pure.

import type { Reason } from './finding.ts';
import type { PodFacts } from './pod.ts';
import { DELETED_REASONS, NATIVE_REASONS } from './reasons/ending.ts';
import { explainUnknown, HELPER_REASONS } from './reasons/helpers.ts';
import { LASTSCRAPE_REASONS } from './reasons/lastscrape.ts';
import { MAIN_REASONS } from './reasons/main.ts';
import { BESIDE_REASONS, STARTING_REASONS, UNSCHEDULED_REASONS } from './reasons/starting.ts';

export { JOB_REASONS } from './reasons/jobs.ts';

/** What can keep a pod that is deleted, without a node, or on one. All that find something count. */
export const POD_REASONS: Readonly<Record<'deleted' | 'unscheduled' | 'placed', readonly Reason<PodFacts>[]>> = {
  deleted: DELETED_REASONS,
  unscheduled: UNSCHEDULED_REASONS,
  placed: [
    ...STARTING_REASONS,
    ...LASTSCRAPE_REASONS,
    ...HELPER_REASONS,
    ...MAIN_REASONS,
    ...NATIVE_REASONS,
    ...BESIDE_REASONS,
  ],
};

/** The row of a pod that no other row explains. */
export const UNKNOWN: Reason<PodFacts> = {
  id: 'unknown',
  meaning: 'none of these: the JSON does not show it',
  find: explainUnknown,
};
