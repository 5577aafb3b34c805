// The answer of Prometheus's /api/v1/targets → whether it scrapes a pod's lastscrape, and if not, the rule
// that most likely dropped it. Pure. The fields are those of Prometheus 2.42 and 3.10 (fixtures/targets).

import { at, type Json, parseObject, toNumber, toObject, toObjects, toText } from '../base/json.ts';
import { joinNames } from '../base/text.ts';
import { isKnown } from './container.ts';
import type { TargetFinding } from './finding.ts';
import type { PodFacts } from './pod.ts';
import { quoteText, readName } from './words.ts';

/** One target: its labels before relabelling, its job, and the port that is scraped, or would have been. */
type Target = { readonly labels: Json; readonly job: string; readonly port: string; readonly scrape: Json };

/** All targets of a Prometheus; `isWhole`: it lists each one that it dropped. */
export type Targets = Readonly<Record<'active' | 'dropped', readonly Target[]> & { isWhole: boolean }>;

const POD = '__meta_kubernetes_pod';

/**
 * Rules that drop a held native sidecar: the label they look at, the value that is dropped. One is ruled out
 * where its job scrapes another target with that value; `likely`: also where the job scrapes nothing at all.
 */
const RULES = [
  { rule: 'initContainer', label: `${POD}_container_init`, odd: 'true', likely: true, text: 'drops init containers' },
  { rule: 'notReady', label: `${POD}_ready`, odd: 'false', likely: true, text: 'drops NotReady pods' },
  {
    rule: 'annotation',
    label: `${POD}_annotation_prometheus_io_scrape`,
    odd: '',
    likely: false,
    text: 'wants prometheus.io/scrape: "true"',
  },
] as const;

/** Reads the answer; null: it is another JSON. */
export function readTargets(text: string): Targets | null {
  const root = parseObject(text) ?? {};
  const answer = 'data' in root ? at(root, 'data') : root;
  if (!Array.isArray(answer['activeTargets'])) return null;
  const dropped = toObjects(answer['droppedTargets']).map(readTarget);
  const counts = Object.values(at(answer, 'droppedTargetCounts')).map((each) => toNumber(each, 0));
  const droppedCount = counts.reduce((sum, count) => sum + count, 0);
  const active = toObjects(answer['activeTargets']).map(readTarget);
  return { active, dropped, isWhole: droppedCount <= dropped.length };
}

function readTarget(scrape: Json): Target {
  const labels = toObject(scrape['discoveredLabels']);
  const address = toText(scrape['scrapeUrl']).replace(/^\w+:\/\/([^/?]+).*/, '$1') || toText(labels['__address__']);
  const job = quoteText(toText(scrape['scrapePool']) || toText(labels['job']));
  return { labels, job, port: /:(\d+)$/.exec(address)?.[1] ?? '', scrape };
}

/** What Prometheus does with a pod's lastscrape; null: it has none, or the JSON does not show its port. */
export function explainTarget(pod: PodFacts, targets: Targets): TargetFinding | null {
  const { lastscrape, namespace, name, annotations } = pod;
  if (lastscrape === null || !isKnown(lastscrape, 'LASTSCRAPE_FRONT')) return null;
  const { front, metricsUrl } = lastscrape.config;
  const port = front === null ? metricsUrl.port || '80' : `${front.port}`;
  const isNear = ({ labels }: Target) => labels['__meta_kubernetes_namespace'] === namespace;
  const isOfPod = (target: Target) => isNear(target) && target.labels[`${POD}_name`] === name;
  const active = targets.active.filter(isOfPod);
  const hits = active.filter((each) => each.port === port);
  const hit = hits.find(({ scrape }) => scrape['health'] === 'up') ?? hits[0];
  if (hit !== undefined) return describeScrape(hit);
  const dropped = targets.dropped.filter(isOfPod);
  const mine = dropped.filter((each) => each.port === port);
  if (mine.length > 0) return findRule(mine, targets.active);
  if (active.length > 0) {
    const annotated = readName(annotations['prometheus.io/port']);
    const because = annotated === '' || annotated === port ? '' : `: its annotation prometheus.io/port is ${annotated}`;
    const ports = joinNames([...new Set(active.map((each) => each.port))]);
    return describe('port', `scrapes port ${ports} of it, not ${port}${because}`);
  }
  if (dropped.length > 0)
    return describe('undeclared', `finds no port ${port} in it: declare it among its container's ports`);
  if (!targets.isWhole) return describe('unknown', 'does not list all that it dropped (keep_dropped_targets)');
  return [...targets.active, ...targets.dropped].some(isNear)
    ? describe('notDiscovered', `knows pods of ${namespace}, but not this one: does a selector leave it out?`)
    : describe('namespace', `discovers nothing in ${namespace}: do its monitors, or its Role, leave it out?`);
}

function describe(rule: string, what: string): TargetFinding {
  return { rule, text: `Prometheus ${what}${what.endsWith('?') ? '' : '.'}` };
}

function describeScrape({ scrape, port, job }: Target): TargetFinding {
  const where = `port ${port} of it (job ${job})`;
  const error = quoteText(toText(scrape['lastError']));
  if (scrape['health'] === 'down') return describe('failing', `cannot scrape ${where}: ${error}`);
  const isNew = scrape['health'] !== 'up';
  const every = quoteText(toText(scrape['scrapeInterval']));
  const last = isNew ? 'has not yet' : `did so last at ${quoteText(toText(scrape['lastScrape']))}`;
  return describe('scraped', `scrapes ${where} every ${every}, and ${last}`);
}

/** The rules that may have dropped it, of the job that comes nearest: one that scrapes what is like it. */
function findRule(mine: readonly Target[], active: readonly Target[]): TargetFinding {
  const found = mine.map(({ labels, job, port }) => {
    const peers = active.filter((each) => each.job === job);
    const isOdd = (target: Json, { label, odd }: (typeof RULES)[number]) => (target[label] ?? '') === odd;
    const rules = RULES.filter(
      (rule) =>
        isOdd(labels, rule) && (rule.likely || peers.length > 0) && !peers.some((peer) => isOdd(peer.labels, rule)),
    );
    return { rules, job, port, peerCount: peers.length };
  });
  const [best] = found.toSorted(
    (one, other) => Number(other.rules.length > 0) - Number(one.rules.length > 0) || other.peerCount - one.peerCount,
  );
  const { rules = [], job = '', port = '' } = best ?? {};
  const texts = rules.map(({ text }) => text).join(' or ');
  const why = texts === '' ? 'by none of the usual rules: look at its relabelling' : `most likely since it ${texts}`;
  return describe(rules[0]?.rule ?? 'other', `found port ${port} of it, and job ${job} drops it, ${why}`);
}
