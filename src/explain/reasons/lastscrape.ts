// What lastscrape itself keeps, or did not end: told by its state, its environment and its termination message. Pure.
// Its message is in the pod's JSON only once it has ended; what it does before that is in its log.

import type { Change, Found, Reason } from '../finding.ts';
import {
  annotationLines,
  containerLines,
  describeTemplate,
  kubectl,
  logsCommand,
  nativeLines,
  podChange,
  settingLines,
  toLines,
} from '../lines.ts';
import type { ContainerFacts, PodFacts } from '../pod.ts';
import { DEFAULTS, readReport, readSetting, readSettingMs, type SettingName, type ToldReport } from '../settings.ts';
import { formatTime, joinNames, quoteShell, quoteText, quoteYaml } from '../words.ts';
import { changeHelper, findRunningHelpers, POD_NAME, roleCommand, tellHelper, tellPod } from './helpers.ts';

/** What a hold may take beside its settings: the end is settled, a blind metric is given up after 60 s, a poll may take 15 s. */
const SLACK_MS = 80_000;

/** The rows. */
export const LASTSCRAPE_REASONS: readonly Reason<PodFacts>[] = [
  {
    id: 'lastscrapeSigterm',
    meaning: 'lastscrape waits for SIGTERM, and is a regular container, which gets none',
    find: withRunning((lastscrape, pod, end) => {
      const doneWhen = readSetting(lastscrape, pod, 'LASTSCRAPE_DONE_WHEN');
      return lastscrape.role === 'regular' && isSigterm(doneWhen) ? [tellSigterm(lastscrape, pod, end)] : [];
    }),
  },
  {
    id: 'lastscrapeHolds',
    meaning: 'lastscrape waits for the last scrape, or stops the helpers, within its time limits',
    find: withRunning((lastscrape, pod, end, nowMs) => {
      const limitMs = findLimit(lastscrape, pod);
      return isOver(lastscrape, pod, end, nowMs) || isWrongSigterm(lastscrape, pod)
        ? []
        : [tellHold(lastscrape, pod, end, limitMs)];
    }),
  },
  {
    id: 'lastscrapeOverdue',
    meaning: 'lastscrape still runs, longer after the end of main than its time limits allow',
    find: withRunning((lastscrape, pod, end, nowMs) => {
      // A native sidecar is killed by the kubelet then, and has another row.
      const isOverdue = lastscrape.role === 'regular' && isOver(lastscrape, pod, end, nowMs);
      return isOverdue && !isWrongSigterm(lastscrape, pod) ? [tellOverdue(lastscrape, pod, end)] : [];
    }),
  },
  {
    id: 'lastscrapeMisconfigured',
    meaning: 'lastscrape could not read a variable, and stopped nothing',
    find: withEnded((lastscrape, pod, report, helper) => {
      if (report?.outcome !== 'misconfigured') return [];
      const [problem = ''] = report.problems;
      return [
        {
          ...tellHelper(helper, correct(lastscrape, pod, problem), pod),
          summary: `${helper.name} keeps ${tellPod(pod)}: lastscrape could not read its settings, and stopped nothing`,
          why: report.problems.map((each) => `${quoteText(each)}${/\?$/.test(each) ? '' : '.'}`).join(' '),
        },
      ];
    }),
  },
  {
    id: 'quitFailed',
    meaning: 'lastscrape asked a helper to end, and it did not; its hint tells what must be set',
    find: withEnded((lastscrape, pod, report, helper) => {
      const asked = findTarget(report, helper);
      if (asked === undefined || report?.outcome === 'misconfigured') return [];
      const { hint, result } = asked;
      const why =
        result === 'failed'
          ? hint || 'it gave no reason'
          : result === 'alreadyGone'
            ? 'nothing listened on its quit port then'
            : `it was "${result}" then, and it runs again or still`;
      return [
        {
          ...tellHelper(helper, enable(helper, pod), pod),
          summary: `${helper.name} keeps ${tellPod(pod)}: lastscrape asked it to end, and it still runs`,
          why: `lastscrape tells: ${quoteText(why)}.`,
          see: logsCommand(pod, lastscrape.name, '--tail=5'),
        },
      ];
    }),
  },
  {
    id: 'lastscrapeKilled',
    meaning: 'lastscrape was killed before it had stopped the helpers',
    find: withEnded((lastscrape, pod, report, helper) => {
      if (report !== null && report.outcome !== 'unfinished' && report.outcome !== 'bug') return [];
      const { exitCode = null, reason = '' } = lastscrape.ended ?? {};
      const isMemory = reason === 'OOMKilled';
      const change = isMemory
        ? podChange(
            `${describeTemplate(pod)}, give lastscrape 64Mi:`,
            containerLines(lastscrape, ['resources: {limits: {memory: 64Mi}}']),
          )
        : podChange(
            `${describeTemplate(pod)}, have the kubelet start it again when it is killed (Kubernetes 1.35 and later):`,
            containerLines(lastscrape, [
              'restartPolicy: Never',
              'restartPolicyRules:',
              '  - {action: Restart, exitCodes: {operator: In, values: [134, 137, 139]}}',
            ]),
          );
      return [
        {
          ...tellHelper(helper, change, pod),
          summary: `${helper.name} keeps ${tellPod(pod)}: lastscrape, which was to stop it, ended with ${exitCode}${isMemory ? ', out of memory' : ''} before it could`,
          why: report === null ? 'It left no report.' : `Its report: "${quoteText(report.summary)}".`,
          see: logsCommand(pod, lastscrape.name, '--tail=5'),
        },
      ];
    }),
  },
  {
    id: 'notInQuit',
    meaning: 'lastscrape is done, and was not told to stop this helper',
    find: withEnded((lastscrape, pod, report, helper) => {
      const isDone = report !== null && !['misconfigured', 'unfinished', 'bug'].includes(report.outcome);
      if (!isDone || findTarget(report, helper) !== undefined) return [];
      return [
        {
          ...tellHelper(helper, addToQuit(lastscrape, pod, helper), pod),
          summary: `${helper.name} keeps ${tellPod(pod)}: lastscrape is done, and was not told to stop ${helper.program === null ? 'it' : helper.program.what}`,
          why: `Its report: "${quoteText(report.summary)}". LASTSCRAPE_QUIT is ${readSetting(lastscrape, pod, 'LASTSCRAPE_QUIT') ?? 'not in the JSON'}.`,
        },
      ];
    }),
  },
];

