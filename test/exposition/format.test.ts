import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Format, readPageType, TEXT_TYPE } from '../../src/exposition/format.ts';

test('readPageType() tells formats by the media type, as Prometheus does', () => {
  const table: Readonly<Record<string, Format>> = {
    'Text/Plain ; Version = "0.0.4"': 'text',
    'application/openmetrics-text': 'openMetrics',
    'Application/OpenMetrics-Text ; version=2.0.0': 'openMetrics',
    'application/vnd.google.protobuf; encoding="delimited"; escaping=underscores': 'protobuf',
  };
  for (const [contentType, format] of Object.entries(table))
    assert.deepEqual(readPageType(contentType), { format, contentType });
});

test('readPageType() takes any other for text 0.0.4, and none, and what cannot be passed on', () => {
  const others = ['', ' ', ';version=0.0.4', 'text/html; charset=utf-8', 'application/vnd.google.protobuf2'];
  for (const type of [...others, 'constructor', 'text/plain; a=é', 'text/plain; a=\0', 'text/plain;\n'])
    assert.deepEqual(readPageType(type), { format: 'text', contentType: TEXT_TYPE });
});
