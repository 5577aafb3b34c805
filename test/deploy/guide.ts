// The commands of deploy/README.md and README.md: each block names the test that runs it, or why none does.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/** A fenced block behind a marker: `<!-- run: NAME -->`, or `<!-- not run: REASON -->`. */
export type Block = {
  readonly marker: 'run' | 'not run';
  readonly name: string;
  readonly language: string;
  readonly text: string;
};

export const RUN_IN_CLUSTER = [
  'kept',
  'exporter report',
  'image',
  'policy',
  'check',
  'jobs policy',
  'jobs check',
  'jobs warning',
  'jobs report',
  'front example',
  'watch',
  'report',
  'example',
  'check in the pod',
  'verdict',
  'podmonitor',
  'servicemonitor',
  'networkpolicy',
  'alerts',
  'annotations',
  'annotations check',
  'all away',
] as const;

/** What test/deploy/guide.test.ts runs. */
export const RUN_HERE = ['rules'] as const;

/** What the cluster test runs where it has a real operator. */
export const RUN_WITH_OPERATOR = ['exporter image'] as const;

export type BlockName =
  | (typeof RUN_IN_CLUSTER)[number]
  | (typeof RUN_HERE)[number]
  | (typeof RUN_WITH_OPERATOR)[number];

export function readGuide(): string {
  const read = (page: string) => readFileSync(join(import.meta.dirname, '../..', page), 'utf8');
  const [, locust = ''] = /^## Locust\n([\s\S]*?)^## /m.exec(read('README.md')) ?? [];
  return `${locust}\n${read('deploy/README.md')}`;
}

/** Every marked block, in the order of the page. */
export function readBlocks(): readonly Block[] {
  const blocks = readGuide().matchAll(/^<!-- (run|not run): (.+) -->\n```(\w+)\n([\s\S]*?)^```$/gm);
  return [...blocks].map(([, marker, name = '', language = '', text = '']) => ({
    marker: marker as Block['marker'],
    name,
    language,
    text,
  }));
}

/** The text of one block. @throws when the page has not exactly one of that name. */
export function readBlock(name: BlockName): string {
  const found = readBlocks().filter((block) => block.marker === 'run' && block.name === name);
  const [block] = found;
  if (block === undefined || found.length > 1) {
    throw new Error(`Cannot find the block "run: ${name}" in the guide: there are ${found.length}; must be one`);
  }
  return block.text;
}
