// The kind of target that a preset is: a row of the table of programs, asked at the port of its entry.

import { describeHighPort, isPortNumber } from '../base/parse.ts';
import { type HttpAnswer, httpTarget } from './http-target.ts';
import type { Preset } from './programs.ts';
import type { TargetKind } from './target.ts';

/** What the value of a header may consist of (RFC 9110, section 5.5); Node and undici throw on anything else. */
const HEADER_VALUE = /^[\t\x20-\x7e\x80-\xff]*$/;

const PORTS = /^(?::(\d+))?(?::(\d+))?$/;

/** The kind of target that a preset is: `NAME`, `NAME:PORT`, `NAME:PORT:SERVICE_PORT`. */
export function presetKind(preset: Preset): TargetKind {
  const { name, kind, method, path, needsMs, flag } = preset;
  return {
    usage: name,
    otherNames: [preset.programs[0], ...preset.names, ...preset.otherNames],
    meaning: `\`${method} ${path}\` on ${preset.port === null ? 'the host and port of `LASTSCRAPE_METRICS_URL`' : `port ${preset.port}`}`,
    read(entry, { metricsUrl, env, pid, kill }) {
      if (entry !== name && !entry.startsWith(`${name}:`)) return null;
      const [match, port, servicePort] = PORTS.exec(entry.slice(name.length)) ?? [];
      if (match === undefined || !isPort(port) || !isPort(servicePort)) {
        return {
          problem: `${name}, ${name}:PORT or ${name}:PORT:SERVICE_PORT, with ports from 1 to 65535${describeHighPort(entry)}`,
        };
      }
      const token = preset.token === null ? '' : (env[preset.token.variable]?.trim() ?? '');
      if (!HEADER_VALUE.test(token)) {
        return {
          problem: `${name} with a ${preset.token?.variable} that a header can carry: without line breaks, other control characters, and characters beyond Latin-1`,
        };
      }
      const hasNoPort = preset.port === null && metricsUrl.protocol !== 'http:';
      if (hasNoPort && port === undefined) {
        const what = metricsUrl.protocol === 'file:' ? 'a file, which has no port' : "Locust's page, and no exporter";
        return { problem: `${name}:PORT where LASTSCRAPE_METRICS_URL is ${what}` };
      }
      const url =
        preset.port === null && !hasNoPort
          ? new URL(metricsUrl.origin)
          : new URL(`http://localhost:${preset.port ?? port}`);
      if (port !== undefined) url.port = port;
      url.pathname = path;
      return {
        value: httpTarget({
          name: entry,
          method,
          url,
          sender: { pid, kill },
          programs: preset.programs,
          headers: {
            ...preset.headers,
            ...(preset.token === null || token === '' ? {} : { [preset.token.header]: token }),
          },
          servicePorts: servicePort === undefined ? preset.servicePorts : [Number(servicePort)],
          // An open quit port shows that the flag is set, where it would be closed without.
          flag: preset.offStatus === null ? null : flag,
          needed: flag,
          needsMs,
          isMesh: kind === 'mesh',
          hint: (answer) => findHint(preset, answer),
        }),
      };
    },
  };
}

/** Absent is fine. */
function isPort(digits: string | undefined): boolean {
  return digits === undefined || isPortNumber(digits);
}

function findHint({ flag, offStatus, hints }: Preset, answer: HttpAnswer): string | null {
  if (answer.kind === 'disabled' && hints.disabled === undefined && flag !== null) {
    return `its quit port refuses while ${answer.port} answers: it needs ${flag}`;
  }
  if (answer.kind === 'disabled' || answer.kind === 'dropped') return hints[answer.kind] ?? null;
  if (answer.kind !== 'answered') return null;
  const { status, isHtml } = answer;
  if (status === offStatus) return `it answered ${status}: quitting is switched off; it needs ${flag}`;
  const isPage = status < 300 && isHtml;
  const hint = isPage ? hints.html : status < 300 ? hints.taken : hints[status];
  return hint === undefined ? null : `it answered ${status}${isPage ? ' with a page of HTML' : ''}: ${hint}`;
}
