// An exporter of a given size as a process: `node exposition-main.ts BYTES HOLD_MS PORT [same]` prints its two
// ports; PORT 0: a free one. The body is a run of Locust with many request names, and counts its reads unless
// `same`; POST /end ends locust_up and the second port, as main's end. HOLD_MS (0: none) keeps the last byte
// back, so that a short-lived reader can be looked at.

import { createServer } from 'node:http';
import { type AddressInfo, createServer as createSocketServer } from 'node:net';
import process from 'node:process';
import { setTimeout as delay } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';
import { ROW_FIELDS } from '../../src/front/locust/page.ts';
import { listen } from '../support/listen.ts';

const [bytesText = '50000', holdText = '0', portText = '0', same = ''] = process.argv.slice(2);
const bodyByteCount = Number(bytesText);
const holdMs = Number(holdText);

/** Of its last number, the reads so far, as promhttp has it. */
const COUNT_DIGITS = 6;
const sizes = { isUp: writeBody(1), isDown: writeBody(0) };
let body = sizes.isUp;
let lookCount = 0;
const connections = new Set<unknown>();

const main = createSocketServer((socket) => socket.destroy());
const exporter = createServer((request, response) => {
  switch (request.url) {
    case '/metrics':
      lookCount += 1;
      if (same === '') body.write(String(lookCount).padStart(COUNT_DIGITS, '0'), body.length - COUNT_DIGITS - 1);
      connections.add(request.socket);
      response.setHeader('Content-Type', 'text/plain; version=0.0.4; charset=utf-8');
      if (holdMs === 0 && /\bgzip\b/.test(request.headers['accept-encoding'] ?? '')) {
        response.setHeader('Content-Encoding', 'gzip');
        response.end(gzipSync(body));
      } else if (holdMs === 0) {
        response.end(body);
      } else {
        response.write(body.subarray(0, -1));
        void delay(holdMs).then(() => response.end(body.subarray(-1)));
      }
      break;
    case '/looks':
      response.end(String(lookCount));
      break;
    case '/connections':
      response.end(String(connections.size));
      break;
    case '/end':
      body = sizes.isDown;
      main.close();
      response.end();
      break;
    case '/quitquitquit':
      return process.exit(0);
    default:
      response.writeHead(404).end();
  }
});
// A reader that polls every 5 s keeps its connection, as with Go's server.
exporter.keepAliveTimeout = 0;
await listen(main);
await listen(exporter, '127.0.0.1', Number(portText));
process.stdout.write(`ready ${(exporter.address() as AddressInfo).port} ${(main.address() as AddressInfo).port}\n`);

// Families and order of the real one, totals first (fixtures/recordings, 15-many-names-running).
function writeBody(up: 0 | 1): Buffer {
  const tail =
    `# HELP locust_up The current health status of the server (1 = UP, 0 = DOWN).\n# TYPE locust_up gauge\nlocust_up ${up}\n` +
    '# HELP locust_users The current number of users.\n# TYPE locust_users gauge\nlocust_users 50\n' +
    `promhttp_metric_handler_requests_in_flight 1\npromhttp_metric_handler_requests_total{code="200"} ${'0'.repeat(COUNT_DIGITS)}\n`;
  const rowBytes = writeFamily('num_requests', 2).length - writeFamily('num_requests', 1).length;
  const fixedBytes = tail.length + ROW_FIELDS.map((family) => writeFamily(family, 0)).join('').length;
  const rowCount = Math.round((bodyByteCount - fixedBytes) / ROW_FIELDS.length / rowBytes);
  return Buffer.from(ROW_FIELDS.map((family) => writeFamily(family, rowCount)).join('') + tail);
}

function writeFamily(family: string, rowCount: number): string {
  const name = `locust_requests_${family}`;
  const row = (method: string, request: string) => `${name}{method="${method}",name="${request}"} 48211\n`;
  const rows = Array.from({ length: rowCount }, (_, index) =>
    row('GET', `/articles/${String(index).padStart(8, '0')}`),
  );
  return `# HELP ${name} \n# TYPE ${name} gauge\n${row('', 'Aggregated')}${rows.join('')}`;
}
