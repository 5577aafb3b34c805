// The exporter's page, kept for a push where no front serves it: read by observations, one after the other.

import { runWithin } from '../base/waits.ts';
import { READ_TIMEOUT_MS } from '../decide/serve/reads.ts';
import type { Exporter } from '../observe/exporter.ts';
import { type KeepParts, type KeptSource, keepSource } from './kept-source.ts';
import { openHttpSource } from './sources/http.ts';
import type { SourceParts } from './sources/source.ts';

/** An exporter whose newest page is kept, by what is known of main. */
export type KeptExporter = Exporter & Pick<KeptSource, 'newest' | 'takeView'>;

/** Opens it; connects at the first read. */
export function openKeptExporter(
  { url, metricNames, selectors = [] }: Pick<SourceParts, 'url' | 'metricNames' | 'selectors'>,
  { findMoment, log, pollMs }: Pick<KeepParts, 'findMoment' | 'log' | 'pollMs'>,
): KeptExporter {
  // A push is made of text.
  const source = { ...openHttpSource(url, metricNames, selectors, { isForServing: false }), takesAccept: false };
  const { read, ...kept } = keepSource(source, {
    kind: 'exporter',
    isTextWanted: true,
    metricNames,
    findMoment,
    log,
    pollMs,
  });
  return {
    ...kept,
    read: (signal) => runWithin({ timeoutMs: READ_TIMEOUT_MS, signal }, (limit) => read(limit).ended),
  };
}
