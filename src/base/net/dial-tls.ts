// Connects with TLS: a dial, then a handshake that trusts only the given certificate authorities. Imported
// late: a default run does not load node:tls.

import { isIP, type Socket } from 'node:net';
import { connect } from 'node:tls';
import { type Limits, waitWithin } from '../waits.ts';
import { type DialResult, dial } from './dial.ts';
import type { Dial } from './exchange.ts';

/** Whom the connections from now on trust, and whether the newest did. */
export type Trust = {
  /** The authorities as PEM. */
  authorities: string | string[];
  /** Set to Node's code, such as `SELF_SIGNED_CERT_IN_CHAIN`, where the result is `unknown` for it. */
  distrust: string | null;
};

/** Dials with TLS. The certificate must be for the URL's host, a name or an address. */
export function dialTls(trust: Trust): Dial {
  return async (hostname, port, options) => {
    const result = await dial(hostname, port, options);
    return result.kind === 'open' ? shakeHands(result.socket, hostname, trust, options) : result;
  };
}

/** Node leaves out an authority that it cannot read. */
async function shakeHands(socket: Socket, hostname: string, trust: Trust, limits: Limits): Promise<DialResult> {
  const host = hostname.replace(/^\[|\]$/g, '');
  // SNI is never an address (RFC 6066, section 3); the certificate is checked against `host`.
  const secured = connect({ socket, ca: trust.authorities, host, ...(isIP(host) === 0 ? { servername: host } : {}) });
  const result = await waitWithin<DialResult>(
    limits,
    (why) => ({ kind: 'unknown', why }),
    (end) => {
      secured.once('secureConnect', () => end({ kind: 'open', socket: secured }));
      secured.once('error', (error: Error) => {
        if (secured.authorizationError) trust.distrust = readCode(error);
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
