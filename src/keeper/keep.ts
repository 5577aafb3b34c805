// `lastscrape keep`: takes the last pages of pods that are gone, and lists each as a target until Prometheus
// has scraped it. Opens the parts, and ends them on SIGTERM.

import { wrap } from '../base/text.ts';
import { VERSION } from '../base/version.ts';
import { openClock, pause } from '../base/waits.ts';
import { KEEP_VARIABLES, type KeepConfig, readKeepConfig } from '../config/keep-variables.ts';
import type { LogEntry } from '../decide/messages.ts';
import { EXIT } from '../decide/quit/exit-codes.ts';
import { describeListenProblem } from '../front/listen.ts';
import { type Exit, exitWith, type Host, listenForSignals } from '../run/host.ts';
import { formatLogLine } from '../run/log.ts';
import { openPages, type Pages } from './pages.ts';
import { openReview, type Review } from './review.ts';
import { closeServers, openHandOverServer, openServeServer } from './routes.ts';
import { openStore } from './store.ts';

/** How often is looked which pages are no longer listed or answered. */
const ADVANCE_EVERY_MS = 5_000;
/** The same while it stops: it ends once nothing is left. */
const STOPPING_EVERY_MS = 500;

/** Runs `lastscrape keep` with these arguments after `keep`. Rejects on a bug only. */
export async function runKeep(host: Host, argument: string | undefined): Promise<Exit> {
  if (argument === '--help') {
    host.stdout(formatHelp());
    return exitWith(EXIT.done);
  }
  const result = readKeepConfig(host.env);
  const work = argument === '--check' ? check : keep;
  const problems = 'problems' in result ? result.problems : await work(host, result.config);
  if (problems.length === 0) return { code: EXIT.done, isUrgent: true };
  host.stderr(`${problems.join('\n')}\n`);
  return exitWith(EXIT.misconfigured);
}

function formatHelp(): string {
  const variables = KEEP_VARIABLES.flatMap(({ name, default: value, meaning }) => [
    `  ${name}=${value}`,
    ...wrap(meaning.replaceAll('`', ''), ' '.repeat(6), ' '.repeat(8)),
  ]);
  return [
    'lastscrape keep: takes the last numbers of pods that hand over, and lists each as a target of Prometheus',
    '(http_sd_configs) until that has scraped it, so that no pod has to wait for its last scrape',
    '',
    'Usage: lastscrape keep [--check | --help]',
    '  (no argument)  serve until SIGTERM',
    '  --check        read the environment, try folder, ports and API server, exit',
    '  --help         print this, exit',
    '',
    'Variables, with their defaults; an empty value means "not set":',
    ...variables,
    '',
  ].join('\n');
}

type Opened = { readonly pages: Pages; readonly review: Review | null; readonly log: (entry: LogEntry) => void };

/** Opens all parts, listens, and closes them after `work`. @returns the problems of either */
async function runOpened(
  host: Host,
  config: KeepConfig,
  isCheck: boolean,
  work: (opened: Opened) => Promise<readonly string[]>,
): Promise<readonly string[]> {
  const clock = openClock(host);
  // Pages and hand-overs that are well are not logged: the metrics count them.
  const log = (entry: LogEntry) => host.stdout(formatLogLine(entry, new Date(host.wallMs()).toISOString()));
  const opening = async () =>
    openPages({ store: await openStore(config.folder, isCheck), limits: config, clock, log, wallMs: host.wallMs });
  const pages = await opening().catch((error: NodeJS.ErrnoException) => {
    if (error.code === undefined) throw error;
    return `${error.path ?? config.folder} gives ${error.code}`;
  });
  if (typeof pages === 'string')
    return [`Cannot use LASTSCRAPE_KEEPER_FOLDER: ${pages}; must be a folder that this user may read and write`];
  if (isCheck) pages.stop();
  const review = config.auth === 'none' ? null : openReview(host.env, clock.nowMs);
  const parts = { pages, clock, log, prove: review?.prove ?? null };
  const handOver = openHandOverServer(parts);
  const serve = openServeServer(parts, handOver.refused);
  const problems: string[] = [];
  for (const [name, { host: at, port }, server] of [
    ['LISTEN', config.listenAt, handOver],
    ['SERVE', config.serveAt, serve],
  ] as const) {
    const code = await server.listen(at, port);
    if (code !== null) problems.push(`Cannot use LASTSCRAPE_KEEPER_${name}: ${describeListenProblem(at, port, code)}`);
  }
  const found = problems.length > 0 ? problems : await work({ pages, review, log });
  await closeServers([handOver, serve]);
  await pages.settle();
  await review?.close();
  return found;
}

/** Tries everything that a keeper needs, and takes nothing. */
function check(host: Host, config: KeepConfig): Promise<readonly string[]> {
  return runOpened(host, config, true, async ({ pages: { count }, review }) => {
    const { pages, bytes, corrupt_total } = count();
    const { listenAt, serveAt, folder, maxPages, maxBytes } = config;
    const lines = [
      `Takes hand-overs on port ${listenAt.text}, serves Prometheus on port ${serveAt.text}`,
      `Keeps pages in ${folder}: ${pages} now, ${bytes} bytes; at most ${maxPages}, ${maxBytes} bytes`,
      ...(corrupt_total === 0 ? [] : [`${corrupt_total} cannot be read back`]),
      review === null ? 'Believes pods who they are' : 'Has the API server check who pods are',
    ];
    host.stdout(`${lines.join('\n')}\n`);
    const problem = (await review?.findProblem()) ?? null;
    const advice = 'its account must be allowed to create tokenreviews; or set LASTSCRAPE_KEEPER_AUTH=none';
    return problem === null ? [] : [`Cannot check tokens: ${problem}; ${advice}`];
  });
}

function keep(host: Host, config: KeepConfig): Promise<readonly string[]> {
  const signals = listenForSignals(host);
  return runOpened(host, config, false, async ({ pages, log }) => {
    const clock = openClock(host);
    const { listenAt, serveAt, folder, auth, terminationGraceMs } = config;
    const count = () => pages.count().pages;
    const places = { listen: listenAt.text, serve: serveAt.text, folder };
    log({ id: 'keeping', fields: { version: VERSION, ...places, auth, pages: count() } });
    while (!signals.first.aborted) {
      await pause(ADVANCE_EVERY_MS, [signals.first], { clock });
      pages.advance();
    }
    pages.stop();
    log({ id: 'keepStopping', fields: { pages: count(), graceSeconds: terminationGraceMs / 1000 } });
    const untilMs = clock.nowMs() + terminationGraceMs;
    const isOver = () => count() === 0 || signals.second.aborted || clock.nowMs() >= untilMs;
    for (pages.advance(); !isOver(); pages.advance()) {
      await pause(Math.min(STOPPING_EVERY_MS, untilMs - clock.nowMs()), [signals.second], { clock });
    }
    log({ id: 'keepStopped', fields: { pages: count() } });
    return [];
  });
}
