// What a run leaves behind: the report in the termination message and as the last line of the log, and what
// stands there where no run was possible. The message is a file that the kubelet reads when the container
// ends, mounted into it, so it is rewritten in place and never renamed. Decides nothing.

import { accessSync, closeSync, constants, ftruncateSync, openSync, statSync, writeSync } from 'node:fs';
import { dirname } from 'node:path';
import { formatJson, redactUrl } from '../base/text.ts';
import { REPORT_BUGS_TO, VERSION } from '../base/version.ts';
import { buildPolicy, type Misconfigured, type ReportSettings, type TerminationLog } from '../config/config.ts';
import type { LogLevel } from '../decide/messages.ts';
import { findSourceKind } from '../decide/model.ts';
import { EXIT, findProcessExitCode } from '../decide/quit/exit-codes.ts';
import { buildBugReport, buildMisconfiguredReport, buildReport, fitReport } from '../decide/report/report.ts';
import type { Report, ReportSource, ReportStage } from '../decide/report/report-fields.ts';
import type { State } from '../decide/state.ts';
import type { Host } from './host.ts';
import { type Log, openLog } from './log.ts';
import type { Opening } from './parts.ts';

/** Opens the reports of a run. */
export function openReporter({ host, config, toWallMs, log }: Opening) {
  const { metricsUrl, terminationLog } = config;
  const policy = buildPolicy(config);
  let hasWriteFailed = false;
  return {
    build: (state: State, stage: ReportStage): Report =>
      fitReport(
        buildReport({
          state,
          policy,
          source: findReportSource(metricsUrl),
          nowMs: host.nowMs(),
          toTime: (atMs) => new Date(toWallMs(atMs)).toISOString(),
          stage,
          version: VERSION,
        }),
      ),
    /** Writes the termination message; warns once where it cannot be written. */
    write(report: Report): void {
      const problem = writeTerminationMessage(terminationLog, formatJson(report));
      if (problem === null || hasWriteFailed) return;
      hasWriteFailed = true;
      log.write({ id: 'messageUnwritable', fields: { problem } });
    },
  };
}

function findReportSource(url: URL): ReportSource {
  const { hostname, port, pathname } = url;
  const kind = findSourceKind(url);
  return { kind, at: kind === 'files' ? pathname : `${hostname}:${port || 80}` };
}

/** Reports on stderr and in the termination message that nothing can be done with this configuration. */
export function reportMisconfigured(host: Host, { problems, terminationLog }: Misconfigured): void {
  host.stderr(`${problems.join('\n')}\n`);
  const report = fitReport(buildMisconfiguredReport(problems, VERSION));
  const problem = writeTerminationMessage(terminationLog, formatJson(report));
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
  const problem = writeTerminationMessage(terminationLog, formatJson(report));
  if (problem !== null) log.write({ id: 'messageUnwritable', fields: { problem } });
  log.report(report);
  return findProcessExitCode(EXIT.bug, { isExitZero });
}

/** What was thrown, for a person: with its stack, and without secrets of a URL. */
export function describeError(error: unknown): string {
  return redactUrl(error instanceof Error ? (error.stack ?? error.message) : String(error));
}

/** The log of a run on stdout. */
export function openRunLog(host: Host, level: LogLevel): Log {
  return openLog({ level, print: host.stdout, time: () => new Date(host.wallMs()).toISOString() });
}

/** Every old text of ours is shorter; a longer file is not ours. */
const OLD_TEXT_MAX_BYTES = 4_096;

/** Writes `text`; returns why not, or null. A missing file is no problem unless the user chose the path. */
export function writeTerminationMessage({ path, isChosen }: TerminationLog, text: string): string | null {
  try {
    const stats = statSync(path, { throwIfNoEntry: false });
    if (stats === undefined && !isChosen) return null;
    if (stats !== undefined && !stats.isFile()) return `Cannot write ${path}: it is no regular file`;
    // Never truncate first: a kill here leaves the old or the new text, at most followed by blanks.
    const file = openSync(path, constants.O_WRONLY | constants.O_CREAT | constants.O_NONBLOCK, 0o644);
    try {
      const bytes = Buffer.from(text);
      const oldBytes = Math.min(stats?.size ?? 0, OLD_TEXT_MAX_BYTES);
      writeSync(file, Buffer.concat([bytes, Buffer.alloc(Math.max(0, oldBytes - bytes.length), ' ')]));
      ftruncateSync(file, bytes.length);
    } finally {
      closeSync(file);
    }
    return null;
  } catch (error) {
    return `Cannot write ${path}: ${(error as NodeJS.ErrnoException).code}`;
  }
}

/** Why no message can be written there, as the file and its folder show; or null. Writes nothing. */
export function findMessageProblem({ path, isChosen }: TerminationLog): string | null {
  try {
    const stats = statSync(path, { throwIfNoEntry: false });
    if (stats === undefined && !isChosen) return `${path} is not there: the report goes to the log alone`;
    if (stats !== undefined && !stats.isFile()) return `Cannot write ${path}: it is no regular file`;
    accessSync(stats === undefined ? dirname(path) : path, constants.W_OK);
    return null;
  } catch (error) {
    return `Cannot write ${path}: ${(error as NodeJS.ErrnoException).code}`;
  }
}