type End = { readonly atMs: number; readonly what: string };

/** Calls back where lastscrape runs although every main has ended. */
function withRunning(
  find: (lastscrape: ContainerFacts, pod: PodFacts, end: End, nowMs: number) => readonly Found[],
): Reason<PodFacts>['find'] {
  return (pod, nowMs) => {
    const { lastscrape, mainsEnded } = pod;
    if (lastscrape === null || lastscrape.running === null || mainsEnded === null) return [];
    return find(lastscrape, pod, { ...mainsEnded, atMs: mainsEnded.atMs ?? nowMs }, nowMs);
  };
}

/** Calls back for each helper that runs although every main and lastscrape have ended. */
function withEnded(
  find: (
    lastscrape: ContainerFacts,
    pod: PodFacts,
    report: ToldReport | null,
    helper: ContainerFacts,
  ) => readonly Found[],
): Reason<PodFacts>['find'] {
  return (pod) => {
    const { lastscrape, mainsEnded } = pod;
    if (mainsEnded === null || !lastscrape?.isDone) return [];
    return findRunningHelpers(pod).flatMap((helper) => find(lastscrape, pod, readReport(lastscrape), helper));
  };
}

/** What lastscrape told of the entry that stands for a helper. */
function findTarget(
  report: ToldReport | null,
  { program, name }: ContainerFacts,
): ToldReport['targets'][number] | undefined {
  return report?.targets.find(({ target }) => {
    const [preset = '', ...rest] = target.split(':');
    return preset === program?.name || (preset === 'signal' && (program?.names ?? [name]).includes(rest.at(-1) ?? ''));
  });
}

function isSigterm(doneWhen: string | null): boolean {
  return (doneWhen ?? '').split(',').some((entry) => entry.trim() === 'sigterm');
}

