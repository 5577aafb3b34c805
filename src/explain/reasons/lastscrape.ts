// What lastscrape itself keeps, or did not end: by its state, its settings and its last report. Pure.
// Its message is in the pod's JSON only once it has ended; until then its log has what it does.

import { toObjects, toText } from '../../base/json.ts';
import { readVariable } from '../../base/parse.ts';
import { joinNames } from '../../base/text.ts';
import { formatDuration } from '../../config/values.ts';
import { VARIABLES } from '../../config/variables.ts';
import { hasHold, toPodGraceSeconds } from '../../decide/model.ts';
import { type ContainerFacts, isKnown, type LastscrapeFacts, showSetting, sinceStart } from '../container.ts';
import type { Change, Find, Found, Reasons, Since } from '../finding.ts';
import { annotate, changePod, inContainer, kubectl, logsCommand, makeNative, POD_NAME, setVariable } from '../lines.ts';
import { describePod, keepsPod, type PodFacts } from '../pod.ts';
import { formatTime, quoteShell, quoteText } from '../words.ts';
import { endHelper, explainHelper, MOVE, type Remedy, roleCommand, watchMains } from './helpers.ts';

const SHORTER = 'Nothing, if Prometheus scrapes this pod. To hold it for a shorter time, set';
/** What a hold may take besides its settings: SETTLE, 60 s for a blind metric, 15 s for a poll. */
const SLACK_MS = 80_000;
const LIMITS = ['TTL', 'TERMINATION_GRACE', 'QUIT_TIMEOUT', 'QUIT'].map((name) => `LASTSCRAPE_${name}`);

/** The rows. */
export const LASTSCRAPE_REASONS: Reasons<PodFacts> = {
  lastscrapeSigterm: whileRunning('waits', explainSigterm),
  lastscrapeHolds: whileRunning('holds', explainHold),
  lastscrapeOverdue: whileRunning('overdue', explainOverdue),
  settingsUnreadable: whileItMatters((lastscrape, pod) => {
    if (lastscrape.problems.length === 0) return null;
    return {
      summary: `lastscrape cannot read its settings in ${describePod(pod)}: it will hold and stop nothing`,
      why: lastscrape.problems.map((each) => quoteText(each)).join('; '),
      ...correct(lastscrape, pod),
    };
  }),
  graceTooShort: whileItMatters((lastscrape, pod) => {
    const why = describeShortGrace(lastscrape, pod);
    if (why === null) return null;
    const seconds = toPodGraceSeconds(lastscrape.config.limits.terminationGraceMs);
    return {
      summary: `lastscrape is killed in ${describePod(pod)} before its own grace is over`,
      why,
      change: changePod(pod, 'Set a longer grace', { spec: { terminationGracePeriodSeconds: seconds } }),
    };
  }),
  scrapedElsewhere: whileItMatters((lastscrape, pod) => {
    const { container, config } = lastscrape;
    if (config.front === null || !isKnown(lastscrape, 'LASTSCRAPE_FRONT') || !hasHold(config.limits)) return null;
    const { port } = config.front;
    const told = quoteText(toText(pod.annotations['prometheus.io/port']));
    const declared = pod.containers.flatMap(({ spec }) =>
      toObjects(spec['ports']).map((each) => each['containerPort']),
    );
    // Istio's agent reads for Prometheus what the annotations named before (its prometheusMerge).
    if (pod.annotations['prometheus.io/path'] === '/stats/prometheus') return null;
    if (told === '' ? declared.includes(port) : told === `${port}`) return null;
    const isTold = told !== '';
    const patch = isTold
      ? annotate('prometheus.io/port', `${port}`)
      : inContainer(container, { ports: [{ name: 'lastscrape', containerPort: port }] });
    return {
      summary: isTold
        ? `Prometheus is told to scrape ${told} of ${describePod(pod)}; the front is ${port}`
        : `No container of ${describePod(pod)} declares port ${port}, where Prometheus must scrape it`,
      why: isTold
        ? "By the annotation prometheus.io/port. Only a PodMonitor for the front's own port would find it."
        : `It finds ports that containers declare (here ${joinNames(declared.map(String)) || 'none'}), or the annotation prometheus.io/port.`,
      change: changePod(pod, isTold ? 'Correct it' : 'Declare it', patch),
    };
  }),
  lastscrapeMisconfigured: afterEnd((helper, pod, lastscrape) => {
    const { report } = lastscrape;
    if (report?.outcome !== 'misconfigured') return null;
    const problems = report.problems.map((each) => `${quoteText(each)}${each.endsWith('?') ? '' : '.'}`);
    return {
      ...explainHelper(helper, pod, correct(lastscrape, pod)),
      summary: keeps(helper, pod, 'could not read its settings, and stopped nothing'),
      why: [...problems, ...explainHostname(lastscrape, pod)].join(' '),
    };
  }),
  quitFailed: afterEnd((helper, pod, lastscrape) => {
    const asked = findTarget(lastscrape, helper);
    if (asked === undefined || lastscrape.report?.outcome === 'misconfigured') return null;
    const { hint, result } = asked;
    const why =
      result === 'failed'
        ? hint || 'it gave no reason'
        : result === 'alreadyGone'
          ? 'nothing listened on its quit port then'
          : `it was "${result}" then, and it runs again or still`;
    return {
      ...explainHelper(helper, pod, enable(helper, pod)),
      summary: keeps(helper, pod, 'asked it to end, and it still runs'),
      why: `lastscrape reports: ${quoteText(why)}.`,
      see: logsCommand(pod, lastscrape.container.name, '--tail=5'),
    };
  }),
  lastscrapeKilled: afterEnd((helper, pod, lastscrape) => {
    const { report, container } = lastscrape;
    if (report !== null && report.outcome !== 'unfinished' && report.outcome !== 'bug') return null;
    const isMemory = container.ended?.reason === 'OOMKilled';
    const how = `${container.ended?.exitCode ?? 'no exit code'}${isMemory ? ', out of memory,' : ''}`;
    return {
      ...explainHelper(helper, pod, isMemory ? { change: giveMemory(container, pod) } : endHelper(helper, pod)),
      summary: keeps(helper, pod, `ended with ${how} before it could stop it`),
      why: report === null ? 'It left no report.' : `Its report: "${quoteText(report.summary, 600)}".`,
      see: logsCommand(pod, container.name, '--tail=5'),
    };
  }),
  notInQuit: afterEnd((helper, pod, lastscrape) => {
    const { report } = lastscrape;
    const isDone = report !== null && !['misconfigured', 'unfinished', 'bug'].includes(report.outcome);
    if (!isDone || findTarget(lastscrape, helper) !== undefined) return null;
    const { program } = helper;
    return {
      ...explainHelper(helper, pod, addToQuit(lastscrape, pod, helper)),
      summary: keeps(helper, pod, `is done, and was not asked to stop ${program === null ? 'it' : program.what}`),
      why: `Its report: "${quoteText(report.summary)}". LASTSCRAPE_QUIT is ${showSetting(lastscrape, 'LASTSCRAPE_QUIT', listQuit(lastscrape))}.`,
    };
  }),
};

