// What `--check` prints, for a person: what would be done, and what is seen of it now. Pure.

import { redactHref, redactPath } from '../base/text.ts';
import type { Config } from '../config/config.ts';
import { isFrontAt } from '../config/front-address.ts';
import { buildLimits, hasReceivers } from '../config/policy.ts';
import { formatDuration, isLocustPage } from '../config/values.ts';
import { findWatchEnd, hasHold } from '../decide/model.ts';
import { PUSH_MAX_MS, RESERVE_MS } from '../decide/tell.ts';

/** What `--check` found out. */
export type Findings = {
  readonly isPod: boolean;
  /** In the order of the configuration; a name may come more than once. */
  readonly lines: readonly { readonly name: string; readonly text: string }[];
  readonly warnings: readonly string[];
  /** Why entries cannot work in this very pod. */
  readonly problems: readonly string[];
};

/** The whole of `--check`: what a run with this configuration would do, and what was found. */
export function formatPlan(config: Config, { isPod, lines, warnings, problems }: Findings): string {
  const { limits, targets, conditions, metricsUrl, thresholds } = config;
  const isSignalled = conditions.some(({ isSignal }) => isSignal);
  return [
    problems.length === 0
      ? 'The configuration is valid. This is what would be done:'
      : 'The configuration can be read, and it cannot work in this pod (see the end). This is what would be done if it could:',
    '',
    `1. Watch    every ${formatDuration(limits.pollMs)}${config.isExporterRead ? `, reading ${redactHref(metricsUrl)}` : ', without reading an exporter'}.`,
    ...(config.placeBy === null
      ? []
      : [
          `            It is in the place of Locust's exporter, because ${config.placeBy} is set: set LASTSCRAPE_METRICS_URL,`,
          '            or LASTSCRAPE_FRONT=none, if that is not meant.',
        ]),
    `            ${describeEnd(config)}`,
    ...conditions.map(({ text }) => `              ${text}`),
    ...(isSignalled ? [] : describeTimeouts(limits)),
    ...describeFront(config),
    `2. Hold     ${describeHold(config)}`,
    ...(thresholds.length === 0
      ? []
      : [
          '            Then judge the last numbers of main: the exit code is 1 where one of these holds, or cannot be judged:',
          ...thresholds.map(({ text }) => `              ${text}`),
        ]),
    ...describePush(config),
    ...(config.tombstonePath === null
      ? []
      : [
          `            Then write ${config.tombstonePath}, and again and again until exit${config.isDryRun ? ' (not in a dry run)' : ''}.`,
        ]),
    targets.length === 0
      ? '3. Quit     nothing (LASTSCRAPE_QUIT is none).'
      : `3. Quit     ${config.isDryRun ? 'nothing, but say so (LASTSCRAPE_DRY_RUN); else ' : ''}in this order, each within ${formatDuration(config.quitTimeoutMs)}:`,
    ...targets.map(({ name, request }) => `              ${name === request ? name : `${name}: ${request}`}`),
    ...describeWebhook(config),
    `4. Report   in the log and in ${config.terminationLog.path}${config.terminationLog.isChosen ? '' : ', where that exists'}; then exit${describeExitCode(config)}.`,
    '',
    isSignalled
      ? `Hold and quitting end ${formatDuration(limits.terminationGraceMs)} after SIGTERM (LASTSCRAPE_TERMINATION_GRACE); quitting gets at least 1s.`
      : `After SIGTERM all of this has ${formatDuration(limits.terminationGraceMs)}; quitting gets at least 1s.`,
    ...(hasReceivers(config) ? [`The hold ends ${formatDuration(RESERVE_MS)} before that, for what is told.`] : []),
    '',
    isPod
      ? 'This is what the pod shows now:'
      : 'This is no pod of Kubernetes. This is what can be seen here, and what it will need there:',
    '',
    ...lines.map(({ name, text }) => `  ${name}: ${text}`),
    ...warnings.map((warning) => `  warning: ${warning}`),
    '',
  ].join('\n');
}

function describeExitCode({ isExitZero, thresholds }: Config): string {
  if (!isExitZero) return '';
  return thresholds.length === 0 ? ' 0, always' : ' 0, or 1 by the verdict';
}

