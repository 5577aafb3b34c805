// The main of the binary: the bundle, with what V8 compiled of it when the binary was built (code-cache.ts). Were that refused, the
// start would take longer.
const { getRawAsset } = require('node:sea');
const { Script } = require('node:vm');
const [text, cachedData] = ['bundle.js', 'bundle.cache'].map((name) => Buffer.from(getRawAsset(name)));
new Script(text.latin1Slice(), { filename: 'lastscrape.cjs', cachedData }).runInThisContext()(require);
