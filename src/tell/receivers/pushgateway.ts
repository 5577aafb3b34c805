// The Pushgateway: the whole exposition in one PUT, in the text format, without timestamps.
//
// One PUT replaces the whole group at once: no family of an earlier push stays, and no scrape sees a part.
// POSTs replace families by name, so that a family in two requests would be cut
// (github.com/prometheus/pushgateway, "API"; 1.5.1). The body is streamed: its length costs no memory.

import { openByteBuffer } from '../../base/byte-buffer.ts';
import type { Label } from '../../exposition/lexer.ts';
import { type Family, listFamilyLines } from '../../exposition/samples.ts';
import { judgeStatus, openLabelExporter, type PushKind } from './receiver.ts';

const PIECE_BYTES = 64 * 1024;
/** A group must have a job. */
const DEFAULT_JOB = 'lastscrape';

/** `pushgateway+http://…`; the labels become the grouping key. */
export const pushgateway: PushKind = {
  name: 'pushgateway',
  findPath: (url, labels) => {
    const group = withJob(labels).map(formatGroupLabel).join('');
    return `${url.pathname.replace(/\/+$/, '')}/metrics${group}${url.search}`;
  },
  async *encode({ families, labels, url }) {
    yield {
      method: 'PUT',
      path: pushgateway.findPath(url, labels),
      headers: { 'Content-Type': 'text/plain; version=0.0.4; charset=utf-8' },
      body: () => writeBody(families(), withJob(labels)),
    };
  },
  judge: judgeStatus,
};

/** The job comes first in the path. Empty values are left out: to Prometheus they are no labels. */
function withJob(labels: readonly Label[]): readonly Label[] {
  const [, job = ''] = labels.find(([name]) => name === 'job') ?? [];
  const others = labels.filter(([name, value]) => name !== 'job' && value !== '');
  return [['job', job === '' ? DEFAULT_JOB : job], ...others];
}

/** Values that a path cannot carry, such as a slash or two dots, go as base64 ("API", "base64 encoding"). */
function formatGroupLabel([name, value]: Label): string {
  if (/^[\w:-][\w.:-]*$/.test(value)) return `/${name}/${value}`;
  return `/${name}@base64/${Buffer.from(value).toString('base64url')}`;
}

async function* writeBody(families: AsyncGenerator<Family>, groupLabels: readonly Label[]): AsyncGenerator<Uint8Array> {
  const exportLabels = openLabelExporter(groupLabels);
  const writer = openByteBuffer();
  for await (const family of families) {
    for (const line of listFamilyLines(family, exportLabels)) {
      writer.write(line);
      if (writer.sizeBytes >= PIECE_BYTES) yield writer.take();
    }
  }
  if (writer.sizeBytes > 0) yield writer.take();
}
