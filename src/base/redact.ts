// Hides what can be secret in a URL before it is printed: user, password, query. Pure.

/**
 * What somebody wrote that may not even be a URL: all before its last `@` and all behind a `?` is hidden, but for a method and a
 * scheme; it hides too much rather than too little.
 */
export function redactEntry(text: string): string {
  const [, head = '', rest = ''] = /^((?:[A-Za-z]+ +)?(?:[A-Za-z][A-Za-z0-9+.-]*:\/\/)?)(.*)$/s.exec(text) ?? [];
  const atAt = rest.lastIndexOf('@');
  const shown = atAt === -1 ? rest : `***${rest.slice(atAt)}`;
  const queryAt = shown.indexOf('?');
  return redactUrl(`${head}${queryAt === -1 ? shown : `${shown.slice(0, queryAt)}?***`}`);
}

/** A URL without user, password and query: for one that can be read. */
export function redactHref({ protocol, host, pathname, search, username, password }: URL): string {
  const user = username === '' && password === '' ? '' : '***@';
  return `${protocol}//${user}${host}${pathname}${search === '' ? '' : '?***'}`;
}

/** Of a URL whose path may be the secret, as those of chat tools are: where it leads to, and no more. */
export function redactPath({ protocol, host, pathname, search }: URL): string {
  return `${protocol}//${host}${pathname === '/' && search === '' ? '' : '/***'}`;
}

/** The same for what may be no URL: all behind a host is hidden, and whatever has no scheme. */
export function redactPathEntry(text: string): string {
  const [, head = '', host = '', rest = ''] = /^([A-Za-z][A-Za-z0-9+.-]*:\/\/)([^/?#@]*)(.*)$/s.exec(text) ?? [];
  if (head === '') return text.length <= 8 ? text : '***';
  if (rest.startsWith('@') || /^[^?#]*@/.test(rest)) return `${head}***`;
  return `${head}${host}${rest === '' || rest === '/' ? rest : '/***'}`;
}

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
