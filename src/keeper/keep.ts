// `lastscrape keep`: takes the last pages of pods that are gone, and lists each as a target until Prometheus
// has scraped it. Opens the parts, and ends them on SIGTERM.

import { wrap } from '../base/text.ts';
import { VERSION } from '../base/version.ts';
import { openClock, pause } from '../base/waits.ts';
import { KEEP_VARIABLES, type KeepConfig, readKeepConfig } from '../config/keep-variables.ts';
import type { LogEntry } from '../decide/messages.ts';
import { EXIT } from '../decide/quit/exit-codes.ts';
import { describeListenProblem } from '../front/listen.ts';
import { type Exit, exitWith, type Host, listenForSignals, type Signals } from '../run/host.ts';
import { formatLogLine } from '../run/log.ts';
import { openPages, type Pages } from './pages.ts';
import { openReview, type Review } from './review.ts';
import { closeServers, openPodServer, openServeServer, type RoutesParts } from './routes.ts';
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
  const problems = 'problems' in result ? result.problems : await runParts(host, result.config, argument === '--check');
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

/** Opens all parts and listens; tries or runs them, and closes them. @returns the problems */
async function runParts(host: Host, config: KeepConfig, isCheck: boolean): Promise<readonly string[]> {
  const signals = isCheck ? null : listenForSignals(host);
  const clock = openClock(host);
  // Pages and hand-overs that are well are not logged: the metrics count them.
  const log = (entry: LogEntry) => host.stdout(formatLogLine(entry, new Date(host.wallMs()).toISOString()));
  const pages = await openStore(config.folder, isCheck)
    .then((store) => openPages({ store, limits: config, clock, log, wallMs: host.wallMs }))
    .catch((error: NodeJS.ErrnoException) => {
      if (error.code === undefined) throw error;
      return `${error.path ?? config.folder} gives ${error.code}`;
    });
  if (typeof pages === 'string')
    return [`Cannot use LASTSCRAPE_KEEPER_FOLDER: ${pages}; must be a folder that this user may read and write`];
  if (isCheck) pages.stop();
  const review = config.auth === 'none' ? null : openReview(host.env, clock.nowMs);
  const parts = { pages, clock, log, prove: review?.prove ?? null };
  const servers = [openPodServer(parts), openServeServer(parts)] as const;
  const problems: string[] = [];
  for (const [name, { host: at, port }, { listen }] of [
    ['LISTEN', config.listenAt, servers[0]],
    ['SERVE', config.serveAt, servers[1]],
  ] as const) {
    const code = await listen(at, port);
    if (code !== null) problems.push(`Cannot use LASTSCRAPE_KEEPER_${name}: ${describeListenProblem(at, port, code)}`);
  }
  if (problems.length === 0 && signals === null) problems.push(...(await check(host, config, pages, review)));
  if (problems.length === 0 && signals !== null) await keep(config, parts, signals);
  await closeServers(servers);
  await pages.settle();
  await review?.close();
  return problems;
}

/** Tries everything that a keeper needs, and takes nothing. */
async function check(host: Host, config: KeepConfig, { count }: Pages, review: Review | null): Promise<string[]> {
  const { listenAt, serveAt, folder, maxPages, maxBytes } = config;
  const { pages, bytes, corrupt_total } = count();
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
}

async function keep(config: KeepConfig, { pages, clock, log }: RoutesParts, { first, second }: Signals): Promise<void> {
  const { listenAt, serveAt, folder, auth, terminationGraceMs } = config;
  const count = () => pages.count().pages;
  const places = { listen: listenAt.text, serve: serveAt.text, folder };
  log({ id: 'keeping', fields: { version: VERSION, ...places, auth, pages: count() } });
  for (; !first.aborted; pages.advance()) await pause(ADVANCE_EVERY_MS, [first], { clock });
  pages.stop();
  log({ id: 'keepStopping', fields: { pages: count(), graceSeconds: terminationGraceMs / 1000 } });
  const untilMs = clock.nowMs() + terminationGraceMs;
  const isOver = () => count() === 0 || second.aborted || clock.nowMs() >= untilMs;
  for (pages.advance(); !isOver(); pages.advance()) {
    await pause(Math.min(STOPPING_EVERY_MS, untilMs - clock.nowMs()), [second], { clock });
  }
  log({ id: 'keepStopped', fields: { pages: count() } });
}
