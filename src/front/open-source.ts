// Which source a front reads, by the scheme of its URL. Loaded with the front, or with a check of it.

import type { Clock } from '../base/clock.ts';
import type { LogEntry } from '../decide/messages.ts';
import type { Selector } from '../exposition/selector.ts';
import { openLocustSource } from './locust/source.ts';
import { openFileSource } from './sources/file.ts';
import { openHttpSource } from './sources/http.ts';
import type { Source } from './sources/source.ts';

export type SourceParts = {
  /** `http:`, `file:` or `locust+http:`. */
  readonly url: URL;
  /**
   * With `locust+http:`: what the names of its metrics begin with, the path at which they are served, and the file of headers for the
   * page (null: none). Default: the exporter's.
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
  if (url.protocol === 'file:') return openFileSource(url, metricNames, log, selectors);
  if (!isLocustPage(url)) return openHttpSource(url, metricNames, selectors);
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

/** The source is Locust's own page: lastscrape is in the place of its exporter. */
export function isLocustPage({ protocol }: URL): boolean {
  return protocol === 'locust+http:';
}

/** The metric of a Locust's page that is 0 where Locust does not answer; its source shows it whatever the conditions are. */
export function findUpName({ namespace }: SourceParts['locust'] = EXPORTERS): string {
  return `${namespace}_up`;
}
