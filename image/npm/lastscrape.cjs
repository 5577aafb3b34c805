#!/usr/bin/env node
// The bundle on any machine. What an old Node must be able to read, so that it can say that it is too old.
var major = Number(process.versions.node.split('.')[0]);
var onAnyMachine = ['explain', '--check', '--version', '--help'];

if (major < 22) {
  process.stderr.write(`lastscrape needs Node 22 or later; this is ${process.versions.node}\n`);
  process.exitCode = 1;
} else if (process.platform !== 'linux' && onAnyMachine.indexOf(process.argv[2]) < 0) {
  process.stderr.write(
    `lastscrape runs in a pod, on Linux; on this machine: lastscrape ${onAnyMachine.join(', lastscrape ')}\n`,
  );
  process.exitCode = 64;
} else {
  require('./bundle.cjs');
}
