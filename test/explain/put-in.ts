// Puts the lines that `lastscrape explain` prints into their object, as a person does: merges what is named
// alike, null removes, and a container that stands under initContainers is cut from containers.

import { parse } from 'yaml';

type Fields = { [field: string]: unknown };

/** What only a server writes, or refuses to be sent. */
const SERVERS = [
  ...['status', 'creationTimestamp', 'ownerReferences', 'deletionTimestamp', 'deletionGracePeriodSeconds'],
  ...['nodeName', 'finalizers'],
];

/** The pod with lines for a pod template in it, as it can be created. */
export function putIntoPod(pod: object, lines: string): Fields {
  const patch = parse(lines) as Fields;
  const clean = strip(pod) as { spec: Fields; metadata: Fields };
  const { containers, initContainers } = clean.spec as { containers: Fields[]; initContainers?: Fields[] };
  const moved = ((patch['spec'] as Fields | undefined)?.['initContainers'] as Fields[] | undefined) ?? [];
  const isMoved = ({ name }: Fields) => moved.some((each) => each['name'] === name);
  const cut = containers.filter(isMoved);
  const spec = {
    ...clean.spec,
    containers: containers.filter((each) => !isMoved(each)),
    ...(cut.length === 0 && initContainers === undefined
      ? {}
      : { initContainers: [...(initContainers ?? []), ...cut] }),
  };
  const { generateName: _, ...metadata } = clean.metadata;
  return merge({ ...clean, metadata, spec }, patch) as Fields;
}

function merge(value: unknown, patch: unknown): unknown {
  if (Array.isArray(value) && Array.isArray(patch) && patch.every((each) => isFields(each) && 'name' in each)) {
    const old = value.map((each: Fields) => {
      const own = patch.find(({ name }: Fields) => name === each['name']);
      return own === undefined ? each : merge(each, own);
    });
    return [...old, ...patch.filter(({ name }: Fields) => !value.some((each: Fields) => each['name'] === name))];
  }
  if (!isFields(value) || !isFields(patch)) return patch;
  const merged = { ...value };
  for (const [key, each] of Object.entries(patch)) {
    if (each === null) delete merged[key];
    else merged[key] = merge(value[key], each);
  }
  return merged;
}

function strip(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(strip);
  if (!isFields(value)) return value;
  return Object.fromEntries(
    Object.entries(value)
      .filter(([key]) => !SERVERS.includes(key))
      .map(([key, each]) => [key, strip(each)]),
  );
}

function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
