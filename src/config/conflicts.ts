// Values that cannot stand together. Pure. A value that could not be read is undefined, and breaks no rule.

import { type Problem, quote } from './entries.ts';
import { isFrontAt, isLocustPage, isPushUrl, readPushAddress } from './values.ts';
import type { ReadSettings, Variable } from './variables.ts';

/** The variable that a run can do without, whether the rule is broken, and what is wrong then. */
type Check = readonly [name: Variable['name'], isBroken: unknown, problem: string];

const NEEDS_FRONT = 'it needs a front; set LASTSCRAPE_FRONT as well, such as "9469", or change this';
const NEEDS_PAGE = "only Locust's page uses it; set LASTSCRAPE_METRICS_URL to locust+http://HOST:PORT, or unset this";
const NEEDS_ALL = 'only container:* uses it; add that to LASTSCRAPE_DONE_WHEN, or unset LASTSCRAPE_SIDECARS';
const NEEDS_PUSH = 'it needs LASTSCRAPE_PUSH; set that as well, or change this';
const NEEDS_WEBHOOK = 'it needs LASTSCRAPE_WEBHOOK; set that as well, or unset this';

/** Every conflict, in the order of the rules. */
export function listConflicts(settings: ReadSettings): readonly Problem[] {
  return [...checkSource(settings), ...checkReceivers(settings)].flatMap(([name, isBroken, problem]) =>
    isBroken ? [{ name, problem }] : [],
  );
}

function checkSource(settings: ReadSettings): Check[] {
  const {
    metricsUrl: url,
    metricsHeadersFile,
    front,
    hooksPath,
    limits,
    conditions,
    sidecars = [],
    tombstonePath,
  } = settings;
  const hasAll = conditions?.some(({ text }) => text === 'container:*');
  const isServed = front && url && Number(url.port || 80) === front.port;
  return [
    ['LASTSCRAPE_SIDECARS', hasAll === false && sidecars.length > 0, NEEDS_ALL],
    ['LASTSCRAPE_METRICS_URL', url && url.protocol !== 'http:' && front === null, NEEDS_FRONT],
    ['LASTSCRAPE_METRICS_HEADERS_FILE', url && !isLocustPage(url) && metricsHeadersFile, NEEDS_PAGE],
    ['LASTSCRAPE_HOOKS', hooksPath && front === null, NEEDS_FRONT],
    ['LASTSCRAPE_SCRAPES', limits.scrapesWantedCount === 'auto' && front === null, NEEDS_FRONT],
    [
      'LASTSCRAPE_FRONT',
      isServed && isFrontAt(front, url.hostname),
      `port ${front?.port} is taken by LASTSCRAPE_METRICS_URL, which the front serves; must be another port`,
    ],
    checkPort('LASTSCRAPE_FRONT', front, conditions),
    checkPort('LASTSCRAPE_METRICS_URL', url && isPushUrl(url) ? readPushAddress(url) : null, conditions),
    [
      'LASTSCRAPE_RUN_TIMEOUT',
      limits.runTimeoutMs && conditions?.some(({ isSignal }) => isSignal),
      'with sigterm only the signal may end a run, or the kubelet would restart lastscrape; must be unset, or 0',
    ],
    [
      'LASTSCRAPE_TOMBSTONE',
      conditions?.some(({ text }) => text === `tombstone:${tombstonePath}`),
      'LASTSCRAPE_DONE_WHEN waits for it as main\'s tombstone; must be another file, such as "/graveyard/lastscrape"',
    ],
  ];
}

/** Where lastscrape itself listens, main is never seen to end. */
function checkPort(name: Variable['name'], at: ReadSettings['front'], conditions: ReadSettings['conditions']): Check {
  const main = conditions?.find(({ port }) => port !== undefined && port === at?.port);
  return [
    name,
    at && main && isFrontAt(at, 'localhost'),
    `port ${at?.port} is also the one of ${main?.text} in LASTSCRAPE_DONE_WHEN, which would then never be refused; must be another port`,
  ];
}

/** Whether a push would come back to lastscrape itself. */
function isPushedTo(source: URL, { port, hostname }: URL): boolean {
  return isPushUrl(source) && port === source.port && isFrontAt(readPushAddress(source), hostname);
}

function checkReceivers(settings: ReadSettings): Check[] {
  const { push, pushWhen, pushLabels = [], pushHeadersFile, webhook, webhookHeadersFile, caFile, limits } = settings;
  const { handOver, front } = settings;
  const names = pushLabels.map(([name]) => name);
  const twice = names.find((name, index) => names.indexOf(name) < index);
  const isPlain = push !== undefined && webhook !== undefined;
  return [
    ['LASTSCRAPE_HAND_OVER', handOver?.kind === 'push' && push === null, NEEDS_PUSH],
    ['LASTSCRAPE_HAND_OVER', handOver?.kind === 'keeper' && front === null, NEEDS_FRONT],
    ['LASTSCRAPE_PUSH_WHEN', push === null && pushWhen === 'always', NEEDS_PUSH],
    ['LASTSCRAPE_PUSH_LABELS', push === null && names.length > 0, NEEDS_PUSH],
    ['LASTSCRAPE_PUSH_LABELS', twice, `it has ${quote(twice ?? '')} twice; must have each name once`],
    ['LASTSCRAPE_PUSH_HEADERS_FILE', push === null && pushHeadersFile, NEEDS_PUSH],
    [
      'LASTSCRAPE_PUSH',
      push && settings.metricsUrl && isPushedTo(settings.metricsUrl, push.url),
      'lastscrape itself takes pushes there, as LASTSCRAPE_METRICS_URL says; must be another address',
    ],
    [
      'LASTSCRAPE_PUSH',
      push && pushWhen === 'expired' && limits.scrapesWantedCount === 0,
      'with LASTSCRAPE_SCRAPES=0 no scrape can be missed, so nothing would be pushed; set LASTSCRAPE_PUSH_WHEN=always, or LASTSCRAPE_SCRAPES',
    ],
    ['LASTSCRAPE_WEBHOOK_HEADERS_FILE', webhook === null && webhookHeadersFile, NEEDS_WEBHOOK],
    [
      'LASTSCRAPE_CA_FILE',
      caFile && isPlain && ![push?.url, webhook].some((url) => url?.protocol === 'https:'),
      'neither LASTSCRAPE_PUSH nor LASTSCRAPE_WEBHOOK has https; use https: there, or unset this',
    ],
  ];
}
