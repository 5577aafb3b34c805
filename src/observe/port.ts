// `port:[HOST:]PORT`: main is done when connections to PORT are refused. Connects and closes without sending
// a byte: harmless to a Locust master (measured on 2.47.0, hundreds in one run).

import { dial } from '../base/net/dial.ts';
import { isPortNumber } from '../base/parse.ts';
import type { ConditionKind } from './condition-kind.ts';

/** A frozen Locust accepts connections until its backlog is full (101), then lets them time out. */
const PROBE_TIMEOUT_MS = 1_000;

const ARGUMENT = /^(?:(localhost|127(?:\.\d{1,3}){3}|\[::1\]):)?(\d+)$/;
/** A host that is not loopback, before a port: `db:5432`, `[fe80::1]:80`. */
const FOREIGN_HOST = /^(?!127\.|localhost:|\[::1\])([\w.-]*[A-Za-z.-][\w.-]*|\[.*\]):\d+$/;

export const portKind: ConditionKind = {
  name: 'port',
  usage: 'port:[HOST:]PORT',
  meaning: 'connections to PORT are refused; HOST is loopback, `localhost` by default',
  read(argument) {
    const [, host = 'localhost', digits = ''] = ARGUMENT.exec(argument) ?? [];
    const port = Number(digits);
    if (!isPortNumber(digits) || host.split('.').some((octet) => Number(octet) > 255)) {
      const [, foreign] = FOREIGN_HOST.exec(argument) ?? [];
      const advice =
        foreign === undefined
          ? ''
          : `; "${foreign}" is not loopback: the ports of another host never prove anything about main`;
      return {
        problem: `a port from 1 to 65535, with or without a loopback host before it, such as "5557" or "127.0.0.1:5557"${advice}`,
      };
    }
    return {
      value: {
        text: `port:${argument}`,
        metricName: null,
        port,
        need: 'main must listen on it while it runs',
        async observe({ signal }) {
          const result = await dial(host, port, { timeoutMs: PROBE_TIMEOUT_MS, signal });
          if (result.kind === 'unknown') return { kind: 'unknown', why: `port ${argument} unknown: ${result.why}` };
          if (result.kind === 'refused')
            return { kind: 'done', seen: `port ${argument} refused`, provesWasAlive: false };
          result.socket.destroy();
          return { kind: 'alive', seen: `port ${argument} open` };
        },
      },
    };
  },
};
