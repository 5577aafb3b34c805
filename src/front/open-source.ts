// Which source a front reads, by the scheme of its URL. Loaded with the front, or with a check of it.

import { dialBeside } from '../base/net/dial.ts';
import { openExchange } from '../base/net/exchange.ts';
import { findSourceKind } from '../decide/model.ts';
import type { GetterParts } from '../observe/get-exposition.ts';
import { describeListenProblem } from './listen.ts';
import { openLocustSource } from './locust/source.ts';
import type { PushSourceParts } from './pushgateway/source.ts';
import { openFileSource } from './sources/file.ts';
import { openHttpSource, START_METRIC } from './sources/http.ts';
import type { Source, SourceParts } from './sources/source.ts';

/** `url`: `http:`, `file:`, `locust+http:` or `pushgateway:`; `locust`: default: as the exporter. */
export type FrontSourceParts = SourceParts & {
  readonly locust?: { readonly namespace: string; readonly path: string; readonly headersFile: string | null };
  /** How a program is asked. Default: over HTTP. */
  readonly openExchange?: GetterParts['open'];
  /** The pod's address: a program may listen there, and not on loopback. Default: unknown. */
  readonly podIp?: string;
};

const EXPORTERS = { namespace: 'locust', path: '/metrics', headersFile: null };

/** Opens it; one that takes pushes listens. `problem`: `what is; what to do`. */
export async function openFrontSource(
  parts: FrontSourceParts & Pick<PushSourceParts, 'toUnixSeconds' | 'findTakenAtMs'>,
): Promise<{ kind: 'open'; source: Source } | { kind: 'failed'; problem: string }> {
  if (findSourceKind(parts.url) !== 'pushes') return { kind: 'open', source: openSource(parts) };
  const { openPushSource } = await import('./pushgateway/source.ts');
  const opened = await openPushSource(parts);
  if (typeof opened !== 'string') return { kind: 'open', source: opened };
  return { kind: 'failed', problem: describeListenProblem(parts.url.hostname, Number(parts.url.port), opened) };
}

/** Opens one that is read; nothing is before the first call of `read`. */
export function openSource({ locust = EXPORTERS, ...parts }: FrontSourceParts): Source {
  const { url, metricNames, selectors, clock, log, podIp = '' } = parts;
  const kind = findSourceKind(url);
  if (kind === 'files') return openFileSource(url, metricNames, log, selectors);
  if (kind === 'program') {
    const dial = dialBeside(podIp);
    const by = { open: (origin: URL) => openExchange(origin, dial), connect: dial };
    const { openExchange: open } = parts;
    return openHttpSource(url, [...metricNames, START_METRIC], selectors, { ...(open ? { open } : by), clock });
  }
  const path = locust.path === '/metrics' ? null : locust.path;
  return openLocustSource({ ...parts, ...locust, url: new URL(url.href.slice('locust+'.length)), path });
}

/** The metrics that are 0 once main has ended: those of the conditions; Locust's page always has its own. */
export function findEndMetrics({ url, locust = EXPORTERS, metricNames }: FrontSourceParts): readonly string[] {
  return findSourceKind(url) === 'locust' ? [`${locust.namespace}_up`] : metricNames;
}
