// Says what is missing before a script of package.json runs: the sources run as they are, by type stripping,
// which needs Node 24. On Linux (x64, arm64) `npm ci` brings that Node; elsewhere it is the machine's own.
const [major] = process.versions.node.split('.').map(Number);
if (major < 24) {
  process.stderr.write(
    `Cannot run lastscrape's sources: this is Node ${process.versions.node} on ${process.platform}-${process.arch}; ` +
      'must be Node 24 or later. On Linux (x64, arm64) run "npm ci" without --omit=optional, which installs it; ' +
      'elsewhere install Node 24 yourself\n',
  );
  process.exitCode = 1;
}
