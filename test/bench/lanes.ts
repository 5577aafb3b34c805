// Draws what `npm run demo` printed: one load test in two pods on one axis of time.

import { bar, type Drawing, drawCard, LEFT, line, RIGHT, text } from './svg.ts';

/** What the figure needs of the demo's output, in seconds of its clock. */
type Demo = {
  readonly locustEndedAt: number;
  readonly requests: number;
  readonly scrapeInterval: number;
  /** From the end of the run to Locust's own decision to end. */
  readonly autoquit: number;
  readonly firstScrape: { readonly at: number; readonly requests: number };
  readonly without: { readonly exporterEndedAt: number; readonly missedScrapeAt: number };
  readonly held: {
    readonly scrapeAt: number;
    readonly requests: number;
    readonly quitAt: number;
    readonly endedAt: number;
  };
};

const LANE_HEIGHT = 26;
const AXIS_LEFT = LEFT + 110;
/** Before Locust's end and after it, in seconds. */
const FROM = -5;
const TO = 9;
/** Room for the words in front of the arrow. */
const HELD_WIDTH = 126;

/** Draws the output of `npm run demo`, as a pipe gets it. @throws when a moment that it needs is not in it */
export function drawDemo(printed: string): Drawing {
  const demo = readDemo(printed);
  const { locustEndedAt, requests, firstScrape, without, held } = demo;
  const after = (at: number) => at - locustEndedAt;
  const seconds = (at: number) => `${after(at).toFixed(1)} s`;
  const lost = requests - firstScrape.requests;
  const data =
    `The end of one load test with ${requests} requests, seconds counted from Locust's end; Prometheus scrapes every ${demo.scrapeInterval} s. ` +
    `Without lastscrape: Prometheus scraped ${firstScrape.requests} requests ${-round(after(firstScrape.at))} s before the end, the exporter ended ${seconds(without.exporterEndedAt)} after it, ` +
    `the scrape at ${seconds(without.missedScrapeAt)} finds nothing, and the last ${lost} requests are lost. ` +
    `With lastscrape: the pod is held, Prometheus scrapes ${held.requests} of ${requests} requests at ${seconds(held.scrapeAt)}, then lastscrape quits the exporter at ${seconds(held.quitAt)}, and the pod completes.`;
  return drawCard({
    title: 'The end of one load test: main ends, Prometheus scrapes, the exporter is quit',
    note: `What npm run demo printed: lastscrape is the real one, with its defaults; Locust, exporter and Prometheus are stand-ins, with an autoquit of ${demo.autoquit} s and a scrape every ${demo.scrapeInterval} s. Without lastscrape the exporter is a native sidecar here, which the kubelet ends; as a regular container it never ends, and neither does the pod.`,
    data,
    alt: `A load test of ${requests} requests. Without lastscrape Prometheus misses the last ${lost}; with lastscrape it misses ${requests - held.requests || 'none'}.`,
    draw(top) {
      const parts: string[] = [];
      let y = top + 24;
      parts.push(text(LEFT, y, 'Without lastscrape', 'own'));
      parts.push(
        text(
          RIGHT,
          y,
          `Prometheus has ${firstScrape.requests} of ${requests} requests, and not that the test ended`,
          'bad',
          'end',
        ),
      );
      y = drawLanes(parts, y + 10, {
        bars: [
          { name: 'Locust (main)', until: 0 },
          { name: 'exporter', until: after(without.exporterEndedAt) },
        ],
        good: [{ at: after(firstScrape.at), label: `${firstScrape.requests} requests` }],
        bad: { at: after(without.missedScrapeAt), label: 'nobody answers' },
      });
      y += 30;
      parts.push(text(LEFT, y, 'With lastscrape', 'own'));
      parts.push(
        text(RIGHT, y, `Prometheus has ${held.requests} of ${requests} requests, and locust_up 0`, 'own', 'end'),
      );
      y = drawLanes(parts, y + 10, {
        bars: [
          { name: 'Locust (main)', until: 0 },
          { name: 'exporter', until: after(held.quitAt) },
          { name: 'lastscrape', until: after(held.endedAt), isOwn: true },
        ],
        good: [
          { at: after(firstScrape.at), label: `${firstScrape.requests} requests` },
          { at: after(held.scrapeAt), label: `${held.requests} requests`, isOwn: true },
        ],
        held: [0, after(held.quitAt)],
      });
      return { parts, bottom: drawAxis(parts, y + 4) };
    },
  });
}

type Lanes = {
  readonly bars: readonly { readonly name: string; readonly until: number; readonly isOwn?: boolean }[];
  readonly good: readonly { readonly at: number; readonly label: string; readonly isOwn?: boolean }[];
  readonly bad?: { readonly at: number; readonly label: string };
  readonly held?: readonly [number, number];
};

