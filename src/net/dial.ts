// Connects to a host and port under the loopback rule (README, "Loopback"): `localhost` is 127.0.0.1 and ::1, both tried,
// never looked up. The only place that knows what "refused" is; sends no byte.

import { connect, type Socket } from 'node:net';

/** What connecting showed. Only `refused` proves that nothing listens there. */
export type DialResult =
  | { readonly kind: 'open'; readonly socket: Socket }
  | { readonly kind: 'refused' }
  | { readonly kind: 'unknown'; readonly why: string };

export type DialOptions = {
  /** For each address, from the first packet; a time-out is `unknown`. */
  readonly timeoutMs: number;
  /** Ends the attempt as `unknown`; its reason, a string, says why. */
  readonly signal?: AbortSignal | undefined;
};

/** "This family does not exist here": seen for ::1 where IPv6 is switched off (EADDRNOTAVAIL, measured on Linux 6.1). */
const NO_SUCH_FAMILY: readonly string[] = ['EADDRNOTAVAIL', 'EAFNOSUPPORT', 'ENETUNREACH'];

/**
 * Judges the error codes of all attempts, one per address: refused if each was refused or its family does not exist here,
 * and at least one was refused.
 */
export function isRefused(codes: readonly string[]): boolean {
  return (
    codes.includes('ECONNREFUSED') && codes.every((code) => code === 'ECONNREFUSED' || NO_SUCH_FAMILY.includes(code))
  );
}

/** The addresses behind a host name as it stands in a URL; anything but `localhost` is taken as it is. */
export function listAddresses(hostname: string): readonly string[] {
  if (hostname === 'localhost') return ['127.0.0.1', '::1'];
  return [hostname.replace(/^\[|\]$/g, '')];
}

/** Connects to the first address that accepts. The socket is the caller's to destroy. Never throws. */
export async function dial(hostname: string, port: number, options: DialOptions): Promise<DialResult> {
  const codes: string[] = [];
  for (const address of listAddresses(hostname)) {
    const attempt = await dialAddress(address, port, options);
    if ('destroy' in attempt) return { kind: 'open', socket: attempt };
    codes.push(...attempt);
    if (options.signal?.aborted) break;
  }
  if (isRefused(codes)) return { kind: 'refused' };
  return {
    kind: 'unknown',
    why: codes.find((code) => code !== 'ECONNREFUSED' && !NO_SUCH_FAMILY.includes(code)) ?? codes.join(' '),
  };
}

/** The connected socket, or the codes of what went wrong: one for each address that a looked-up name has. */
function dialAddress(
  host: string,
  port: number,
  { timeoutMs, signal }: DialOptions,
): Promise<Socket | readonly string[]> {
  return new Promise((resolve) => {
    if (signal?.aborted) {
      resolve([String(signal.reason)]);
      return;
    }
    const socket = connect({ host, port, noDelay: true });
    const end = (result: Socket | readonly string[]) => {
      clearTimeout(timer);
      signal?.removeEventListener('abort', onAbort);
      socket.removeAllListeners();
      if (result !== socket) {
        // An error may still follow destroy(); nobody waits for it any more.
        socket.on('error', () => {});
        socket.destroy();
      }
      resolve(result);
    };
    const onAbort = () => end([String(signal?.reason)]);
    const timer = setTimeout(() => end(['timed out']), timeoutMs);
    signal?.addEventListener('abort', onAbort);
    socket.once('connect', () => end(socket));
    socket.once('error', (error: Error) => {
      // An AggregateError's own code is only that of its first attempt (measured on Node 24.21).
      const errors: readonly NodeJS.ErrnoException[] = error instanceof AggregateError ? error.errors : [error];
      end(errors.map(({ code, message }) => code ?? message));
    });
  });
}
