// What `container:` sees of this pod: which containers an entry selects, and what they show together.

import type { ConditionObservation } from '../decide/model.ts';
import { chooseCheckPauseMs, chooseMaxAgeMs, RUNNING_AGE_MS } from '../pod/pod-request.ts';
import type { OwnContainer, Pod, PodContainer } from '../pod/pod-status.ts';
import type { Condition, ConditionContext } from './condition-kind.ts';

/** The name of lastscrape's container if the mounts do not show it. */
const OWN_NAME = 'lastscrape';
/** Containers that injectors add (documentation of Istio, Linkerd, Consul, Dapr, Vault): may be missing. */
const INJECTED_NAMES = ['istio-proxy', 'linkerd-proxy', 'consul-dataplane', 'daprd', 'vault-agent'];

export type ContainerWatch = Required<Pick<Condition, 'observe' | 'check' | 'inspect'>>;

/** Watches the containers of `container:ARGUMENT`. */
export function watchContainers(argument: string, { pod, names: sidecars }: ConditionContext): ContainerWatch {
  let seenNumber = 0;
  let doneSinceMs: number | null = null;
  return {
    async observe({ signal }) {
      const reader = await pod.open();
      const read = await reader.read({ maxAgeMs: chooseMaxAgeMs(doneSinceMs, reader.nowMs()), seenNumber, signal });
      const blind = (why: string, problem: string | null) =>
        ({
          kind: 'blind',
          why: `container ${argument} unknown: ${why}`,
          ...(problem !== null && { problem }),
        }) as const;
      if (read.kind === 'failed') return blind(read.why, read.problem);
      const selected = selectContainers(read.pod, argument, sidecars, reader.own);
      if ('problem' in selected) return blind(selected.problem, selected.problem);
      const observation = combineContainers(selected.containers);
      doneSinceMs = observation.kind === 'done' ? (doneSinceMs ?? read.atMs) : null;
      seenNumber = read.number;
      return observation.kind === 'done' ? { ...observation, answerNumber: read.number } : observation;
    },
    async check() {
      const reader = await pod.open();
      for (;;) {
        const read = await reader.read({ maxAgeMs: RUNNING_AGE_MS, seenNumber });
        if (read.kind === 'read') {
          const selected = selectContainers(read.pod, argument, sidecars, reader.own);
          return 'problem' in selected ? selected.problem : null;
        }
        const pauseMs = chooseCheckPauseMs(read, reader.nowMs());
        // A failure that may pass is no mistake of the configuration.
        if (pauseMs === null) return read.isLasting ? read.problem : null;
        await reader.pause(pauseMs);
      }
    },
    async inspect() {
      const reader = await pod.open();
      const read = await reader.read({ maxAgeMs: RUNNING_AGE_MS, seenNumber });
      if (read.kind === 'failed') return [`unknown: ${read.why}`];
      const selected = selectContainers(read.pod, argument, sidecars, reader.own);
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
