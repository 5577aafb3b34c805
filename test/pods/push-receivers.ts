// The real receivers of pushes, and the source that a real Prometheus scrapes next to them, to compare with.
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import type { Label } from '../../src/exposition/lexer.ts';
import { readFamilies } from '../../src/snapshot/body.ts';
import type { PushKind } from '../../src/tell/receivers/receiver.ts';
import { readReferenceLine } from '../exposition/reference.ts';
import { type Child, startChild } from '../support/child.ts';
import { findFreePort, listen } from '../support/listen.ts';
import { baseEnv } from '../support/network.ts';
import { IN_MEMORY } from '../support/programs.ts';
import { until } from '../support/until.ts';
import { type FrontProgram, frontProgram } from './front-programs.ts';

/** A body by the name that becomes its `job`. */
export type Exposition = { readonly job: string; readonly body: Buffer };

/** The value of each series by its name and labels, without a target's own labels. */
export type SeriesValues = ReadonlyMap<string, number>;

/** 60 s: each is ready within 1 s on an idle machine. */
const START_MS = 60_000;

export type Source = AsyncDisposable & { readonly port: number; readonly jobs: readonly string[] };

/** Serves expositions, each at a path that is its job. */
export async function serveExpositions(expositions: readonly Exposition[]): Promise<Source> {
  const server = createServer((request, response) => {
    const found = expositions.find(({ job }) => request.url === `/${job}`);
    response.writeHead(found === undefined ? 404 : 200, { 'Content-Type': 'text/plain; version=0.0.4; charset=utf-8' });
    response.end(found?.body);
  });
  const port = await listen(server);
  return {
    port,
    jobs: expositions.map(({ job }) => job),
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await once(server.close(), 'close');
    },
  };
}

export type Receiver = AsyncDisposable & { readonly port: number; readonly url: URL; readonly child: Child };

export async function startPushgateway(directory: string, args: readonly string[] = []): Promise<Receiver> {
  return startReceiver(
    directory,
    'pushgateway',
    [IN_MEMORY, ...args],
    /msg="starting pushgateway"|listen_address|Listening on/,
  );
}

type ReceiverStart = {
  readonly source?: Source;
  readonly settings?: string;
  /** Of its storage; default: the program's name. */
  readonly folder?: string;
};

/** A Prometheus that takes pushes, and scrapes `source` as the instance `scraped`. */
export async function startPrometheusReceiver(
  directory: string,
  program: 'prometheus' | 'prometheus3',
  { source, settings = '', folder = program }: ReceiverStart = {},
): Promise<Receiver> {
  const jobs = (source?.jobs ?? []).map(
    (job) => `  - job_name: ${job}
    scrape_interval: 1s
    metrics_path: /${job}
    static_configs:
      - targets: ["127.0.0.1:${source?.port}"]
        labels: { instance: scraped }
`,
  );
  const config = join(directory, `${folder}.yml`);
  writeFileSync(config, `${settings}scrape_configs:\n${jobs.join('')}`);
  const receives = program === 'prometheus3' ? ['--web.enable-otlp-receiver'] : [];
  return startReceiver(
    directory,
    program,
    [
      `--config.file=${config}`,
      `--storage.tsdb.path=${join(directory, folder)}`,
      '--web.enable-remote-write-receiver',
      ...receives,
    ],
    /Server is ready to receive web requests/,
  );
}

async function startReceiver(
  directory: string,
  program: FrontProgram,
  args: readonly string[],
  ready: RegExp,
): Promise<Receiver> {
  const port = await findFreePort();
  const child = startChild({
    name: program,
    command: [frontProgram(program), `--web.listen-address=127.0.0.1:${port}`, ...args],
    env: baseEnv(directory),
    cwd: directory,
  });
  try {
    await child.waitForLine(ready, START_MS);
    const url = new URL(`http://127.0.0.1:${port}`);
    await until(`${program} answering`, START_MS, async () => (await fetch(new URL('/-/ready', url))).ok || undefined);
    return { port, url, child, [Symbol.asyncDispose]: () => child[Symbol.asyncDispose]() };
  } catch (error) {
    await child[Symbol.asyncDispose]();
    throw error;
  }
}

export type PushResult = { readonly judgement: string; readonly status: number; readonly text: string };

