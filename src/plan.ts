// What `--check` prints, for a person: what would be done, and what is seen of it now. Pure.

import type { Config } from './config.ts';
import { formatDuration } from './config-values.ts';
import { hasHold } from './decide/model.ts';
import { redactHref } from './redact.ts';

/** What `--check` found out. */
export type Findings = {
  readonly isPod: boolean;
  /** In the order of the configuration; a name may come more than once. */
  readonly lines: readonly { readonly name: string; readonly text: string }[];
  readonly warnings: readonly string[];
  /** Why entries cannot work in this very pod. */
  readonly problems: readonly string[];
};

/** The whole of `--check`: what a run with this configuration would do, and what was found. */
export function formatPlan(config: Config, { isPod, lines, warnings, problems }: Findings): string {
  const { limits, targets, conditions, metricsUrl } = config;
  return [
    problems.length === 0
      ? 'The configuration is valid. This is what would be done:'
      : 'The configuration can be read, and it cannot work in this pod (see the end). This is what would be done if it could:',
    '',
    `1. Watch    every ${formatDuration(limits.pollMs)}${config.isExporterRead ? `, reading ${redactHref(metricsUrl)}` : ', without reading an exporter'}.`,
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
    isPod
      ? 'This is what the pod shows now:'
      : 'This is no pod of Kubernetes. This is what can be seen here, and what it will need there:',
    '',
    ...lines.map(({ name, text }) => `  ${name}: ${text}`),
    ...warnings.map((warning) => `  warning: ${warning}`),
    '',
  ].join('\n');
}
