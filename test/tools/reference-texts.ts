// What docs/reference.md says of things that the code has only names for. The types ask for a row for each.

import type { MESSAGES, MessageId } from '../../src/decide/messages.ts';
import type { Outcome } from '../../src/decide/model.ts';
import type { EXIT } from '../../src/decide/quit/exit-codes.ts';
import type { Report } from '../../src/decide/report/report-fields.ts';

export const OUTCOMES: Readonly<Record<Outcome, string>> = {
  scraped: 'the wanted scrapes came',
  handedOver: 'the keeper, or the receiver of the push, took the last numbers',
  exporterGone:
    'nothing was left to scrape: the exporter refuses connections, was restarted, or never answered. Is it a native sidecar, but lastscrape is not?',
  released: 'main ended and no hold was wanted, or another lastscrape of the pod holds by itself',
  expired:
    'the TTL ran out. **Not an error**. With `scrapesSeen` 0, nothing scrapes the pod, or less often than the TTL',
  terminated: 'the grace after SIGTERM ran out, or a second signal came',
  neverStarted: 'main was never seen alive before the start timeout or SIGTERM. See its log, and run `--check`',
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
    'the run was cut short by a signal or `LASTSCRAPE_RUN_TIMEOUT`, so [its thresholds are not judged](verdict.md#in-the-report)',
  misconfigured: 'a wrong value: the Job fails, and nothing was stopped',
  interrupted: 'a second signal that is SIGINT, or a signal during `--check`',
};

/** How many were left out needs no words. */
export const REPORT_FIELDS: Readonly<Record<Exclude<keyof Report, `${string}Omitted`>, string>> = {
  summary: 'the run in one sentence, for people',
  outcome: 'how the hold ended: see [outcomes](#outcomes)',
  verdict: 'with `LASTSCRAPE_FAIL_IF`: `passed`, `failed`, or `notJudged` (cut short). Absent while main runs',
  failed: 'the first `entry` that fails, the number `seen`, or why there was none, and the `nearest` names or labels',
  alsoFailed: 'the other entries that fail',
  hint: 'what to change',
  problems: 'what is wrong in the configuration',
  scrapesWanted: 'how many scrapes to wait for; with `auto`, how many scrapers were waited for',
  scrapesSeen: 'scrapes after the end of main',
  scrapesWhileRunning: 'scrapes before the end of main',
  ranSeconds: 'from the first sight of main to its end',
  heldSeconds: 'how long the pod was held',
  mainEndedAt: 'the first poll that saw the end',
  lastPageBy: 'with a front, who took the page that was served last: `main` (call, hook or push), or a `read`',
  mayMissSeconds: "for how long before main's end changes may be missing from that page; 0: none is",
  mainExitCodes: 'exit codes by container, where `container:` or `tombstone:` knows them',
  scrapers:
    'with a front: address and User-Agent of each scraper, its `intervalSeconds`, and when it asked for the `last` answer that it took; the longest silent stands first',
  handOver:
    'the `result` of `LASTSCRAPE_HAND_OVER`: `accepted`, or `failed`, and then the pod was held; `why` quotes the keeper',
  push: 'the `result` of `LASTSCRAPE_PUSH`: `accepted`, `notNeeded` or `failed`',
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
    'Mend what the `problem` says, such as [a missing Role](helpers.md#what-may-keep-container-from-seeing).',
  metricGivenUp: null,
  metricUnreadable: null,
  onlyMetricUnreadable: null,
  exporterVanished: null,
  noCounter: 'A fork, or another client library: set a shorter `LASTSCRAPE_TTL`, or use [a front](front.md).',
  nobodyScraped: null,
  frontNotScraped: null,
  pageNeverRead: null,
  scraperTooSlow: null,
  formatLeftOut: 'Give all scrapers the same `scrape_protocols`.',
  pageUnreadable: null,
  nativeHistogramPushed: null,
  pushRefused: null,
  pushedDropped: 'Pushes have 6 MB together: scrape more often, or push less.',
  keptPageLost: null,
  nothingPushed: null,
  hookNotCalled: null,
  fileLeftOut: null,
  familyTwice: null,
  locustUnreadable: null,
  headersUnreadable: null,
  locustError: null,
  thresholdAlwaysZero: null,
  thresholdOfLastSeconds: null,
  thresholdOddLimit: null,
  thresholdUnread: null,
  thresholdsNotJudged: null,
  thresholdFailed: null,
  toldFileUnusable: null,
  handOverStays: null,
  handOverFailed: null,
  pushFailed: null,
  webhookFailed: null,
  targetForced: null,
  targetFailed: null,
  tombstoneUnwritable: "Mount kubexit's graveyard, writable for this UID (`fsGroup`).",
  hooksUnwritable: 'Mount an `emptyDir` at `LASTSCRAPE_HOOKS` here and in main.',
  messageUnwritable: null,
  waitsForTargets: null,
  meshNotLast: null,
  quitTimeoutShort: null,
  meshForgotten: null,
  otherLastscrape: null,
  handOverRefused: null,
  keptPageCorrupt: null,
  keptPageExpired: 'Of the keeper: no Prometheus has its `/targets`, or its rules drop the target.',
  bug: null,
  logFull: null,
};
