// What a run leaves behind: the report in the termination message and as the last line of the log, and what
// stands there where no run was possible. Decides nothing.

import { redactUrl } from '../base/text.ts';
import { REPORT_BUGS_TO, VERSION } from '../base/version.ts';
import type { Config, Misconfigured, ReportSettings, TerminationLog } from '../config/config.ts';
import { EXIT, findProcessExitCode } from '../decide/exit-codes.ts';
import type { LogLevel } from '../decide/messages.ts';
import type { Policy } from '../decide/model.ts';
import { buildBugReport, buildMisconfiguredReport, buildReport, fitReport } from '../decide/report.ts';
import type { Report, ReportSource, ReportStage } from '../decide/report-fields.ts';
import type { State } from '../decide/state.ts';
import { formatTime, type Host } from './host.ts';
import { type Log, openLog } from './log.ts';
import { writeTerminationMessage } from './termination-message.ts';

/** The reports of one run. */
export type Reporter = {
  readonly build: (state: State, stage: ReportStage) => Report;
  /** Writes the termination message; warns once where it cannot be written. */
  readonly write: (report: Report) => void;
};

/** Opens the reports of a run. `toWallMs`: a monotonic moment as milliseconds since 1970. */
export function openReporter(
  host: Host,
  { metricsUrl, terminationLog }: Pick<Config, 'metricsUrl' | 'terminationLog'>,
  policy: Policy,
  toWallMs: (atMs: number) => number,
  log: Log,
): Reporter {
  let hasWriteFailed = false;
  return {
    build: (state, stage) =>
      fitReport(
        buildReport({
          state,
          policy,
          source: findReportSource(metricsUrl),
          nowMs: host.nowMs(),
          toTime: (atMs) => formatTime(toWallMs(atMs)),
          stage,
          version: VERSION,
        }),
      ),
    write(report) {
      const problem = writeReport(terminationLog, report);
      if (problem === null || hasWriteFailed) return;
      hasWriteFailed = true;
      log.write({ id: 'messageUnwritable', fields: { problem } });
    },
  };
}

function findReportSource({ protocol, hostname, port, pathname }: URL): ReportSource {
  if (protocol === 'file:') return { kind: 'files', at: pathname };
  return { kind: 'exporter', at: `${hostname}:${port || 80}` };
}

/** Reports on stderr and in the termination message that nothing can be done with this configuration. */
export function reportMisconfigured(host: Host, { problems, terminationLog }: Misconfigured): void {
  host.stderr(`${problems.join('\n')}\n`);
  const problem = writeReport(terminationLog, fitReport(buildMisconfiguredReport(problems, VERSION)));
  if (problem !== null) host.stderr(`${problem}\n`);
}

/** Reports a bug in the log, as the last line and in the termination message; returns the exit code. */
export function reportBug(
  host: Host,
  { isExitZero, terminationLog }: ReportSettings,
  error: unknown,
  log = openRunLog(host, 'info'),
): number {
  const summary = redactUrl(error instanceof Error ? error.message : String(error));
  const report = fitReport(buildBugReport(summary, VERSION));
  log.write({ id: 'bug', fields: { error: describeError(error), reportTo: REPORT_BUGS_TO } });
  const problem = writeReport(terminationLog, report);
  if (problem !== null) log.write({ id: 'messageUnwritable', fields: { problem } });
  log.report(report);
  return findProcessExitCode(EXIT.bug, isExitZero);
}

/** What was thrown, for a person: with its stack, and without secrets of a URL. */
export function describeError(error: unknown): string {
  return redactUrl(error instanceof Error ? (error.stack ?? error.message) : String(error));
}

/** The log of a run on stdout. */
export function openRunLog(host: Host, level: LogLevel): Log {
  return openLog({ level, print: host.stdout, time: () => formatTime(host.wallMs()) });
}

/** Why it could not be written; or null. */
function writeReport({ path, isChosen }: TerminationLog, report: Report): string | null {
  return writeTerminationMessage(path, isChosen, JSON.stringify(report));
}
