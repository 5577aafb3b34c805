// Stands in the bundle for the one function of node:assert that undici's client calls, and spares 0.1 MB of anonymous memory.
module.exports = function assert(isTrue, message) {
  if (isTrue) return;
  throw message instanceof Error ? message : new Error(`Bug: ${message ?? 'an assertion in undici does not hold'}`);
};
