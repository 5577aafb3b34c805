// The least that a front can cost: undici reads a page, node:http passes its pieces on:
// `node relay-main.ts URL`, with the flags of the binary. It prints its port.

import { createServer } from 'node:http';
import process from 'node:process';
import { Client } from 'undici';
import { listen } from '../support/listen.ts';

const url = new URL(process.argv[2] ?? '');
const source = new Client(url.origin, { pipelining: 1, allowH2: false });
const server = createServer((request, response) => {
  request.resume();
  source.dispatch(
    { method: 'GET', path: url.pathname, headers: { accept: request.headers.accept ?? '*/*' } },
    {
      onRequestStart() {},
      onResponseStart(_, status, headers) {
        response.writeHead(status, { 'Content-Type': String(headers['content-type']) });
      },
      onResponseData(controller, piece) {
        if (response.write(piece)) return;
        controller.pause();
        response.once('drain', () => controller.resume());
      },
      onResponseEnd: () => response.end(),
      onResponseError: () => response.destroy(),
    },
  );
});
server.keepAliveTimeout = 0;
process.stdout.write(`ready ${await listen(server)}\n`);
