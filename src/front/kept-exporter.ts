// The exporter's page, kept for a push where no front serves it.

import { type KeepParts, type KeptSource, keepSource } from './kept-source.ts';
import { openHttpSource } from './sources/http.ts';
import type { SourceParts } from './sources/source.ts';

/** Opens an exporter whose newest page is kept, by what is known of main; connects at the first read. */
export function openKeptExporter(
  { url, metricNames, selectors = [] }: Pick<SourceParts, 'url' | 'metricNames' | 'selectors'>,
  parts: Pick<KeepParts, 'findMoment' | 'log' | 'pollMs'>,
  options: Parameters<typeof openHttpSource>[3] = {},
): KeptSource {
  // A push is made of text.
  const source = {
    ...openHttpSource(url, metricNames, selectors, { isForServing: false, ...options }),
    takesAccept: false,
  };
  return keepSource(source, { kind: 'exporter', isTextWanted: true, confirms: false, metricNames, ...parts });
}
