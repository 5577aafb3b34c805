// What an encoder holds of 3 MB while they are sent: one request, its buffers, and a few numbers for each
// line of a histogram. docs/push.md has what a process needs with it.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readFamilies } from '../../../src/snapshot/body.ts';
import { PUSH_KINDS } from '../../../src/tell/telling.ts';
import { usedBytes } from '../../support/memory.ts';

const BODY_BYTES = 3_000_000;
/** Of the whole body as objects it would be 20 to 40 MB. */
const USED_MAX_BYTES = 5_000_000;

const BOUNDS = ['0.005', '0.05', '0.5', '1', '2.5', '5', '10', '30', '60', '+Inf'];

/** Lines of a family by its number. */
const SHAPES: Readonly<Record<string, (number: number) => string>> = {
  'one family': (number) =>
    `${number === 0 ? '# TYPE requests gauge\n' : ''}requests{method="GET",name="/api/things/${number}"} ${number / 7}\n`,
  'a histogram': (number) => {
    const labels = `method="GET",name="/api/things/${number}"`;
    const buckets = BOUNDS.map((bound, index) => `seconds_bucket{${labels},le="${bound}"} ${index}\n`);
    const head = number === 0 ? '# TYPE seconds histogram\n' : '';
    return `${head}${buckets.join('')}seconds_sum{${labels}} 1.5\nseconds_count{${labels}} 9\n`;
  },
  'many families': (number) =>
    `# HELP family_number_${number} One of very many.\n# TYPE family_number_${number} counter\nfamily_number_${number} 1\n`,
};

async function* writeBody(makeLines: (number: number) => string): AsyncGenerator<Uint8Array> {
  let number = 0;
  for (let bytes = 0; bytes < BODY_BYTES; ) {
    let text = '';
    while (text.length < 65_536) text += makeLines(number++);
    bytes += text.length;
    yield Buffer.from(text);
  }
}

for (const kind of PUSH_KINDS) {
  for (const [shape, makeLines] of Object.entries(SHAPES)) {
    test(`${kind.name} holds little of 3 MB of ${shape}`, async () => {
      const parts = {
        families: () => readFamilies(writeBody(makeLines)),
        labels: [['job', 'load']] as const,
        url: new URL('http://127.0.0.1'),
      };
      const before = usedBytes();
      let most = 0;
      let sentBytes = 0;
      let pieceCount = 0;
      for await (const request of kind.encode(parts)) {
        const body = request.body(0);
        for await (const piece of body instanceof Uint8Array ? [body] : body) {
          sentBytes += piece.length;
          // Collecting garbage takes its time.
          if (pieceCount++ % 4 === 0) most = Math.max(most, usedBytes() - before);
        }
      }
      assert.ok(sentBytes > 500_000, `it sent ${sentBytes} bytes`);
      assert.ok(most < USED_MAX_BYTES, `it used ${most} bytes`);
    });
  }
}
