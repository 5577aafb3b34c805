import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Format, readPageType, TEXT_TYPE } from '../../src/exposition/format.ts';
import { readRecordedHeader } from '../support/recording.ts';

test('readPageType() knows the formats, versions and parameters of Prometheus', () => {
  const protobuf = 'application/vnd.google.protobuf';
  const proto = 'proto=io.prometheus.client.MetricFamily';
  const table: readonly (readonly [contentType: string, format: Format | null])[] = [
    ['', 'text'],
    [' ', 'text'],
    [TEXT_TYPE, 'text'],
    ['text/plain', 'text'],
    ['Text/Plain ; Version = "0.0.4"', 'text'],
    ['text/plain; version=1.0.0; charset=utf-8; escaping=allow-utf-8', 'text'],
    ['text/plain; version=0.0.3', null],
    ['text/plain; version', 'text'],
    ['application/openmetrics-text', 'openMetrics'],
    ['application/openmetrics-text; version=0.0.1; charset=utf-8', 'openMetrics'],
    ['application/openmetrics-text;version="1.0.0"', 'openMetrics'],
    ['application/openmetrics-text;version=2.0.0', null],
    [`${protobuf}; ${proto}; encoding=delimited`, 'protobuf'],
    [`${protobuf}; encoding="delimited"; ${proto}; escaping=underscores`, 'protobuf'],
    [`${protobuf}; ${proto}; encoding=text`, null],
    [`${protobuf}; ${proto}; encoding=compact-text`, null],
    [`${protobuf}; ${proto}`, null],
    [`${protobuf}; encoding=delimited`, null],
    [`${protobuf}; proto=io.prometheus.Other; encoding=delimited`, null],
    ['application/vnd.google.protobuf2', null],
    ['text/html; charset=utf-8', null],
    ['application/json', null],
    [';version=0.0.4', 'text'],
  ];
  for (const [contentType, format] of table)
    assert.equal(readPageType(contentType)?.format ?? null, format, contentType);
});

test('readPageType() knows what real programs answer', () => {
  const table = {
    'client_golang-1.23.2-openmetrics.txt': 'openMetrics',
    'client_golang-1.23.2-protobuf.bin': 'protobuf',
    'client_golang-1.23.2-text.txt': 'text',
    'prometheus_client-0.26.0-openmetrics.txt': 'openMetrics',
  };
  for (const [name, format] of Object.entries(table)) {
    assert.equal(readPageType(readRecordedHeader(`formats/${name}`, 'content-type'))?.format, format, name);
  }
});

test('readPageType() keeps the Content-Type as it came, and one that can be passed on', () => {
  for (const type of ['text/plain', 'TEXT/plain;  charset=UTF-8', 'application/openmetrics-text']) {
    assert.equal(readPageType(type)?.contentType, type);
  }
  for (const type of ['', ' ']) assert.equal(readPageType(type)?.contentType, TEXT_TYPE);
  for (const type of ['text/plain; a=é', 'text/plain; a=\0', 'text/plain;\n']) assert.equal(readPageType(type), null);
});
