// Stands in the bundle for the one function of node:assert that undici's client calls. image/bundle.ts says what that gains.
module.exports = function assert(isTrue, message) {
  if (isTrue) return;
  throw message instanceof Error ? message : new Error(`Bug: ${message ?? 'an assertion in undici does not hold'}`);
};
