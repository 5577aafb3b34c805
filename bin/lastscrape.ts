// The program. The only file that names `process`: everything of it goes to main() as a parameter.

import { main } from '../src/main.ts';

// A reader of stdout that went away must not end the job (EPIPE).
process.stdout.on('error', () => {});
process.stderr.on('error', () => {});

const { code, isUrgent } = await main({
  env: process.env,
  argv: process.argv.slice(2),
  stdout: (text) => process.stdout.write(text),
  stderr: (text) => process.stderr.write(text),
  onSignal: (listener) => {
    process.on('SIGTERM', () => listener('SIGTERM'));
    process.on('SIGINT', () => listener('SIGINT'));
  },
  onUncaught: (listener) => {
    process.removeAllListeners('uncaughtException').on('uncaughtException', (error) => process.exit(listener(error)));
  },
  pid: process.pid,
  kill: (pid, signal) => {
    process.kill(pid, signal);
  },
  nodeVersion: process.versions.node,
  nowMs: () => performance.now(),
  wallMs: () => Date.now(),
});
process.exitCode = code;
if (isUrgent) process.exit();
