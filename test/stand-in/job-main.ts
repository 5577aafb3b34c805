// A job with its own /metrics: copies 100 files in 6 s from SIGUSR2 on, and ends at once, as a batch program.
// `node job-main.ts PORT [SNAPSHOT_URL]`: it POSTs to the URL before it exits, as the README's line of code.

import { once } from 'node:events';
import { createServer } from 'node:http';
import process from 'node:process';
import { setTimeout as delay } from 'node:timers/promises';

const FILES_COUNT = 100;
const FILE_MS = 60;

const [port, snapshotUrl] = process.argv.slice(2);
let files = 0;
let success = 0;

const server = createServer((_, response) => {
  response.setHeader('Content-Type', 'text/plain; version=0.0.4');
  response.end(
    `# TYPE backup_files_total counter\nbackup_files_total ${files}\n` +
      `# TYPE backup_success gauge\nbackup_success ${success}\n`,
  );
});
await new Promise<void>((resolve) => server.listen(Number(port), '127.0.0.1', resolve));
const told = once(process, 'SIGUSR2');
console.log('serves its own /metrics');
await told;
// By the clock: on a busy machine it ends when it should.
const beganMs = performance.now();
while (files < FILES_COUNT) {
  await delay(FILE_MS);
  files = Math.min(FILES_COUNT, Math.floor((performance.now() - beganMs) / FILE_MS));
}
success = 1;
if (snapshotUrl !== undefined) {
  const { status } = await fetch(snapshotUrl, { method: 'POST' });
  console.log(`POST /-/snapshot: ${status}`);
}
process.exit(0);
