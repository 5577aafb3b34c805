// Every message of the log: its id, its level, its text. A text is constant; what varies goes into fields.
// The log writes by this table, the report and the tests go by the ids, and docs/reference.md explains each.

export type LogLevel = 'debug' | 'info' | 'warn' | 'error';

type Message = { readonly level: LogLevel; readonly text: string };

/** A new message is a row here; its cause, if an operator must act, is in test/tools/reference-texts.ts. */
export const MESSAGES = {
  watching: { level: 'info', text: 'watching' },
  polled: { level: 'debug', text: 'poll' },
  mainRunning: { level: 'info', text: 'main is running' },
  mainRunningAgain: { level: 'info', text: 'main is running again' },
  mainWasAlive: { level: 'info', text: 'main was alive before this watch began' },
  mainHadEnded: { level: 'info', text: 'main had ended before this watch began' },
  mainEnded: { level: 'info', text: 'main ended' },
  mainRanTooLong: { level: 'info', text: 'main ran for too long: treated as ended' },
  terminating: { level: 'info', text: 'asked to terminate' },
  quitting: { level: 'info', text: 'quitting' },
  releasing: { level: 'info', text: 'releasing the pod' },
  conditionBlind: { level: 'warn', text: 'a condition cannot be checked' },
  metricGivenUp: { level: 'warn', text: 'the metric stayed unreadable: deciding by the other conditions alone' },
  metricUnreadable: {
    level: 'warn',
    text: 'the metric is unreadable: main is done when the other conditions hold for 60 s',
  },
  onlyMetricUnreadable: {
    level: 'warn',
    text: 'the only condition is an unreadable metric: only LASTSCRAPE_RUN_TIMEOUT would end this',
  },
  exporterVanished: {
    level: 'warn',
    text: 'the exporter vanished while main runs: its quit endpoint may have been called',
  },
  noCounter: { level: 'warn', text: 'the exporter shows no scrape counter: holding for the whole TTL' },
  nobodyScraped: { level: 'warn', text: 'nothing has scraped this exporter: NetworkPolicy, mesh mTLS, PodMonitor?' },
  scraperFound: { level: 'info', text: 'new scraper' },
  scraperGivenUp: { level: 'info', text: 'stopped waiting for a scraper' },
  scraperTooSlow: { level: 'warn', text: 'a scraper comes too rarely: its interval is longer than the longest hold' },
  formatLeftOut: {
    level: 'warn',
    text: 'scrapers ask for several formats of a large page: the last of it is kept in the first of them only',
  },
  pageUnreadable: {
    level: 'warn',
    text: 'a page that scrapers ask for is unreadable, and is not kept: the last numbers are those of the text format',
  },
  nativeHistogramPushed: {
    level: 'warn',
    text: 'a native histogram was pushed: pages of pushes are text, which has only its sum, count and classic buckets',
  },
  pushRefused: { level: 'warn', text: 'a push was refused: its numbers are not on the page' },
  nothingPushed: { level: 'warn', text: "nothing was pushed: check the host and port of main's URL, and hostAliases" },
  hookNotCalled: {
    level: 'warn',
    text: 'the hook did not call: main was killed, closed its port, runs with -E, -I or -S, or is not Python 3.6 or later',
  },
  familyTwice: { level: 'warn', text: 'two files have a metric of the same name: the first file wins' },
  inExportersPlace: {
    level: 'info',
    text: "serving in place of Locust's exporter: to turn this off, set LASTSCRAPE_METRICS_URL or LASTSCRAPE_FRONT=none",
  },
  locustUnreadable: {
    level: 'warn',
    text: "Locust's page has no statistics: is it Locust's web port (8089)? if it asks for a login, set its header in LASTSCRAPE_METRICS_HEADERS_FILE",
  },
  headersUnreadable: { level: 'warn', text: "the headers for Locust's page cannot be read: requests go without them" },
  locustError: {
    level: 'warn',
    text: "Locust's page returned an error, so locust_up is 0: is it Locust's web port (8089)? add --web-base-path to the URL if it has one",
  },
  thresholdAlwaysZero: { level: 'warn', text: 'a metric in LASTSCRAPE_FAIL_IF was always 0: does anything set it?' },
  thresholdOfLastSeconds: {
    level: 'warn',
    text: 'a metric in LASTSCRAPE_FAIL_IF is of Locust\'s last seconds, or always 0 with its exporter: see "Percentiles of Locust" in docs/verdict.md',
  },
  thresholdsPassed: { level: 'info', text: 'no threshold fails this run' },
  thresholdFailed: { level: 'error', text: 'a threshold fails this run' },
  toldFileUnusable: {
    level: 'warn',
    text: 'a file for the push or the webhook cannot be used: it is read again before sending',
  },
  pushing: { level: 'info', text: 'pushing the last numbers' },
  pushRetried: { level: 'debug', text: 'part of the push failed: retrying' },
  pushAccepted: { level: 'info', text: 'the last numbers were pushed' },
  pushFailed: { level: 'warn', text: 'the push of the last numbers failed' },
  webhookRetried: { level: 'debug', text: 'the webhook did not accept the report: retrying' },
  webhookAccepted: { level: 'info', text: 'the webhook accepted the report' },
  webhookFailed: { level: 'warn', text: 'the webhook did not accept the report' },
  targetAsked: { level: 'debug', text: 'asked the target to quit' },
  targetSignalled: { level: 'info', text: 'target signalled' },
  targetForced: { level: 'warn', text: 'target did not exit: signalling its process' },
  targetNotForced: { level: 'debug', text: 'cannot signal the process of the target' },
  targetStopped: { level: 'info', text: 'target stopped' },
  targetAlreadyGone: { level: 'info', text: 'target was already gone' },
  targetFailed: { level: 'error', text: 'target still runs' },
  targetSkipped: { level: 'info', text: 'dry run: target not asked to quit' },
  tombstoneSkipped: { level: 'info', text: 'dry run: the tombstone is not written' },
  tombstoneUnwritable: { level: 'warn', text: 'the tombstone cannot be written' },
  hooksUnwritable: { level: 'warn', text: "the hook cannot be written: main's last changes may be lost" },
  messageUnwritable: { level: 'warn', text: 'the termination message cannot be written' },
  waitsForTargets: {
    level: 'warn',
    text: 'container:* waits for every other container: list the targets in LASTSCRAPE_SIDECARS',
  },
  meshNotLast: { level: 'warn', text: 'a mesh proxy is not the last to quit: it carries scrapes and reports' },
  quitTimeoutShort: { level: 'warn', text: 'LASTSCRAPE_QUIT_TIMEOUT is too short: a target may need longer to exit' },
  meshForgotten: {
    level: 'warn',
    text: 'a mesh proxy still runs: list it last in LASTSCRAPE_QUIT, unless it is a native sidecar',
  },
  otherLastscrape: {
    level: 'warn',
    text: 'another lastscrape runs in this pod: each counts the polls of the other as scrapes',
  },
  bug: { level: 'error', text: 'bug in lastscrape: please report it' },
  debugFull: { level: 'debug', text: 'no more debug lines: their limit is reached' },
  logFull: { level: 'warn', text: 'the log is full: only the report follows' },
  report: { level: 'info', text: 'report' },
} as const satisfies Readonly<Record<string, Message>>;

export type MessageId = keyof typeof MESSAGES;

/** One line of the log, before it has a time. */
export type LogEntry = { readonly id: MessageId; readonly fields: Readonly<Record<string, unknown>> };
