// `lastscrape explain`: reads stdin, prints what keeps its pods and Jobs. The only file here that is not
// pure.

import { createReadStream } from 'node:fs';
import { VERSION } from '../base/version.ts';
import type { Kinds } from '../config/config.ts';
import { EXIT } from '../decide/quit/exit-codes.ts';
import type { Host } from '../run/host.ts';
import { explainObject } from './explain.ts';
import { formatExplained, formatJson } from './format.ts';
import { INPUT_MAX_BYTES, readInput, splitInput, USAGE } from './input.ts';
import { readTargets } from './targets.ts';

/**
 * Explains what stdin has. @param targetsFile an answer of Prometheus; `-`: on stdin, after the pod
 * @returns the exit code; usage where stdin is a terminal
 */
export async function runExplain(host: Host, kinds: Kinds, isJson: boolean, targetsFile?: string): Promise<number> {
  const stdin = host.stdin();
  const refuse = (is: string, code: number = EXIT.unreadable) => {
    const must = `the JSON of pods or Jobs, ${INPUT_MAX_BYTES / 1024 / 1024} MiB at most: "${USAGE}"`;
    host.stderr(`Cannot explain what stdin has: ${is}; must be ${must}\n`);
    return code;
  };
  if (stdin.isTTY === true) return refuse('it is a terminal', EXIT.usage);
  const text = await readText(stdin).catch((error: NodeJS.ErrnoException) => error);
  if (text instanceof Error) return refuse(`it cannot be read (${text.code ?? text})`);
  if (text === null) return refuse('it is too long; name one pod, or add --selector');
  const [pods, behind] = targetsFile === '-' ? splitInput(text) : [text, null];
  const input = readInput(pods);
  if ('is' in input) return refuse(input.is);
  const answer =
    targetsFile === undefined ? null : (behind ?? (await readText(createReadStream(targetsFile)).catch(() => '')));
  const targets = answer === null ? null : readTargets(answer);
  if (targetsFile !== undefined && targets === null) {
    const is = answer === null ? 'longer than 8 MiB' : 'no such answer';
    host.stderr(
      `Cannot read the targets in "${targetsFile}": it is ${is}; must be JSON of at most 8 MiB: "curl --silent PROMETHEUS:9090/api/v1/targets > FILE"\n`,
    );
    return EXIT.unreadable;
  }
  const nowMs = host.wallMs();
  const explanations = input.objects.map((object) => explainObject(object, nowMs, kinds, targets));
  const explained = { explanations, others: input.others, nowMs };
  host.stdout(isJson ? formatJson(explained, VERSION) : formatExplained(explained));
  return EXIT.done;
}

/** The whole of it; null: too long. PowerShell pipes UTF-16. */
async function readText(stdin: AsyncIterable<string | Uint8Array>): Promise<string | null> {
  const pieces: Uint8Array[] = [];
  let byteCount = 0;
  for await (const piece of stdin) {
    const bytes = typeof piece === 'string' ? new TextEncoder().encode(piece) : piece;
    byteCount += bytes.length;
    if (byteCount > INPUT_MAX_BYTES) return null;
    pieces.push(bytes);
  }
  const all = Buffer.concat(pieces);
  return all[0] === 0xff && all[1] === 0xfe ? all.toString('utf16le') : all.toString('utf8');
}
