// A target with a quit endpoint, given as a preset or as a URL: asks by one HTTP request, and proves by the
// port of the same URL, and by those of its service where they are others. Also finds a mesh's proxy that was
// not listed.

import { dial } from '../base/net/dial.ts';
import { openExchange } from '../base/net/exchange.ts';
import { isPortNumber, LOOPBACK, orNull, readVariable } from '../base/parse.ts';
import { redactEntry, redactHref } from '../base/text.ts';
import { USER_AGENT } from '../base/version.ts';
import { runWithin } from '../base/waits.ts';
import type { LogEntry } from '../decide/messages.ts';
import type { Answer, Probe } from '../decide/quit/quit-target.ts';
import type { Preset } from './programs.ts';
import { describeExitCode, forcePortOwner, type Sender } from './signal-target.ts';
import type { Target, TargetKind } from './target-kind.ts';

/** Longest wait for one address of one port. */
const PROBE_TIMEOUT_MS = 1_000;
/** Longest wait of `--check` for the ports of one kind. */
const INSPECT_TIMEOUT_MS = 2_000;

export type HttpTargetOptions = {
  readonly name?: string;
  readonly method: string;
  /** `http:`; its user and password are not sent: a Basic authorization is a header. */
  readonly url: URL;
  /** Sent in addition to the usual ones; their values are never printed. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Ports of its service, on the same host: it is gone only when they refuse as well. Default: none. */
  readonly servicePorts?: readonly number[];
  /** Signals the owner of its port if it does not take the request and its process may be in this pod. */
  readonly sender: Sender;
  /** What is known of the program. Default: nothing, and any owner of its port is signalled. */
  readonly preset?: Preset;
};

/** The answer to a request. */
type HttpAnswer = Exclude<Answer, { kind: 'signalled' }>;

/** A target that is asked at a URL. */
export function httpTarget(options: HttpTargetOptions): Target {
  const { name, method, url, servicePorts = [], preset, sender } = options;
  const request = redactEntry(`${method} ${redactHref(url)}`);
  const quitPort = Number(url.port || 80);
  const headers: Record<string, string> = { 'user-agent': USER_AGENT, 'content-length': '0', ...options.headers };
  /** The first port that does not refuse, and what it does instead; null: all refuse. */
  const findListener = (ports: readonly number[], timeoutMs: number, signal?: AbortSignal) =>
    runWithin({ timeoutMs, signal }, async (limit) => {
      for (const port of ports) {
        const result = await dial(url.hostname, port, { timeoutMs: PROBE_TIMEOUT_MS, signal: limit });
        if (result.kind === 'open') result.socket.destroy();
        if (result.kind !== 'refused') return { port, probe: result.kind satisfies Probe };
      }
      return null;
    });
  // An open quit port shows that the flag is set, where it would be closed without.
  const flag = preset?.offStatus == null ? null : preset.flag;
  const describe = (answer: HttpAnswer) => describeAnswer(answer, preset ?? {});
  return {
    name: name ?? request,
    request,
    url,
    ...(preset && { stops: { preset: preset.name } }),
    needsMs: preset?.needsMs ?? 0,
    isMesh: preset?.kind === 'mesh',
    need: `it must listen on ${url.hostname}:${quitPort}${preset?.flag == null ? '' : `, and needs ${preset.flag}`}`,
    async ask(timeoutMs, signal) {
      const startedAtMs = performance.now();
      // A new connection: one that a quitting server closes must not serve the next request.
      const exchange = openExchange(url);
      try {
        const result = await exchange.send({ method, path: url.pathname + url.search, headers, timeoutMs, signal });
        if (result.kind === 'answered') {
          return { kind: 'answered', status: result.status, isHtml: result.contentType.includes('html') };
        }
        if (result.kind === 'failed') return { kind: 'failed', why: result.why, wasSent: result.wasSent };
        if (result.kind === 'dropped') return result;
        const service = await findListener(servicePorts, startedAtMs + timeoutMs - performance.now(), signal);
        return service === null ? result : { kind: 'disabled', port: service.port };
      } finally {
        await exchange.close();
      }
    },
    async probe(timeoutMs, signal) {
      return (await findListener([quitPort, ...servicePorts], timeoutMs, signal))?.probe ?? 'refused';
    },
    // PID 1: no other container's process is in this namespace.
    ...(sender.pid !== 1 &&
      LOOPBACK.test(url.hostname) && {
        force: (count: number, answer: Answer | null) =>
          forcePortOwner(answer?.kind === 'disabled' ? answer.port : quitPort, preset?.programs ?? null, count, sender),
        signalLeaves: (signal: string) => ({ leaves: describeExitCode(signal) }),
      }),
    hint: (answer) => (answer === null || answer.kind === 'signalled' ? 'no request could be made' : describe(answer)),
    async inspect() {
      const quit = (await findListener([quitPort], INSPECT_TIMEOUT_MS))?.probe;
      if (quit === 'open') return [`answers on ${quitPort}${flag === null ? '' : `; it quits only with ${flag}`}`];
      if (quit === 'unknown') return [`neither answers nor refuses on ${quitPort}`];
      const service = await findListener(servicePorts, INSPECT_TIMEOUT_MS);
      if (service !== null) return [`refuses on ${quitPort}: ${describe({ kind: 'disabled', port: service.port })}`];
      return [`refuses on ${[quitPort, ...servicePorts].join(', ')}: not started yet, or on another port`];
    },
  };
}

