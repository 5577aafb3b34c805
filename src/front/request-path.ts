// The path of a request as the routes compare it. Pure. Never resolves dots or double slashes.

/**
 * The normalised path without its query: `/%6Detrics` is `/metrics`, `/a%2fb` is `/a%2Fb`. Takes the absolute
 * form too (`http://host:1/metrics`: RFC 9112, 3.2.2). Null: no path, such as `*`.
 */
export function readRequestPath(target: string): string | null {
  const [, origin, rest = ''] = /^(https?:\/\/[^/?#]*)?(.*)$/is.exec(target) ?? [];
  const path = rest.replace(/[?#].*$/s, '');
  if (origin !== undefined && path === '') return '/';
  return path.startsWith('/') ? path.split('/').map(writeSegment).join('/') : null;
}

function writeSegment(segment: string): string {
  try {
    return encodeURIComponent(decodeURIComponent(segment));
  } catch {
    return segment;
  }
}