/** Pushes a body, request by request. */
export async function push(
  kind: PushKind,
  url: URL,
  body: Uint8Array,
  labels: readonly Label[],
  nowMs = Date.now(),
): Promise<readonly PushResult[]> {
  const results: PushResult[] = [];
  const families = () => readFamilies(inPieces(body));
  for await (const request of kind.encode({ families, labels, url })) {
    const sent = request.body(nowMs);
    const pieces: Uint8Array[] = [];
    if (sent instanceof Uint8Array) pieces.push(sent);
    else for await (const piece of sent) pieces.push(piece);
    const { method, headers } = request;
    const answer = await fetch(new URL(request.path, url), { method, headers, body: Buffer.concat(pieces) });
    const text = await answer.text();
    results.push({ judgement: kind.judge(answer.status, text), status: answer.status, text });
  }
  return results;
}

/** Of sizes that cut lines anywhere. */
async function* inPieces(body: Uint8Array): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < body.length; at += 4099) yield body.subarray(at, at + 4099);
}

type Point = readonly [atSeconds: number, value: string];

async function query<Series>({ url }: Receiver, expression: string): Promise<readonly Series[]> {
  const answer = await fetch(new URL(`/api/v1/query?query=${encodeURIComponent(expression)}`, url));
  return ((await answer.json()) as { readonly data: { readonly result: readonly Series[] } }).data.result;
}

/** What an instant query shows of these series now. */
export async function readSeriesValues(receiver: Receiver, selector: string): Promise<SeriesValues> {
  const result = await query<{ readonly metric: Record<string, string>; readonly value: Point }>(receiver, selector);
  return new Map(result.map(({ metric, value }) => [formatSeries(metric), readValue(value[1])]));
}

/** A name for a series that does not depend on the order of its labels, nor on labels without a value. */
export function formatSeries(labels: Readonly<Record<string, string>>): string {
  const { job: _job, instance: _instance, ...others } = labels;
  const set = Object.entries(others).filter(([, value]) => value !== '');
  return JSON.stringify(set.sort(([left], [right]) => (left < right ? -1 : 1)));
}

/** The labels that `formatSeries` made a name of. */
export function parseSeries(series: string): Record<string, string> {
  return Object.fromEntries(JSON.parse(series));
}

/** What a Pushgateway shows of a group, and the type of each family in it. */
export async function readGroup(
  gateway: Receiver,
  job: string,
): Promise<{ readonly values: SeriesValues; readonly types: ReadonlyMap<string, string> }> {
  const text = await (await fetch(new URL('/metrics', gateway.url))).text();
  const values = new Map<string, number>();
  const types = new Map<string, string>();
  let type: readonly [name: string, type: string] = ['', ''];
  for (const line of text.split('\n')) {
    const [, name, announced] = /^# TYPE (\S+) (\S+)$/.exec(line) ?? [];
    if (name !== undefined && announced !== undefined) type = [name, announced];
    const { name: sampleName, sample } = readReferenceLine(line);
    const labels = Object.fromEntries(sample?.labels ?? []);
    if (sample === null || labels['job'] !== job) continue;
    values.set(formatSeries({ ...labels, __name__: sampleName }), sample.value + 0);
    types.set(...type);
  }
  return { values, types };
}

/** Without the sign of a zero. */
function readValue(text: string): number {
  return Number(text.replace('Inf', 'Infinity')) + 0;
}

export async function deleteGroup(gateway: Receiver, path: string): Promise<void> {
  const { ok, status } = await fetch(new URL(path, gateway.url), { method: 'DELETE' });
  if (!ok) throw new Error(`Cannot delete ${path}: the Pushgateway answered ${status}`);
}

/** The raw samples of the only series that a selector matches, of the last hour. */
export async function readSamples(
  receiver: Receiver,
  selector: string,
): Promise<readonly { readonly atMs: number; readonly value: number }[]> {
  const result = await query<{ readonly values: readonly Point[] }>(receiver, `${selector}[1h]`);
  if (result.length > 1) throw new Error(`Cannot read ${selector}: it is more than one series`);
  const [series] = result;
  return (series?.values ?? []).map(([atSeconds, value]) => ({
    atMs: Math.round(atSeconds * 1000),
    value: readValue(value),
  }));
}