function drawLanes(parts: string[], top: number, { bars, good, bad, held }: Lanes): number {
  const scrapeY = top + bars.length * LANE_HEIGHT + 12;
  const scrapes = [...good, ...(bad === undefined ? [] : [bad])];
  parts.push(line(AXIS_LEFT, top, AXIS_LEFT, scrapeY + 14));
  for (const { at } of scrapes) parts.push(line(xAt(at), top, xAt(at), scrapeY, 'scrape'));
  for (const [index, { name, until, isOwn }] of bars.entries()) {
    const y = top + 2 + index * LANE_HEIGHT;
    parts.push(text(LEFT, y + 12, name, isOwn ? 'own' : ''));
    parts.push(bar(AXIS_LEFT, y, xAt(until) - AXIS_LEFT, isOwn ? 'own' : ''));
  }
  if (held !== undefined) {
    const [from, to] = held;
    const y = top + 2;
    const middle = y + 8;
    parts.push(text(xAt(from) + 8, y + 12, 'the pod is held', 'own'));
    parts.push(line(xAt(from) + HELD_WIDTH, middle, xAt(to) - 2, middle, 'own'));
    parts.push(`<path class="own" d="M${xAt(to).toFixed(1)} ${middle}l-8 -4v8z"/>`);
    // From the lane of lastscrape up to that of the exporter.
    const quitX = xAt(to) + 5;
    parts.push(line(quitX, y + 2 * LANE_HEIGHT + 8, quitX, y + LANE_HEIGHT + 10, 'own'));
    parts.push(`<path class="own" d="M${quitX.toFixed(1)} ${y + LANE_HEIGHT + 3}l-4 8h8z"/>`);
    parts.push(text(quitX + 10, y + LANE_HEIGHT + 24, 'quit', 'own'));
  }
  parts.push(text(LEFT, scrapeY + 4, 'Prometheus'));
  for (const { at, label, isOwn } of good) {
    parts.push(`<circle cx="${xAt(at).toFixed(1)}" cy="${scrapeY}" r="5"${isOwn ? ' class="own"' : ''}/>`);
    parts.push(text(xAt(at) + 10, scrapeY + 4, label, isOwn ? 'own' : ''));
  }
  if (bad !== undefined) {
    const x = xAt(bad.at).toFixed(1);
    parts.push(`<path class="bad" d="M${x} ${scrapeY}m-5 -5l10 10m0 -10l-10 10"/>`);
    parts.push(text(xAt(bad.at) + 10, scrapeY + 4, bad.label, 'bad'));
  }
  return scrapeY + 14;
}

function drawAxis(parts: string[], y: number): number {
  parts.push(line(AXIS_LEFT, y, RIGHT, y));
  for (let second = Math.ceil(FROM / 2) * 2; second <= TO; second += 2) {
    parts.push(line(xAt(second), y, xAt(second), y + 4));
    const label = second === 0 ? 'Locust ends' : `${second > 0 ? '+' : '−'}${Math.abs(second)} s`;
    parts.push(text(xAt(second), y + 18, label, 'head', 'middle'));
  }
  return y + 24;
}

function xAt(second: number): number {
  return AXIS_LEFT + ((second - FROM) / (TO - FROM)) * (RIGHT - AXIS_LEFT);
}

function readDemo(printed: string): Demo {
  const find = (what: string, pattern: RegExp): readonly number[] => {
    const match = pattern.exec(printed);
    if (match === null) throw new Error(`Cannot draw the demo: its output does not say ${what}`);
    return match.slice(1).map(Number);
  };
  const line = (pod: string, who: string, message: string) =>
    new RegExp(`^ *([\\d.]+) s +${pod.replace('+', '\\+')} +${who} +${message}`, 'm');
  const [scrapeInterval = NaN] = find("Prometheus's interval", /Prometheus \(every ([\d.]+) s\)/);
  const [locustEndedAt = NaN, requests = NaN] = find(
    "Locust's end",
    line('A+B', 'Locust', 'has ended, .* (\\d+) requests'),
  );
  const [stoppedAt = NaN] = find('the end of the run', line('A+B', 'Locust', 'the test is over'));
  const [autoquitAt = NaN] = find('autoquit', line('A+B', 'Locust', 'autoquit'));
  const [firstAt = NaN, firstRequests = NaN] = find(
    'a scrape',
    line('A', 'Prometheus', 'scrape 1: stores (\\d+) requests'),
  );
  const [exporterEndedAt = NaN] = find("the exporter's end", line('A', 'exporter', 'ended by the kubelet'));
  const [missedScrapeAt = NaN] = find('the scrape that is lost', line('A', 'Prometheus', 'scrape 2: no target'));
  const [scrapeAt = NaN, heldRequests = NaN] = find(
    'the last scrape',
    line('B', 'Prometheus', 'scrape 2: stores (\\d+) requests, locust_up 0'),
  );
  const [quitAt = NaN] = find('the quit', line('B', 'exporter', 'got POST /quitquitquit'));
  const [endedAt = NaN] = find("lastscrape's end", line('B', 'lastscrape', 'exits with 0'));
  return {
    locustEndedAt,
    requests,
    scrapeInterval,
    autoquit: round(autoquitAt - stoppedAt),
    firstScrape: { at: firstAt, requests: firstRequests },
    without: { exporterEndedAt, missedScrapeAt },
    held: { scrapeAt, requests: heldRequests, quitAt, endedAt },
  };
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}
