// Stands in the bundle where it has a file outside of V8's heap: in the binary it is part of the program's own file, mapped into
// memory; beside the bundle alone, as the tests run it, it is a file of the same folder.
const { getRawAsset, isSea } = require('node:sea');
module.exports = function readAsset(name) {
  if (isSea()) return Buffer.from(getRawAsset(name));
  return require('node:fs').readFileSync(require('node:path').join(__dirname, name));
};
