// Connects to a host and port under the loopback rule (docs/how-it-decides.md): `localhost` is 127.0.0.1 and
// ::1, both tried, never looked up. The only place that knows what "refused" is; sends no byte.

import type { LookupAddress } from 'node:dns';
import { connect, isIP, type OnReadOpts, type Socket, type TcpNetConnectOpts } from 'node:net';
import { LOOPBACK } from '../parse.ts';
import { prepareThreadCall, type ThreadCall } from '../thread-call.ts';
import { type Limits, waitWithin } from '../waits.ts';

/** What connecting showed. Only `refused` proves that nothing listens there. `isBeside`: by `dialBeside`. */
export type DialResult =
  | { readonly kind: 'open'; readonly socket: Socket; readonly isBeside?: true }
  | { readonly kind: 'refused' }
  | { readonly kind: 'unknown'; readonly why: string };

/** `buffer`: the socket reads into this, over what it read before; its reader takes that at once. */
export type DialOptions = Limits & { readonly buffer?: Buffer | undefined };

/** Whether there was an attempt, and each was refused; a code for each address. */
export function isRefused(codes: readonly string[]): boolean {
  return codes.length > 0 && codes.every((code) => code === 'ECONNREFUSED');
}

/**
 * Connects to the first address that accepts. The limits count for a lookup, and for each address; the socket
 * is the caller's to destroy. Never throws.
 */
export async function dial(hostname: string, port: number, limits: DialOptions): Promise<DialResult> {
  const codes: string[] = [];
  for (const host of hostname === 'localhost' ? ['127.0.0.1', '::1'] : [hostname.replace(/^\[|\]$/g, '')]) {
    const attempt = await dialHost(host, port, limits);
    if ('destroy' in attempt) return { kind: 'open', socket: attempt };
    codes.push(...attempt);
    if (limits.signal?.aborted) break;
  }
  if (isRefused(codes)) return { kind: 'refused' };
  return { kind: 'unknown', why: codes.find((code) => code !== 'ECONNREFUSED') ?? codes.join(' ') };
}

/**
 * Connects as `dial`, and where `localhost` refuses, to this address too; no longer once that has accepted,
 * since a mesh may accept at the other for what is gone. What accepts there may be a proxy of what listens
 * later: its connection is not to be kept. What is no address counts as none.
 */
export function dialBeside(address: string): typeof dial {
  let wasLocal = isIP(address) === 0;
  return async (hostname, port, limits) => {
    const local = await dial(hostname, port, limits);
    wasLocal ||= local.kind === 'open';
    if (wasLocal || hostname !== 'localhost' || local.kind !== 'refused') return local;
    const beside = await dial(address, port, limits);
    return beside.kind === 'open' ? { ...beside, isBeside: true } : local;
  };
}

/** The connected socket, or the codes of what went wrong: one for each address that a looked-up name has. */
async function dialHost(host: string, port: number, limits: DialOptions): Promise<Socket | readonly string[]> {
  if (isIP(host) !== 0) {
    const result = await attemptBound(host, port, limits);
    return 'destroy' in result || !(await isMissing(host, result)) ? result : ['ECONNREFUSED'];
  }
  const found = await lookUp(host, limits);
  if ('code' in found) return [found.code];
  return attempt({ host, port, lookup: (_, __, callback) => callback(null, [...found.addresses]) }, limits);
}

/** By these a connect fails where the address, or its whole family, does not exist. */
const MISSING_CODES: readonly string[] = ['EADDRNOTAVAIL', 'EAFNOSUPPORT', 'ENETUNREACH'];

/**
 * Whether no loopback interface has this loopback address, so that nothing can listen there. The code alone
 * does not prove it: EADDRNOTAVAIL comes as well where all local ports are in use (measured, Linux 6.1).
 */
async function isMissing(host: string, codes: readonly string[]): Promise<boolean> {
  const prefix = ['127.', '::1'].find((each) => host.startsWith(each));
  if (prefix === undefined || !codes.every((code) => MISSING_CODES.includes(code))) return false;
  const { networkInterfaces } = await import('node:os');
  return !Object.values(networkInterfaces()).some((addresses) =>
    addresses?.some(({ address }) => address.startsWith(prefix)),
  );
}

