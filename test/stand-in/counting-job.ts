// A main that serves its own metrics and ends; its counter changes until then. Its last line is JSON: the final value,
// and the one that the last read showed. JOB_MS: how long it works (default: until SIGTERM). JOB_FRONT: a front to
// request a snapshot from at the end. JOB_FAIL_FILE: counts its runs; the first JOB_FAILURES end with 1. JOB_EAT: after
// JOB_MS, once the last value was read, it takes memory until it is killed.

import { appendFileSync, readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';

const {
  JOB_MS = '0',
  JOB_EXIT = '0',
  JOB_FRONT = '',
  JOB_FAIL_FILE = '',
  JOB_FAILURES = '0',
  JOB_EAT = '',
} = process.env;

let value = 0;
let shown = 0;
let isTold = false;
process.on('SIGTERM', () => {
  isTold = true;
});

const server = createServer((_request, response) => {
  shown = value;
  response.setHeader('content-type', 'text/plain; version=0.0.4');
  response.end(
    `# HELP job_worked_total What the job has done.\n# TYPE job_worked_total counter\njob_worked_total ${value}\n`,
  );
});
server.listen(8000);

const startedAtMs = performance.now();
while (!isTold && (JOB_MS === '0' || performance.now() - startedAtMs < Number(JOB_MS))) {
  value += 1;
  await delay(5);
}
if (JOB_EAT !== '') {
  while (shown !== value) await delay(5);
  process.stdout.write(`${JSON.stringify({ final: value, shown })}\n`);
  for (const eaten: Buffer[] = []; ; await delay(20)) eaten.push(Buffer.alloc(2 ** 23, 1));
}
value += 1_000_000;
if (JOB_FRONT !== '') {
  const answer = await fetch(`http://localhost:${JOB_FRONT}/-/snapshot`, { method: 'POST' });
  if (!answer.ok) process.stdout.write(`no snapshot: ${answer.status} ${await answer.text()}\n`);
}
let exitCode = isTold ? 143 : Number(JOB_EXIT);
if (JOB_FAIL_FILE !== '') {
  appendFileSync(JOB_FAIL_FILE, 'x');
  exitCode = readFileSync(JOB_FAIL_FILE, 'utf8').length <= Number(JOB_FAILURES) ? 1 : exitCode;
}
process.stdout.write(`${JSON.stringify({ final: value, shown })}\n`, () => process.exit(exitCode));