function isWrongSigterm(lastscrape: ContainerFacts, pod: PodFacts): boolean {
  return lastscrape.role === 'regular' && isSigterm(readSetting(lastscrape, pod, 'LASTSCRAPE_DONE_WHEN'));
}

/** Whether it runs longer than it may; a native sidecar has the pod's grace. */
function isOver(lastscrape: ContainerFacts, pod: PodFacts, end: End, nowMs: number): boolean {
  const limitMs = findLimit(lastscrape, pod);
  if (lastscrape.role === 'native') return nowMs > end.atMs + pod.graceMs;
  return limitMs !== null && nowMs > end.atMs + limitMs + SLACK_MS;
}

/** How long after main's end it may run; null: its settings are not in the JSON. */
function findLimit(lastscrape: ContainerFacts, pod: PodFacts): number | null {
  const read = (name: SettingName) => readSettingMs(lastscrape, pod, name);
  const [ttlMs, graceMs, quitMs] = [
    read('LASTSCRAPE_TTL'),
    read('LASTSCRAPE_TERMINATION_GRACE'),
    read('LASTSCRAPE_QUIT_TIMEOUT'),
  ];
  const quit = readSetting(lastscrape, pod, 'LASTSCRAPE_QUIT');
  if (ttlMs === null || graceMs === null || quitMs === null || quit === null) return null;
  const targetCount = quit === 'none' ? 0 : quit.split(',').length;
  const scrapes = readSetting(lastscrape, pod, 'LASTSCRAPE_SCRAPES');
  const holdMs = scrapes === '0' ? 0 : lastscrape.role === 'native' ? Math.min(ttlMs, graceMs) : ttlMs;
  return holdMs + targetCount * quitMs;
}

function tellSigterm(lastscrape: ContainerFacts, pod: PodFacts, end: End): Found {
  return {
    container: lastscrape.name,
    isStuck: true,
    summary: `${lastscrape.name} keeps ${tellPod(pod)}: it waits for a SIGTERM that never comes, since it is a regular container`,
    sinceMs: end.atMs,
    sinceWhat: end.what,
    why: 'Kubernetes sends SIGTERM at the end of the other containers to native sidecars only (LASTSCRAPE_DONE_WHEN=sigterm).',
    change: podChange(`${describeTemplate(pod)}, make it the last of the native sidecars:`, nativeLines(lastscrape)),
    now: { what: 'to end it in this pod', line: kubectl(pod.namespace, `delete pod ${quoteShell(pod.name)}`) },
  };
}

function tellHold(lastscrape: ContainerFacts, pod: PodFacts, end: End, limitMs: number | null): Found {
  const ttl = readSetting(lastscrape, pod, 'LASTSCRAPE_TTL') ?? DEFAULTS.LASTSCRAPE_TTL;
  const isHolding = readSetting(lastscrape, pod, 'LASTSCRAPE_SCRAPES') !== '0';
  const until = limitMs === null ? 'how long is not in the JSON' : `until ${formatTime(end.atMs + limitMs)} at most`;
  const isStopping = readSetting(lastscrape, pod, 'LASTSCRAPE_QUIT') !== 'none';
  const scrape = "it waits for Prometheus's last scrape";
  const does = !isHolding ? 'it stops the helpers' : isStopping ? `${scrape}, or stops the helpers` : scrape;
  const isNative = lastscrape.role === 'native';
  const name =
    isNative &&
    (readSettingMs(lastscrape, pod, 'LASTSCRAPE_TERMINATION_GRACE') ?? 0) <
      (readSettingMs(lastscrape, pod, 'LASTSCRAPE_TTL') ?? 0)
      ? 'LASTSCRAPE_TERMINATION_GRACE'
      : 'LASTSCRAPE_TTL';
  return {
    container: lastscrape.name,
    isStuck: false,
    summary: `${lastscrape.name} keeps ${tellPod(pod)}: ${does}, ${until}`,
    sinceMs: end.atMs,
    sinceWhat: end.what,
    why: `This is its task (LASTSCRAPE_TTL is ${ttl}). ${isStopping ? 'Which of the two it does is' : 'What it saw is'} in its log only, until it ends.`,
    change: podChange(
      `Nothing, if Prometheus scrapes this pod. To hold it for a shorter time: ${describeTemplate(pod).replace('In', 'in')}:`,
      settingLines(lastscrape, name, '20s'),
    ),
    see: logsCommand(pod, lastscrape.name, '--tail=3'),
  };
}

