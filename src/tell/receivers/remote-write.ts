// Prometheus remote write 1.0: each line of the exposition as a series with one sample, and the type of its
// family as metadata. (prometheus.io, "Prometheus Remote-Write 1.0 specification"; prompb/remote.proto and
// types.proto of prometheus/prometheus 2.42.)

import { type ByteText, encodeBytes, encodeDouble, encodeInt64, encodeUtf8, packSnappy } from '../../base/wire.ts';
import type { Label } from '../../exposition/lexer.ts';
import type { Family, Sample } from '../../exposition/samples.ts';
import {
  type Batch,
  compareNames,
  judgeStatus,
  openBatch,
  openLabelExporter,
  type PushKind,
  type PushRequest,
  SOME_TIME_MS,
} from './receiver.ts';

// The tags of fields: number and wire type.
const REQUEST_SERIES = '\x0a';
const REQUEST_METADATA = '\x1a';
const SERIES_LABEL = '\x0a';
const SERIES_SAMPLE = '\x12';
const LABEL_NAME = '\x0a';
const LABEL_VALUE = '\x12';
const SAMPLE_VALUE = '\x09';
const SAMPLE_TIMESTAMP = '\x10';
const METADATA_TYPE = '\x08';
const METADATA_FAMILY = '\x12';
const METADATA_HELP = '\x22';

/** `MetricMetadata.MetricType`. */
const METADATA_TYPES = { untyped: '\0', counter: '\x01', gauge: '\x02', histogram: '\x03', summary: '\x05' };

/** `remote-write+http://…`; the URL of the endpoint, `/api/v1/write` if it has no path. */
export const remoteWrite: PushKind = {
  name: 'remote-write',
  findPath: ({ pathname, search }) => `${pathname === '/' ? '/api/v1/write' : pathname}${search}`,
  async *encode({ families, labels, url }) {
    const path = remoteWrite.findPath(url, labels);
    const headers = {
      'Content-Type': 'application/x-protobuf',
      'Content-Encoding': 'snappy',
      'X-Prometheus-Remote-Write-Version': '0.1.0',
    };
    const end = (batch: Batch): PushRequest => {
      const makeBytes = batch.take();
      return { method: 'POST', path, headers, body: (nowMs) => packSnappy(makeBytes(nowMs)) };
    };
    const exportLabels = openLabelExporter(labels);
    const batch = openBatch('latin1', encodeInt64);
    // One timestamp out of bounds fails the whole request (storage/remote/write_handler.go): they go apart.
    const timedBatch = openBatch('latin1');
    for await (const family of families()) {
      let metadata = family.isFirst ? encodeMetadata(family) : '';
      for (const sample of family.samples) {
        const piece = metadata + encodeSeries(sample, [...labels, ...exportLabels(sample.labels)]);
        metadata = '';
        const own = sample.timestampMs === null ? batch : timedBatch;
        if (own.isFullFor(piece)) yield end(own);
        own.add(piece);
      }
    }
    for (const each of [batch, timedBatch]) if (each.pointCount > 0) yield end(each);
  },
  judge: judgeStatus,
};

/** Sorts labels by name, as receivers demand, without those with an empty value. Ends with the time. */
function encodeSeries({ name, value, timestampMs }: Sample, labels: readonly Label[]): ByteText {
  const sorted = [['__name__', name] as const, ...labels].sort(compareNames);
  let series = '';
  for (const [label, labelValue] of sorted) {
    if (labelValue !== '') series += SERIES_LABEL + encodeBytes(encodeLabel(label, labelValue));
  }
  const sample = `${SAMPLE_VALUE}${encodeDouble(value)}${SAMPLE_TIMESTAMP}${encodeInt64(timestampMs ?? SOME_TIME_MS)}`;
  return REQUEST_SERIES + encodeBytes(`${series}${SERIES_SAMPLE}${encodeBytes(sample)}`);
}

function encodeLabel(name: string, value: string): ByteText {
  return `${LABEL_NAME}${encodeBytes(encodeUtf8(name))}${LABEL_VALUE}${encodeBytes(encodeUtf8(value))}`;
}

/** Empty if the exposition has no TYPE and HELP of the family. */
function encodeMetadata({ name, type, help }: Family): ByteText {
  if (type === 'untyped' && help === '') return '';
  const family = `${METADATA_FAMILY}${encodeBytes(encodeUtf8(name))}`;
  const helpText = help === '' ? '' : `${METADATA_HELP}${encodeBytes(encodeUtf8(help))}`;
  return REQUEST_METADATA + encodeBytes(`${METADATA_TYPE}${METADATA_TYPES[type]}${family}${helpText}`);
}
