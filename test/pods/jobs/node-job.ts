// python_job.py with prom-client: the same variables and lines.
import { once } from 'node:events';
import { createServer } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { Counter, collectDefaultMetrics, register } from 'prom-client';

const { JOB_MS = '', JOB_PORT = '', JOB_SNAPSHOT_URL = '' } = process.env;
const reads: number[] = [];
let value = 0;

collectDefaultMetrics();
const worked = new Counter({
  name: 'job_worked_milliseconds_total',
  help: 'How long the job has worked.',
  collect: () => void reads.push(value),
});

const server = createServer(async (_request, response) => {
  response.setHeader('content-type', register.contentType);
  response.end(await register.metrics());
});
await once(server.listen(Number(JOB_PORT), '127.0.0.1'), 'listening');
process.stdout.write('started\n');

const startedAtMs = performance.now();
while (value < Number(JOB_MS)) {
  const elapsed = Math.floor(performance.now() - startedAtMs);
  worked.inc(elapsed - value);
  value = elapsed;
  await delay(5);
}
if (JOB_SNAPSHOT_URL !== '') {
  const answer = await fetch(JOB_SNAPSHOT_URL, { method: 'POST', signal: AbortSignal.timeout(10_000) });
  if (!answer.ok) throw new Error(`Cannot have a snapshot: ${answer.status} ${await answer.text()}`);
}
await delay(50);
// Written whole before the exit, which waits for nothing.
process.stdout.write(`${JSON.stringify({ final: value, reads })}\n`, () => process.exit(0));
