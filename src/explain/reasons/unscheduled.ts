// A pod that no node has: what the scheduler says, and what would let it place the pod. Pure.

import { at, isObject, type Json, toObjects, toText } from '../../base/json.ts';
import type { Change, Found, Reason } from '../finding.ts';
import { containerLines, describeTemplate, eventsCommand, kubectl, podChange, toLines } from '../lines.ts';
import { findCondition, type PodFacts } from '../pod.ts';
import { joinNames, quoteShell, quoteText, quoteYaml } from '../words.ts';
import { tellPod } from './helpers.ts';

/** The rows. */
export const UNSCHEDULED_REASONS: readonly Reason<PodFacts>[] = [
  {
    id: 'gated',
    meaning: 'the pod has scheduling gates: another program must let it go first',
    find: (pod) => {
      const gates = toObjects(pod.spec['schedulingGates']).map(({ name }) => quoteText(toText(name)));
      if (gates.length === 0) return [];
      const patch = `patch pod ${quoteShell(pod.name)} --type=json --patch='[{"op":"remove","path":"/spec/schedulingGates"}]'`;
      return [
        {
          ...tellPlace(pod),
          summary: `The scheduling gate ${joinNames(gates)} keeps ${tellPod(pod)} from starting: whoever set it must take it away`,
          why: 'Somebody holds pods back with it, such as a queue or a quota. The scheduler does not look at the pod before.',
          change: podChange(
            `${describeTemplate(pod)}, where nobody is to hold it back:`,
            toLines(['spec:', '  schedulingGates: null   # removes them']),
          ),
          now: { what: 'to let this pod go, past whoever holds it', line: kubectl(pod.namespace, patch) },
        },
      ];
    },
  },
  {
    id: 'unschedulable',
    meaning: 'no node takes the pod: too little room, a nodeSelector, a taint, a volume',
    find: (pod) => {
      const condition = findCondition(pod.conditions, 'PodScheduled', 'False');
      const message = toText(condition?.['message']);
      if (toObjects(pod.spec['schedulingGates']).length > 0) return [];
      if (condition === undefined) return [tellNobody(pod)];
      const { short, change, see = eventsCommand(pod) } = readMessage(message, pod);
      return [
        {
          ...tellPlace(pod),
          summary: `${tellPod(pod).replace('pod', 'Pod')} cannot start: no node takes it, ${short}`,
          why: `The scheduler says: ${quoteText(message.replace(/ (?:preemption|no new claims).*$/, ''), 300)}`,
          change,
          see,
        },
      ];
    },
  },
];

function tellPlace(pod: PodFacts): Pick<Found, 'container' | 'isStuck' | 'sinceMs' | 'sinceWhat'> {
  return { container: null, isStuck: true, sinceMs: pod.createdAtMs, sinceWhat: 'the pod was made' };
}

function tellNobody(pod: PodFacts): Found {
  const scheduler = toText(pod.spec['schedulerName']) || 'default-scheduler';
  return {
    ...tellPlace(pod),
    isStuck: null,
    summary: `${tellPod(pod).replace('pod', 'Pod')} cannot start: no scheduler has looked at it yet`,
    why: `It waits for the scheduler named ${quoteText(scheduler)}; the JSON does not tell whether that one runs.`,
    change: podChange(
      `${describeTemplate(pod)}, the usual scheduler:`,
      toLines(['spec:', '  schedulerName: default-scheduler']),
    ),
    see: eventsCommand(pod),
  };
}

type Told = { readonly short: string; readonly change: Change; readonly see?: Found['see'] };

/** The scheduler's messages (pkg/scheduler/framework/plugins, 1.36), the first that there is. */
function readMessage(message: string, pod: PodFacts): Told {
  const where = describeTemplate(pod);
  const [, resource = ''] = /Insufficient ([\w./-]+)/.exec(message) ?? [];
  if (resource !== '') return askLess(resource.replace(/\.$/, ''), pod);
  const [, key = ''] = /untolerated taint(?:\(s\))? \{([^:}]+)/.exec(message) ?? [];
  if (key !== '') {
    return {
      short: `they have the taint ${quoteText(key)}`,
      change: podChange(
        `${where}, tolerate the taint, if the pod may run there:`,
        toLines(['spec:', '  tolerations:', `    - {key: ${quoteYaml(key)}, operator: Exists}`]),
      ),
    };
  }
  if (/node affinity|node selector/.test(message)) return relax(pod);
  const [, claim = ''] = /persistentvolumeclaim "([^"]+)" not found/.exec(message) ?? [];
  if (claim !== '') {
    return {
      short: `its volume claim ${claim} is not there`,
      change: {
        what: 'Make the claim, with the size that you need:',
        in: 'newObject',
        lines: claimLines(claim, pod, []),
      },
    };
  }
  if (/unbound immediate PersistentVolumeClaims/.test(message)) return tellUnbound(pod);
  return {
    short: 'for the reason below',
    change: podChange(`${where}, ask for what a node can give; the message names it.`, null),
  };
}

/** A claim; `volume`: that of the pod which has its template, null where there is none. */
type Claim = { readonly name: string; readonly volume: string | null };

