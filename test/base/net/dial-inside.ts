// Run by dial.test.ts inside of a network namespace: dials HOST, HOST=LISTENER (while something listens there) or
// HOST=LISTENER+COUNT (at that many open connections); a line a result, and one for a socket in TIME_WAIT.
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { connect, createServer, type Socket } from 'node:net';
import { dial } from '../../../src/base/net/dial.ts';

const UNUSED_PORT = 5557;

function hasSocketLeft(): boolean {
  const port = `:${UNUSED_PORT.toString(16).toUpperCase()} `;
  return ['tcp', 'tcp6'].some((table) => readFileSync(`/proc/net/${table}`, 'utf8').includes(port));
}

for (const argument of process.argv.slice(2)) {
  const [hostname = '', listener, count = '0'] = argument.split(/[=+]/);
  const server = createServer((socket) => socket.on('error', () => {}).resume());
  if (listener !== undefined) await once(server.listen(UNUSED_PORT, listener), 'listening');
  const sockets: Socket[] = [];
  while (sockets.length < Number(count)) {
    const socket = connect(UNUSED_PORT, listener);
    sockets.push(socket);
    await once(socket, 'connect');
  }
  const result = await dial(hostname, UNUSED_PORT, { timeoutMs: 5_000 });
  if (result.kind === 'open') result.socket.destroy();
  const isLeft = listener === undefined && hasSocketLeft();
  console.log(
    `${argument} ${result.kind}${result.kind === 'unknown' ? ` ${result.why}` : ''}${isLeft ? ', and a socket is left' : ''}`,
  );
  for (const socket of sockets) socket.destroy();
  if (listener !== undefined) await once(server.close(), 'close');
}
