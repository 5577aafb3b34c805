// Plays a story of the front: the real front between a source and its scrapers, in virtual time. What the lines
// mean: fixtures/transcripts/front/README.md.

import type { Clock } from '../../src/base/waits.ts';
import type { LogEntry } from '../../src/decide/messages.ts';
import type { FrontObservation } from '../../src/decide/model.ts';
import { TEXT_ACCEPT } from '../../src/decide/serve/budget.ts';
import { RICH_ACCEPT } from '../../src/decide/serve/pages.ts';
import type { ObservationNeed } from '../../src/decide/serve/reads.ts';
import { addRequest, addScrape, NO_SCRAPERS, type ServedScrape } from '../../src/decide/serve/scrapers.ts';
import type { MainView } from '../../src/decide/serve/serve.ts';
import { type Front, openFront } from '../../src/front/front.ts';
import { ACCEPTS } from './simulation/page.ts';
import { listenOn, type Port, sendRequest } from './simulation/scraper.ts';
import { openAlone } from './simulation/simulation.ts';
import { World } from './simulation/world.ts';
import { describePage, describePush } from './story-page.ts';
import { openStorySource } from './story-source.ts';

const ACCEPT_NAMES: Readonly<Record<string, string>> = { text: TEXT_ACCEPT, rich: RICH_ACCEPT, ...ACCEPTS };