/** A row of what is wrong with a lastscrape that runs, while main runs or in the hold: it keeps nothing. */
function whileItMatters(
  explain: (lastscrape: LastscrapeFacts, pod: PodFacts) => Pick<Found, 'summary' | 'why' | 'change'> | null,
): Find<PodFacts> {
  return (pod) => {
    const { lastscrape } = pod;
    if (lastscrape === null || lastscrape.container.running === null) return null;
    const found = explain(lastscrape, pod);
    const { container } = lastscrape;
    return found && { container: container.name, isStuck: false, since: sinceStart(container), ...found };
  };
}

/** That the kubelet kills a lastscrape in its own grace; null: it does not, or the JSON does not show it. */
export function describeShortGrace(lastscrape: LastscrapeFacts, { graceMs }: PodFacts): string | null {
  const { terminationGraceMs } = lastscrape.config.limits;
  if (graceMs >= terminationGraceMs || !isKnown(lastscrape, 'LASTSCRAPE_TERMINATION_GRACE')) return null;
  return `terminationGracePeriodSeconds is ${graceMs / 1_000}, and LASTSCRAPE_TERMINATION_GRACE ${formatDuration(terminationGraceMs)}: it must be at least ${toPodGraceSeconds(terminationGraceMs)}.`;
}

/** A row of a lastscrape that runs although every main has ended, and does `what` since then. */
function whileRunning(what: ReturnType<typeof judgeRunning>, explain: typeof explainHold): Find<PodFacts> {
  return (pod, nowMs) => {
    const { lastscrape, mainsEnded } = pod;
    if (mainsEnded === null || lastscrape === null || lastscrape.container.running === null) return null;
    const end = { ...mainsEnded, atMs: mainsEnded.atMs ?? nowMs };
    return judgeRunning(lastscrape, pod, nowMs - end.atMs) === what ? explain(lastscrape, pod, end, nowMs) : null;
  };
}

