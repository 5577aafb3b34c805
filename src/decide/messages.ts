// Every message of the log: its id, its level, its text. A text is constant; what varies goes into fields.
// The log writes by this table, the report and the tests go by the ids, and docs/reference.md explains each.

export type LogLevel = 'debug' | 'info' | 'warn' | 'error';

type Message = { readonly level: LogLevel; readonly text: string };

const debug = (text: string): Message => ({ level: 'debug', text });
const info = (text: string): Message => ({ level: 'info', text });
const warn = (text: string): Message => ({ level: 'warn', text });
const error = (text: string): Message => ({ level: 'error', text });

/** A new message is a row here; its cause, if an operator must act, is in test/tools/reference-texts.ts. */
export const MESSAGES = {
  watching: info('watching'),
  polled: debug('poll'),
  mainRunning: info('main is running'),
  mainRunningAgain: info('main is running again'),
  mainWasAlive: info('main was alive before this watch began'),
  mainHadEnded: info('main had ended before this watch began'),
  mainEnded: info('main ended'),
  mainRanTooLong: info('main ran for too long: treated as ended'),
  terminating: info('asked to terminate'),
  quitting: info('quitting'),
  releasing: info('releasing the pod'),
  conditionBlind: warn('a condition cannot be checked'),
  metricGivenUp: warn('the metric stayed unreadable: deciding by the other conditions alone'),
  metricUnreadable: warn('the metric is unreadable: main is done when the other conditions hold for 60 s'),
  onlyMetricUnreadable: warn('the only condition is an unreadable metric: only LASTSCRAPE_RUN_TIMEOUT would end this'),
  exporterVanished: warn('the exporter vanished while main runs: its quit endpoint may have been called'),
  noCounter: warn('the exporter shows no scrape counter: holding for the whole TTL'),
  nobodyScraped: warn('nothing has scraped this exporter: NetworkPolicy, mesh mTLS, PodMonitor?'),
  frontNotScraped: warn(
    "nothing has scraped this port: unless it scrapes less often than every 45 s, Prometheus must scrape it in place of main's, by prometheus.io/port or a PodMonitor, and drop no init containers",
  ),
  pageNeverRead: warn('nothing could be read from main so far: is LASTSCRAPE_METRICS_URL its page?'),
  scraperFound: info('new scraper'),
  scraperGivenUp: info('stopped waiting for a scraper'),
  scraperTooSlow: warn('a scraper comes too rarely: its interval is longer than the longest hold'),
  formatLeftOut: warn(
    'scrapers ask for several formats of a large page: the last of it is kept in the first of them only',
  ),
  pageUnreadable: warn(
    'a page that scrapers ask for is unreadable, and is not kept: the last numbers are those of the text format, if any',
  ),
  nativeHistogramPushed: warn(
    'a native histogram was pushed: pages of pushes are text, which has only its sum, count and classic buckets',
  ),
  pushRefused: warn('a push was refused: its numbers are not on the page'),
  pushedDropped: warn(
    'families that were deleted or replaced are gone before a scrape had them: there was no more room',
  ),
  keptPageLost: warn('a page that a program asked to keep is gone before a scrape had it: there is room for four'),
  nothingPushed: warn("nothing was pushed: check the host and port of main's URL, and hostAliases"),
  hookNotCalled: warn(
    'the hook did not call: main was killed, closed its port, runs with -E, -I or -S, has a wrong LASTSCRAPE_SNAPSHOT_URL, or is not Python 3.6 or later',
  ),
  fileLeftOut: warn(
    'a file of the folder cannot be read, and nobody writes it any more: the others are served without it',
  ),
  familyTwice: warn('two files have a metric with different types, or the same series of it: the first file wins'),
  inExportersPlace: info(
    "serving in place of Locust's exporter: to turn this off, set LASTSCRAPE_METRICS_URL or LASTSCRAPE_FRONT=none",
  ),
  locustUnreadable: warn(
    "Locust's page has no statistics: is it Locust's web port (8089)? if it asks for a login, set its header in LASTSCRAPE_METRICS_HEADERS_FILE",
  ),
  headersUnreadable: warn("the headers for Locust's page cannot be read: requests go without them"),
  locustError: warn(
    "Locust's page returned an error, so locust_up is 0: is it Locust's web port (8089)? add --web-base-path to the URL if it has one",
  ),
  thresholdAlwaysZero: warn('a metric in LASTSCRAPE_FAIL_IF was always 0: does anything set it?'),
  thresholdOfLastSeconds: warn(
    'a metric in LASTSCRAPE_FAIL_IF is of Locust\'s last seconds, or always 0 with its exporter: see "Percentiles of Locust" in docs/verdict.md',
  ),
  thresholdOddLimit: warn('an entry of LASTSCRAPE_FAIL_IF says nothing of the run: it is always true, or never'),
  thresholdUnread: warn('an entry of LASTSCRAPE_FAIL_IF finds no number yet: it will fail the run unless that comes'),
  thresholdsPassed: info('no threshold fails this run'),
  thresholdsNotJudged: error('the run was cut short: its thresholds are not judged'),
  thresholdFailed: error('a threshold fails this run'),
  toldFileUnusable: warn('a file for the push or the webhook cannot be used: it is read again before sending'),
  handedOver: info('handed over: the pod is not held'),
  handOverFailed: warn('the hand-over failed: the pod is held instead'),
  handOverStays: warn('main runs again, and the keeper may still serve what was handed over'),
  pushing: info('pushing the last numbers'),
  pushRetried: debug('part of the push failed: retrying'),
  pushAccepted: info('the last numbers were pushed'),
  pushFailed: warn('the push of the last numbers failed'),
  webhookRetried: debug('the webhook did not accept the report: retrying'),
  webhookAccepted: info('the webhook accepted the report'),
  webhookFailed: warn('the webhook did not accept the report'),
  targetAsked: debug('asked the target to quit'),
  targetSignalled: info('target signalled'),
  targetForced: warn('target did not exit: signalling its process'),
  targetNotForced: debug('cannot signal the process of the target'),
  targetStopped: info('target stopped'),
  targetAlreadyGone: info('target was already gone'),
  targetFailed: error('target still runs'),
  targetSkipped: info('dry run: target not asked to quit'),
  tombstoneSkipped: info('dry run: the tombstone is not written'),
  tombstoneUnwritable: warn('the tombstone cannot be written'),
  hooksUnwritable: warn("the hook cannot be written: main's last changes may be lost"),
  messageUnwritable: warn('the termination message cannot be written'),
  waitsForTargets: warn('container:* waits for every other container: list the targets in LASTSCRAPE_SIDECARS'),
  meshNotLast: warn('a mesh proxy is not the last to quit: it carries scrapes and reports'),
  quitTimeoutShort: warn('LASTSCRAPE_QUIT_TIMEOUT is too short: a target may need longer to exit'),
  meshForgotten: warn('a mesh proxy still runs: list it last in LASTSCRAPE_QUIT, unless it is a native sidecar'),
  otherLastscrape: warn('another lastscrape runs in this pod: each counts the polls of the other as scrapes'),
  keeping: info('keeping the pages of pods that hand over'),
  keepStopping: info('asked to terminate: nothing more is taken, what is kept is served until it was scraped'),
  keepStopped: info('stopped'),
  handOverRefused: warn('a hand-over was refused: the pod holds'),
  keptPageCorrupt: error('a kept page cannot be read back: it is not served'),
  keptPageExpired: warn('a kept page was not scraped for an hour: forgotten'),
  bug: error('bug in lastscrape: please report it'),
  debugFull: debug('no more debug lines: their limit is reached'),
  logFull: warn('the log is full: only the report follows'),
  report: info('report'),
} as const satisfies Readonly<Record<string, Message>>;

export type MessageId = keyof typeof MESSAGES;

/** One line of the log, before it has a time. */
export type LogEntry = { readonly id: MessageId; readonly fields: Readonly<Record<string, unknown>> };
