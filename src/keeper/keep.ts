// `lastscrape keep`: takes the last pages of pods that are gone, and lists each as a target until Prometheus
// has scraped it. Opens the parts, and ends them on SIGTERM.

import { formatJson, wrap } from '../base/text.ts';
import { VERSION } from '../base/version.ts';
import { type Clock, openClock, pause } from '../base/waits.ts';
import { KEEP_VARIABLES, type KeepConfig, readKeepConfig } from '../config/keep-variables.ts';
import { type LogEntry, MESSAGES } from '../decide/messages.ts';
import { EXIT } from '../decide/quit/exit-codes.ts';
import { describeListenProblem } from '../front/listen.ts';
import { type Exit, exitWith, type Host, listenForSignals } from '../run/host.ts';
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
  if ('problems' in result) return misconfigured(host, result.problems);
  return argument === '--check' ? check(host, result.config) : keep(host, result.config);
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

function misconfigured(host: Host, problems: readonly string[]): Exit {
  host.stderr(`${problems.join('\n')}\n`);
  return exitWith(EXIT.misconfigured);
}

/** Everything that a keeper has open. */
type Opened = {
  readonly pages: Pages;
  readonly review: Review | null;
  readonly servers: Parameters<typeof closeServers>[0];
};

/** Opens all parts and listens; the problems where that cannot be. */
async function open(
  host: Host,
  config: KeepConfig,
  clock: Clock,
  isCheck = false,
): Promise<Opened | { readonly problems: string[] }> {
  const log = (entry: LogEntry) => writeLine(host, entry);
  const opening = async () =>
    openPages({ store: await openStore(config.folder, isCheck), limits: config, clock, log, wallMs: host.wallMs });
  const pages = await opening().catch((error: NodeJS.ErrnoException) => {
    if (error.code === undefined) throw error;
    const why = `${error.path ?? config.folder} gives ${error.code}`;
    return `Cannot use LASTSCRAPE_KEEPER_FOLDER: ${why}; must be a folder that this user may read and write`;
  });
  if (typeof pages === 'string') return { problems: [pages] };
  if (isCheck) pages.stop();
  const review = config.auth === 'none' ? null : openReview(host.env, clock.nowMs);
  const parts = { pages, clock, log, prove: review?.prove ?? null };
  const handOver = openHandOverServer(parts);
  const serve = openServeServer(parts, handOver.refused);
  const places = [
    ['LASTSCRAPE_KEEPER_LISTEN', config.listenAt, handOver],
    ['LASTSCRAPE_KEEPER_SERVE', config.serveAt, serve],
  ] as const;
  const problems: string[] = [];
  for (const [name, { host: at, port }, server] of places) {
    const code = await server.listen(at, port);
    if (code !== null) problems.push(`Cannot use ${name}: ${describeListenProblem(at, port, code)}`);
  }
  const opened = { pages, review, servers: [handOver, serve] };
  if (problems.length === 0) return opened;
  await close(opened);
  return { problems };
}

async function close({ servers, review, pages }: Opened): Promise<void> {
  await closeServers(servers);
  await pages.settle();
  await review?.close();
}

/** Tries everything that a keeper needs, and takes nothing. */
async function check(host: Host, config: KeepConfig): Promise<Exit> {
  const opened = await open(host, config, openClock(host), true);
  if ('problems' in opened) return misconfigured(host, opened.problems);
  const { pages, bytes, corrupt_total } = opened.pages.count();
  const problem = (await opened.review?.findProblem()) ?? null;
  await close(opened);
  host.stdout(
    [
      `Takes hand-overs on port ${config.listenAt.text}, serves Prometheus on port ${config.serveAt.text}`,
      `Keeps pages in ${config.folder}: ${pages} now, ${bytes} bytes; at most ${config.maxPages}, ${config.maxBytes} bytes`,
      ...(corrupt_total === 0 ? [] : [`${corrupt_total} cannot be read back`]),
      config.auth === 'none' ? 'Believes pods who they are' : 'Has the API server check who pods are',
      '',
    ].join('\n'),
  );
  if (problem === null) return exitWith(EXIT.done);
  const advice = 'its account must be allowed to create tokenreviews; or set LASTSCRAPE_KEEPER_AUTH=none';
  return misconfigured(host, [`Cannot check tokens: ${problem}; ${advice}`]);
}

async function keep(host: Host, config: KeepConfig): Promise<Exit> {
  const signals = listenForSignals(host);
  const clock = openClock(host);
  const opened = await open(host, config, clock);
  if ('problems' in opened) return misconfigured(host, opened.problems);
  const { pages } = opened;
  const { listenAt, serveAt, folder, auth } = config;
  const fields = { version: VERSION, listen: listenAt.text, serve: serveAt.text, folder, auth };
  writeLine(host, { id: 'keeping', fields: { ...fields, pages: pages.count().pages } });
  while (!signals.first.aborted) {
    await pause(ADVANCE_EVERY_MS, [signals.first], { clock });
    pages.advance();
  }
  pages.stop();
  const graceSeconds = config.terminationGraceMs / 1000;
  writeLine(host, { id: 'keepStopping', fields: { pages: pages.count().pages, graceSeconds } });
  const untilMs = clock.nowMs() + config.terminationGraceMs;
  const isOver = () => pages.count().pages === 0 || signals.second.aborted || clock.nowMs() >= untilMs;
  for (pages.advance(); !isOver(); pages.advance()) {
    await pause(Math.min(STOPPING_EVERY_MS, untilMs - clock.nowMs()), [signals.second], { clock });
  }
  writeLine(host, { id: 'keepStopped', fields: { pages: pages.count().pages } });
  await close(opened);
  return { code: EXIT.done, isUrgent: true };
}

/** Pages and hand-overs that are well are not logged: the metrics count them. */
function writeLine({ stdout, wallMs }: Host, { id, fields }: LogEntry): void {
  const { level, text } = MESSAGES[id];
  stdout(`${formatJson({ time: new Date(wallMs()).toISOString(), level, msg: text, ...fields })}\n`);
}
