// The demo of the hand-over as it is seen: in a pipe and in terminals of two widths, all at once.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { gateProgram } from '../image/dist.ts';
import { readTimeline, runDemo } from '../support/run-demo.ts';

const skip = gateProgram('test/keeper/demo.test.ts', 'script', 'bsdutils');
/** It takes 21 s, gives up after 90 s, and is played again where the hand-over came too late. */
const DEMO_MS = 600_000;

async function runInTime(columns?: number): ReturnType<typeof runDemo> {
  const shown = await runDemo(columns, {}, '--hand-over');
  return shown.lines.some((line) => line.includes('the hand-over failed')) ? runInTime(columns) : shown;
}

describe('the demo of the hand-over', { skip, concurrency: true, timeout: DEMO_MS }, () => {
  test('in a pipe: one pod ends after the scrape, one before it, and both keep their numbers', async () => {
    const { code, lines, hasColor } = await runInTime();
    assert.equal(code, 0, lines.join('\n'));
    assert.equal(hasColor, false);
    const timeline = readTimeline(lines);
    const at = (pod: string, what: RegExp) => timeline.findIndex((line) => line.pod === pod && what.test(line.what));
    const ended = (pod: string) => at(pod, /^lastscrape +exits with 0/);
    const order = [
      at('A+B', /^job +starts/),
      at('B', /^lastscrape +handed over/),
      ended('B'),
      at('B', /^keeper +lists it as a target/),
      at('A', /^Prometheus +scrape 2: stores 100 files/),
      ended('A'),
    ];
    assert.ok(order[0] !== -1);
    assert.deepEqual(
      order,
      order.toSorted((one, other) => one - other),
      lines.join('\n'),
    );
    assert.ok(at('B', /^Prometheus +scrape 2: stores 100 files/) > ended('B'));
    const [held = '', handedOver = ''] = lines.filter((line) => /^ {2}[AB] {2}█+/.test(line));
    const waits = (line: string) => line.replaceAll(/[^░]/g, '').length;
    assert.ok(waits(held) > 2 * waits(handedOver), lines.join('\n'));
  });

  for (const columns of [60, 80]) {
    test(`in a terminal of ${columns} columns no line is longer than that`, async () => {
      const { code, lines } = await runInTime(columns);
      assert.equal(code, 0, lines.join('\n'));
      assert.deepEqual(
        lines.filter((line) => line.length > columns),
        [],
      );
    });
  }
});