function describeEnd({ conditions, limits }: Config): string {
  const signalCount = conditions.filter(({ isSignal }) => isSignal).length;
  if (signalCount === conditions.length) return 'Main is alive until this signal comes, which proves its end at once:';
  const proof = `${signalCount === 0 ? ', ' : '; but for the signal '}in two polls and for ${formatDuration(limits.settleMs)}`;
  return `Main is done when all of these hold${proof}:`;
}

function describeTimeouts({ startTimeoutMs, runTimeoutMs }: Config['limits']): readonly string[] {
  return [
    startTimeoutMs === 0
      ? '            A main that is never seen alive is waited for without limit.'
      : `            A main that is not seen alive for ${formatDuration(startTimeoutMs)} is not waited for any longer.`,
    runTimeoutMs === 0
      ? '            A main that runs is watched without limit.'
      : `            A main that runs for ${formatDuration(runTimeoutMs)} is treated as done.`,
  ];
}

/** What is served where, and who counts. */
function describeFront({ front, metricsUrl, locust }: Config): readonly string[] {
  if (front === null) return [];
  const { protocol, pathname } = metricsUrl;
  const isLocust = isLocustPage(metricsUrl);
  const path = isLocust ? locust.path : pathname;
  const paths = protocol !== 'file:' && path !== '/metrics' ? `/metrics and ${path}` : '/metrics';
  const files = protocol === 'file:' && pathname.endsWith('/') ? ', every *.prom of it' : '';
  return [
    `   Serve    on ${front.host === null ? `port ${front.port} of all addresses` : front.text}:`,
    `              ${paths}: ${redactHref(metricsUrl)}${files}; when main is gone, what it last showed as a whole`,
    '              /-/healthy, /-/ready: 200 as long as it listens',
    ...(isFrontAt(front, 'localhost')
      ? [
          `              POST /-/snapshot${isLocust ? ', and /quitquitquit' : ''}, from loopback only: keeps what main shows at that moment`,
        ]
      : []),
    '            Prometheus and other scrapers count: whoever sends X-Prometheus-Scrape-Timeout-Seconds, or is known by',
    "            its User-Agent. A curl, a browser or a probe gets its answer and doesn't count.",
  ];
}

function describePush({ push, pushWhen, pushHeadersFile }: Config): readonly string[] {
  if (push === null) return [];
  const when = pushWhen.when === 'always' ? 'Then' : 'Then, unless they came,';
  const headers = pushHeadersFile === null ? '' : `, with the headers of ${pushHeadersFile}`;
  return [
    `   Push     ${when} send the last numbers to ${push.to}+${redactHref(push.url)}`,
    `            (LASTSCRAPE_PUSH), for ${formatDuration(PUSH_MAX_MS)} at most${headers}.`,
  ];
}

function describeWebhook({ webhook, webhookHeadersFile, targets }: Config): readonly string[] {
  if (webhook === null) return [];
  const mesh = targets.find(({ isMesh }) => isMesh === true);
  const headers = webhookHeadersFile === null ? '' : `, with the headers of ${webhookHeadersFile}`;
  return [
    `   Tell     ${mesh === undefined ? 'After that' : `Before ${mesh.name}`} POST the report to ${redactPath(webhook)}`,
    `            (LASTSCRAPE_WEBHOOK), in 3 tries of 5s${headers}.`,
  ];
}

function describeHold(config: Config): string {
  const { front, limits, conditions } = config;
  if (!hasHold(limits)) return 'not at all (LASTSCRAPE_SCRAPES or LASTSCRAPE_TTL is 0).';
  const { scrapesWantedCount, ttlMs } = limits;
  const graceMs = findWatchEnd(0, buildLimits(config));
  const isByGrace = conditions.some(({ isSignal }) => isSignal) && graceMs < ttlMs;
  const atMost = `for ${formatDuration(isByGrace ? graceMs : ttlMs)} at most`;
  if (scrapesWantedCount === 'auto') {
    return `until every scraper that lives has scraped the front since main ended, one at least, ${atMost}.`;
  }
  const times = scrapesWantedCount === 1 ? 'once' : `${scrapesWantedCount} times`;
  return `until others have scraped ${front === null ? '' : 'the front '}${times} since main ended, ${atMost}.`;
}
