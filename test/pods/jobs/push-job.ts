// The same job as push_job.py with prom-client.
import { setTimeout as delay } from 'node:timers/promises';
import { Gauge, Pushgateway, Registry } from 'prom-client';

const [url = '', run = '', final = '', ms = ''] = process.argv.slice(2);
const registry = new Registry();
const rows = new Gauge({ name: 'job_rows', help: 'Rows that were written.', registers: [registry] });
// Its default is 5 s, which the start of thirty programs may take.
const gateway = new Pushgateway(url, { timeout: 60_000 }, registry);
rows.set(1);
await gateway.push({ jobName: 'node', groupings: { run } });
await delay(Number(ms));
rows.set(Number(final));
await gateway.push({ jobName: 'node', groupings: { run } });
process.exit(0);