/** What an answer means where the target still listens (fixtures/recordings/quit-endpoints: 15 programs). */
function describeAnswer(answer: HttpAnswer, { flag = null, offStatus, hints = {} }: Partial<Preset>): string {
  switch (answer.kind) {
    case 'disabled': {
      const advice = flag === null ? 'quitting may be switched off' : `it needs ${flag}`;
      return hints.disabled ?? `its quit port refuses while ${answer.port} answers: ${advice}`;
    }
    case 'dropped':
      return hints.dropped ?? 'it closed the connection and listens again: was it restarted, or is a proxy in between?';
    case 'refused':
      return 'it refused our request and listens again: was it restarted?';
    case 'failed':
      return `no answer (${answer.why}): is it overloaded, or is this another program's port?`;
    case 'answered':
      break;
  }
  const { status, isHtml } = answer;
  const kind = status >= 300 ? status : isHtml ? 'html' : 'taken';
  const off = status === offStatus ? `quitting is switched off; it needs ${flag}` : undefined;
  const own = off ?? hints[kind];
  const how = kind === 'html' ? ' with a page of HTML' : kind === 'taken' && own === undefined ? ' and lives on' : '';
  return `it answered ${status}${how}: ${own ?? MEANINGS[kind] ?? 'look into its log'}`;
}

/** What an answer means if nothing is known of the program. */
const MEANINGS: Preset['hints'] = {
  html: 'it has no quit endpoint at this path',
  taken: 'it needs longer (LASTSCRAPE_QUIT_TIMEOUT), or this is no quit endpoint',
  401: 'it wants credentials, or quitting is switched off',
  403: 'it wants credentials, or quitting is switched off',
  404: 'no such path, or quitting is switched off',
  405: 'it wants another method',
};

/** What a header's value may consist of (RFC 9110, section 5.5); Node and undici throw on anything else. */
const HEADER_VALUE = /^[\t\x20-\x7e\x80-\xff]*$/;

const PORTS = /^(?::(\d+))?(?::(\d+))?$/;

