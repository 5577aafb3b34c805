// Stands in the bundle for the names of headers that undici knows in lower case, and makes a tree of: it makes a name that it does
// not know lower case when it comes. image/bundle.ts says what that gains.
exports.wellknownHeaderNames = [];
exports.headerNameLowerCasedRecord = Object.create(null);
