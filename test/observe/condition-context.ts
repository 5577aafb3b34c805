// What the tests of conditions give to a kind of condition, and to one observation.

import type { ConditionContext, ObserveContext } from '../../src/observe/condition-kind.ts';
import { openPodSource } from '../../src/observe/container.ts';
import { NOT_READ } from '../../src/observe/exporter.ts';

/** Of a lastscrape outside of any pod. */
export const CONTEXT: ConditionContext = { pid: 1, pod: openPodSource({}), sidecars: [] };

/** An observation that nothing ends, without an exporter. */
export const UNDISTURBED: ObserveContext = { exporter: NOT_READ, signal: new AbortController().signal };
