// The path of a request as the routes compare it. Pure. Never resolves dots or double slashes: a path that is not exactly one
// of ours is not ours.

/**
 * The path of a request target without its query, written in one way: `/%6Detrics` is `/metrics`, `/a%2fb` is `/a%2Fb`; of the
 * absolute form (`http://host:1/metrics`: RFC 9112, 3.2.2) what follows the host. Null: no path, such as `*`.
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
