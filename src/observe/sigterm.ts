// `sigterm`: main has ended when this process gets its first signal. The kubelet sends SIGTERM to the last
// native sidecar about 1 s after all regular containers ended (measured, Kubernetes 1.36.3).

import type { Condition, ConditionKind } from './condition-kind.ts';

/** Where lastscrape must stand for the signal to mean main's end. */
const NEED =
  'lastscrape must be the last of the initContainers, with restartPolicy: Always and without a livenessProbe; as a regular container it would keep the pod for ever';

const CONDITION: Condition = {
  text: 'sigterm',
  metricName: null,
  isSignal: true,
  observe: async () => ({ kind: 'notObserved' }),
  inspect: async () => [`the kubelet sends it when the regular containers have ended: ${NEED}`],
  need: NEED,
};

export const sigtermKind: ConditionKind = {
  name: 'sigterm',
  usage: 'sigterm',
  takesArgument: false,
  otherNames: ['signal', 'term', 'sigint'],
  meaning:
    'SIGTERM comes: only as the last native sidecar (`initContainers`, `restartPolicy: Always`), without a livenessProbe; a regular container would keep the pod for ever',
  read: () => ({ value: CONDITION }),
};
