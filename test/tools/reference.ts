// `npm run reference`: writes what docs/reference.md has of the code, between its markers.

import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { KEEP_VARIABLES } from '../../src/config/keep-variables.ts';
import { VARIABLES } from '../../src/config/variables.ts';
import { MESSAGES, type MessageId } from '../../src/decide/messages.ts';
import { EXIT } from '../../src/decide/quit/exit-codes.ts';
import { KINDS } from '../../src/main.ts';
import { PRESETS } from '../../src/quit/programs.ts';
import { TARGET_PROGRAMS } from '../pods/target-programs.ts';
import { STAND_INS } from '../stand-in/quit-targets.ts';
import { CAUSES, EXIT_CODES, OUTCOMES, REPORT_FIELDS } from './reference-texts.ts';

const PAGE = join(import.meta.dirname, '../../docs/reference.md');

/** Where a line of the page is broken. */
const WIDTH = 120;

/** A list item, broken into lines. A code span stays on one. */
function writeItem(text: string): string {
  const lines = ['-'];
  for (const word of text.match(/(?:`[^`]*`|[^\s`])+/g) ?? []) {
    const line = lines.at(-1) ?? '';
    if (line.length + 1 + word.length > WIDTH) lines.push(`  ${word}`);
    else lines[lines.length - 1] = `${line} ${word}`;
  }
  return lines.join('\n');
}

/** What the code says, by the marker of the page. */
export function writeParts(): Readonly<Record<string, readonly string[]>> {
  const presets: readonly string[] = PRESETS.map(({ name }) => name);
  return {
    variables: VARIABLES.map(({ name, default: value, defaultOtherwise, meaning }) => {
      const otherwise = defaultOtherwise === undefined ? '' : ` (${defaultOtherwise})`;
      return `**\`${name}\`**, default \`${value}\`${otherwise}: ${meaning}`;
    }),
    'keeper variables': KEEP_VARIABLES.map(
      ({ name, default: value, meaning }) => `**\`${name}\`**, default \`${value}\`: ${meaning}`,
    ),
    conditions: KINDS.conditions.map(({ usage, meaning }) => `\`${usage}\`: ${meaning}`),
    targets: [
      '`PRESET[:PORT[:SERVICE_PORT]]`: a program that is known by name: [presets](#presets)',
      ...KINDS.targets
        .filter(({ usage }) => !presets.includes(usage))
        .map(({ usage, meaning }) => `\`${usage}\`: ${meaning}`),
      '`none`: stops nothing',
    ],
    presets: PRESETS.map(({ name, path, port, servicePorts, flag }) => {
      const ports = port === null ? 'the port of `LASTSCRAPE_METRICS_URL`' : [port, ...servicePorts].join(', ');
      const needs = flag === null || flag === undefined ? '' : ` Needs ${flag}.`;
      return `\`${name}\`: \`POST ${path}\` on ${ports}.${needs} Tested: ${provenOn(name)}.`;
    }),
    outcomes: Object.entries(OUTCOMES).map(([name, text]) => `\`${name}\`: ${text}`),
    'exit codes': Object.entries(EXIT).map(([name, code]) => `${code}: ${EXIT_CODES[name as keyof typeof EXIT]}`),
    report: Object.entries(REPORT_FIELDS).map(([name, text]) => `\`${name}\`: ${text}`),
    messages: (Object.keys(MESSAGES) as MessageId[]).flatMap((id) => {
      const { level, text } = MESSAGES[id];
      const cause = CAUSES[id] ?? null;
      return cause === null ? [] : [`\`${shorten(text)}\` (${level}). ${cause}`];
    }),
  };
}

export function shorten(text: string): string {
  const [start = '', ...rest] = text.split(': ');
  return rest.length === 0 ? start : `${start}: …`;
}

/** The real program that test/pods stops, or what a stand-in was written from. @throws where a preset has neither. */
function provenOn(preset: string): string {
  const program = TARGET_PROGRAMS.find(({ entry }) => entry === preset);
  if (program !== undefined) return program.name;
  const standIn = STAND_INS.find((each) => each.preset === preset);
  if (standIn !== undefined) return `stand-in from ${standIn.from}`;
  if (preset !== 'locust-exporter') throw new Error(`Cannot say what "${preset}" was proven on: no test stops it`);
  return 'stand-in and recordings of locust_exporter; 0.5.0 is the first that can be quit';
}

/** The page with each part between its markers. @throws where the page lacks a marker. */
export function fillReference(page: string): string {
  let filled = page;
  for (const [marker, items] of Object.entries(writeParts())) {
    const region = new RegExp(`(?<=<!-- ${marker} -->\n)[\\s\\S]*?(?=<!-- /${marker} -->)`);
    if (!region.test(filled)) throw new Error(`Cannot fill docs/reference.md: it lacks the marker "${marker}"`);
    filled = filled.replace(region, () => `\n${items.map(writeItem).join('\n')}\n\n`);
  }
  return filled;
}

if (import.meta.main) writeFileSync(PAGE, fillReference(readFileSync(PAGE, 'utf8')));
