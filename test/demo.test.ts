// The demos as they are seen: in a pipe and in terminals of several widths, all at once.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { gateProgram } from './image/dist.ts';
import { readTimeline, runDemo } from './support/run-demo.ts';

const FILE = 'test/demo.test.ts';
/** It takes 18 s, and gives up after 90 s of lastscrape. */
const DEMO_MS = 150_000;
const skip = gateProgram(FILE, 'script', 'bsdutils');

function assertOrder(order: readonly number[], lines: readonly string[]): void {
  const sorted = order.toSorted((one, other) => one - other);
  assert.ok(!order.includes(-1) && order.join() === sorted.join(), lines.join('\n'));
}

describe('the demo', { skip, concurrency: true, timeout: DEMO_MS }, () => {
  test('in a pipe: the hold is seen, and the two numbers stand side by side', async () => {
    const { code, lines, hasColor } = await runDemo();
    assert.equal(code, 0, lines.join('\n'));
    assert.equal(hasColor, false);
    const timeline = readTimeline(lines);
    const at = (pod: string, what: RegExp) => timeline.findIndex((line) => line.pod === pod && what.test(line.what));
    const [ended, exit] = [at('A+B', /^Locust +has ended/), at('B', /^lastscrape +exits with 0/)];
    const exporterEnd = at('A', /^exporter +ended by the kubelet/);
    assertOrder([ended, exporterEnd, at('A', /^Prometheus +scrape \d: no target any more/)], lines);
    // Two processes: on a busy machine lastscrape may say later than Prometheus what came before.
    const hold = [at('B', /^lastscrape +main ended/), at('B', /^demo +the pod is held/)];
    assertOrder([ended, ...hold, exit], lines);
    assertOrder([ended, at('B', /^Prometheus +scrape \d: stores 219 requests, locust_up 0/), exit], lines);
    assert.doesNotMatch(lines.join('\n'), /\d\.\d{3}(?!Z)\b/, 'more digits than anybody reads');
    const [, lost, stored] = lines.flatMap((line) => /^ {2}requests +(\d+) of 219 +(\d+) of 219$/.exec(line) ?? []);
    assert.ok(Number(lost) < 219 && stored === '219', `${lost} and ${stored}`);
  });

  for (const columns of [0, 80, 200]) {
    test(`in a terminal of ${columns} columns no line is wrapped`, async () => {
      const { code, lines, hasColor } = await runDemo(columns);
      assert.equal(code, 0, lines.join('\n'));
      assert.equal(hasColor, true);
      const wide = lines.filter((line) => line.length > 80);
      assert.deepEqual(wide, []);
      const indented = lines.filter((line) => /^ {24,}\S/.test(line) && !line.includes('A: without'));
      assert.deepEqual(indented, []);
    });
  }

  test('in a narrow terminal lines are wrapped between words, without colours where none are wanted', async () => {
    const { code, lines, hasColor } = await runDemo(60, { NO_COLOR: '1' });
    assert.equal(code, 0, lines.join('\n'));
    assert.equal(hasColor, false);
    const wide = lines.filter((line) => line.length > 60);
    assert.deepEqual(wide, []);
    assert.ok(readTimeline(lines).length > 20);
  });
});

describe('the demo of a job with its own /metrics', { skip, concurrency: true, timeout: DEMO_MS }, () => {
  test('in a pipe: one pod loses the end, one the last step, one nothing', async () => {
    const { code, lines, hasColor } = await runDemo(undefined, {}, '--front');
    assert.equal(code, 0, lines.join('\n'));
    assert.equal(hasColor, false);
    const timeline = readTimeline(lines);
    const at = (pod: string, what: RegExp) => timeline.findIndex((line) => line.pod === pod && what.test(line.what));
    for (const pod of ['B', 'C']) {
      const order = [
        at('A+B+C', /^job +starts/),
        at(pod, /^job +has ended/),
        at(pod, /^kubelet +sends SIGTERM/),
        timeline.findLastIndex((line) => line.pod === pod && /^Prometheus +scrape \d: stores/.test(line.what)),
        at(pod, /^lastscrape +exits with 0/),
      ];
      assertOrder(order, lines);
    }
    assert.ok(at('A', /^Prometheus +scrape \d: nothing answers any more/) > 0);
    const row = (name: string) =>
      lines.filter((line) => line.startsWith(`  ${name} `)).map((line) => line.trim().split(/ {2,}/).slice(1));
    assert.match(row('files')[0]?.[2] ?? '', /^100 of 100$/);
    assert.deepEqual(row('success'), [['no', 'no', 'yes']]);
  });

  for (const columns of [60, 80]) {
    test(`in a terminal of ${columns} columns no line is longer than that`, async () => {
      const { code, lines } = await runDemo(columns, {}, '--front');
      assert.equal(code, 0, lines.join('\n'));
      const wide = lines.filter((line) => line.length > columns);
      assert.deepEqual(wide, []);
    });
  }
});
