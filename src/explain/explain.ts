// An object → what keeps it, by the tables of reasons: a new one is a row of a file in reasons/, or a file
// there and a line here. Pure: the clock is a parameter.

import type { Json } from '../base/json.ts';
import { joinNames } from '../base/text.ts';
import type { Kinds } from '../config/config.ts';
import type { LastscrapeFacts } from './container.ts';
import type { Explanation, Finding, Reasons } from './finding.ts';
import { describeCommand } from './lines.ts';
import { describeDisruption, describePod, type Named, type PodFacts, readPodFacts } from './pod.ts';
import { HELPER_REASONS } from './reasons/helpers.ts';
import { describeJobEnd, JOB_REASONS, readJobFacts } from './reasons/jobs.ts';
import { describeShortGrace, LASTSCRAPE_REASONS } from './reasons/lastscrape.ts';
import { DELETED_REASONS, MAIN_REASONS, NATIVE_REASONS } from './reasons/main.ts';
import { explainTarget, type Targets } from './targets.ts';
import { formatAge, quoteText, readName } from './words.ts';

/** Explains a pod or a Job. @param nowMs epoch; `targets`: of Prometheus; null: not given */
export function explainObject(object: Json, nowMs: number, kinds: Kinds, targets: Targets | null = null): Explanation {
  if (object['kind'] === 'Job') return explainJob(object, nowMs);
  const pod = readPodFacts(object, kinds);
  const target = targets === null ? null : explainTarget(pod, targets);
  const explanation = explainPod(pod, nowMs, target?.rule === 'scraped');
  return target === null || explanation.state === 'ended' ? explanation : { ...explanation, target };
}

/** @param isScraped Prometheus says so, and knows better than what the pod says of its ports */
function explainPod(pod: PodFacts, nowMs: number, isScraped: boolean): Explanation {
  const { namespace, name } = pod;
  const isOver = pod.phase === 'Succeeded' || pod.phase === 'Failed';
  if (isOver && pod.deletedByMs === null) {
    return { kind: 'Pod', namespace, name, state: 'ended', ...describePodEnd(pod, nowMs), findings: [] };
  }
  const stage = pod.deletedByMs !== null ? 'deleted' : 'live';
  const found = applyRows(POD_REASONS[stage], pod, nowMs)
    .flat()
    .filter(({ reason }) => !isScraped || reason !== 'scrapedElsewhere');
  // What is sure to stay comes first, then what may.
  const rank = ({ isStuck }: Finding) => (isStuck === true ? 0 : isStuck === null ? 1 : 2);
  const findings = found.toSorted((one, other) => rank(one) - rank(other));
  return conclude('Pod', pod, findings.length > 0 ? findings : applyRows(POD_REASONS.unexplained, pod, nowMs).flat());
}

function explainJob(object: Json, nowMs: number): Explanation {
  const job = readJobFacts(object);
  const { namespace, name } = job;
  const end = describeJobEnd(job, nowMs);
  if (end !== null) return { kind: 'Job', namespace, name, state: 'ended', ...end, findings: [] };
  return conclude('Job', job, applyRows(JOB_REASONS, job, nowMs).flat());
}

/** What each row finds, in their order. */
function applyRows<Facts>(rows: Reasons<Facts>, facts: Facts, nowMs: number): readonly (readonly Finding[])[] {
  return Object.entries(rows).map(([reason, find]) => {
    const blank = { reason, container: null, change: null, first: null, see: null, now: null };
    return [find(facts, nowMs) ?? []].flat().map((each) => ({ ...blank, ...each }));
  });
}

function conclude(kind: Explanation['kind'], { namespace, name }: Named, findings: readonly Finding[]): Explanation {
  const [first] = findings;
  const state = first?.isStuck === true ? 'stuck' : first?.isStuck === null ? 'unknown' : 'waiting';
  return { kind, namespace, name, state, summary: first?.summary ?? '', more: '', findings };
}