/** A row of each helper that runs although every main and lastscrape have ended. */
function afterEnd(
  explain: (helper: ContainerFacts, pod: PodFacts, own: LastscrapeFacts) => Found | null,
): Find<PodFacts> {
  return (pod) => {
    const { lastscrape, mainsEnded } = pod;
    if (mainsEnded === null || !lastscrape?.container.isDone) return [];
    return pod.runningHelpers.flatMap((helper) => explain(helper, pod, lastscrape) ?? []);
  };
}

function keeps({ name }: ContainerFacts, pod: PodFacts, what: string): string {
  return `${name} keeps ${describePod(pod)}: lastscrape ${what}`;
}

/** The entry of QUIT that stands for a helper, as it is in the report. */
function findTarget({ report }: LastscrapeFacts, { program, name }: ContainerFacts) {
  const processes = program === null ? [name] : [...program.names, ...(program.name === null ? [] : program.programs)];
  return report?.targets.find(({ stops }) => {
    if (stops === undefined) return false;
    return 'preset' in stops ? stops.preset === program?.name : processes.includes(stops.processName);
  });
}

/** What a lastscrape does that still runs `afterMs` after main's end; null: another table has it. */
function judgeRunning(lastscrape: LastscrapeFacts, pod: PodFacts, afterMs: number) {
  const { container, config } = lastscrape;
  // The kubelet kills a native sidecar when the pod's grace is over.
  if (container.role !== 'regular') return afterMs > pod.graceMs ? null : 'holds';
  if (config.conditions.some(({ isSignal }) => isSignal === true)) return 'waits';
  const limitMs = findLimitMs(lastscrape);
  return limitMs !== null && afterMs > limitMs + SLACK_MS ? 'overdue' : 'holds';
}

/** How long after main's end it may run; null: the JSON does not show its settings. */
function findLimitMs(lastscrape: LastscrapeFacts): number | null {
  const { container, config } = lastscrape;
  if (!LIMITS.every((name) => isKnown(lastscrape, name))) return null;
  const { ttlMs, terminationGraceMs } = config.limits;
  const longestMs = container.role === 'native' ? Math.min(ttlMs, terminationGraceMs) : ttlMs;
  return (hasHold(config.limits) ? longestMs : 0) + config.targets.length * config.quitTimeoutMs;
}

function explainSigterm({ container }: LastscrapeFacts, pod: PodFacts, end: Since): Found {
  return keepsPod(container, pod, ': it waits for a SIGTERM that never comes, since it is a regular container', {
    isStuck: true,
    since: end,
    why: 'When the other containers have ended, only native sidecars get SIGTERM (LASTSCRAPE_DONE_WHEN=sigterm).',
    change: changePod(pod, 'Make it the last of the native sidecars', makeNative(container), MOVE),
    now: { what: 'end it in this pod', line: kubectl(pod, `delete pod ${quoteShell(pod.name)}`) },
  });
}

function explainHold(
  lastscrape: LastscrapeFacts,
  pod: PodFacts,
  end: { atMs: number; what: string },
  nowMs: number,
): Found {
  const { container, config } = lastscrape;
  const { ttlMs, terminationGraceMs } = config.limits;
  const limitMs = findLimitMs(lastscrape);
  const isOver = limitMs !== null && nowMs > end.atMs + limitMs;
  const until = limitMs === null ? 'how long is not in the JSON' : `until ${formatTime(end.atMs + limitMs)} at most`;
  const tasks = [
    ...(hasHold(config.limits) ? ["waits for Prometheus's last scrape"] : []),
    ...(config.targets.length > 0 || !isKnown(lastscrape, 'LASTSCRAPE_QUIT') ? ['stops the helpers'] : []),
  ];
  const limit =
    container.role === 'native' && terminationGraceMs < ttlMs ? 'LASTSCRAPE_TERMINATION_GRACE' : 'LASTSCRAPE_TTL';
  const ttl = isKnown(lastscrape, 'LASTSCRAPE_TTL') ? formatDuration(ttlMs) : 'not in the JSON';
  return keepsPod(container, pod, isOver ? ': it is about to end' : `: it ${tasks.join(', or ')}, ${until}`, {
    isStuck: false,
    since: end,
    why: hasHold(config.limits)
      ? `This is its task (LASTSCRAPE_TTL is ${ttl}). Its log shows what it does now.`
      : 'It holds for no scrape, and needs a few seconds to be sure that main has ended.',
    change: isOver ? null : changePod(pod, `${SHORTER} ${limit}`, setVariable(container, limit, '20s')),
    see: logsCommand(pod, container.name, '--tail=3'),
  });
}