function tellOverdue(lastscrape: ContainerFacts, pod: PodFacts, end: End): Found {
  const doneWhen = readSetting(lastscrape, pod, 'LASTSCRAPE_DONE_WHEN') ?? 'not in the JSON';
  const startMs = readSettingMs(lastscrape, pod, 'LASTSCRAPE_START_TIMEOUT');
  const sinceMs = lastscrape.running?.sinceMs ?? null;
  const gives =
    startMs === null || startMs === 0 || sinceMs === null
      ? ''
      : ` Where it never saw main alive, it gives up at ${formatTime(sinceMs + startMs)}.`;
  const mains = pod.mains.map(({ name }) => name);
  return {
    container: lastscrape.name,
    isStuck: true,
    summary: `${lastscrape.name} keeps ${tellPod(pod)}: it should be done by now, and seems not to have seen that ${joinNames(mains)} ended`,
    sinceMs: end.atMs,
    sinceWhat: end.what,
    why: `It goes by LASTSCRAPE_DONE_WHEN, which is ${quoteText(doneWhen)}; its log tells what it still waits for.${gives}`,
    change: podChange(
      `${describeTemplate(pod)}, let it go by the pod's own status:`,
      `${settingLines(lastscrape, 'LASTSCRAPE_DONE_WHEN', mains.map((name) => `container:${name}`).join())}${
        settingLines(lastscrape, 'LASTSCRAPE_DONE_WHEN', '').startsWith('spec:') ? toLines([`        ${POD_NAME}`]) : ''
      }`,
    ),
    first: roleCommand(pod),
    see: logsCommand(pod, lastscrape.name, '--tail=5'),
  };
}

/** The variable that a problem names, back at its default. */
function correct(lastscrape: ContainerFacts, pod: PodFacts, problem: string): Change {
  const [, name = ''] = /^Cannot \w+ (LASTSCRAPE_\w+)/.exec(problem) ?? [];
  if (name in DEFAULTS) {
    const value = DEFAULTS[name as SettingName];
    return podChange(
      `${describeTemplate(pod)}, correct ${name}; its default is:`,
      settingLines(lastscrape, name, value),
    );
  }
  const check = kubectl(pod.namespace, `logs ${quoteShell(pod.name)} --container=${quoteShell(lastscrape.name)}`);
  return podChange(`${describeTemplate(pod)}, correct what it names ("${check}" has all of it).`, null);
}

/** What lets lastscrape stop it; else a native sidecar. */
function enable(helper: ContainerFacts, pod: PodFacts): Change {
  const { program, spec } = helper;
  const needs = program?.enable;
  if (!needs) return changeHelper(helper, pod);
  const what = `${describeTemplate(pod)}, let it be stopped (${program === null ? '' : program.flag}):`;
  if ('annotation' in needs) return podChange(what, annotationLines(...needs.annotation));
  const args = [...(Array.isArray(spec['args']) ? spec['args'].map(String) : []), needs.argument];
  return podChange(what, containerLines(helper, [`args: [${args.map(quoteYaml).join(', ')}]`]));
}

/** The helper among what lastscrape stops; a mesh's proxy last. */
function addToQuit(lastscrape: ContainerFacts, pod: PodFacts, helper: ContainerFacts): Change {
  const { program } = helper;
  if (program === null || program.name === null) return changeHelper(helper, pod);
  const quit = readSetting(lastscrape, pod, 'LASTSCRAPE_QUIT');
  const entries = quit === null || quit === 'none' ? [] : quit.split(',').map((entry) => entry.trim());
  const isMesh = program.kind === 'mesh';
  const all = isMesh ? [...entries, program.name] : [program.name, ...entries];
  const flag = program.flag;
  return podChange(
    `${describeTemplate(pod)}, tell lastscrape to stop it${flag === null ? '' : ` (it also needs ${flag})`}:`,
    settingLines(lastscrape, 'LASTSCRAPE_QUIT', all.join(', ')),
  );
}