/** How a pod ended that nothing keeps. */
function describePodEnd(pod: PodFacts, nowMs: number): Pick<Explanation, 'summary' | 'more' | 'report'> {
  const { containers, mains, mainNames, phase, reason, message, lastscrape } = pod;
  const ends = containers.flatMap(({ role, ended }) => (role === 'regular' && ended?.atMs != null ? [ended.atMs] : []));
  const ago = ends.length === 0 ? '' : `, ${formatAge(nowMs - Math.max(...ends))} ago`;
  const failed = containers.filter(({ role, ended }) => ended !== null && ended.exitCode !== 0 && role !== 'native');
  const exits = failed.map(({ name, ended }) => {
    const why = ['', 'Error', 'Completed'].includes(ended?.reason ?? '') ? '' : ` (${ended?.reason})`;
    return `${name} ended with ${ended?.exitCode}${why}`;
  });
  const disruption = reason === '' ? describeDisruption(pod) : '';
  const because = [disruption, `${reason}${message === '' ? '' : ` (${quoteText(message)})`}`, joinNames(exits)].filter(
    Boolean,
  );
  const report = lastscrape?.report ?? null;
  const isWorkDone = failed.length > 0 && mains.every(({ ended }) => ended?.exitCode === 0);
  const isVerdict = ['failed', 'notJudged'].includes(report?.verdict ?? '');
  const more = [
    isWorkDone && failed.every(({ program }) => program !== null && program.kind !== 'lastscrape')
      ? `Its own work succeeded (${mainNames} ended with 0); only a helper's exit code made it fail. As a native sidecar its exit code would not count.`
      : '',
    isWorkDone && !isVerdict && failed.every(({ program }) => program?.kind === 'lastscrape')
      ? `Its own work succeeded (${mainNames} ended with 0). With LASTSCRAPE_EXIT_ZERO=true only a verdict of LASTSCRAPE_FAIL_IF makes a pod fail.`
      : '',
    report === null
      ? ''
      : `lastscrape reports: "${[report.summary, ...report.problems].map((each) => quoteText(each, 600)).join('; ')}".`,
    describeLastPage(report),
    lastscrape !== null && lastscrape.container.ended?.exitCode === 137
      ? (describeShortGrace(lastscrape, pod) ?? '')
      : '',
  ];
  return {
    summary: `Nothing keeps ${describePod(pod)}: it is over. It ${phase === 'Succeeded' ? 'succeeded' : 'failed'}${ago}${because.length === 0 ? '' : `: ${because.join('; ')}`}`,
    more: more.filter(Boolean).join(' '),
    ...(report !== null && { report: report.json }),
  };
}

/** Whether the last numbers are exact, in a sentence; blank: not said. */
function describeLastPage(report: LastscrapeFacts['report']): string {
  if (report === null || report.mayMissSeconds === null) return '';
  return report.mayMissSeconds === 0
    ? 'The last page is exact.'
    : `The last page may miss changes of main's last ${report.mayMissSeconds} s.`;
}

/** What can keep a pod that is deleted, or is not: all that is found; else the last. */
export const POD_REASONS = {
  deleted: DELETED_REASONS,
  live: { ...LASTSCRAPE_REASONS, ...HELPER_REASONS, ...NATIVE_REASONS, ...MAIN_REASONS },
  unexplained: {
    unknown: (pod) => {
      const { conditions, containers, phase, created } = pod;
      const unmet = conditions.filter(({ status }) => status !== 'True').map(({ type }) => readName(type));
      const [running] = containers.filter(({ isDone }) => !isDone);
      const open = unmet.length === 0 ? '' : `, and these conditions are not met: ${joinNames(unmet)}`;
      return {
        container: running?.name ?? null,
        isStuck: null,
        summary: `${running?.name ?? 'Nothing in the JSON'} keeps ${describePod(pod)}, and the JSON does not show why`,
        since: created,
        why: `Its phase is ${phase || 'unknown'}${open}.`,
        see: describeCommand(pod),
      };
    },
  },
} satisfies Readonly<Record<string, Reasons<PodFacts>>>;
