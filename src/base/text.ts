// Text for a person: cut to a length, and without what can be secret in a URL (user, password, query). Pure.

/** The text, or its beginning and `…`: at most `maxLength` UTF-16 units, never half a surrogate pair. */
export function cut(text: string, maxLength: number): string {
  if (text.length <= maxLength) return text;
  return `${text.slice(0, maxLength - 1).replace(/[\ud800-\udbff]$/, '')}…`;
}

/** Copies a text: a part of a text keeps the whole of it in memory. */
export function copyText(text: string): string {
  return Buffer.from(text).toString();
}

/**
 * Redacts an entry that may not be a URL: all before the last `@` and after the first `?`, but for a method
 * and a scheme. Hides too much rather than too little.
 */
export function redactEntry(text: string): string {
  const [, head = '', rest = ''] = /^((?:[A-Za-z]+ +)?(?:[A-Za-z][A-Za-z0-9+.-]*:\/\/)?)(.*)$/s.exec(text) ?? [];
  const atAt = rest.lastIndexOf('@');
  const shown = atAt === -1 ? rest : `***${rest.slice(atAt)}`;
  const queryAt = shown.indexOf('?');
  return redactUrl(`${head}${queryAt === -1 ? shown : `${shown.slice(0, queryAt)}?***`}`);
}

/** Prints a URL without user, password and query. */
export function redactHref({ protocol, host, pathname, search, username, password }: URL): string {
  const user = username === '' && password === '' ? '' : '***@';
  return `${protocol}//${user}${host}${pathname}${search === '' ? '' : '?***'}`;
}

/** Prints only scheme and host: the path of a chat tool's URL is its secret. */
export function redactPath({ protocol, host, pathname, search }: URL): string {
  return `${protocol}//${host}${pathname === '/' && search === '' ? '' : '/***'}`;
}

/** The same for an entry that may not be a URL: hides all after the host, or everything without a scheme. */
export function redactPathEntry(text: string): string {
  const [, head = '', host = '', rest = ''] = /^([A-Za-z][A-Za-z0-9+.-]*:\/\/)([^/?#@]*)(.*)$/s.exec(text) ?? [];
  if (head === '') return text.length <= 8 ? text : '***';
  if (rest.startsWith('@') || /^[^?#]*@/.test(rest)) return `${head}***`;
  return `${head}${host}${rest === '' || rest === '/' ? rest : '/***'}`;
}

/**
 * Redacts every URL in a text. Hides too much rather than too little where one is malformed: a raw comma in a
 * password splits a list there, and leaves `//user:pass` or `word@host`.
 */
export function redactUrl(text: string): string {
  return text
    .replace(/\/\/[^\s,]*@/g, '//***@')
    .replace(/\/\/[^\s,/@[]*:(?!\d*(?:[/?#,\s]|$))[^\s,/]*/g, '//***')
    .replace(/(^|,)[^\s,/]*@/g, '$1***@')
    .replace(/\?[^\s,]*/g, '?***');
}
