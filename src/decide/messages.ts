// Every message of the log: its id, its level, its text. A text is constant; what varies goes into fields.
// The log writes by this table, the report and the tests go by the ids, and the README explains each.

export type LogLevel = 'debug' | 'info' | 'warn' | 'error';

type Message = { readonly level: LogLevel; readonly text: string };

/** A new message is a row here, and where an operator must act, a row of the README's table. */
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
  conditionBlind: { level: 'warn', text: 'a condition cannot be seen' },
  metricGivenUp: {
    level: 'warn',
    text: 'the metric stayed unreadable: the other conditions are believed without it',
  },
  metricUnreadable: {
    level: 'warn',
    text: 'the metric is unreadable: main is done when the other conditions hold for 60 s',
  },
  onlyMetricUnreadable: {
    level: 'warn',
    text: 'the metric is unreadable and the only condition: only LASTSCRAPE_RUN_TIMEOUT would end this',
  },
  exporterVanished: {
    level: 'warn',
    text: 'the exporter vanished while main runs: somebody may have called its quit endpoint',
  },
  noCounter: { level: 'warn', text: 'the exporter shows no scrape counter: holding for the whole TTL' },
  nobodyScraped: { level: 'warn', text: 'nobody has scraped this exporter: NetworkPolicy, mesh mTLS, PodMonitor?' },
  scraperFound: { level: 'info', text: 'a scraper came' },
  scraperGivenUp: { level: 'info', text: 'a scraper is not waited for any longer' },
  scraperTooSlow: { level: 'warn', text: 'a scraper comes too seldom: its interval is longer than the hold can be' },
  familyTwice: { level: 'warn', text: 'two files have a metric of one name: it is taken from the first' },
  inExportersPlace: {
    level: 'info',
    text: "in the place of Locust's exporter: set LASTSCRAPE_METRICS_URL, or LASTSCRAPE_FRONT=none, if that is not meant",
  },
  locustUnreadable: {
    level: 'warn',
    text: "Locust's page has no statistics: is it Locust's web port (8089)? if it asks for a login, set its header in LASTSCRAPE_METRICS_HEADERS_FILE",
  },
  headersUnreadable: {
    level: 'warn',
    text: "the headers for Locust's page cannot be read: requests go without them",
  },
  locustError: {
    level: 'warn',
    text: "Locust's page returned an error, so locust_up is 0: is it Locust's web port (8089)? add --web-base-path to the URL if it has one",
  },
  thresholdAlwaysZero: {
    level: 'warn',
    text: 'a metric of LASTSCRAPE_FAIL_IF was 0 whenever it was read: does anything set it?',
  },
  thresholdsPassed: { level: 'info', text: 'no threshold fails this run' },
  thresholdFailed: { level: 'error', text: 'a threshold fails this run' },
  toldFileUnusable: {
    level: 'warn',
    text: 'a file for the push or the webhook cannot be used: it is read again when it is needed',
  },
  pushing: { level: 'info', text: 'pushing the last numbers' },
  pushRetried: { level: 'debug', text: 'a part of the push was not accepted: it is sent again' },
  pushAccepted: { level: 'info', text: 'the last numbers were pushed' },
  pushFailed: { level: 'warn', text: 'the push of the last numbers failed' },
  webhookRetried: { level: 'debug', text: 'the webhook did not take the report: it is sent again' },
  webhookAccepted: { level: 'info', text: 'the webhook took the report' },
  webhookFailed: { level: 'warn', text: 'the webhook did not take the report' },
  targetAsked: { level: 'debug', text: 'target asked' },
  targetSignalled: { level: 'info', text: 'target signalled' },
  targetForced: { level: 'warn', text: 'target did not go: its process is signalled' },
  targetNotForced: { level: 'debug', text: 'target not forced' },
  targetStopped: { level: 'info', text: 'target stopped' },
  targetAlreadyGone: { level: 'info', text: 'target was already gone' },
  targetFailed: { level: 'error', text: 'target still runs' },
  targetSkipped: { level: 'info', text: 'dry run: a target is left alone' },
  tombstoneSkipped: { level: 'info', text: 'dry run: the tombstone is not written' },
  tombstoneUnwritable: { level: 'warn', text: 'the tombstone cannot be written' },
  messageUnwritable: { level: 'warn', text: 'the termination message cannot be written' },
  waitsForTargets: {
    level: 'warn',
    text: 'container:* waits for every other container: name those that are to be quit in LASTSCRAPE_SIDECARS',
  },
  meshNotLast: { level: 'warn', text: 'a mesh proxy is not the last to quit: it carries scrapes and reports' },
  quitTimeoutShort: { level: 'warn', text: 'LASTSCRAPE_QUIT_TIMEOUT is too short: a target may need longer to go' },
  meshForgotten: {
    level: 'warn',
    text: 'a mesh proxy still runs: unless it is a native sidecar the pod will not complete',
  },
  otherLastscrape: {
    level: 'warn',
    text: 'another lastscrape runs in this pod: each counts the polls of the other as scrapes',
  },
  bug: { level: 'error', text: 'bug in lastscrape: please report it' },
  debugFull: { level: 'debug', text: 'no more debug lines: their bound is reached' },
  logFull: { level: 'warn', text: 'no more lines but the report: the log is full' },
  report: { level: 'info', text: 'report' },
} as const satisfies Readonly<Record<string, Message>>;

export type MessageId = keyof typeof MESSAGES;

/** One line of the log, before it has a time. */
export type LogEntry = { readonly id: MessageId; readonly fields: Readonly<Record<string, unknown>> };
