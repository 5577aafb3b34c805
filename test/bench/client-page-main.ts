// A program with its own metrics, as a process: prom-client renders the page for each answer.
// `node client-page-main.ts BYTES` prints its two ports, as exposition-main.ts does.

import { createServer } from 'node:http';
import { type AddressInfo, createServer as createSocketServer } from 'node:net';
import process from 'node:process';
import { Counter, Gauge, Registry } from 'prom-client';
import { listen } from '../support/listen.ts';

const [bytesText = '50000'] = process.argv.slice(2);
const bodyByteCount = Number(bytesText);

const register = new Registry();
new Gauge({ name: 'locust_up', help: 'So that it is watched like the other.', registers: [register] }).set(1);
const counter = new Counter({
  name: 'job_articles_read_total',
  help: 'Articles read.',
  labelNames: ['method', 'name'],
  registers: [register],
});
let rowCount = 0;
for (let rowBytes = 0; rowBytes * rowCount < bodyByteCount; rowCount += 1) {
  counter.inc({ method: 'GET', name: `/articles/${String(rowCount).padStart(8, '0')}` }, 48_211 + rowCount);
  rowBytes ||= (await register.getSingleMetricAsString('job_articles_read_total')).split('\n').at(-1)?.length ?? 1;
}

const main = createSocketServer((socket) => socket.destroy());
const program = createServer((_, response) => {
  void register.metrics().then((page) => {
    response.writeHead(200, { 'Content-Type': register.contentType });
    response.end(page);
  });
});
for (const server of [main, program]) {
  await listen(server);
}
process.stdout.write(`ready ${(program.address() as AddressInfo).port} ${(main.address() as AddressInfo).port}\n`);
