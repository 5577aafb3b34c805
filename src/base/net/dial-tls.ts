// Connects with TLS: a dial, then a handshake that trusts the given certificate authorities and no others. Only what needs it
// imports it, and late: node:tls is no part of a default run.

import { isIP, type Socket } from 'node:net';
import { connect } from 'node:tls';
import { type Limits, waitWithin } from '../waits.ts';
import { type DialResult, dial } from './dial.ts';
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
async function shakeHands(
  socket: Socket,
  hostname: string,
  { readCa, onDistrust }: TlsOptions,
  limits: Limits,
): Promise<DialResult> {
  const ca = readCa();
  const host = hostname.replace(/^\[|\]$/g, '');
  // The name to ask for (SNI) is never an address (RFC 6066, section 3); `host` is what the certificate is checked against.
  const secured = connect({ socket, ca, host, ...(isIP(host) === 0 ? { servername: host } : {}) });
  const result = await waitWithin<DialResult>(
    limits,
    (why) => ({ kind: 'unknown', why }),
    (end) => {
      secured.once('secureConnect', () => end({ kind: 'open', socket: secured }));
      secured.once('error', (error: Error) => {
        if (secured.authorizationError) onDistrust(readCode(error));
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
