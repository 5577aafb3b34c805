import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Label } from '../../../src/exposition/lexer.ts';
import { pushgateway } from '../../../src/tell/receivers/pushgateway.ts';
import { encode } from './encode-push.ts';

const PATHS: readonly { readonly url: string; readonly labels: readonly Label[]; readonly path: string }[] = [
  { url: 'http://gateway:9091', labels: [], path: '/metrics/job/lastscrape' },
  { url: 'http://gateway:9091/', labels: [['job', '']], path: '/metrics/job/lastscrape' },
  {
    url: 'http://gateway/prefix/?a=b',
    labels: [
      ['pod', 'load-1-abc'],
      ['job', 'load'],
      ['namespace', ''],
    ],
    path: '/prefix/metrics/job/load/pod/load-1-abc?a=b',
  },
  {
    url: 'http://gateway',
    labels: [
      ['job', 'a/b'],
      ['dots', '..'],
      ['space', 'ä b'],
      ['instance', '127.0.0.1:9646'],
    ],
    path: '/metrics/job@base64/YS9i/dots@base64/Li4/space@base64/w6QgYg/instance/127.0.0.1:9646',
  },
];

test('pushgateway.findPath() puts the labels into the path, the job first, as base64 where a path could not carry them', () => {
  for (const { url, labels, path } of PATHS) assert.equal(pushgateway.findPath(new URL(url), labels), path);
});

test('pushgateway.encode() makes one PUT of all, without times, with each head once', async () => {
  const many = Array.from({ length: 1500 }, (_, index) => `many{text="${'x'.repeat(50)}",n="${index}"} ${index}\n`);
  const requests = await encode(
    pushgateway,
    [
      '# HELP a It has\\nlines, \\\\ and \\"quotes\\".\n# TYPE a counter\na{pod="own",b="\\"c\\"\\n"} 1e21 1700000000000\n',
      ...many,
      'a 2\n# HELP a Too late.\n{"odd.name","x.y"="1"} NaN\n{"odder.name"} +Inf\n# HELP b Plain.\nb -Inf\n',
    ].join(''),
    {
      labels: [
        ['job', 'load'],
        ['pod', 'p'],
      ],
    },
  );
  assert.equal(requests.length, 1);
  const [request] = requests;
  assert.equal(request?.method, 'PUT');
  assert.equal(request.path, '/metrics/job/load/pod/p');
  assert.deepEqual(request.headers, { 'Content-Type': 'text/plain; version=0.0.4; charset=utf-8' });
  assert.equal(
    request.body.toString(),
    [
      '# HELP a It has\\nlines, \\\\ and \\\\"quotes\\\\".\n# TYPE a counter\na{exported_pod="own",b="\\"c\\"\\n"} 1e+21\n',
      '# TYPE many untyped\n',
      ...many,
      'a 2\n',
      '# TYPE "odd.name" untyped\n{"odd.name","x.y"="1"} NaN\n',
      '# TYPE "odder.name" untyped\n{"odder.name"} +Inf\n',
      '# HELP b Plain.\n# TYPE b untyped\nb -Inf\n',
    ].join(''),
  );
});

test('pushgateway.encode() makes an empty body of no sample', async () => {
  const [request] = await encode(pushgateway, '# TYPE a counter\n');
  assert.deepEqual(request?.piecesBytes, []);
});

test('pushgateway.encode() writes its body in pieces of 64 KiB and what is left of a line', async () => {
  const line = `a{text="${'x'.repeat(987)}"} 1\n`;
  const [request] = await encode(pushgateway, `# TYPE a gauge\n${line.repeat(100)}`);
  assert.deepEqual(request?.piecesBytes, [66_015, 34_000]);
});
