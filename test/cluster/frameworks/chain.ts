// Five Jobs, one after the other, as the steps of a workflow are: how long all of them take.

import { until } from '../../support/until.ts';
import type { Namespace } from '../cluster.ts';
import { END_MS } from '../scenario.ts';
import type { Ending, Task } from './framework.ts';
import { JOB_FRAMEWORK } from './job.ts';
import { putRow, VARIANTS, type Variant } from './table.ts';

const COUNT = 5;
const NAMES: Readonly<Record<Variant, string>> = { none: 'nothing', hold: 'the hold', keeper: 'the hand-over' };

/** @returns the page with what they took, each variant beside the others */
export async function measureChain(
  namespace: Namespace,
  page: string,
  build: (name: string, variant: Variant, ending: Ending) => Task,
): Promise<string> {
  const rows = await Promise.all(
    VARIANTS.map(async (variant) => {
      const startedAtMs = Date.now();
      for (let step = 0; step < COUNT; step++) {
        const task = build(`${variant}-${step}`, variant, 'succeeded');
        await JOB_FRAMEWORK.start(namespace, task);
        await until(`the end of ${task.name}`, END_MS, () => JOB_FRAMEWORK.readState(namespace, task));
      }
      return [NAMES[variant], ((Date.now() - startedAtMs) / 1_000).toFixed(0)];
    }),
  );
  return rows.reduce((filled, row) => putRow(filled, 3, row), page);
}
