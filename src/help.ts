// What `--help` and `--check` print, for a person. Pure.

import { type Config, type Kinds, listVariables } from './config.ts';
import { formatDuration } from './config-values.ts';
import { type LogEntry, MESSAGES } from './decide/messages.ts';
import { hasHold } from './decide/model.ts';
import { redactUrl } from './redact.ts';

const WIDTH = 100;

/** The whole of `--help`: every variable with its default, the kinds, the exit codes. */
export function formatHelp({ conditions, targets }: Kinds): string {
  const variables = listVariables({ conditions }).flatMap((variable) => [
    `  ${variable.name}=${variable.default}`,
    ...wrap(removeBackticks(variable.meaning), '      '),
  ]);
  const kinds = (rows: readonly { readonly usage: string; readonly meaning: string }[]) =>
    rows.flatMap(({ usage, meaning }) => wrap(`${usage.padEnd(18)}  ${removeBackticks(meaning)}`, '  '));
  return [
    "lastscrape: holds a Job's pod until Prometheus has taken its last scrape, then stops the helper containers",
    '',
    'Usage: lastscrape [--check | --version | --help]',
    '  (no argument)  watch, hold, quit, exit',
    '  --check        read the environment, print the plan and what is seen of it now, exit',
    '  --version, -v  print version, commit and the version of Node, exit',
    '  --help, -h     print this, exit',
    '',
    'Variables, with their defaults; an empty value means "not set":',
    ...variables,
    '',
    'LASTSCRAPE_DONE_WHEN is a comma list of:',
    ...kinds(conditions),
    '',
    'LASTSCRAPE_QUIT is a comma list, in order, of:',
    ...kinds([...targets, { usage: 'none', meaning: 'stops nothing' }]),
    '  A name with a port of its own takes another one as NAME:PORT, and one of its service as NAME:PORT:SERVICE_PORT.',
    '',
    'Durations: 500ms, 90s, 1m30s, 2h; a bare integer is seconds. A comma inside a URL is %2C.',
    '',
    'Exit codes: 0 done, 64 usage, 69 a target still runs, 70 a bug, 78 configuration, 130 a second SIGINT, or an interrupted --check',
    '',
  ].join('\n');
}

/** The whole of `--check`: what a run with this configuration would do; `found` is what this very pod shows now. */
export function formatPlan(config: Config, found: readonly string[]): string {
  const { limits, targets, conditions, metricsUrl } = config;
  const lines = [
    'The configuration is valid. This is what would be done:',
    '',
    `1. Watch    every ${formatDuration(limits.pollMs)}${config.isExporterRead ? `, reading ${redactUrl(metricsUrl.href)}` : ', without reading an exporter'}.`,
    `            Main is done when all of these hold, in two polls and for ${formatDuration(limits.settleMs)}:`,
    ...conditions.map(({ text }) => `              ${text}`),
    limits.startTimeoutMs === 0
      ? '            A main that is never seen alive is waited for without limit.'
      : `            A main that is not seen alive for ${formatDuration(limits.startTimeoutMs)} is not waited for any longer.`,
    limits.runTimeoutMs === 0
      ? '            A main that runs is watched without limit.'
      : `            A main that runs for ${formatDuration(limits.runTimeoutMs)} is treated as done.`,
    hasHold(limits)
      ? `2. Hold     until others have scraped ${limits.scrapesWantedCount === 1 ? 'once' : `${limits.scrapesWantedCount} times`} since main ended, for ${formatDuration(limits.ttlMs)} at most.`
      : '2. Hold     not at all (LASTSCRAPE_SCRAPES or LASTSCRAPE_TTL is 0).',
    ...(config.tombstonePath === null
      ? []
      : [
          `            Then write ${config.tombstonePath}, and again and again until exit${config.isDryRun ? ' (not in a dry run)' : ''}.`,
        ]),
    targets.length === 0
      ? '3. Quit     nothing (LASTSCRAPE_QUIT is none).'
      : `3. Quit     ${config.isDryRun ? 'nothing, but say so (LASTSCRAPE_DRY_RUN); else ' : ''}in this order, each within ${formatDuration(config.quitTimeoutMs)}:`,
    ...targets.map(({ name, request }) => `              ${name === request ? name : `${name}: ${request}`}`),
    `4. Report   in the log and in ${config.terminationLog.path}${config.terminationLog.isChosen ? '' : ', where that exists'}; then exit${config.isExitZero ? ' 0, always' : ''}.`,
    '',
    `After SIGTERM all of this has ${formatDuration(limits.terminationGraceMs)}; quitting gets at least 1s.`,
    '',
    ...(found.length === 0 ? [] : ['This is what the pod shows now:', '', ...found.map((line) => `  ${line}`), '']),
  ];
  return lines.join('\n');
}

/** A log entry as a line for a person. */
export function formatLogEntry({ id, fields }: LogEntry): string {
  const named = Object.entries(fields).map(([name, value]) => `${name} ${value}`);
  return `${MESSAGES[id].text} (${named.join(', ')})`;
}

function removeBackticks(meaning: string): string {
  return meaning.replaceAll('`', '');
}

function wrap(text: string, indent: string): string[] {
  const lines: string[] = [];
  let line = indent;
  for (const word of text.split(' ')) {
    if (line.length + word.length > WIDTH && line !== indent) {
      lines.push(line.trimEnd());
      line = `${indent}  `;
    }
    line += `${word} `;
  }
  return [...lines, line.trimEnd()];
}
