// `npm run figures` draws src/'s folders and who imports whom: image/figures/house.svg.

import { type Drawing, drawCard, LEFT, line, RIGHT, text } from '../bench/svg.ts';
import { listFloors, listFolderImports } from './house.ts';

const FLOOR_HEIGHT = 62;
const BOX_WIDTH = 132;
const BOX_HEIGHT = 34;

/** Draws the house. An arrow that a longer way replaces is left out, else the others would not be seen. */
export function drawHouse(): Drawing {
  const folders = listFolderImports();
  const floors = listFloors(folders).toReversed();
  const arrows = listShownArrows(folders);
  return drawCard({
    title: 'Who imports whom in src/',
    note: 'Each box is a folder; every import points down. An arrow is left out where a longer way leads to the same folder.',
    data: floors
      .map((floor) =>
        floor.map((each) => `${each}: ${[...(folders.get(each) ?? [])].sort().join(', ') || 'nothing'}`).join('; '),
      )
      .join('; '),
    draw(top) {
      const places = new Map<string, { readonly x: number; readonly y: number }>();
      for (const [row, floor] of floors.entries()) {
        for (const [index, folder] of floor.entries()) {
          const x = LEFT + ((RIGHT - LEFT) * (index + 0.5)) / floor.length;
          places.set(folder, { x, y: top + row * FLOOR_HEIGHT });
        }
      }
      const at = (folder: string) => places.get(folder) ?? { x: 0, y: 0 };
      const lines = arrows.map(([from, to]) => {
        const [start, end] = [at(from), at(to)];
        return line(start.x, start.y + BOX_HEIGHT, end.x, end.y);
      });
      const boxes = [...places].flatMap(([folder, { x, y }]) => [
        `<rect class="card" x="${(x - BOX_WIDTH / 2).toFixed(0)}" y="${y}" width="${BOX_WIDTH}" height="${BOX_HEIGHT}" rx="4"/>`,
        text(x, y + 22, folder, 'own', 'middle'),
      ]);
      return { parts: [...lines, ...boxes], bottom: top + floors.length * FLOOR_HEIGHT };
    },
  });
}

/** The imports between folders, without those that a longer way replaces. */
function listShownArrows(folders: ReadonlyMap<string, ReadonlySet<string>>): readonly (readonly [string, string])[] {
  const reach = (from: string, to: string): boolean =>
    [...(folders.get(from) ?? [])].some((next) => next === to || reach(next, to));
  return [...folders].flatMap(([from, below]) =>
    [...below]
      .filter((to) => ![...below].some((other) => other !== to && reach(other, to)))
      .map((to) => [from, to] as const),
  );
}
