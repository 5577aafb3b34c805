// Golden files: a text whose end is what the code makes of its beginning. `npm run golden` writes them again.

import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { test } from 'node:test';

/** Writes the text again; `name` is that of the file. */
export type Play = (text: string, name: string) => string | Promise<string>;

/** The texts of a folder of `fixtures/`. */
export function listGoldens(folderName: string) {
  const folder = new URL(`../../fixtures/${folderName}/`, import.meta.url);
  const files = readdirSync(folder).filter((file) => file.endsWith('.txt'));
  return files.map((file) => {
    const url = new URL(file, folder);
    return { name: file.replace('.txt', ''), url, text: readFileSync(url, 'utf8') };
  });
}

/** A test for each: that `what` still writes it, and one that there are as many as there should be. */
export function testGoldens(what: string, folderName: string, leastCount: number, play: Play): void {
  const goldens = listGoldens(folderName);
  test(`fixtures/${folderName} has ${leastCount} files at least`, () => assert.ok(goldens.length >= leastCount));
  for (const { name, text } of goldens) {
    test(`${what} ${name}`, async () => assert.equal(await play(text, name), text));
  }
}