/** The kind of target that a preset is: `NAME`, `NAME:PORT`, `NAME:PORT:SERVICE_PORT`. */
export function presetKind(preset: Preset): TargetKind {
  const { name, path, token } = preset;
  return {
    usage: name,
    otherNames: [preset.programs[0], ...preset.names, ...preset.otherNames],
    meaning: `\`POST ${path}\` on ${preset.port === null ? 'the host and port of `LASTSCRAPE_METRICS_URL`' : `port ${preset.port}`}`,
    read(entry, { metricsUrl, env, pid, kill }) {
      if (entry !== name && !entry.startsWith(`${name}:`)) return null;
      const [match, port, servicePort] = PORTS.exec(entry.slice(name.length)) ?? [];
      if (match === undefined || ![port, servicePort].every((each) => each === undefined || isPortNumber(each))) {
        return {
          problem: `${name}, ${name}:PORT or ${name}:PORT:SERVICE_PORT, with ports from 1 to 65535`,
        };
      }
      const value = token === undefined ? '' : readVariable(env, token.variable);
      if (!HEADER_VALUE.test(value)) {
        return {
          problem: `${name} with a ${token?.variable} that a header can carry: without line breaks, other control characters, and characters beyond Latin-1`,
        };
      }
      const isHttp = metricsUrl.protocol === 'http:';
      if (preset.port === null && !isHttp && port === undefined) {
        return { problem: `${name}:PORT where LASTSCRAPE_METRICS_URL has no port of an exporter` };
      }
      const url = new URL(path, preset.port === null && isHttp ? metricsUrl.origin : 'http://localhost');
      url.port = port ?? (preset.port === null ? url.port : String(preset.port));
      return {
        value: httpTarget({
          name: entry,
          method: 'POST',
          url,
          preset,
          sender: { pid, kill },
          headers: { ...preset.headers, ...(token === undefined || value === '' ? {} : { [token.header]: value }) },
          servicePorts: servicePort === undefined ? preset.servicePorts : [Number(servicePort)],
        }),
      };
    },
  };
}

const URL_ENTRY = /^(?:([A-Za-z]+) +)?([a-z][a-z0-9+.-]*:\/\/.*)$/i;
const METHODS: readonly string[] = ['GET', 'POST', 'PUT', 'DELETE', 'PATCH', 'HEAD'];

/** `[METHOD ]URL`: any helper that ends by an HTTP request. */
export const urlKind: TargetKind = {
  usage: '[METHOD ]URL',
  meaning: 'one request to an `http:` URL, POST by default',
  read(entry, { pid, kill }) {
    const [, method = 'POST', text = ''] = URL_ENTRY.exec(entry) ?? [];
    if (text === '') return null;
    const url = URL.parse(text);
    if (url === null || url.protocol !== 'http:') {
      return { problem: 'an http: URL such as "http://localhost:9646/quitquitquit"' };
    }
    if (!METHODS.includes(method.toUpperCase())) return { problem: `a method of ${METHODS.join(', ')} before the URL` };
    const headers = readAuthorization(url);
    if (headers === null) return { problem: 'a URL whose user and password are percent-encoded UTF-8: a "%" is "%25"' };
    return { value: httpTarget({ method: method.toUpperCase(), url, headers, sender: { pid, kill } }) };
  },
};

/** The Basic authorization, none without user and password; null: they are not percent-encoded UTF-8. */
function readAuthorization({ username, password }: URL): Readonly<Record<string, string>> | null {
  if (username === '' && password === '') return {};
  const pair = orNull(() => `${decodeURIComponent(username)}:${decodeURIComponent(password)}`);
  return pair === null ? null : { authorization: `Basic ${Buffer.from(pair).toString('base64')}` };
}

/** Loopback accepts or refuses within a millisecond; what does neither is not worth a wait at the end. */
const FIND_TIMEOUT_MS = 200;

/** A warning for each mesh proxy on loopback, if targets but no mesh were listed. Never rejects. */
export async function findForgottenMesh(targets: readonly Target[], presets: readonly Preset[]) {
  if (targets.length === 0 || targets.some(({ isMesh }) => isMesh === true)) return [];
  const entries = presets.map(async ({ name, foundBy }): Promise<LogEntry[]> => {
    if (foundBy === undefined) return [];
    const result = await dial('localhost', foundBy, { timeoutMs: FIND_TIMEOUT_MS });
    if (result.kind !== 'open') return [];
    result.socket.destroy();
    const add = `${name}, as the last entry of LASTSCRAPE_QUIT`;
    return [{ id: 'meshForgotten', fields: { port: foundBy, add } }];
  });
  return (await Promise.all(entries)).flat();
}
