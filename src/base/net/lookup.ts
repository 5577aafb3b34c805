// Looks host names up with the system's resolver: one lookup at a time for each name, and none while one
// hangs, since nothing can end getaddrinfo's thread.

import type { LookupAddress } from 'node:dns';
import { prepareThreadCall, type ThreadCall } from '../thread-call.ts';
import type { Limits } from '../waits.ts';

/** How long to reuse an answer: CoreDNS's default TTL for names of a cluster (plugin "kubernetes"). */
export const LOOKUP_AGE_MS = 5_000;

/** The addresses, or why there are none, such as `ENOTFOUND` or `timed out`. */
export type LookupResult = { readonly addresses: readonly LookupAddress[] } | { readonly code: string };

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
