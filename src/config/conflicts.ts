// What values cannot be together: one rule a row. Pure. A value that cannot be read is undefined here, and breaks no rule.

import { quote } from './entries.ts';
import { isFrontAt, isLocustPage } from './values.ts';
import type { ReadSettings } from './variables.ts';

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
  function findMetricsHeadersWithoutPage({ metricsUrl, metricsHeadersFile }) {
    if (metricsUrl === undefined || isLocustPage(metricsUrl) || !metricsHeadersFile) return null;
    const problem =
      'it is for the page of Locust; set LASTSCRAPE_METRICS_URL to locust+http://HOST:PORT, or unset this';
    return { name: 'LASTSCRAPE_METRICS_HEADERS_FILE', problem };
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
  function findPushWhenWithoutPush({ push, pushWhen }) {
    return push === null && pushWhen?.isChosen ? needPush('LASTSCRAPE_PUSH_WHEN') : null;
  },
  function findLabelsWithoutPush({ push, pushLabels }) {
    return push === null && pushLabels !== undefined && pushLabels.length > 0
      ? needPush('LASTSCRAPE_PUSH_LABELS')
      : null;
  },
  function findLabelTwice({ pushLabels = [] }) {
    const names = pushLabels.map(([name]) => name);
    const twice = names.find((name, index) => names.indexOf(name) < index);
    if (twice === undefined) return null;
    return { name: 'LASTSCRAPE_PUSH_LABELS', problem: `it has ${quote(twice)} twice; must have each name once` };
  },
  function findPushHeadersWithoutPush({ push, pushHeadersFile }) {
    return push === null && pushHeadersFile ? needPush('LASTSCRAPE_PUSH_HEADERS_FILE') : null;
  },
  function findPushForNoScrape({ push, pushWhen, limits }) {
    if (!push || pushWhen?.when !== 'expired' || limits.scrapesWantedCount !== 0) return null;
    const problem =
      'with LASTSCRAPE_SCRAPES=0 no scrape is wanted that could be missed, so nothing would be pushed; set LASTSCRAPE_PUSH_WHEN=always, or LASTSCRAPE_SCRAPES';
    return { name: 'LASTSCRAPE_PUSH', problem };
  },
  function findHeadersWithoutWebhook({ webhook, webhookHeadersFile }) {
    if (webhook !== null || !webhookHeadersFile) return null;
    return { name: 'LASTSCRAPE_WEBHOOK_HEADERS_FILE', problem: 'LASTSCRAPE_WEBHOOK is not set; set it, or unset this' };
  },
  function findCaWithoutTls({ push, webhook, caFile }) {
    const urls = [push?.url, webhook];
    if (!caFile || push === undefined || webhook === undefined || urls.some((url) => url?.protocol === 'https:')) {
      return null;
    }
    const problem = 'neither LASTSCRAPE_PUSH nor LASTSCRAPE_WEBHOOK has https; use https: there, or unset this';
    return { name: 'LASTSCRAPE_CA_FILE', problem };
  },
];

function needPush(name: Conflict['name']): Conflict {
  return { name, problem: 'LASTSCRAPE_PUSH is not set; set it, or unset this' };
}

/** Every conflict, in the order of the rules. */
export function listConflicts(settings: ReadSettings): readonly Conflict[] {
  return RULES.flatMap((find) => find(settings) ?? []);
}
