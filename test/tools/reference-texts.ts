// What docs/reference.md says of things that the code has only names for. The types ask for a row for each.

import type { MESSAGES, MessageId } from '../../src/decide/messages.ts';
import type { Outcome } from '../../src/decide/model.ts';
import type { EXIT } from '../../src/decide/quit/exit-codes.ts';
import type { Report } from '../../src/decide/report/report-fields.ts';

export const OUTCOMES: Readonly<Record<Outcome, string>> = {
  scraped: 'the wanted scrapes came',
  handedOver: 'the keeper, or the receiver of the push, took the last numbers: nothing was held',
  exporterGone:
    'nothing was left to scrape: the exporter refuses connections, was restarted, or never answered. Is it a native sidecar, but lastscrape is not?',
  released: 'main ended and no hold was wanted, or another lastscrape of the pod holds by itself',
  expired:
    'the TTL ran out. **Not an error**. With `scrapesSeen` 0, nothing scrapes the pod, or less often than the TTL',
  terminated: 'the grace after SIGTERM ran out, or a second signal came',
  neverStarted:
    'main was never seen alive before the start timeout or SIGTERM, or its tombstone says that it never ran. See its log, and run `--check`',
  timedOut: 'the run timeout',
  misconfigured: 'a wrong value. Nothing is held or stopped',
  bug: 'an error in lastscrape. Nothing is held or stopped',
  unfinished: 'only in the termination message: lastscrape was killed',
};

export const EXIT_CODES: Readonly<Record<keyof typeof EXIT, string>> = {
  done: 'done, whatever the outcome',
  thresholdFailed: 'an entry of `LASTSCRAPE_FAIL_IF` holds or cannot be judged: the Job fails. Wins over 69',
  usage: 'wrong arguments',
  unreadable: '`explain` cannot read its input',
  targetRuns: 'a target still runs although everything was tried: the Job fails',
  bug: 'a bug',
  notJudged:
    'the run was cut short by a signal or `LASTSCRAPE_RUN_TIMEOUT`, so [its thresholds are not judged](verdict.md#in-the-report). Not 0 with `LASTSCRAPE_EXIT_ZERO` either',
  misconfigured: 'a wrong value: the Job fails, and nothing was stopped',
  interrupted: 'a second signal that is SIGINT, or a signal during `--check`',
};

/** How many were left out needs no words. */
export const REPORT_FIELDS: Readonly<Record<Exclude<keyof Report, `${string}Omitted`>, string>> = {
  summary: 'the run in one sentence, for people',
  outcome: 'how the hold ended: see [outcomes](#outcomes)',
  verdict: 'with `LASTSCRAPE_FAIL_IF`: `passed`, `failed`, or `notJudged` (cut short). Absent while main runs',
  failed:
    'the first `entry` that fails, and the number `seen`, or why there was none, with the `nearest` names or labels',
  alsoFailed: 'the other entries that fail',
  hint: 'what to change: why no scrape, push or call of the hook came, or the last changes may be missing',
  problems: 'what is wrong in the configuration',
  scrapesWanted: 'how many scrapes to wait for; with `auto`, how many scrapers were waited for',
  scrapesSeen: 'scrapes after the end of main',
  scrapesWhileRunning: 'scrapes before the end of main',
  ranSeconds: 'from the first sight of main to its end',
  heldSeconds: 'how long the pod was held',
  mainEndedAt: 'the first poll that saw the end',
  lastPageBy:
    'with a front, who took the page that was served last: `main` by a call, the hook or a push, or `read`: lastscrape or a scrape',
  mayMissSeconds: "for how long before main's end changes may be missing from that page; 0: none is",
  mainExitCodes: 'exit codes by container, where `container:` or `tombstone:` knows them',
  scrapers:
    'with a front: address and User-Agent of each scraper, its `intervalSeconds`, and when it asked for the `last` answer that it took (null: none); the longest silent stands first',
  handOver:
    'with `LASTSCRAPE_HAND_OVER`: the `result` is `accepted`, or `failed`, and then the pod was held; `why` quotes the keeper',
  push: 'with `LASTSCRAPE_PUSH`: the `result` is `accepted`, `notNeeded` or `failed`',
  targets:
    'the `result` for each target: `stopped`, `alreadyGone` (no request can have reached it), `failed` (with a `hint`), `skipped` (dry run) or `pending` (webhook only)',
  final: "Locust's last totals; `users` while Locust was up",
  exitCode: 'see [exit codes](#exit-codes)',
  version: 'of lastscrape',
};

