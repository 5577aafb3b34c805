// Runs a demo as a person does, in a pipe or a terminal, and reads what it shows.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';

const LINE_END = /\r*\n/;
// biome-ignore lint/suspicious/noControlCharactersInRegex: it is what colours begin with
const COLOURS = /\u001b\[\d+m/g;

type Shown = { readonly code: number; readonly lines: readonly string[]; readonly hasColor: boolean };

/** Runs it; `columns`: in a terminal that says it is that wide. */
export async function runDemo(
  columns?: number,
  env: Readonly<Record<string, string>> = {},
  option = '',
): Promise<Shown> {
  const demo = `${process.execPath} ${join(import.meta.dirname, '../demo.ts')} ${option}`.trimEnd();
  const command =
    columns === undefined
      ? ['sh', '-c', demo]
      : ['script', '--quiet', '--return', '--command', `stty cols ${columns}; ${demo}`, '/dev/null'];
  const [file = '', ...args] = command;
  const { PATH = '' } = process.env;
  const child = spawn(file, args, { stdio: ['ignore', 'pipe', 'inherit'], env: { PATH, ...env } });
  const [[code], shown] = await Promise.all([once(child, 'close'), text(child.stdout)]);
  return { code, lines: shown.replaceAll(COLOURS, '').split(LINE_END), hasColor: shown.includes('\u001b[') };
}

/** The lines of the timeline: seconds, pod, who, what. */
export function readTimeline(lines: readonly string[]): readonly { atSeconds: number; pod: string; what: string }[] {
  return lines.flatMap((line) => {
    const [, seconds, pod = '', what = ''] = /^ *(\d+\.\d) s {2}(A\+B\+C|A\+B|A|B|C) +(.+)$/.exec(line) ?? [];
    return seconds === undefined ? [] : [{ atSeconds: Number(seconds), pod, what }];
  });
}
