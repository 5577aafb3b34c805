// Registers a scenario as a test, once for each exporter; a failure shows what every program said.
import { it } from 'node:test';
import { openPod, type Pod } from '../support/pod.ts';
import type { Programs } from '../support/programs.ts';

/** Longer than any sum of the bounds inside a scenario is likely to be, so that those speak first. */
const SCENARIO_MS = 600_000;

/** The scenario runs with the stand-in, and again with the real exporter where there is one. */
export function runScenario(programs: Programs, name: string, play: (pod: Pod) => Promise<void>): void {
  for (const exporter of programs.exporters) {
    it(`${name} (${exporter.name})`, { timeout: SCENARIO_MS }, async () => {
      await using pod = await openPod(programs, exporter);
      try {
        await play(pod);
      } catch (error) {
        const tails = pod.children.map((child) => child.tail()).join('\n');
        process.stderr.write(`${name} (${exporter.name}) failed; what its programs printed last:\n${tails}\n`);
        throw error;
      }
    });
  }
}