type Level = { readonly [Id in MessageId]: (typeof MESSAGES)[Id]['level'] };
type Troubling = { [Id in MessageId]: Level[Id] extends 'warn' | 'error' ? Id : never }[MessageId];

/** The cause of a message, and what to do, for all that users may wonder about. null: it says it itself. */
export const CAUSES: Readonly<Record<Troubling, string | null> & Partial<Record<MessageId, string | null>>> = {
  conditionBlind:
    'Once what the `problem` says is mended, such as [a missing Role](helpers.md#what-may-keep-container-from-seeing), the watch goes on.',
  metricGivenUp: 'The final totals may be missing.',
  metricUnreadable: 'Another metric prefix, or an exporter that fails: name its metric, `metric:PREFIX_up`.',
  onlyMetricUnreadable: null,
  exporterVanished: null,
  noCounter: 'A fork, or another client library: set a shorter `LASTSCRAPE_TTL`, or use [a front](front.md).',
  nobodyScraped: "See Prometheus's targets page, the monitor's labels, NetworkPolicies, mTLS.",
  frontNotScraped: 'Or a NetworkPolicy or mTLS is in the way: see [Prometheus](front.md#prometheus).',
  pageNeverRead: null,
  scraperTooSlow: 'Scrape more often, or [hold longer](front.md#times).',
  formatLeftOut: 'They would not all fit into 64 MiB: give all scrapers the same `scrape_protocols`.',
  pageUnreadable: 'Prometheus refuses it too: `why` says what is wrong.',
  nativeHistogramPushed: null,
  pushRefused: null,
  pushedDropped:
    'All that is pushed has 6 MB, with what was deleted and not yet scraped: scrape more often, or push less.',
  keptPageLost: 'Five programs in one interval, one after the other: scrape more often.',
  nothingPushed: 'In the pod, `curl HOST:PORT/-/ready` must print `OK`.',
  hookNotCalled: 'What changed after the last read is lost: see [the hook](front.md#the-python-hook).',
  familyTwice: null,
  locustUnreadable: null,
  headersUnreadable: null,
  locustError: null,
  thresholdAlwaysZero: "Such as the exporter's [percentiles](verdict.md#percentiles-of-locust).",
  thresholdOfLastSeconds: null,
  thresholdOddLimit: null,
  thresholdUnread: 'For 30 s main has shown no such sample: `nearest` has names or labels like it.',
  thresholdsNotJudged: '`by` says what cut it short. Run it again.',
  thresholdFailed: 'Or [it could not be judged](verdict.md#what-cannot-be-judged).',
  toldFileUnusable: 'It is missing, unreadable for the UID, or has a bad line.',
  handOverStays: 'They may be scraped beside the new numbers.',
  handOverFailed: '`why` quotes the keeper. Nothing is lost.',
  pushFailed: '`why` quotes the receiver: see [push](push.md#what-can-go-wrong).',
  webhookFailed: null,
  targetForced: 'It ignored the request, or TERM, for half of its time.',
  targetFailed: 'No quit endpoint, one that is switched off, or the wrong port: see the `hint`.',
  tombstoneUnwritable: "Mount kubexit's graveyard, writable for this UID (`fsGroup`).",
  hooksUnwritable: 'Mount an `emptyDir` at `LASTSCRAPE_HOOKS` here and in main.',
  messageUnwritable: null,
  waitsForTargets: null,
  meshNotLast: null,
  quitTimeoutShort: null,
  meshForgotten: null,
  otherLastscrape: null,
  handOverRefused: 'In the log of the keeper: `why` is what the pod was told.',
  keptPageCorrupt: "In the log of the keeper: that pod's last numbers are lost.",
  keptPageExpired: 'In the log of the keeper: no Prometheus has its `/targets`, or its rules drop the target.',
  bug: null,
  logFull: null,
};
