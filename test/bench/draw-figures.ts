// `npm run figures`: draws image/figures/*.svg from the recorded tables, and writes texts and tables into the
// pages. Call it after `npm run --silent demo > image/figures/demo.txt` and after
// `npm run --silent measure -- --front > image/figures/jobs.md` (`--locust`: locust.md).

import { globSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { drawFigures, fillPage, type Recorded } from './figures.ts';

const ROOT = join(import.meta.dirname, '../..');

export function readRecorded(): Recorded {
  const read = (name: string) => readFileSync(join(ROOT, 'image/figures', name), 'utf8');
  return {
    bench: read('bench.md'),
    front: read('front.md'),
    keeper: read('keeper.md'),
    main: read('main.md'),
    frameworks: read('frameworks.md'),
    jobs: read('jobs.md'),
    locust: read('locust.md'),
    demo: read('demo.txt'),
  };
}

export const FIGURE_PAGES = globSync(['*.md', 'docs/*.md'], { cwd: ROOT }).toSorted();

export function writeFigures(): void {
  const recorded = readRecorded();
  const figures = drawFigures(recorded);
  for (const [name, { svg }] of Object.entries(figures)) writeFileSync(join(ROOT, 'image/figures', name), svg);
  for (const page of FIGURE_PAGES) {
    const before = readFileSync(join(ROOT, page), 'utf8');
    const after = fillPage(before, recorded, figures);
    if (after !== before) writeFileSync(join(ROOT, page), after);
  }
}

if (import.meta.main) writeFigures();
