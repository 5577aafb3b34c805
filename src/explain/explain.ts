// An object → what keeps it. Pure: the clock is a parameter.

import type { Json } from '../base/json.ts';
import type { Explanation, Finding, Found, Reason } from './finding.ts';
import { readJobFacts } from './job.ts';
import { type ContainerFacts, type PodFacts, readPodFacts } from './pod.ts';
import { tellUnknown } from './reasons/helpers.ts';
import { tellEnd } from './reasons/jobs.ts';
import { JOB_ROWS, POD_REASONS } from './reasons.ts';
import { readReport } from './settings.ts';
import { formatAge, joinNames, quoteText } from './words.ts';

/** Explains a pod or a Job; null: it is neither. @param nowMs epoch */
export function explainObject(object: Json, nowMs: number): Explanation | null {
  if (object['kind'] === 'Job') return explainJob(object, nowMs);
  const pod = readPodFacts(object);
  return pod === null ? null : explainPod(pod, nowMs);
}

function explainPod(pod: PodFacts, nowMs: number): Explanation {
  const { namespace, name } = pod;
  const isOver = pod.phase === 'Succeeded' || pod.phase === 'Failed';
  if (isOver && pod.deletedByMs === null) {
    const { summary, more } = tellPodEnd(pod, nowMs);
    return { kind: 'Pod', namespace, name, state: 'ended', summary, more, findings: [] };
  }
  const stage = pod.deletedByMs !== null ? 'deleted' : pod.nodeName === '' ? 'unscheduled' : 'placed';
  const found = POD_REASONS[stage].flatMap((row) => applyRow(row, pod, nowMs));
  const findings = found.length > 0 ? sort(found) : [complete('unknown', tellUnknown(pod))];
  return { kind: 'Pod', namespace, name, ...conclude(findings) };
}

function explainJob(object: Json, nowMs: number): Explanation {
  const job = readJobFacts(object);
  const { namespace, name } = job;
  const end = tellEnd(job, nowMs);
  if (end !== null) return { kind: 'Job', namespace, name, state: 'ended', ...end, findings: [] };
  const findings = JOB_ROWS.map((row) => applyRow(row, job, nowMs)).find((each) => each.length > 0) ?? [];
  return { kind: 'Job', namespace, name, ...conclude(findings) };
}

function applyRow<Facts>({ id, find }: Reason<Facts>, facts: Facts, nowMs: number): readonly Finding[] {
  return find(facts, nowMs).map((found) => complete(id, found));
}

function complete(reason: string, found: Found): Finding {
  return { reason, first: null, see: null, now: null, ...found };
}

/** What is sure to stay first, then what may; in the order of the table otherwise. */
function sort(findings: readonly Finding[]): readonly Finding[] {
  const rank = ({ isStuck }: Finding) => (isStuck === true ? 0 : isStuck === null ? 1 : 2);
  return findings.toSorted((one, other) => rank(one) - rank(other));
}

function conclude(findings: readonly Finding[]): Pick<Explanation, 'state' | 'summary' | 'more' | 'findings'> {
  const [first] = findings;
  const state = first?.isStuck === true ? 'stuck' : first?.isStuck === null ? 'unknown' : 'waiting';
  return { state, summary: first?.summary ?? '', more: '', findings };
}

/** How a pod ended that nothing keeps. */
function tellPodEnd(pod: PodFacts, nowMs: number): { readonly summary: string; readonly more: string } {
  const { namespace, name, phase, containers, lastscrape } = pod;
  const ends = containers.flatMap(({ role, ended }) => (role === 'regular' && ended?.atMs != null ? [ended.atMs] : []));
  const ago = ends.length === 0 ? '' : `, ${formatAge(nowMs - Math.max(...ends))} ago`;
  const failed = containers.filter(({ role, ended }) => ended !== null && ended.exitCode !== 0 && role !== 'native');
  const because = [
    pod.reason === '' ? '' : `${pod.reason}${pod.message === '' ? '' : ` (${quoteText(pod.message)})`}`,
    failed.length === 0 ? '' : joinNames(failed.map(tellExit)),
  ].filter(Boolean);
  const isHelperAlone =
    failed.length > 0 &&
    failed.every(({ program }) => program !== null) &&
    pod.mains.every(({ ended }) => ended?.exitCode === 0);
  const report = lastscrape === null ? null : readReport(lastscrape);
  return {
    summary: `Nothing keeps pod ${namespace}/${name}: it is over. It ${phase === 'Succeeded' ? 'succeeded' : 'failed'}${ago}${because.length === 0 ? '' : `: ${because.join('; ')}`}`,
    more: [
      isHelperAlone
        ? `Its own work succeeded (${joinNames(pod.mains.map(({ name: main }) => main))} ended with 0); a helper's exit code alone made it fail. As a native sidecar its exit code would not count.`
        : '',
      report === null ? '' : `lastscrape reports: "${quoteText(report.summary)}".`,
    ]
      .filter(Boolean)
      .join(' '),
  };
}

function tellExit({ name, ended }: ContainerFacts): string {
  const reason = ended?.reason ?? '';
  return `${name} ended with ${ended?.exitCode}${['', 'Error', 'Completed'].includes(reason) ? '' : ` (${reason})`}`;
}