function explainOverdue(lastscrape: LastscrapeFacts, pod: PodFacts, end: Since): Found {
  const { container, config } = lastscrape;
  const conditions = config.conditions.map(({ text }) => text);
  const sinceMs = container.running?.sinceMs ?? null;
  const startMs = isKnown(lastscrape, 'LASTSCRAPE_START_TIMEOUT') ? config.limits.startTimeoutMs : 0;
  const givesUp =
    startMs === 0 || sinceMs === null
      ? []
      : [`If it never saw main alive, it gives up at ${formatTime(sinceMs + startMs)}.`];
  const shown = showSetting(lastscrape, 'LASTSCRAPE_DONE_WHEN', conditions);
  const waits = `LASTSCRAPE_DONE_WHEN is ${shown}; its log shows what it still waits for.`;
  const patch = setVariable(container, 'LASTSCRAPE_DONE_WHEN', watchMains(pod), POD_NAME);
  return keepsPod(container, pod, `: it should be done by now, and seems to have missed the end of ${pod.mainNames}`, {
    isStuck: true,
    since: end,
    why: [waits, ...givesUp, ...explainHostname(lastscrape, pod)].join(' '),
    change: changePod(pod, "Watch the pod's own status instead,", patch),
    first: roleCommand(pod),
    see: logsCommand(pod, container.name, '--tail=5'),
  });
}

/** What a reader of its log must know where it takes a host name for the pod's name, as in an Indexed Job. */
function explainHostname({ env }: LastscrapeFacts, { spec, name }: PodFacts): readonly string[] {
  const hostname = quoteText(toText(spec['hostname']));
  if (hostname === '' || hostname === name || readVariable(env, 'POD_NAME') !== '') return [];
  return [`Without POD_NAME it takes the host name ${hostname} for the name of this pod, also in its commands.`];
}

/** The variable that cannot be read, back at its default. */
function correct(lastscrape: LastscrapeFacts, pod: PodFacts): Remedy {
  const { container, unreadable } = lastscrape;
  const [name] = unreadable;
  const variable = VARIABLES.find((each) => each.name === name);
  if (variable !== undefined) {
    const patch = setVariable(container, variable.name, variable.default);
    return { change: changePod(pod, `Correct ${variable.name}, here back at its default,`, patch) };
  }
  if (explainHostname(lastscrape, pod).length > 0) {
    return { change: changePod(pod, 'Set POD_NAME', inContainer(container, { env: [POD_NAME] })) };
  }
  const log = logsCommand(pod, container.name, '').line.trimEnd();
  return { change: changePod(pod, `Correct what it names ("${log}" has all of it)`, null) };
}

function giveMemory(container: ContainerFacts, pod: PodFacts): Change {
  return changePod(pod, 'Give lastscrape 64Mi', inContainer(container, { resources: { limits: { memory: '64Mi' } } }));
}

/** What lets lastscrape stop it; else a native sidecar. */
function enable(helper: ContainerFacts, pod: PodFacts): Remedy {
  const { program, spec } = helper;
  if (!program?.enable) return endHelper(helper, pod);
  const what = `Let it be stopped (${program.flag})`;
  const args = Array.isArray(spec['args']) ? spec['args'].map(String) : [];
  const patch =
    'annotation' in program.enable
      ? annotate(...program.enable.annotation)
      : inContainer(helper, { args: [...args, program.enable.argument] });
  return { change: changePod(pod, what, patch) };
}

/** The helper among what lastscrape stops; a mesh's proxy last. */
function addToQuit(lastscrape: LastscrapeFacts, pod: PodFacts, helper: ContainerFacts): Remedy {
  const { program } = helper;
  if (program === null || program.name === null) return endHelper(helper, pod);
  const entries = listQuit(lastscrape);
  const all = program.kind === 'mesh' ? [...entries, program.name] : [program.name, ...entries];
  const needs = program.flag === null ? '' : `It also needs ${program.flag}`;
  const patch = setVariable(lastscrape.container, 'LASTSCRAPE_QUIT', all.join(', '));
  return { change: changePod(pod, 'Add it to LASTSCRAPE_QUIT', patch, needs) };
}

/** The entries of LASTSCRAPE_QUIT as they were written. */
function listQuit(lastscrape: LastscrapeFacts): readonly string[] {
  const { env, config } = lastscrape;
  const text = readVariable(env, 'LASTSCRAPE_QUIT');
  if (text === '') return isKnown(lastscrape, 'LASTSCRAPE_QUIT') ? config.targets.map(({ name }) => name) : [];
  return config.targets.length === 0 ? [] : text.split(',').map((entry) => entry.trim());
}
