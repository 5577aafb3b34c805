// Runs the bundle until it has polled its exporter once, and writes what V8 has compiled by then. A process of its own
// (`node FLAGS record-code-cache.cjs FOLDER`), in which the same functions run on any machine: time stands still in it.

const { readFileSync, writeFileSync } = require('node:fs');
const { createServer } = require('node:net');
const { Script } = require('node:vm');

const [folder] = process.argv.splice(2);
const { setTimeout } = globalThis;
globalThis.setTimeout = (callback, ms) => setTimeout(callback, ms < 10 ? ms : 2 ** 30);
process.hrtime.bigint = () => 0n;
performance.now = () => 0;
// Anyone else but the first process of a container looks for others.
Object.defineProperty(process, 'pid', { value: 1 });

const script = new Script(readFileSync(`${folder}/bundle.js`, 'latin1'));
process.stdout.write = (line) => {
  if (!line.includes('"main is running"')) return true;
  writeFileSync(`${folder}/bundle.cache`, script.createCachedData());
  process.exit();
};
const exporter = createServer((socket) => {
  socket.once('data', () => socket.write('HTTP/1.1 200 OK\r\nContent-Length: 12\r\n\r\nlocust_up 1\n'));
});
exporter.listen(0, '127.0.0.1', () => {
  process.env = {
    LASTSCRAPE_METRICS_URL: `http://127.0.0.1:${exporter.address().port}/metrics`,
    LASTSCRAPE_TERMINATION_LOG: `${folder}/termination-log`,
  };
  script.runInThisContext()(require, folder);
});
