import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Format, readPageType, TEXT_TYPE } from '../../src/exposition/format.ts';

test('readPageType() tells formats by the media type, as Prometheus does; any other is text', () => {
  const table: Readonly<Record<string, Format>> = {
    'Text/Plain ; Version = "0.0.4"': 'text',
    'text/html; charset=utf-8': 'text',
    ';version=0.0.4': 'text',
    'application/openmetrics-text': 'openMetrics',
    'Application/OpenMetrics-Text ; version=2.0.0': 'openMetrics',
    'application/openmetrics-texts': 'text',
    'application/vnd.google.protobuf; encoding="delimited"; escaping=underscores': 'protobuf',
    'application/vnd.google.protobuf2': 'text',
  };
  for (const [contentType, format] of Object.entries(table))
    assert.deepEqual(readPageType(contentType), { format, contentType });
});

test('readPageType() takes none for text 0.0.4, and what cannot be passed on', () => {
  for (const type of ['', ' ', 'text/plain; a=é', 'text/plain; a=\0', 'text/plain;\n'])
    assert.deepEqual(readPageType(type), { format: 'text', contentType: TEXT_TYPE });
});
