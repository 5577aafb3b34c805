// Stands in the bundle for what undici's client asks of node:http: a limit and a class to recognise request bodies by (no
// request has a body). image/bundle.ts says what that gains.
// 16 KiB: Node's default of --max-http-header-size, which nothing changes in the binary.
exports.maxHeaderSize = 16384;
exports.IncomingMessage = class IncomingMessage {};
