// Hides what can be secret in a URL before it is printed: user, password, query. Pure.

/**
 * The text with `***` for every URL's user, password and query; hides too much rather than too little where it is malformed: a raw
 * comma in a password cuts an entry of a list there, and leaves `//user:pass` or `word@host`.
 */
export function redactUrl(text: string): string {
  return text
    .replace(/\/\/[^\s,]*@/g, '//***@')
    .replace(/\/\/[^\s,/@[]*:(?!\d*(?:[/?#,\s]|$))[^\s,/]*/g, '//***')
    .replace(/(^|,)[^\s,/]*@/g, '$1***@')
    .replace(/\?[^\s,]*/g, '?***');
}
