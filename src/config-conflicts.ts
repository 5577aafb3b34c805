// What values cannot be together: one rule a row. Pure. A value that cannot be read is undefined here, and breaks no rule.

import { quote } from './config-entries.ts';
import type { ReadSettings } from './config-rows.ts';
import { isFrontAt } from './config-values.ts';

/** What is wrong, and the variable that a run can do without. */
export type Conflict = { readonly name: `LASTSCRAPE_${string}`; readonly problem: string };

/** A rule: what is; what to do. null where nothing is wrong. */
type Rule = (settings: ReadSettings) => Conflict | null;

const RULES: readonly Rule[] = [
  function findSourceWithoutFront({ metricsUrl, front }) {
    if (metricsUrl === undefined || metricsUrl.protocol === 'http:' || front !== null) return null;
    const problem = `${quote(metricsUrl.href)} is for a front; set LASTSCRAPE_FRONT as well, such as "9469", or use an http: URL`;
    return { name: 'LASTSCRAPE_METRICS_URL', problem };
  },
  function findAutoWithoutFront({ front, limits }) {
    if (limits.scrapesWantedCount !== 'auto' || front !== null) return null;
    const problem = '"auto" is for a front; set LASTSCRAPE_FRONT as well, such as "9469", or use a whole number';
    return { name: 'LASTSCRAPE_SCRAPES', problem };
  },
  function findFrontOnSourcePort({ front, metricsUrl }) {
    if (!front || metricsUrl === undefined || metricsUrl.protocol === 'file:') return null;
    if (Number(metricsUrl.port || 80) !== front.port || !isFrontAt(front, metricsUrl.hostname)) return null;
    const problem = `port ${front.port} is that of LASTSCRAPE_METRICS_URL, which the front serves; must be a port of its own`;
    return { name: 'LASTSCRAPE_FRONT', problem };
  },
  function findFrontOnMainsPort({ front, conditions }) {
    const own = conditions?.find(({ text }) => front && text.startsWith('port:') && text.endsWith(`:${front.port}`));
    if (!front || own === undefined || !isFrontAt(front, 'localhost')) return null;
    const problem = `port ${front.port} is that of ${own.text} in LASTSCRAPE_DONE_WHEN, which would never be refused; must be a port of its own`;
    return { name: 'LASTSCRAPE_FRONT', problem };
  },
  function findRunTimeoutWithSignal({ conditions, limits }) {
    if (!limits.runTimeoutMs || !conditions?.some(({ isSignal }) => isSignal)) return null;
    const problem =
      'with sigterm nothing but the signal ends a run: the kubelet would start lastscrape again; must be unset, or 0';
    return { name: 'LASTSCRAPE_RUN_TIMEOUT', problem };
  },
  function findTombstoneOfMain({ conditions, tombstonePath }) {
    if (!conditions?.some(({ text }) => text === `tombstone:${tombstonePath}`)) return null;
    const problem =
      'it is that of main, which LASTSCRAPE_DONE_WHEN waits for; must be a file of its own, such as "/graveyard/lastscrape"';
    return { name: 'LASTSCRAPE_TOMBSTONE', problem };
  },
];

/** Every conflict, in the order of the rules. */
export function listConflicts(settings: ReadSettings): readonly Conflict[] {
  return RULES.flatMap((find) => find(settings) ?? []);
}
