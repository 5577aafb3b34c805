// series_job.py with prom-client: the same variables.
import { once } from 'node:events';
import { createServer } from 'node:http';
import { Gauge, register } from 'prom-client';

const { JOB_PORT, JOB_SERIES } = process.env;
const rows = new Gauge({ name: 'job_rows', help: 'Rows that are left.', labelNames: ['kind', 'part'] });
for (let index = 0; index < Number(JOB_SERIES); index += 1) {
  rows.set({ kind: `kind-${index % 10}`, part: String(index).padStart(6, '0') }, index / 3);
}
// No two pages of a program are the same.
new Gauge({
  name: 'job_seconds',
  help: 'How long it runs.',
  collect() {
    this.set(performance.now() / 1000);
  },
});
const server = createServer(async (_request, response) => {
  response.setHeader('content-type', register.contentType);
  response.end(await register.metrics());
});
await once(server.listen(Number(JOB_PORT), '127.0.0.1'), 'listening');
process.stdout.write('ready\n');
