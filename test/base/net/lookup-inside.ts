// Run by dial.test.ts inside of a network namespace whose name service hangs at first: dials a name and
// prints the results and how many lookups the system has under way, a line each.
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { dial } from '../../../src/base/net/dial.ts';

const PORT = 5557;
const NAME = 'slow.example';
const TYPE_A = 1;

let isHanging = true;
let queryCount = 0;
const service = createSocket('udp4');
service.on('message', (query, { port, address }) => {
  if (isHanging) return;
  queryCount++;
  // The question ends with its type and class (RFC 1035, section 4.1.2); there is one.
  const end = query.indexOf(0, 12) + 5;
  const isAddress = query.readUInt16BE(end - 4) === TYPE_A;
  const head = Buffer.from(query.subarray(0, 12));
  head.writeUInt16BE(0x8180, 2);
  head.writeUInt16BE(isAddress ? 1 : 0, 6);
  head.writeUInt16BE(0, 8);
  head.writeUInt16BE(0, 10);
  const answer = Buffer.from([0xc0, 12, 0, TYPE_A, 0, 1, 0, 0, 0, 1, 0, 4, 127, 0, 0, 1]);
  service.send(Buffer.concat([head, query.subarray(12, end), ...(isAddress ? [answer] : [])]), port, address);
});
await once(service.bind(53, '127.0.0.1'), 'listening');
const server = createServer((socket) => socket.destroy());
await once(server.listen(PORT, '127.0.0.1'), 'listening');

async function dialAndTell(timeoutMs: number, signal?: AbortSignal): Promise<void> {
  const result = await dial(NAME, PORT, { timeoutMs, signal });
  if (result.kind === 'open') result.socket.destroy();
  const lookups = process.getActiveResourcesInfo().filter((name) => name === 'GetAddrInfoReqWrap');
  console.log(`${result.kind}${result.kind === 'unknown' ? ` ${result.why}` : ''}, ${lookups.length} under way`);
}

await dialAndTell(50);
await dialAndTell(50, AbortSignal.abort('interrupted'));
const controller = new AbortController();
setImmediate(() => controller.abort('the time is up'));
await dialAndTell(60_000, controller.signal);
isHanging = false;
// The resolver asks again by itself.
await dialAndTell(60_000);
const before = queryCount;
await dialAndTell(60_000);
console.log(`asked ${queryCount - before} times more`);
service.close();
server.close();
