// Stands in the bundle for the parts of undici that lastscrape never asks for: HTTP/2 (allowH2 is false), form data as a body
// (no request has one). image/bundle.ts has the list, and what each gains.
function absent() {
  throw new Error('Bug: a part of undici was asked for that the bundle leaves out');
}
module.exports = absent;
module.exports.extractBody = absent;
module.exports.webidl = { is: { FormData: absent } };
