// Connects with TLS: a dial, then a handshake that trusts only the given certificate authorities. Imported
// late: a default run does not load node:tls.

import { isIP, type Socket } from 'node:net';
import { connect } from 'node:tls';
import { type Limits, waitWithin } from '../waits.ts';
import { type DialResult, dial } from './dial.ts';
import type { Dial } from './exchange.ts';

type TlsOptions = {
  /** The trusted authorities as PEM, read for each connection. @throws if they cannot be read */
  readonly readCa: () => string | string[];
  /** Called with Node's code, such as `SELF_SIGNED_CERT_IN_CHAIN`; the result is `unknown` then. */
  readonly onDistrust: (code: string) => void;
};

/** Dials with TLS. The certificate must be for the URL's host, a name or an address. */
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

/** Rejects if the authorities cannot be read or used. */
async function shakeHands(socket: Socket, hostname: string, tls: TlsOptions, limits: Limits): Promise<DialResult> {
  const ca = tls.readCa();
  const host = hostname.replace(/^\[|\]$/g, '');
  // SNI is never an address (RFC 6066, section 3); the certificate is checked against `host`.
  const secured = connect({ socket, ca, host, ...(isIP(host) === 0 ? { servername: host } : {}) });
  const result = await waitWithin<DialResult>(
    limits,
    (why) => ({ kind: 'unknown', why }),
    (end) => {
      secured.once('secureConnect', () => end({ kind: 'open', socket: secured }));
      secured.once('error', (error: Error) => {
        if (secured.authorizationError) tls.onDistrust(readCode(error));
        end({ kind: 'unknown', why: readCode(error) });
      });
    },
  );
  secured.removeAllListeners('secureConnect').removeAllListeners('error');
  if (result.kind !== 'open') {
    // An error may still follow.
    secured.on('error', () => {});
    secured.destroy();
  }
  return result;
}

function readCode(error: Error): string {
  return (error as NodeJS.ErrnoException).code ?? error.message;
}
