// The program. The only file that names `process`: main() gets all of it as a parameter.
// It is bundled as CommonJS, which has no top-level await.

import { main } from '../src/main.ts';
import { endProcess, hasThreadCall, readExitCode } from '../src/run/end-process.ts';
import { hasMissedSigterm } from '../src/run/host.ts';

// A closed stdout must not end the job (EPIPE).
process.stdout.on('error', () => {});
process.stderr.on('error', () => {});

const exitCode = readExitCode(process.argv.slice(2));
if (exitCode !== null) process.exit(exitCode);

const isTerminated = hasMissedSigterm();

main({
  env: process.env,
  argv: process.argv.slice(2),
  stdin: () => process.stdin,
  stdout: (text) => process.stdout.write(text),
  stderr: (text) => process.stderr.write(text),
  onSignal: (listener) => {
    process.on('SIGTERM', () => listener('SIGTERM'));
    process.on('SIGINT', () => listener('SIGINT'));
    if (isTerminated) listener('SIGTERM');
  },
  onUncaught: (listener) => {
    process
      .removeAllListeners('uncaughtException')
      .on('uncaughtException', (error) => endProcess(process, listener(error)));
  },
  pid: process.pid,
  kill: (pid, signal) => {
    process.kill(pid, signal);
  },
  nodeVersion: process.versions.node,
  // performance.now() loads node:perf_hooks: 0.8 % of the memory, 3 % of the CPU time of a start (Node 24.21.0).
  nowMs: () => Number(process.hrtime.bigint()) / 1e6,
  wallMs: () => Date.now(),
  cpuMs: () => {
    const { user, system } = process.cpuUsage();
    return (user + system) / 1000;
  },
}).then(({ code, isUrgent }) => {
  // Node's teardown takes 20 ms, in which a signal has its default effect: 143 in place of the code.
  process.on('exit', () => process.exit());
  process.exitCode = code;
  // A turn later: the call whose end brought us here counts as running until it has returned.
  setImmediate(() => {
    if (isUrgent || hasThreadCall(process)) endProcess(process, code);
  });
});
