// `container:NAME` and `container:*`: main is done when this pod's status says that the container ended and
// will not be restarted, which proves that it was alive. Not yet started proves nothing. All conditions share
// one reader of this pod: its code, and TLS with it, is imported at the first use.

import { CONTAINER_NAME, type Environment } from '../base/parse.ts';
import type { ConditionObservation } from '../decide/model.ts';
import type { PodEnvironment, PodReader } from '../pod/pod-reader.ts';
import type { OwnContainer, Pod, PodContainer } from '../pod/pod-status.ts';
import type { Condition, ConditionContext, ConditionKind } from './condition-kind.ts';

/** The name of lastscrape's container if the mounts do not show it. */
const OWN_NAME = 'lastscrape';
/** Containers that injectors add (documentation of Istio, Linkerd, Consul, Dapr, Vault): may be missing. */
const INJECTED_NAMES = ['istio-proxy', 'linkerd-proxy', 'consul-dataplane', 'daprd', 'vault-agent'];

export const containerKind: ConditionKind = {
  name: 'container',
  usage: 'container:NAME',
  meaning:
    "this pod's status says that the container ended and will not be restarted; `*` is every regular one but lastscrape and `LASTSCRAPE_SIDECARS`",
  read(argument, context) {
    if (argument !== '*' && !CONTAINER_NAME.test(argument)) {
      return { problem: 'the name of a container such as "load", or "*"' };
    }
    return { value: watchContainers(argument, context) };
  },
};

/** This pod, for all conditions that ask for it. */
export type PodSource = {
  /** Opens the reader at the first call; later calls return the same one. */
  readonly open: () => Promise<PodReader>;
  /** Closes what was opened, if anything. */
  readonly close: () => Promise<void>;
};

/** Prepares the reader of this pod; opens nothing yet. `environment`: for tests. */
export function openPodSource(env: Environment, environment?: PodEnvironment): PodSource {
  let opened: Promise<PodReader> | null = null;
  return {
    open() {
      opened ??= import('../pod/pod-reader.ts').then(({ openPodReader }) => openPodReader(env, environment));
      return opened;
    },
    close: async () => (await opened)?.close(),
  };
}

function watchContainers(argument: string, { pod, sidecars }: ConditionContext): Condition {
  let seenNumber = 0;
  let doneSinceMs: number | null = null;
  const select = (seen: Pod, own: OwnContainer | null) => selectContainers(seen, argument, sidecars, own);
  return {
    text: `container:${argument}`,
    metricName: null,
    need: 'a Role must let its service account get pods',
    waitsForAll: argument === '*' && sidecars.length === 0,
    async observe({ signal }) {
      const { read, own } = await pod.open();
      const result = await read({ doneSinceMs, seenNumber, signal });
      const blind = (why: string, problem: string | null): ConditionObservation => ({
        kind: 'blind',
        why: `container ${argument} unknown: ${why}`,
        ...(problem !== null && { problem }),
      });
      if (result.kind === 'failed') return blind(result.why, result.problem);
      const selected = select(result.pod, own);
      if ('problem' in selected) return blind(selected.problem, selected.problem);
      const observation = combineContainers(selected.containers);
      doneSinceMs = observation.kind === 'done' ? (doneSinceMs ?? result.atMs) : null;
      seenNumber = result.number;
      return observation.kind === 'done' ? { ...observation, answerNumber: result.number } : observation;
    },
    async check() {
      const { readForCheck, own } = await pod.open();
      const result = await readForCheck();
      // A failure that may pass is no mistake of the configuration.
      if (result.kind === 'failed') return result.isLasting ? result.problem : null;
      const selected = select(result.pod, own);
      return 'problem' in selected ? selected.problem : null;
    },
    async inspect() {
      const { read, own } = await pod.open();
      const result = await read({ doneSinceMs, seenNumber });
      if (result.kind === 'failed') return [`unknown: ${result.why}`];
      const selected = select(result.pod, own);
      if ('problem' in selected) return [selected.problem];
      return selected.containers.map(({ name, state }) => `${name} ${state.seen}`);
    },
  };
}

/** The containers of an entry, or `what is; what to do`. */
type SelectResult = { readonly containers: readonly PodContainer[] } | { readonly problem: string };

/** Finds the containers of `container:ARGUMENT`. Without `own`, lastscrape's is the one of that name. */
export function selectContainers(
  { containers, initNames }: Pod,
  argument: string,
  sidecars: readonly string[],
  own: OwnContainer | null,
): SelectResult {
  const names = containers.map(({ name }) => name);
  const ownName = own?.name ?? OWN_NAME;
  const strangers = sidecars.filter((name) => ![...names, ...initNames, ...INJECTED_NAMES].includes(name));
  if (argument === '*' && strangers.length > 0) {
    const has = quote([...names, ...initNames]);
    return { problem: `LASTSCRAPE_SIDECARS names ${quote(strangers)}, which this pod does not have; it has ${has}` };
  }
  if (argument === '*' && ![ownName, ...sidecars].some((name) => names.includes(name))) {
    const advice = `name it "${OWN_NAME}", or in LASTSCRAPE_SIDECARS`;
    return { problem: `it is not known which container is lastscrape's own; ${advice}` };
  }
  if (argument === ownName) return { problem: `it is lastscrape's own container; must be another of ${quote(names)}` };
  if (argument !== '*' && !names.includes(argument)) {
    const what = initNames.includes(argument) ? 'it is an init container' : 'this pod has no such container';
    return { problem: `${what}; must be one of ${quote(names.filter((name) => name !== ownName))}` };
  }
  const selected = containers.filter(({ name }) =>
    argument === '*' ? name !== ownName && !sidecars.includes(name) : name === argument,
  );
  if (selected.length === 0)
    return { problem: `no container is left to watch of ${quote(names)}; name fewer sidecars` };
  const always = selected.filter(({ isAlwaysRestarted }) => isAlwaysRestarted).map(({ name }) => name);
  if (always.length === 0) return { containers: selected };
  const rule = 'must be OnFailure or Never, as in a Job';
  return { problem: `restartPolicy Always restarts ${quote(always)} whatever the exit code; ${rule}` };
}

/** Combines what the containers show: alive if one is, done if all are. */
export function combineContainers(containers: readonly PodContainer[]): ConditionObservation {
  const exitCodes = Object.fromEntries(
    containers.flatMap(({ name, state }) => (state.kind === 'done' ? [[name, state.exitCode] as const] : [])),
  );
  const seen = containers.map(({ name, state }) => `container ${name} ${state.seen}`);
  const first = (kind: PodContainer['state']['kind']) => seen[containers.findIndex(({ state }) => state.kind === kind)];
  const alive = first('alive');
  if (alive !== undefined) return { kind: 'alive', seen: alive, exitCodes };
  const notStarted = first('notStarted');
  if (notStarted !== undefined) return { kind: 'notStarted', why: notStarted, exitCodes };
  return { kind: 'done', seen: seen.join(', '), provesWasAlive: true, exitCodes };
}

function quote(names: readonly string[]): string {
  return names.map((name) => `"${name}"`).join(', ');
}
