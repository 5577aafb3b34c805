// Which source a front reads, by the scheme of its URL. Loaded with the front, or with a check of it.

import type { Clock } from '../base/clock.ts';
import type { SourceKind } from '../decide/answer.ts';
import type { LogEntry } from '../decide/messages.ts';
import type { Selector } from '../exposition/exposition.ts';
import { openLocustSource } from './locust/source.ts';
import { openFileSource } from './sources/file.ts';
import { openHttpSource } from './sources/http.ts';
import type { Source } from './sources/source.ts';

export type SourceParts = {
  /** `http:`, `file:` or `locust+http:`. */
  readonly url: URL;
  /**
   * With `locust+http:`: the prefix of its metrics, the path at which they are served, and the file of
   * headers for the page (null: none). Default: the exporter's.
   */
  readonly locust?: { readonly namespace: string; readonly path: string; readonly headersFile: string | null };
  /** The metrics of the conditions. */
  readonly metricNames: readonly string[];
  /** What is judged. Default: nothing. */
  readonly selectors?: readonly Selector[];
  readonly clock: Clock;
  readonly log: (entry: LogEntry) => void;
};

const EXPORTERS = { namespace: 'locust', path: '/metrics', headersFile: null };

/** Opens it; nothing is read before the first call of `read`. */
export function openSource(parts: SourceParts): Source {
  const { url, locust = EXPORTERS, metricNames, selectors = [], clock, log } = parts;
  const kind = findSourceKind(url);
  if (kind === 'files') return openFileSource(url, metricNames, log, selectors);
  if (kind === 'program') return openHttpSource(url, metricNames, selectors);
  const { namespace, path, headersFile } = locust;
  return openLocustSource({
    url: new URL(url.href.slice('locust+'.length)),
    namespace,
    path: path === '/metrics' ? null : path,
    headersFile,
    metricNames,
    selectors,
    clock,
    log,
  });
}

/** What is read, by the scheme of its URL. */
export function findSourceKind({ protocol }: URL): SourceKind {
  return protocol === 'file:' ? 'files' : protocol === 'locust+http:' ? 'locust' : 'program';
}

/** The metrics that are 0 once main has ended: those of the conditions; Locust's page always has its own. */
export function findEndMetrics({ url, locust = EXPORTERS, metricNames }: SourceParts): readonly string[] {
  return findSourceKind(url) === 'locust' ? [`${locust.namespace}_up`] : metricNames;
}
