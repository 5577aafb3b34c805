// `container:NAME` and `container:*`: main is done when this pod's status says that the container ended and
// will not be restarted, which proves that it was alive. Not yet started proves nothing. Watching them is
// imported at the first use.

import type { Condition, ConditionContext, ConditionKind } from './condition-kind.ts';
import type { ContainerWatch } from './container-watch.ts';

/** A name of a container (documentation, "Object Names and IDs": RFC 1123 label). */
const NAME = /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/;

export const containerKind: ConditionKind = {
  name: 'container',
  usage: 'container:NAME',
  meaning:
    "this pod's status says that the container ended and will not be restarted; `*` is every regular one but lastscrape and `LASTSCRAPE_SIDECARS`",
  variable: {
    name: 'LASTSCRAPE_SIDECARS',
    default: 'none',
    meaning: 'containers that `container:*` does not wait for',
    usedBy: 'container:*',
    parseName: (text) =>
      NAME.test(text) ? { value: text } : { problem: 'the name of a container such as "istio-proxy"' },
  },
  read(argument, context) {
    if (argument !== '*' && !NAME.test(argument)) {
      return { problem: 'the name of a container such as "load", or "*"' };
    }
    return { value: makeCondition(argument, context) };
  },
};

function makeCondition(argument: string, context: ConditionContext): Condition {
  let opened: Promise<ContainerWatch> | null = null;
  const open = () => {
    opened ??= import('./container-watch.ts').then(({ watchContainers }) => watchContainers(argument, context));
    return opened;
  };
  return {
    text: `container:${argument}`,
    metricName: null,
    outsidePod: { why: 'there is no API server to ask', need: 'a Role must let its service account get pods' },
    waitsForAll: argument === '*' && context.names.length === 0,
    observe: async (now) => (await open()).observe(now),
    check: async () => (await open()).check(),
    inspect: async () => (await open()).inspect(),
  };
}