/** Nothing has made a volume for a claim; for which of several is not in the pod. */
function tellUnbound(pod: PodFacts): Told {
  const claims = toObjects(pod.spec['volumes']).flatMap((volume): readonly Claim[] => {
    const name = toText(at(volume, 'persistentVolumeClaim')['claimName']);
    if (name !== '') return [{ name, volume: null }];
    // Made with the pod, and named after both (pkg "ephemeral" of component-helpers, 1.36).
    const own = toText(volume['name']);
    return isObject(volume['ephemeral']) ? [{ name: `${pod.name}-${own}`, volume: own }] : [];
  });
  const [claim] = claims;
  const names = joinNames(claims.map(({ name }) => quoteText(name)));
  const short =
    claims.length > 1
      ? `one of its volume claims ${names} has no volume yet`
      : `its volume claim ${names} has no volume yet`;
  if (claim === undefined) return { short: 'a volume claim has no volume yet', change: podChange(HAVE_VOLUME, null) };
  const see = {
    what: 'what the claim waits for',
    line: kubectl(pod.namespace, `describe persistentvolumeclaim ${quoteShell(claim.name)}`),
  };
  if (claim.volume !== null) {
    const lines = toLines([
      'spec:',
      '  volumes:',
      `    - name: ${quoteYaml(claim.volume)}`,
      '      ephemeral:',
      '        volumeClaimTemplate:',
      '          spec:',
      `            ${CLASS}`,
    ]);
    return {
      short,
      change: podChange(`${HAVE_VOLUME} ${describeTemplate(pod)}, with a class that works:`, lines),
      see,
    };
  }
  const what = `${HAVE_VOLUME} The class of a claim cannot be changed: delete the claim, and make it anew with one that works:`;
  return { short, change: { what, in: 'newObject', lines: claimLines(claim.name, pod, [`  ${CLASS}`]) }, see };
}

const HAVE_VOLUME =
  'Have a volume made for it: by a storage class whose provisioner runs ("kubectl get storageclass"), or by hand.';
const CLASS = 'storageClassName: standard   # one of those that the cluster has';

function claimLines(claim: string, { namespace }: PodFacts, more: readonly string[]): string {
  return toLines([
    'apiVersion: v1',
    'kind: PersistentVolumeClaim',
    'metadata:',
    `  name: ${quoteYaml(claim)}`,
    `  namespace: ${quoteYaml(namespace)}`,
    'spec:',
    ...more,
    '  accessModes: [ReadWriteOnce]',
    '  resources: {requests: {storage: 1Gi}}',
  ]);
}

/** The container that asks for most of it asks for less. */
function askLess(resource: string, pod: PodFacts): Told {
  const askers = pod.containers
    .map((container) => ({ container, asked: at(at(container.spec, 'resources'), 'requests')[resource] }))
    .filter(({ asked }) => asked !== undefined)
    .toSorted((one, other) => readQuantity(other.asked) - readQuantity(one.asked));
  const [most] = askers;
  const see = {
    what: 'what the nodes have left',
    line: 'kubectl describe nodes',
  };
  const short = `none has enough ${resource} left`;
  if (most === undefined) return { short, change: podChange('Free some of it on a node.', null), see };
  const { container, asked } = most;
  const example = resource === 'cpu' ? '100m' : /memory|storage/.test(resource) ? '64Mi' : '1';
  return {
    short: `${short}: ${container.name} asks for ${quoteText(String(asked))}`,
    change: podChange(
      `${describeTemplate(pod)}, ask for what a node has; the number is an example:`,
      containerLines(container, [`resources: {requests: {${quoteYaml(resource)}: ${example}}}`]),
    ),
    see,
  };
}

function relax(pod: PodFacts): Told {
  const selector = at(pod.spec, 'nodeSelector');
  const labels = Object.entries(selector).map(([name, value]) => `${quoteText(name)}=${quoteText(toText(value))}`);
  const see = { what: 'the labels that nodes have', line: 'kubectl get nodes --show-labels' };
  if (labels.length === 0) {
    return {
      short: 'its affinity fits none',
      change: podChange(
        `${describeTemplate(pod)}, let it run anywhere:`,
        toLines(['spec:', '  affinity: null   # removes it']),
      ),
      see,
    };
  }
  const label = quoteShell(labels.join(' ')).replaceAll("'", '');
  return {
    short: `none has the label ${joinNames(labels)}`,
    change: podChange(
      `Label a node ("kubectl label node NODE ${label}"). Or, ${describeTemplate(pod).replace('In', 'in')}, let it run anywhere:`,
      toLines(['spec:', '  nodeSelector: null   # removes it']),
    ),
    see,
  };
}

/** Comparable numbers of quantities, roughly: only the greatest is looked for. */
function readQuantity(quantity: unknown): number {
  const [, number = '0', unit = ''] = /^(\d+(?:\.\d+)?)(\D*)$/.exec(String(quantity)) ?? [];
  const factors: Json = {
    m: 1e-3,
    k: 1e3,
    Ki: 2 ** 10,
    M: 1e6,
    Mi: 2 ** 20,
    G: 1e9,
    Gi: 2 ** 30,
    T: 1e12,
    Ti: 2 ** 40,
  };
  return Number(number) * Number(factors[unit] ?? 1);
}
