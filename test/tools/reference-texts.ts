// What docs/reference.md says of things that the code has only names for. The types ask for a row for each.

import type { EXIT } from '../../src/decide/exit-codes.ts';
import type { MESSAGES, MessageId } from '../../src/decide/messages.ts';
import type { Outcome } from '../../src/decide/model.ts';
import type { Report } from '../../src/decide/report-fields.ts';

export const OUTCOMES: Readonly<Record<Outcome, string>> = {
  scraped: 'the wanted scrapes came',
  exporterGone: 'nothing was left to scrape: the exporter refuses connections, was restarted, or never answered',
  released: 'main ended and no hold was wanted, or another lastscrape of the pod holds by itself',
  expired: 'the TTL ran out. **Not an error**: the report says how many scrapes came',
  terminated: 'the grace after SIGTERM ran out, or a second signal came',
  neverStarted:
    'main was never seen alive before the start timeout or SIGTERM, or its tombstone says that it never ran',
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
  misconfigured: 'a wrong value: the Job fails, and nothing was stopped',
  interrupted: 'a second signal that is SIGINT, or a signal during `--check`',
};

/** How many were left out needs no words. */
export const REPORT_FIELDS: Readonly<Record<Exclude<keyof Report, `${string}Omitted`>, string>> = {
  summary: 'the run in one sentence, for people',
  outcome: 'how the hold ended: see [outcomes](#outcomes)',
  verdict: 'with `LASTSCRAPE_FAIL_IF`: `passed` or `failed`. Absent while main runs and after a second signal',
  failed: 'the first `entry` that fails, and the number `seen`, or why there was none',
  alsoFailed: 'the other entries that fail',
  hint: 'why no scrape may have come',
  problems: 'what is wrong in the configuration',
  scrapesWanted: 'how many scrapes to wait for; with `auto`, how many scrapers were waited for',
  scrapesSeen: 'scrapes after the end of main',
  scrapesWhileRunning: 'scrapes before the end of main',
  ranSeconds: 'from the first sight of main to its end',
  heldSeconds: 'how long the pod was held',
  mainEndedAt: 'the first poll that saw the end',
  mainExitCodes: 'exit codes by container, where `container:` or `tombstone:` knows them',
  scrapers:
    'with a front: address and User-Agent of each scraper, its `intervalSeconds`, and when it asked for the `last` answer that it took (null: none); the longest silent stands first',
  push: 'with `LASTSCRAPE_PUSH`: the `result` is `accepted`, `notNeeded` or `failed`',
  targets:
    'the `result` for each target: `stopped`, `alreadyGone` (no request can have reached it), `failed` (with a `hint`), `skipped` (dry run) or `pending` (webhook only)',
  final: "Locust's last totals; `users` while Locust was up",
  exitCode: 'see [exit codes](#exit-codes)',
  version: 'of lastscrape',
};

type Level = { readonly [Id in MessageId]: (typeof MESSAGES)[Id]['level'] };
type Troubling = { [Id in MessageId]: Level[Id] extends 'warn' | 'error' ? Id : never }[MessageId];

/**
 * The cause of a message, and what to do: every warning and error, and what else a user may wonder about. null:
 * the message itself says it.
 */
export const CAUSES: Readonly<Record<Troubling, string | null> & Partial<Record<MessageId, string | null>>> = {
  mainRanTooLong: '`LASTSCRAPE_RUN_TIMEOUT`. Raise it, or find out why main hangs.',
  conditionBlind:
    'The `problem` says why, such as a missing Role, or a file that this UID may not read ([all of them](helpers.md#what-may-keep-container-from-seeing)). Mend it; the watch goes on by itself.',
  metricGivenUp:
    'The metric stayed unreadable for 60 s, or until the TTL was over, while all other conditions were done. The final totals may be missing.',
  metricUnreadable:
    'Another metric prefix, or an exporter that fails. Name the metric: `metric:PREFIX_up` in `LASTSCRAPE_DONE_WHEN`.',
  onlyMetricUnreadable: 'Add a `port:` or `file:`, or set `LASTSCRAPE_RUN_TIMEOUT`.',
  exporterVanished:
    'Its container ended, or something called `/quitquitquit`, which asks for no password. Restrict the port with a NetworkPolicy.',
  noCounter: 'A fork, or another client library. Set a shorter `LASTSCRAPE_TTL`, or use [a front](front.md).',
  nobodyScraped:
    "Prometheus does not know the pod, or cannot reach it. Look at its targets page, the monitor's labels, NetworkPolicies, mTLS.",
  scraperFound: 'With a front: it scrapes, and will be waited for.',
  scraperGivenUp: 'It was silent for 2.5 of its intervals, and does not hold the pod any more.',
  scraperTooSlow:
    'Its `intervalSeconds` is longer than the longest hold, `holdSeconds`. Scrape more often, or [hold longer](front.md#times).',
  formatLeftOut:
    'Together the pages would not fit into 64 MiB. A scraper with this `accept` gets the page of another format after the end. Have all scrapers ask for the same formats (`scrape_protocols`).',
  familyTwice: 'Two `*.prom` files of the folder have this `family`. Give each program its own names.',
  locustUnreadable:
    'Until the page has shown statistics, only port 5557 proves Locust alive. Another port, a proxy or a login answers.',
  headersUnreadable: '`LASTSCRAPE_METRICS_HEADERS_FILE` is missing, unreadable, or has a line that is no header.',
  locustError: 'Status 404: `--web-base-path` is missing in the URL. Status 500: see the log of Locust.',
  thresholdAlwaysZero:
    "Nothing sets it, such as the exporter's [percentiles](verdict.md#percentiles-of-locust), or the run did nothing.",
  thresholdOfLastSeconds: 'Take [another](verdict.md#percentiles-of-locust).',
  thresholdFailed: 'The run failed by this `entry`, or [it could not be judged](verdict.md#what-cannot-be-judged).',
  toldFileUnusable:
    'A headers file or `LASTSCRAPE_CA_FILE` is missing, unreadable for the UID, or has a bad line. Mend it: it is read again for each try.',
  pushFailed:
    '`why` has the words of the receiver. See [push](push.md#what-can-go-wrong). Never changes the exit code.',
  webhookFailed: 'As above.',
  targetSignalled: 'See [what a signal leaves behind](helpers.md#signals).',
  targetForced: 'The target did not take the request, or TERM, in half of its time. See its log.',
  targetFailed:
    'No quit endpoint, one that is switched off, or the wrong port: the `hint` says which. `LASTSCRAPE_QUIT=none` where the kubelet ends it.',
  tombstoneUnwritable: "Mount kubexit's graveyard, writable for this UID (`fsGroup`).",
  messageUnwritable: '`LASTSCRAPE_TERMINATION_LOG` is not a file that can be written. Nothing else depends on it.',
  waitsForTargets: null,
  meshNotLast: null,
  quitTimeoutShort: 'The target needs `needsSeconds`. Raise the timeout, or shorten the drain time of the target.',
  meshForgotten: 'Put it last in `LASTSCRAPE_QUIT`. Not needed for a native sidecar.',
  otherLastscrape: null,
  bug: null,
  logFull: 'Main restarts again and again. Look at main.',
};