/**
 * Binds a loopback address, which libuv does with SO_REUSEADDR: main can listen on our local port while we
 * use it, and in the minute after. Where no port is free to bind, one may still do for a connection to this
 * peer.
 */
async function attemptBound(host: string, port: number, limits: DialOptions): Promise<Socket | readonly string[]> {
  const localAddress = LOOPBACK.test(host) ? host : undefined;
  const result = await attempt({ host, port, localAddress }, limits);
  const isBound = 'destroy' in result || !result.some((code) => code.startsWith('EADDR'));
  return isBound || localAddress === undefined ? result : attempt({ host, port }, limits);
}

async function attempt(target: TcpNetConnectOpts, limits: DialOptions): Promise<Socket | readonly string[]> {
  if (limits.signal?.aborted) return [String(limits.signal.reason)];
  const socket: Socket = connect({
    ...target,
    noDelay: true,
    ...(limits.buffer !== undefined && { onread: readInto(limits.buffer, () => socket) }),
  });
  const codes = await waitWithin<readonly string[]>(
    limits,
    (why) => [why],
    (end) => {
      socket.once('connect', () => end([]));
      // An AggregateError's own code is only its first attempt's (measured on Node 24.21).
      socket.once('error', (error: Error) => {
        const errors: readonly NodeJS.ErrnoException[] = error instanceof AggregateError ? error.errors : [error];
        end(errors.map(({ code, message }) => code ?? message));
      });
    },
  );
  socket.removeAllListeners();
  // Where nothing listens and the kernel picks the same local port, TCP connects to itself (RFC 9293,
  // "Simultaneous open"; seen 8 times in 60,000 connects to a port of the ephemeral range).
  const { localAddress, localPort, remoteAddress, remotePort } = socket;
  const isToItself = localPort === remotePort && localAddress === remoteAddress;
  if (codes.length === 0 && !isToItself) return socket;
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

function readInto(buffer: Buffer, findSocket: () => Socket): OnReadOpts {
  return {
    buffer,
    callback(sizeBytes) {
      const socket = findSocket();
      const piece = buffer.subarray(0, sizeBytes);
      // Without a listener nothing takes it at once.
      socket.push(socket.listenerCount('readable') === 0 ? Uint8Array.from(piece) : piece);
      // Reads on once it is taken.
      return false;
    },
  };
}

/** How long to reuse an answer: CoreDNS's default TTL for names of a cluster (plugin "kubernetes"). */
const LOOKUP_AGE_MS = 5_000;

/** The addresses, or why they are unknown, such as `ENOTFOUND` or `timed out`. */
type LookupResult = { readonly addresses: readonly LookupAddress[] } | { readonly code: string };

type Name = {
  readonly call: ThreadCall<LookupResult>;
  newest: { readonly result: LookupResult; readonly atMs: number } | null;
};

/** By name, for the whole process; the configuration bounds their number. */
const names = new Map<string, Name>();

/** Looks a name up, or reuses a recent answer; never rejects. */
export async function lookUp(hostname: string, limits: Limits): Promise<LookupResult> {
  const name = names.get(hostname) ?? { call: prepareThreadCall(() => askSystem(hostname)), newest: null };
  names.set(hostname, name);
  if (name.newest !== null && performance.now() - name.newest.atMs < LOOKUP_AGE_MS) return name.newest.result;
  const called = await name.call(limits);
  if (called.kind === 'pending') return { code: called.why };
  // A failure is not reused: the name of a Service may come at any moment.
  name.newest = 'code' in called.value ? null : { result: called.value, atMs: performance.now() };
  return called.value;
}

async function askSystem(hostname: string): Promise<LookupResult> {
  // Late: only a foreign name needs it.
  const { lookup } = await import('node:dns');
  return new Promise((resolve) => {
    lookup(hostname, { all: true }, (error, addresses) => {
      resolve(error === null ? { addresses } : { code: error.code ?? error.message });
    });
  });
}
