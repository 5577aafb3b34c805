// A port that neither accepts nor refuses, as a frozen Locust's: a stopped process, and a full backlog.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import type { Socket } from 'node:net';
import { type DialResult, dial } from '../../../src/base/net/dial.ts';

const LISTENER = `
  const server = require('node:net').createServer();
  server.listen({ port: 0, host: '127.0.0.1', backlog: 1 }, () => console.log(server.address().port));
`;
const BACKLOG_MAX_COUNT = 200;

/** Freezes one; `result`: what the connection showed that found no place any more. */
export async function freezePort() {
  const child = spawn(process.execPath, ['-e', LISTENER], { stdio: ['ignore', 'pipe', 'inherit'] });
  const sockets: Socket[] = [];
  const [line] = await once(child.stdout, 'data');
  const port = Number(line);
  child.kill('SIGSTOP');
  let result: DialResult;
  do {
    result = await dial('localhost', port, { timeoutMs: 1_000 });
    if (result.kind === 'open') sockets.push(result.socket);
  } while (result.kind === 'open' && sockets.length < BACKLOG_MAX_COUNT);
  assert.notEqual(result.kind, 'open', 'the backlog is never full');
  return {
    port,
    result,
    [Symbol.dispose]: () => {
      for (const socket of sockets) socket.destroy();
      child.kill('SIGKILL');
    },
  };
}
