// Settings that are allowed and odd, for `--check`: a rule a row. Pure. Only warns: a run does what is set.

import { LOOPBACK } from '../base/parse.ts';
import { redactHref } from '../base/text.ts';
import type { Config } from '../config/config.ts';
import { formatDuration, isLocustPage } from '../config/values.ts';
import { type ExporterObservation, hasHold, toPodGraceSeconds } from '../decide/model.ts';

type OddContext = {
  readonly config: Config;
  /** False: on a laptop no pod has a grace, and nothing is a native sidecar. */
  readonly isPod: boolean;
  readonly isSet: (name: string) => boolean;
  /** What the exporter showed; null: it was not asked, or not where it will run. */
  readonly exporter: ExporterObservation | null;
};

/** What the rules share; `isPage`: the source is Locust's own page. */
function findFacts({ config, isPod, isSet, exporter }: OddContext) {
  const { conditions, limits, metricsUrl } = config;
  return {
    ...config,
    isPod,
    isSet,
    exporter,
    hasMetric: conditions.some(({ metricName }) => metricName !== null),
    isHeld: hasHold(limits),
    isPage: isLocustPage(metricsUrl),
  };
}

/** A rule: what is odd, and what to do; false if nothing is. */
type Rule = (facts: ReturnType<typeof findFacts>) => string | false;

/** The default port of Locust's exporter, and the one to which the policy moves it behind a front. */
const LOCUSTS_PORTS = ['9646', '9647'];

/** The rules by name. A new rule is a row here, and one of the table in its test. */
export const ODD_SETTINGS = {
  metricsUrlWithoutPath: ({ metricsUrl, isExporterRead }) =>
    isExporterRead && metricsUrl.protocol === 'http:' && metricsUrl.pathname === '/' && metricsUrl.search === ''
      ? `LASTSCRAPE_METRICS_URL has no path, and exporters serve their metrics at /metrics: is it ${metricsUrl.origin}/metrics?`
      : false,
  metricsUrlOnMainsPort: ({ metricsUrl, conditions, front }) => {
    const port = Number(metricsUrl.port || 80);
    const main = conditions.find((each) => each.port === port);
    // A front serves the metrics of main itself.
    if (main === undefined || front !== null || !LOOPBACK.test(metricsUrl.hostname)) return false;
    return `LASTSCRAPE_METRICS_URL is on port ${port}, which ${main.text} takes for main's own: main would count as running until the exporter is gone`;
  },
  settleAboveTtl: ({ limits: { settleMs, ttlMs }, isHeld }) =>
    isHeld &&
    settleMs > ttlMs &&
    `LASTSCRAPE_SETTLE (${formatDuration(settleMs)}) is above LASTSCRAPE_TTL (${formatDuration(ttlMs)}): the hold, which counts from main's end, is over before that end is confirmed`,
  holdWithoutExporter: ({ exporter, front, isHeld, hasMetric, metricsUrl }) =>
    (exporter?.kind === 'refused' || exporter?.kind === 'failed') && front === null && isHeld && !hasMetric
      ? `no exporter answers at ${redactHref(metricsUrl)}, and the pod would be held for its scrapes: set LASTSCRAPE_SCRAPES=0 if it has none, or LASTSCRAPE_METRICS_URL if it is elsewhere`
      : false,
  holdByDefault: ({ exporter, front, isHeld, hasMetric, metricsUrl, isSet }) =>
    exporter === null &&
    front === null &&
    !isSet('LASTSCRAPE_METRICS_URL') &&
    !isSet('LASTSCRAPE_SCRAPES') &&
    isHeld &&
    !hasMetric &&
    `the pod would be held for scrapes of ${redactHref(metricsUrl)}, where Locust's exporter listens: set LASTSCRAPE_SCRAPES=0 if this pod has none, or LASTSCRAPE_METRICS_URL if it has another exporter`,
  conditionsByDefault: ({ targets, front, metricsUrl, isPage, isSet }) => {
    const isLocusts = targets.length === 0 || targets.some(({ url }) => url?.pathname === '/quitquitquit');
    const isServed = front === null || isPage || LOCUSTS_PORTS.includes(metricsUrl.port);
    return (
      !isSet('LASTSCRAPE_DONE_WHEN') &&
      !(isLocusts && isServed) &&
      "LASTSCRAPE_DONE_WHEN has its default, which is for Locust and its exporter: set it if main isn't Locust, to sigterm for example"
    );
  },
  holdWithoutCounter: ({ exporter, front, isHeld, limits }) =>
    front === null && exporter?.kind === 'answered' && exporter.scrapes === null && isHeld
      ? `the exporter shows no scrape counter of promhttp: the pod would be held for the whole LASTSCRAPE_TTL (${formatDuration(limits.ttlMs)})`
      : false,
  frontByDefault: ({ front, hasMetric, isPage, metricsUrl, isSet }) =>
    front !== null && !isSet('LASTSCRAPE_METRICS_URL') && !isPage && !hasMetric
      ? `the front would serve ${redactHref(metricsUrl)}, where Locust's exporter listens: set LASTSCRAPE_METRICS_URL to what it should serve`
      : false,
  credentialsWithoutTls: ({ push, pushHeadersFile, webhook, webhookHeadersFile }) => {
    const open = [
      ...(push?.url.protocol === 'http:' && pushHeadersFile !== null ? ['LASTSCRAPE_PUSH'] : []),
      ...(webhook?.protocol === 'http:' && webhookHeadersFile !== null ? ['LASTSCRAPE_WEBHOOK'] : []),
    ];
    return (
      open.length > 0 &&
      `${open.join(' and ')} would send the headers of its file without TLS: if they are credentials, use https:`
    );
  },
  ttlAboveGrace: ({ limits: { ttlMs, terminationGraceMs }, conditions, isHeld, isPod }) =>
    isPod && conditions.some(({ isSignal }) => isSignal) && isHeld && ttlMs > terminationGraceMs
      ? `with sigterm the hold ends with LASTSCRAPE_TERMINATION_GRACE (${formatDuration(terminationGraceMs)}), before LASTSCRAPE_TTL (${formatDuration(ttlMs)}): set the grace to ${formatDuration(ttlMs)} and the pod's terminationGracePeriodSeconds to ${toPodGraceSeconds(ttlMs)}, or the TTL to ${formatDuration(terminationGraceMs)}`
      : false,
  verdictOfSidecar: ({ thresholds, conditions, placeBy, isPod }) =>
    isPod &&
    thresholds.length > 0 &&
    (placeBy !== null || conditions.some(({ isSignal }) => isSignal)) &&
    `Kubernetes ignores the exit code of a native sidecar${placeBy === null ? '' : " (the exporter's place from operator 2.3.0 on)"}: the verdict of LASTSCRAPE_FAIL_IF is then only in the report, and cannot fail the Job; read "verdict" there, or run lastscrape as a regular container`,
} as const satisfies Readonly<Record<string, Rule>>;

export type OddSetting = keyof typeof ODD_SETTINGS;

/** What is odd, in the order of the rules. */
export function listOddSettings(context: OddContext): readonly { readonly id: OddSetting; readonly text: string }[] {
  const facts = findFacts(context);
  return Object.entries(ODD_SETTINGS).flatMap(([id, find]) => {
    const text = find(facts);
    return text === false ? [] : [{ id: id as OddSetting, text }];
  });
}
