// The stand-in exporter as a process, by the real one's variables. A quit ends it with 0, SIGTERM with 143.

import process from 'node:process';
import { openExporter } from './exporter.ts';

// The kernel delivers no signal to PID 1 that it does not handle; Go's runtime handles SIGTERM and exits 2.
if (process.pid === 1) process.on('SIGTERM', () => process.exit(2));

const { LOCUST_EXPORTER_URI = 'http://localhost:8089', LOCUST_EXPORTER_WEB_LISTEN_ADDRESS = ':9646' } = process.env;
const { host, port } = readListenAddress(LOCUST_EXPORTER_WEB_LISTEN_ADDRESS);
const exporter = await openExporter({ locustUrl: LOCUST_EXPORTER_URI, host, port, onQuit: () => process.exit(0) });
// The real one logs that it listens to stderr; a test that asked for port 0 reads the port here.
process.stderr.write(`level=info msg="Listening on ${exporter.url} (stand-in for locust_exporter)"\n`);

/** Go's listen address, `[HOST]:PORT`; without a host every address of the machine. */
function readListenAddress(address: string): { host: string; port: number } {
  const match = /^(?:\[([^\]]*)\]|([^:]*)):(\d+)$/.exec(address);
  if (match === null) {
    throw new Error(
      `Cannot read LOCUST_EXPORTER_WEB_LISTEN_ADDRESS: it is "${address}"; must be such as ":9646" or "127.0.0.1:9646"`,
    );
  }
  return { host: match[1] || match[2] || '::', port: Number(match[3]) };
}
