// Run by hanging.test.ts next to a file system that hangs: reads it until it is gone, a line a read.
import { appendFileSync } from 'node:fs';
import { pathToFileURL } from 'node:url';
import { openFileSource } from '../../src/front/sources/file.ts';

const [path = '', output = ''] = process.argv.slice(2);
const sources = [`${path}/job.prom`, `${path}/`, `${path}/other.prom`, `${path}/fourth.prom`].map((each) =>
  openFileSource(pathToFileURL(each), [], () => {}),
);

async function readOnce(index: number, timeoutMs: number): Promise<string> {
  const controller = new AbortController();
  const timer = setTimeout(() => controller.abort('timed out'), timeoutMs);
  const beginning = await (sources[index] as (typeof sources)[0]).read(controller.signal).begun;
  clearTimeout(timer);
  const result = beginning.kind === 'failed' ? beginning.why : beginning.kind;
  appendFileSync(output, `${index} ${result}\n`);
  return result;
}

for (const index of [0, 0, 1, 2, 3, 0]) await readOnce(index, 50);
while ((await readOnce(0, 60_000)) === 'timed out');
