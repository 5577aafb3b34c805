// What is allowed and odd in a configuration, for `--check`: one rule a row. Pure. Warns only: what is set is done as it is set.

import { redactHref } from '../base/text.ts';
import type { Config } from '../config/config.ts';
import { isFrontAt } from '../config/front-address.ts';
import { hasReceivers } from '../config/policy.ts';
import { formatDuration, isLocustPage } from '../config/values.ts';
import { type ExporterObservation, hasHold } from '../decide/model.ts';
import { RESERVE_MS } from '../decide/tell.ts';

/** What a rule goes by. */
export type OddContext = {
  readonly config: Config;
  /** The user set the variable; else its default counts. */
  readonly isSet: (name: string) => boolean;
  /** The exporter as it answered; null: nobody asked it, or not where it will be. */
  readonly exporter: ExporterObservation | null;
};

/** A rule: what is odd, and what to do; null where nothing is. */
type Rule = (context: OddContext) => string | null;

/** Kubernetes stops a pod after 30 s (documentation, "Pod Lifecycle"); 5 s of them are for what does not end in time. */
const USUAL_GRACE_MS = 25_000;
/** Of the Locust exporter, by default. */
const LOCUSTS_PORT = '9646';
const LOOPBACK = /^(localhost|127\..*|\[::1\])$/;

