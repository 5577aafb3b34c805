// Connects to a host and port under the loopback rule (docs/how-it-decides.md): `localhost` is 127.0.0.1 and ::1, both tried,
// never looked up. The only place that knows what "refused" is; sends no byte.

import { connect, isIP, type Socket, type TcpNetConnectOpts } from 'node:net';
import { networkInterfaces } from 'node:os';
import { type Limits, waitWithin } from '../waits.ts';
import { lookUp } from './lookup.ts';

/** What connecting showed. Only `refused` proves that nothing listens there. */
export type DialResult =
  | { readonly kind: 'open'; readonly socket: Socket }
  | { readonly kind: 'refused' }
  | { readonly kind: 'unknown'; readonly why: string };

/** Judges the error codes of all attempts, one per address: refused if there was one, and each was refused. */
export function isRefused(codes: readonly string[]): boolean {
  return codes.length > 0 && codes.every((code) => code === 'ECONNREFUSED');
}

/** The hosts to try for a host name as it stands in a URL; anything but `localhost` is taken as it is. */
export function listHosts(hostname: string, hasIpv6: boolean): readonly string[] {
  if (hostname === 'localhost') return hasIpv6 ? ['127.0.0.1', '::1'] : ['127.0.0.1'];
  return [hostname.replace(/^\[|\]$/g, '')];
}

/** Connects to the first address that accepts. The socket is the caller's to destroy. Never throws. */
export async function dial(hostname: string, port: number, options: Limits): Promise<DialResult> {
  const codes: string[] = [];
  for (const host of listHosts(hostname, hostname === 'localhost' && hasIpv6Loopback())) {
    const attempt = await dialHost(host, port, options);
    if ('destroy' in attempt) return { kind: 'open', socket: attempt };
    codes.push(...attempt);
    if (options.signal?.aborted) break;
  }
  if (isRefused(codes)) return { kind: 'refused' };
  return { kind: 'unknown', why: codes.find((code) => code !== 'ECONNREFUSED') ?? codes.join(' ') };
}

let ipv6Loopback: boolean | undefined;

/**
 * Whether ::1 exists; without it a connect gives EADDRNOTAVAIL (measured, Linux 6.1), as it does where all local ports are in
 * use. So it is asked apart, and once: containers start when the network of their pod is there.
 */
function hasIpv6Loopback(): boolean {
  ipv6Loopback ??= Object.values(networkInterfaces()).some((addresses) =>
    addresses?.some(({ address }) => address === '::1'),
  );
  return ipv6Loopback;
}

/** The connected socket, or the codes of what went wrong: one for each address that a looked-up name has. */
async function dialHost(host: string, port: number, options: Limits): Promise<Socket | readonly string[]> {
  if (isIP(host) !== 0) return attempt({ host, port }, options);
  const found = await lookUp(host, options);
  if ('code' in found) return [found.code];
  return attempt({ host, port, lookup: (_, __, callback) => callback(null, [...found.addresses]) }, options);
}

async function attempt(target: TcpNetConnectOpts, limits: Limits): Promise<Socket | readonly string[]> {
  if (limits.signal?.aborted) return [String(limits.signal.reason)];
  const socket = connect({ ...target, noDelay: true });
  const codes = await waitWithin<readonly string[]>(
    limits,
    (why) => [why],
    (end) => {
      socket.once('connect', () => end([]));
      // An AggregateError's own code is only that of its first attempt (measured on Node 24.21).
      socket.once('error', (error: Error) => {
        const errors: readonly NodeJS.ErrnoException[] = error instanceof AggregateError ? error.errors : [error];
        end(errors.map(({ code, message }) => code ?? message));
      });
    },
  );
  socket.removeAllListeners();
  if (codes.length === 0 && !isConnectedToItself(socket)) return socket;
  // An error may still follow.
  socket.on('error', () => {});
  if (codes.length > 0) {
    socket.destroy();
    return codes;
  }
  // A reset: an orderly end would leave the port in TIME_WAIT, and main could not listen there.
  socket.resetAndDestroy();
  return ['ECONNREFUSED'];
}

/**
 * Where nothing listens, and the kernel happens to pick the port that is asked as the local one, TCP connects to itself
 * (RFC 9293, "Simultaneous open"; seen 8 times in 60,000 connects to a port of the ephemeral range).
 */
function isConnectedToItself({ localAddress, localPort, remoteAddress, remotePort }: Socket): boolean {
  return localPort === remotePort && localAddress === remoteAddress;
}
