// The one process of a pod that is no real program: it serves what Locust's users load, and lets the test
// look into the pod's network through a socket in a folder. `node inside.ts JSON` (an InsidePlan).
import { createServer, get, type ServerResponse } from 'node:http';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { dial } from '../../src/base/net/dial.ts';

/** `directory` gets `control.sock`. */
export type InsidePlan = { readonly directory: string; readonly targetPort: number };

const plan: InsidePlan = JSON.parse(process.argv[2] ?? '');
const crowd = new Set<Socket>();

const target = createServer((request, response) => {
  response.statusCode = request.url === '/fail' ? 500 : 200;
  response.end('target');
});

const control = createServer((request, response) => {
  const url = new URL(request.url ?? '/', 'http://localhost');
  const port = Number(url.searchParams.get('port'));
  if (url.pathname === '/get') return pass(port, url.searchParams.get('path') ?? '/', response);
  void answer(url.pathname, port).then((text) => response.end(text));
});

async function answer(path: string, port: number): Promise<string> {
  if (path === '/probe') return probe(port);
  if (path === '/crowd') return String(await crowdIn(port));
  return 'unknown';
}

function pass(port: number, path: string, response: ServerResponse): void {
  const asked = get({ port, path, host: '127.0.0.1', agent: false }, (inner) => {
    response.writeHead(inner.statusCode ?? 502);
    inner.on('error', () => response.destroy());
    inner.pipe(response);
  });
  asked.once('error', (error) => (response.headersSent ? response.destroy() : response.writeHead(502).end(`${error}`)));
}

// A bare connect that sends nothing and closes, which Locust's 5557 takes without harm (recording K).
async function probe(port: number): Promise<string> {
  const result = await dial('127.0.0.1', port, { timeoutMs: 1000 });
  if (result.kind === 'open') result.socket.destroy();
  return result.kind;
}

// Connects until the backlog is full: a frozen Locust takes 101, then connects time out.
async function crowdIn(port: number): Promise<number> {
  for (let count = 0; count < 200; count += 1) {
    const socket = connect({ port, host: '127.0.0.1' });
    const isIn = await new Promise<boolean>((resolve) => {
      socket.setTimeout(5000, () => resolve(false));
      socket.once('connect', () => resolve(true));
      socket.on('error', () => resolve(false));
    });
    if (!isIn) {
      socket.destroy();
      return count;
    }
    socket.setTimeout(0);
    socket.resume();
    crowd.add(socket);
    socket.once('close', () => crowd.delete(socket));
  }
  return 200;
}

target.keepAliveTimeout = 60_000;
target.listen(plan.targetPort, '127.0.0.1', () => {
  control.listen(join(plan.directory, 'control.sock'), () => process.stdout.write('ready\n'));
});
