// Connects with TLS: a dial, then a handshake that trusts the given certificate authorities and no others. Only what needs it
// imports it, and late: node:tls is no part of a default run.

import { isIP, type Socket } from 'node:net';
import { connect } from 'node:tls';
import { type DialOptions, type DialResult, dial } from './dial.ts';
import type { Dial } from './exchange.ts';

export type TlsOptions = {
  /** The trusted authorities as PEM, asked for at each connection. @throws where they cannot be read. */
  readonly readCa: () => string | string[];
  /** Told why a server was not trusted: Node's code, such as `SELF_SIGNED_CERT_IN_CHAIN`. The result is `unknown`. */
  readonly onDistrust: (code: string) => void;
};

/** A dial with TLS on top. The certificate must be for the host as it stands in the URL, a name or an address. */
export function dialTls(tls: TlsOptions): Dial {
  return async (hostname, port, options) => {
    const result = await dial(hostname, port, options);
    if (result.kind !== 'open') return result;
    try {
      return await shakeHands(result.socket, hostname, tls, options);
    } catch (error) {
      result.socket.destroy();
      return { kind: 'unknown', why: readCode(error as Error) };
    }
  };
}

/** Rejects where the authorities cannot be read or used. */
function shakeHands(
  socket: Socket,
  hostname: string,
  { readCa, onDistrust }: TlsOptions,
  { timeoutMs, signal }: DialOptions,
): Promise<DialResult> {
  const ca = readCa();
  const host = hostname.replace(/^\[|\]$/g, '');
  return new Promise((resolve) => {
    // The name to ask for (SNI) is never an address (RFC 6066, section 3); `host` is what the certificate is checked against.
    const secured = connect({ socket, ca, host, ...(isIP(host) === 0 ? { servername: host } : {}) });
    const end = (result: DialResult) => {
      clearTimeout(timer);
      signal?.removeEventListener('abort', onAbort);
      secured.removeAllListeners('secureConnect');
      secured.removeListener('error', onError);
      if (result.kind !== 'open') {
        // An error may still follow destroy(); nobody waits for it any more.
        secured.on('error', () => {});
        secured.destroy();
      }
      resolve(result);
    };
    const onError = (error: Error) => {
      const code = readCode(error);
      if (secured.authorizationError) onDistrust(code);
      end({ kind: 'unknown', why: code });
    };
    const onAbort = () => end({ kind: 'unknown', why: String(signal?.reason) });
    const timer = setTimeout(() => end({ kind: 'unknown', why: 'timed out' }), timeoutMs);
    if (signal?.aborted) onAbort();
    signal?.addEventListener('abort', onAbort);
    secured.once('secureConnect', () => end({ kind: 'open', socket: secured }));
    secured.on('error', onError);
  });
}

function readCode(error: Error): string {
  return (error as NodeJS.ErrnoException).code ?? error.message;
}
