// Settings that are allowed and odd, for `--check`: a rule a row. Pure. Only warns: a run does what is set.

import { LOOPBACK } from '../base/parse.ts';
import { redactHref } from '../base/text.ts';
import type { Config } from '../config/config.ts';
import { formatDuration } from '../config/values.ts';
import { type ExporterObservation, hasHold, toPodGraceSeconds } from '../decide/model.ts';

type OddContext = {
  readonly config: Config;
  /** False: on a laptop no pod has a grace, and nothing is a native sidecar. */
  readonly isPod: boolean;
  /** What the exporter showed; null: it was not asked, or not where it will run. */
  readonly exporter: ExporterObservation | null;
};

/** What the rules share. */
function findFacts({ config, ...found }: OddContext) {
  const hasMetric = config.conditions.some(({ metricName }) => metricName !== null);
  return { ...config, ...found, hasMetric, isHeld: hasHold(config.limits) };
}

/** A rule: what is odd, and what to do; false if nothing is. */
type Rule = (facts: ReturnType<typeof findFacts>) => string | false;

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
