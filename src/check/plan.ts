// What `--check` prints, for a person: what a run would do, and what shows now. Pure.

import { redactHref, redactPath } from '../base/text.ts';
import { buildLimits, type Config, hasReceivers, nameHandOver } from '../config/config.ts';
import { formatDuration, isLocustPage, isPushUrl } from '../config/values.ts';
import { findWatchEnd, hasHold, toPodGraceSeconds } from '../decide/model.ts';
import { EXIT, findProcessExitCode } from '../decide/quit/exit-codes.ts';
import { PUSH_MAX_MS, RESERVE_MS } from '../decide/quit/quitting.ts';

export type Findings = {
  readonly isPod: boolean;
  /** In the order of the configuration; a name may come more than once. */
  readonly lines: readonly { readonly name: string; readonly text: string }[];
  readonly warnings: readonly string[];
  /** Why entries cannot work in this pod. */
  readonly problems: readonly string[];
};

/** Lines of the plan; false: left out. */
type Lines = readonly (string | false)[];

/** What the default of a pod, 30 s (documentation, "Pod Lifecycle"), is long enough for. */
const USUAL_GRACE_MS = 25_000;

/** Text below a step is indented by 12, what it lists by 14. */
const TEXT = ' '.repeat(12);
const ITEM = ' '.repeat(14);

/** Formats all of `--check`: what a run with this configuration would do, and what was found. */
export function formatPlan(config: Config, { isPod, lines, warnings, problems }: Findings): string {
  const isWrong = problems.length > 0;
  const isSignalled = config.conditions.some(({ isSignal }) => isSignal);
  const grace = formatDuration(config.limits.terminationGraceMs);
  const all: Lines = [
    isWrong
      ? 'The configuration can be read, but cannot work in this pod (see the end). If it could, a run would do this:'
      : 'The configuration is valid. A run would do this:',
    '',
    ...describeWatch(config, isSignalled),
    ...describeFront(config),
    ...describeHold(config),
    ...describeQuit(config),
    `4. Report   in the log and in ${config.terminationLog.path}${config.terminationLog.isChosen ? '' : ', if it exists'}; then exit${describeExitCode(config)}.`,
    '',
    isSignalled
      ? `Hold and quitting end ${grace} after SIGTERM (LASTSCRAPE_TERMINATION_GRACE); quitting gets at least 1s.`
      : `After SIGTERM all of this must end within ${grace}; quitting gets at least 1s.`,
    config.limits.terminationGraceMs > USUAL_GRACE_MS &&
      `So a pod needs a terminationGracePeriodSeconds of at least ${toPodGraceSeconds(config.limits.terminationGraceMs)}; its default is 30.`,
    hasReceivers(config) &&
      `The hold ends ${formatDuration(RESERVE_MS)} before that, to leave time for push and webhook.`,
    '',
    isPod
      ? 'What was found in the pod now:'
      : 'This is not a Kubernetes pod. What was found here, and what the pod will need:',
    '',
    ...lines.map(({ name, text }) => `  ${name}: ${text}`),
    ...warnings.map((warning) => `  warning: ${warning}`),
    '',
  ];
  return all.filter((line) => line !== false).join('\n');
}

function describeWatch(config: Config, isSignalled: boolean): Lines {
  const { limits, conditions, metricsUrl, isExporterRead, placeBy } = config;
  const { pollMs, startTimeoutMs, runTimeoutMs, settleMs } = limits;
  const isSignalOnly = conditions.every(({ isSignal }) => isSignal);
  const proof = `in two polls and for ${formatDuration(settleMs)}`;
  return [
    `1. Watch    every ${formatDuration(pollMs)}, ${isExporterRead ? `reading ${redactHref(metricsUrl)}` : 'without reading an exporter'}.`,
    placeBy !== null &&
      `${TEXT}It takes the place of Locust's exporter, because ${placeBy} is set; if that is not meant,`,
    placeBy !== null && `${TEXT}set LASTSCRAPE_METRICS_URL, or LASTSCRAPE_FRONT=none.`,
    isSignalOnly
      ? `${TEXT}Main is alive until this signal comes:`
      : `${TEXT}Main is done when all of these hold${isSignalled ? `; all but the signal ${proof}` : `, ${proof}`}:`,
    ...conditions.map(({ text }) => ITEM + text),
    !isSignalled &&
      (startTimeoutMs === 0
        ? `${TEXT}Waits for main without limit until it is seen alive.`
        : `${TEXT}Stops waiting for main if it is not seen alive for ${formatDuration(startTimeoutMs)}.`),
    !isSignalled &&
      (runTimeoutMs === 0
        ? `${TEXT}Watches a running main without limit.`
        : `${TEXT}Treats main as done after it ran for ${formatDuration(runTimeoutMs)}.`),
  ];
}

