// Run by dial.test.ts inside of a network namespace: dials as its arguments say and prints the results, a line each.
// An argument is HOST, or HOST=LISTENER to dial while something listens on that address.
import { once } from 'node:events';
import { createServer } from 'node:net';
import { dial } from '../../src/net/dial.ts';

const UNUSED_PORT = 5557;

for (const argument of process.argv.slice(2)) {
  const [hostname = '', listener] = argument.split('=');
  const server = createServer((socket) => socket.on('error', () => {}).resume());
  if (listener !== undefined) await once(server.listen(UNUSED_PORT, listener), 'listening');
  const result = await dial(hostname, UNUSED_PORT, { timeoutMs: 5_000 });
  if (result.kind === 'open') result.socket.destroy();
  console.log(`${argument} ${result.kind}${result.kind === 'unknown' ? ` ${result.why}` : ''}`);
  if (listener !== undefined) await once(server.close(), 'close');
}
