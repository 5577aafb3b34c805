// The kind of target that a preset is: a row of the table of programs, asked at the port of its entry.

import { describeHighPort, isPortNumber } from '../base/parse.ts';
import { httpTarget } from './http-target.ts';
import type { Preset } from './programs.ts';
import type { TargetKind } from './target.ts';

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
          problem: `${name}, ${name}:PORT or ${name}:PORT:SERVICE_PORT, with ports from 1 to 65535${describeHighPort(entry)}`,
        };
      }
      const value = token === undefined ? '' : (env[token.variable]?.trim() ?? '');
      if (!HEADER_VALUE.test(value)) {
        return {
          problem: `${name} with a ${token?.variable} that a header can carry: without line breaks, other control characters, and characters beyond Latin-1`,
        };
      }
      const isHttp = metricsUrl.protocol === 'http:';
      if (preset.port === null && !isHttp && port === undefined) {
        const what = metricsUrl.protocol === 'file:' ? 'a file, which has no port' : "Locust's page, and no exporter";
        return { problem: `${name}:PORT where LASTSCRAPE_METRICS_URL is ${what}` };
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