function describeFront({ front, metricsUrl, locust, hooksPath }: Config): Lines {
  if (front === null) return [];
  const { protocol, pathname } = metricsUrl;
  const isPage = isLocustPage(metricsUrl);
  const path = isPage ? locust.path : pathname;
  const isPushed = isPushUrl(metricsUrl);
  const isOwnPath = protocol !== 'file:' && !isPushed && path !== '/metrics';
  const paths = isOwnPath ? `/metrics and ${path}` : '/metrics';
  const files = protocol === 'file:' && pathname.endsWith('/') ? ', every *.prom in it' : '';
  return [
    `   Serve    on ${front.host === null ? `port ${front.port} of all addresses` : front.text}:`,
    isPushed
      ? `${ITEM}/metrics: what is pushed to ${metricsUrl.host}; deleted series stay until they are scraped`
      : `${ITEM}${paths}: ${redactHref(metricsUrl)}${files}; once main is gone, its last whole answer`,
    hooksPath !== null && `${TEXT}First it writes the hook to ${hooksPath}/python, for main's PYTHONPATH.`,
    `${TEXT}Prometheus and other scrapers count; curl, browsers and probes are answered but don't.`,
  ];
}

function describeHold(config: Config): Lines {
  const { thresholds, push, pushWhen, pushHeadersFile, tombstonePath, isDryRun, handOver } = config;
  return [
    `2. Hold     ${describeWait(config)}`,
    handOver !== null &&
      `${TEXT}First it hands the last numbers over to ${nameHandOver(config)} (LASTSCRAPE_HAND_OVER); then nothing is held.`,
    thresholds.length > 0 &&
      `${TEXT}Then judge main's last numbers: the exit code is 1 if one of these holds, or cannot be judged:`,
    ...thresholds.map(({ text }) => ITEM + text),
    ...(push === null
      ? []
      : [
          `   Push     ${pushWhen === 'always' ? 'Then' : 'Then, unless they came,'} send the last numbers to ${push.to}+${redactPath(push.url)}`,
          `${TEXT}(LASTSCRAPE_PUSH), for ${formatDuration(PUSH_MAX_MS)} at most${describeHeaders(pushHeadersFile)}.`,
        ]),
    tombstonePath !== null &&
      `${TEXT}Then write ${tombstonePath}, and rewrite it until exit${isDryRun ? ' (not in a dry run)' : ''}.`,
  ];
}

function describeWait(config: Config): string {
  const { front, limits, conditions } = config;
  if (!hasHold(limits)) return 'not at all (LASTSCRAPE_SCRAPES or LASTSCRAPE_TTL is 0).';
  const { scrapesWantedCount: count, ttlMs } = limits;
  const graceMs = findWatchEnd(0, buildLimits(config));
  const isByGrace = conditions.some(({ isSignal }) => isSignal) && graceMs < ttlMs;
  const atMost = `since main ended, ${count === 'auto' ? 'at least one, ' : ''}for ${formatDuration(isByGrace ? graceMs : ttlMs)} at most.`;
  if (count === 'auto') return `until every active scraper has scraped the front ${atMost}`;
  return `until others have scraped ${front === null ? '' : 'the front '}${count === 1 ? 'once' : `${count} times`} ${atMost}`;
}

/** The targets, and the webhook before the first mesh or after all. */
function describeQuit({ targets, isDryRun, quitTimeoutMs, webhook, webhookHeadersFile }: Config): Lines {
  const mesh = targets.find(({ isMesh }) => isMesh === true);
  return [
    targets.length === 0
      ? '3. Quit     nothing (LASTSCRAPE_QUIT is none).'
      : `3. Quit     ${isDryRun ? 'nothing, but log it (LASTSCRAPE_DRY_RUN); otherwise ' : ''}in this order, each within ${formatDuration(quitTimeoutMs)}:`,
    ...targets.map(({ name, request }) => ITEM + (name === request ? name : `${name}: ${request}`)),
    ...(webhook === null
      ? []
      : [
          `   Tell     ${mesh === undefined ? 'After that' : `Before ${mesh.name}`} POST the report to ${redactPath(webhook)}`,
          `${TEXT}(LASTSCRAPE_WEBHOOK), in 3 tries of 5s${describeHeaders(webhookHeadersFile)}.`,
        ]),
  ];
}

function describeHeaders(file: string | null): string {
  return file === null ? '' : `, with the headers of ${file}`;
}

function describeExitCode(config: Config): string {
  if (!config.isExitZero) return '';
  const isFailed = config.thresholds.length > 0 && findProcessExitCode(EXIT.thresholdFailed, config) > 0;
  return isFailed ? ' 0, or 1 by the verdict' : ' 0, always';
}
