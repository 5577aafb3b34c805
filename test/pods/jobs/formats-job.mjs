// Every kind of metric of prom-client, on JOB_PORT until it is killed, in the format that JOB_FORMAT names: it
// has one for everybody. Nothing changes.
import { createServer } from 'node:http';
import { Counter, Gauge, Histogram, Registry, Summary } from 'prom-client';

const { JOB_FORMAT, JOB_PORT } = process.env;
const registry = new Registry();
const isOpen = JOB_FORMAT === 'openMetrics';
if (isOpen) registry.setContentType(Registry.OPENMETRICS_CONTENT_TYPE);
const shared = { registers: [registry], enableExemplars: isOpen };
const exemplarLabels = { trace_id: '0123' };

const rows = new Counter({ name: 'rows_total', help: 'Rows that\n\\were written.', labelNames: ['kind'], ...shared });
const labels = { kind: 'a "b"' };
rows.inc(...(isOpen ? [{ labels, value: 3, exemplarLabels }] : [labels, 3]));
new Gauge({ name: 'left_bytes', help: 'What is left.', ...shared }).set(0.1);
const seconds = new Histogram({ name: 'row_seconds', help: 'How long a row took.', ...shared });
seconds.observe(isOpen ? { labels: {}, value: 0.3, exemplarLabels } : 0.3);
new Summary({ name: 'row_size', help: 'Of each.', registers: [registry] }).observe(3);

createServer(async (_request, response) => {
  response.setHeader('content-type', registry.contentType);
  response.end(await registry.metrics());
}).listen(Number(JOB_PORT), '127.0.0.1');