/** The stories with what came written again. */
export async function playFront(text: string): Promise<string> {
  const played: string[] = [];
  for (const story of text.split(/^(?=## )/m)) {
    const world = new World(false);
    played.push(await world.run(() => playStory(world, story)));
  }
  return played.join('');
}

async function playStory(world: World, story: string): Promise<string> {
  const out: string[] = [];
  const settings = new Map<string, string>();
  let above: string[] = [];
  let player: Awaited<ReturnType<typeof openPlayer>> | null = null;
  for (const line of story.split('\n')) {
    const [, atSeconds, act = ''] = /^> ([\d.]+)s(?: (.*))?$/.exec(line) ?? [];
    if (atSeconds !== undefined) {
      player ??= await openPlayer(world, settings, out);
      await player.play(Number(atSeconds) * 1_000, [...above, line], act);
      above = [];
      continue;
    }
    // What is indented came last time.
    if (line.startsWith(' ')) continue;
    above.push(line);
    const [, name, value = ''] = /^set (\w+)(?:=(.*))?$/.exec(line) ?? [];
    if (name !== undefined) settings.set(name, value);
    else if (!/^(#|$)/.test(line)) fail(line);
  }
  return [...out, ...above].join('\n');
}

async function openPlayer(world: World, settings: ReadonlyMap<string, string>, out: string[]) {
  const port: Port = { serving: null };
  const clients = new Map<string, { readonly hangUp: () => void }>();
  const names = readList(settings.get('metric'));
  let actAtMs = 0;
  let view: MainView = { main: 'living', wasAlive: true, endedAtMs: null };
  let facts = NO_SCRAPERS;
  let clockSetSeconds = 0;
  let connectionsCount = 0;
  const tell = (text: string, how = 'at') => {
    out.push(`    ${world.nowMs() === actAtMs ? '' : `${how} ${world.nowMs() / 1_000}s: `}${text}`);
  };
  const source = openStorySource(world, ACCEPT_NAMES, tell);
  const front = await open();
  let seen = describe(front.observe());
  const counted = new Map<number, ServedScrape>();
  const heard = new Set<number>();

  async function open(): Promise<Reader> {
    const toUnixSeconds = (atMs: number) => clockSetSeconds + atMs / 1_000;
    const parts = {
      url: new URL('http://localhost:8000/metrics'),
      metricNames: names,
      selectors: readList(settings.get('judge')).map((name) => ({ name, labels: [] })),
      pollMs: Number(settings.get('poll')?.replace('s', '') ?? 1) * 1_000,
      // Timers to the millisecond, unlike those of Node.
      clock: { nowMs: world.nowMs, after: (ms, callback) => world.outside(world.nowMs() + ms, callback) } as Clock,
      log: ({ id, fields }: LogEntry) => tell(`log ${id} ${JSON.stringify(fields)}`),
    };
    if (settings.get('front') === 'none') {
      const findMoment = () => ({ atMs: world.nowMs(), seconds: toUnixSeconds(world.nowMs()) });
      const { observe, observeKept, takeView, newest, close } = openAlone({ findMoment, ...parts }, source.exchange);
      takeView(view);
      const noFront = { takeEvent: () => null, onEvent: () => () => {}, retire: close };
      return { ...noFront, readExporter: observe, observe: observeKept, tell: takeView, newest };
    }
    const opened = await openFront(
      {
        at: { host: null, port: 9_469 },
        isPushed: settings.has('push'),
        toUnixSeconds,
        openExchange: () => source.exchange,
        ...parts,
      },
      listenOn(port),
    );
    if (opened.kind === 'failed') throw new Error(opened.problem);
    opened.front.tell(view);
    return opened.front;
  }

  /** As the loop does. */
  function takeEvents(): void {
    for (let event = front.takeEvent(); event !== null; event = front.takeEvent()) {
      if (event.kind === 'requested') {
        heard.add(event.request.connection);
        facts = addRequest(facts, event.request).front;
      } else if (event.kind === 'scraped') {
        counted.set(event.scrape.connection, event.scrape);
        tellChanges(event.front);
        facts = addScrape(facts, event.scrape);
      }
    }
    front.tell(view, facts);
  }

  function request(who: string, method: string, path: string, headers: Record<string, string>): void {
    if (port.serving === null) {
      tell(`${who}refused`);
      return;
    }
    const connection = ++connectionsCount;
    const countedCount = counted.size;
    const isScraper = path === '/metrics' && 'x-prometheus-scrape-timeout-seconds' in headers;
    const end = (what: () => string) => {
      // An answer is reported a moment after it was taken.
      world.outside(world.nowMs(), () => {
        takeEvents();
        tell(`${who}${what()}${isScraper && !heard.has(connection) ? ', unheard' : ''}`);
      });
    };
    const socket = sendRequest(world, port.serving, { method, path, headers }, (status, type, bytes) => {
      socket.hangUp(world, false);
      if (status !== 200 || path !== '/metrics')
        return end(() => `${status}${addCounted()} ${bytes.toString().trimEnd()}`);
      const atMs = world.nowMs();
      end(() => {
        const scrape = counted.get(connection);
        const most = counted.size - Number(scrape !== undefined);
        return describePage(type, bytes, { atMs, countedCounts: [countedCount, most], scrape });
      });
    });
    const addCounted = () => (counted.has(connection) ? ' counted' : '');
    socket.onReset = () => end(() => `the connection is reset${addCounted()}`);
    clients.set(who.replace(': ', ''), { hangUp: () => socket.hangUp(world, true) });
  }

  function scrape(words: string): void {
    const [, name, accept, within = '10', agent] =
      /^(?: ([A-Z]))?(?: as (\S+))?(?: within ([\d.]+)s)?(?: by (.+))?$/.exec(words) ?? fail(words);
    request(name === undefined ? '' : `${name}: `, 'GET', '/metrics', {
      'user-agent': agent ?? 'Prometheus/3.0',
      ...(agent === undefined && { 'x-prometheus-scrape-timeout-seconds': within }),
      ...(accept !== undefined && { accept: ACCEPT_NAMES[accept] ?? accept }),
    });
  }

  function takeMain(words: string): void {
    const [, main = '', since] = /^ (waiting|living|ending|ended)(?: since ([\d.]+)s)?$/.exec(words) ?? fail(words);
    const endedAtMs = main === 'ended' ? Number(since ?? world.nowMs() / 1_000) * 1_000 : null;
    const isWaiting = main === 'waiting';
    view = { main: isWaiting ? 'living' : (main as MainView['main']), wasAlive: !isWaiting, endedAtMs };
    front.tell(view, facts);
  }

  async function look(how: string): Promise<void> {
    const interrupted = new AbortController();
    if (how === ' without waiting') interrupted.abort('interrupted');
    const need = how === ' last' || how === ' end' ? how.slice(1) : 'own';
    const reading = front.readExporter(interrupted.signal, need as ObservationNeed);
    if (how === ' interrupted') interrupted.abort('interrupted');
    const { observation, metric } = await reading;
    tellChanges();
    const metrics = names.map((name) => {
      const reading = metric(name);
      return `, ${name} ${reading.kind === 'value' ? reading.value : reading.kind}`;
    });
    tell(`saw ${observation.kind}${metrics.join('')}`);
  }

  function act(text: string): unknown {
    const [, what = '', rest = ''] = /^(\w+)(.*)$/.exec(text) ?? [];
    switch (what) {
      case '':
        return;
      case 'source':
        return source.take(rest.slice(1));
      case 'main':
        return takeMain(rest);
      case 'scrape':
        return scrape(rest);
      case 'post':
        return request(rest === '' ? '' : `${rest.slice(1)}: `, 'POST', '/-/snapshot', {});
      case 'get':
        return request('', 'GET', rest.slice(1), { 'x-prometheus-scrape-timeout-seconds': '10' });
      case 'look':
        return look(rest);
      case 'hold':
        view = { ...view, holdOverAtMs: world.nowMs() };
        return front.tell(view, facts);
      case 'retire':
        return front.retire().then(() => tell('retired'));
      case 'push':
        return front.newest().then(async (snapshot) => tell(`would push ${await describePush(snapshot)}`));
      case 'clock':
        clockSetSeconds = Number(rest);
        return;
      default:
        if (rest !== ' hangs up') fail(text);
        return clients.get(what)?.hangUp();
    }
  }

  function tellChanges(now = front.observe()): void {
    const before = seen;
    seen = describe(now);
    const changed = seen.filter((each) => !before.includes(each)).join('\n');
    const isOnePage = /^kept: (.*)\ncalled: \1$/m;
    for (const each of changed.replace(isOnePage, 'kept as called: $1').split('\n')) if (each !== '') tell(each, 'by');
  }

  // As the loop does, a turn later.
  front.onEvent(() => queueMicrotask(takeEvents));
  const until = (atMs: number) => new Promise<void>((resolve) => world.outside(atMs, resolve));

  return {
    async play(atMs: number, lines: readonly string[], what: string): Promise<void> {
      await until(atMs);
      takeEvents();
      tellChanges();
      out.push(...lines);
      actAtMs = atMs;
      act(what);
      // What needs no time may still need timers of 0 ms.
      for (let turn = 0; turn < 3; turn++) await until(atMs);
      takeEvents();
      tellChanges();
    },
  };
}

/** What reads the source: a front, or without one what is kept for a push. */
type Reader = Pick<Front, 'readExporter' | 'observe' | 'tell' | 'newest' | 'takeEvent' | 'onEvent' | 'retire'>;

function describe(front: FrontObservation): readonly string[] {
  const { answeredAtMs, thresholds = [], calledAtMs, unreadWhy, hasOwedPage, lostCallsCount } = front;
  const judged = thresholds.map((each) => (each.kind === 'value' ? each.value : each.kind));
  return [
    ...(answeredAtMs === null ? [] : [`kept: the page of ${answeredAtMs / 1_000}s`]),
    `called: ${calledAtMs === undefined ? 'no page' : `the page of ${calledAtMs / 1_000}s`}`,
    `judged: ${judged.join(', ')}`,
    `failed: ${unreadWhy ?? 'nothing'}`,
    `owed: ${hasOwedPage ? 'a page' : 'nothing'}`,
    `lost: ${lostCallsCount ?? 0} pages`,
  ];
}

function readList(text = ''): readonly string[] {
  return text.split(',').filter(Boolean);
}

function fail(text: string): never {
  throw new Error(`cannot read "${text}"`);
}