/** A new rule is a row here, and one of the table in its test. */
export const ODD_SETTINGS = {
  metricsUrlWithoutPath: ({ config: { metricsUrl, isExporterRead } }) =>
    isExporterRead && metricsUrl.protocol === 'http:' && metricsUrl.pathname === '/' && metricsUrl.search === ''
      ? `LASTSCRAPE_METRICS_URL has no path, and exporters serve their metrics at /metrics: is it ${metricsUrl.origin}/metrics?`
      : null,
  twoMetricsUrls: ({ config: { metricsUrl } }) =>
    /[,;]|%20|:\/\//.test(metricsUrl.pathname)
      ? 'LASTSCRAPE_METRICS_URL looks like more than one URL: only one exporter is read, and the rest counts as its path'
      : null,
  metricsUrlOnMainsPort: ({ config: { metricsUrl, conditions, front } }) => {
    const port = metricsUrl.port || '80';
    const own = conditions.find(({ text }) => text.startsWith('port:') && text.endsWith(`:${port}`));
    // A front serves the metrics of main itself.
    return own === undefined || front !== null || !LOOPBACK.test(metricsUrl.hostname)
      ? null
      : `LASTSCRAPE_METRICS_URL is on port ${port}, which ${own.text} takes for main's own: main would count as running until the exporter is gone`;
  },
  targetTwice: ({ config: { targets } }) => {
    const twice = targets.find(({ request }, index) => targets.findIndex((each) => each.request === request) < index);
    return twice === undefined ? null : `LASTSCRAPE_QUIT has the same target twice: ${twice.request}`;
  },
  ttlOfZero: ({ config: { limits } }) =>
    limits.ttlMs === 0 && limits.scrapesWantedCount !== 0
      ? `LASTSCRAPE_TTL is 0, so nothing waits for the ${limits.scrapesWantedCount === 'auto' ? 'scrapers' : limits.scrapesWantedCount} of LASTSCRAPE_SCRAPES: if that is meant, set LASTSCRAPE_SCRAPES=0 as well`
      : null,
  scrapesOfZero: ({ config: { limits }, isSet }) =>
    limits.scrapesWantedCount === 0 && limits.ttlMs > 0 && isSet('LASTSCRAPE_TTL')
      ? `LASTSCRAPE_SCRAPES is 0, so nothing is held, and the ${formatDuration(limits.ttlMs)} of LASTSCRAPE_TTL count for nothing: if that is meant, unset LASTSCRAPE_TTL`
      : null,
  pollAboveTtl: ({ config: { limits } }) =>
    hasHold(limits) && limits.pollMs > limits.ttlMs
      ? `LASTSCRAPE_POLL (${formatDuration(limits.pollMs)}) is above LASTSCRAPE_TTL (${formatDuration(limits.ttlMs)}): main's end is believed after two polls, and the hold, which counts from that end, may be over then`
      : null,
  settleAboveTtl: ({ config: { limits } }) =>
    hasHold(limits) && limits.settleMs > limits.ttlMs
      ? `LASTSCRAPE_SETTLE (${formatDuration(limits.settleMs)}) is above LASTSCRAPE_TTL (${formatDuration(limits.ttlMs)}): the hold, which counts from main's end, is over before that end is believed`
      : null,
  graceAboveUsual: ({ config: { limits } }) =>
    limits.terminationGraceMs > USUAL_GRACE_MS
      ? `LASTSCRAPE_TERMINATION_GRACE is ${formatDuration(limits.terminationGraceMs)}, and a pod is killed after 30s unless told otherwise: set its terminationGracePeriodSeconds to ${Math.ceil(limits.terminationGraceMs / 1_000) + 5}`
      : null,
  holdWithoutExporter: ({ config, exporter }) =>
    exporter !== null &&
    config.front === null &&
    (exporter.kind === 'refused' || exporter.kind === 'failed') &&
    hasHold(config.limits) &&
    !config.conditions.some(({ metricName }) => metricName !== null)
      ? `no exporter answers at ${redactHref(config.metricsUrl)}, and the pod would be held for its scrapes: set LASTSCRAPE_SCRAPES=0 if it has none, or LASTSCRAPE_METRICS_URL if it is elsewhere`
      : null,
  holdByDefault: ({ config, isSet, exporter }) =>
    exporter === null &&
    config.front === null &&
    !isSet('LASTSCRAPE_METRICS_URL') &&
    !isSet('LASTSCRAPE_SCRAPES') &&
    hasHold(config.limits) &&
    !config.conditions.some(({ metricName }) => metricName !== null)
      ? `the pod would be held for scrapes of ${redactHref(config.metricsUrl)}, which is where Locust's exporter listens: set LASTSCRAPE_SCRAPES=0 if this pod has none, or LASTSCRAPE_METRICS_URL if it has another`
      : null,
  conditionsByDefault: ({ config: { targets }, isSet }) =>
    !isSet('LASTSCRAPE_DONE_WHEN') &&
    targets.length > 0 &&
    !targets.some(({ name }) => name.startsWith('locust-exporter')) &&
    !targets.some(({ request }) => request.endsWith('/quitquitquit'))
      ? "LASTSCRAPE_DONE_WHEN is the default, which is for Locust, and LASTSCRAPE_QUIT has no Locust exporter: set LASTSCRAPE_DONE_WHEN if main isn't Locust"
      : null,
  holdWithoutCounter: ({ config: { limits, front }, exporter }) =>
    front === null && exporter?.kind === 'answered' && exporter.scrapes === null && hasHold(limits)
      ? `the exporter shows no scrape counter of promhttp: the pod would be held for the whole LASTSCRAPE_TTL (${formatDuration(limits.ttlMs)})`
      : null,
  frontByDefault: ({ config: { front, metricsUrl, conditions }, isSet }) =>
    front !== null &&
    !isSet('LASTSCRAPE_METRICS_URL') &&
    !isLocustPage(metricsUrl) &&
    !conditions.some(({ metricName }) => metricName !== null)
      ? `the front would serve ${redactHref(metricsUrl)}, which is where Locust's exporter listens: set LASTSCRAPE_METRICS_URL to what it is to serve`
      : null,
  frontForLocust: ({ config: { front, metricsUrl }, isSet }) =>
    front !== null && metricsUrl.port !== LOCUSTS_PORT && !isLocustPage(metricsUrl) && !isSet('LASTSCRAPE_DONE_WHEN')
      ? "LASTSCRAPE_DONE_WHEN is the default, which is for Locust and its exporter: if the front serves another program's metrics, set it, to sigterm for example"
      : null,
  quitAtSource: ({ config: { front, metricsUrl, conditions, targets } }) => {
    if (front === null || conditions.some(({ metricName }) => metricName !== null)) return null;
    const isSource = (url: URL) => readPort(url) === readPort(metricsUrl) && isSameHost(url, metricsUrl);
    const own = targets.find(({ request }) => readUrls(request).some(isSource));
    return own === undefined
      ? null
      : `LASTSCRAPE_QUIT asks ${own.request}, and the front serves the metrics of that same program: if it is main itself, which ends by itself, leave it out`;
  },
  quitAtFront: ({ config: { front, targets } }) => {
    if (front === null) return null;
    const isFront = (url: URL) => readPort(url) === front.port && isFrontAt(front, url.hostname);
    const own = targets.find(({ request }) => readUrls(request).some(isFront));
    return own === undefined
      ? null
      : `LASTSCRAPE_QUIT asks ${own.request}, which is the port of LASTSCRAPE_FRONT: nothing stops there; ask the program itself`;
  },
  pollWithFront: ({ config: { front, limits, metricsUrl, conditions } }) =>
    front !== null &&
    metricsUrl.protocol === 'http:' &&
    limits.pollMs > 1_000 &&
    !conditions.some(({ metricName }) => metricName !== null)
      ? `LASTSCRAPE_POLL is ${formatDuration(limits.pollMs)}: what main changes in that time before it exits is lost, unless it asks the front for a snapshot; a page of main's own is cheap, with 250ms for example`
      : null,
  graceTooShortToTell: ({ config: { limits, push, webhook } }) =>
    hasReceivers({ push, webhook }) && limits.terminationGraceMs <= RESERVE_MS
      ? `LASTSCRAPE_TERMINATION_GRACE is ${formatDuration(limits.terminationGraceMs)}, and ${push === null ? 'LASTSCRAPE_WEBHOOK' : 'LASTSCRAPE_PUSH'} keeps up to ${formatDuration(RESERVE_MS)} of it: after SIGTERM nothing would be held, and little or nothing told`
      : null,
  credentialsWithoutTls: ({ config: { push, pushHeadersFile, webhook, webhookHeadersFile } }) => {
    const open = [
      ...(push?.url.protocol === 'http:' && pushHeadersFile !== null ? ['LASTSCRAPE_PUSH'] : []),
      ...(webhook?.protocol === 'http:' && webhookHeadersFile !== null ? ['LASTSCRAPE_WEBHOOK'] : []),
    ];
    return open.length === 0
      ? null
      : `${open.join(' and ')} would send the headers of its file without TLS: if they are credentials, use https:`;
  },
  ttlAboveGrace: ({ config: { limits, conditions } }) =>
    conditions.some(({ isSignal }) => isSignal) && hasHold(limits) && limits.ttlMs > limits.terminationGraceMs
      ? `with sigterm the hold ends with LASTSCRAPE_TERMINATION_GRACE (${formatDuration(limits.terminationGraceMs)}), before LASTSCRAPE_TTL (${formatDuration(limits.ttlMs)}): set the grace to ${formatDuration(limits.ttlMs)} and the pod's terminationGracePeriodSeconds to ${Math.ceil(limits.ttlMs / 1_000) + 5}, or the TTL to ${formatDuration(limits.terminationGraceMs)}`
      : null,
  verdictOfSidecar: ({ config: { thresholds, conditions, placeBy } }) =>
    thresholds.length > 0 && (placeBy !== null || conditions.some(({ isSignal }) => isSignal))
      ? `Kubernetes ignores the exit code of a native sidecar${placeBy === null ? '' : " (the exporter's place from operator 2.3.0 on)"}: what LASTSCRAPE_FAIL_IF comes to is then in the report only, and fails no Job; read "verdict" there, or run lastscrape as a regular container`
      : null,
  percentileOfExporter: ({ config: { thresholds, metricsUrl } }) => {
    const entry = thresholds.find(({ name }) => /_current_response_time_percentile_(50|95)$/.test(name));
    return entry === undefined || isLocustPage(metricsUrl)
      ? null
      : `LASTSCRAPE_FAIL_IF has ${entry.name}, which Locust's exporter shows as 0 with any Locust 2.x: it would never fail; take locust_requests_avg_response_time{name="Aggregated"}, or put lastscrape in the exporter's place`;
  },
  terminationLogNone: ({ config: { terminationLog } }) =>
    terminationLog.path === 'none'
      ? 'LASTSCRAPE_TERMINATION_LOG is none, which writes a file of that name: unset it; its default is written only where it exists'
      : null,
} as const satisfies Readonly<Record<string, Rule>>;

/** Where a target sends its request to, `POST http://localhost:1/quit`; none where that is no URL. */
function readUrls(request: string): readonly URL[] {
  const url = URL.parse(request.slice(request.indexOf(' ') + 1));
  return url === null ? [] : [url];
}

function isSameHost(one: URL, other: URL): boolean {
  return one.hostname === other.hostname || (LOOPBACK.test(one.hostname) && LOOPBACK.test(other.hostname));
}

function readPort({ port }: URL): number {
  return Number(port || 80);
}

/** The name of a rule. */
export type OddSetting = keyof typeof ODD_SETTINGS;

/** What is odd, in the order of the rules. */
export function listOddSettings(context: OddContext): readonly { readonly id: OddSetting; readonly text: string }[] {
  return Object.entries(ODD_SETTINGS).flatMap(([id, find]) => {
    const text = find(context);
    return text === null ? [] : [{ id: id as OddSetting, text }];
  });
}
