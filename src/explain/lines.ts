// The lines to paste and the commands to run. Pure. Lines are a strategic merge patch as YAML: containers and
// env are merged by the names of their items.

import { at, isObject, type Json, toObjects } from '../base/json.ts';
import { formatJson } from '../base/text.ts';
import { VERSION } from '../base/version.ts';
import type { ContainerFacts } from './container.ts';
import type { Change, Command } from './finding.ts';
import type { Named, PodFacts } from './pod.ts';
import { quoteShell, readName } from './words.ts';

/** An entry of env. */
type Variable = { readonly name: string; readonly value?: string; readonly valueFrom?: Json };

/** Where a user pushed the image. */
export const IMAGE = `registry.example.com/lastscrape:${VERSION}`;

/** The variable by which lastscrape knows its pod. */
export const POD_NAME: Variable = { name: 'POD_NAME', valueFrom: { fieldRef: { fieldPath: 'metadata.name' } } };

/** `kubectl --namespace=NS …` */
export function kubectl({ namespace }: Pick<PodFacts, 'namespace'>, rest: string): string {
  return `kubectl --namespace=${quoteShell(namespace)} ${rest}`;
}

/** The log of a container. */
export function logsCommand(pod: PodFacts, container: string, more = '--tail=20'): Command {
  const line = kubectl(pod, `logs ${quoteShell(pod.name)} --container=${quoteShell(container)} ${more}`);
  return { what: 'its log', line };
}

/** What kubectl says of an object, with its events, which its JSON does not have. */
export function describeCommand(object: Named, kind: 'pod' | 'job' = 'pod'): Command {
  const line = kubectl(object, `describe ${kind} ${quoteShell(object.name)}`);
  return { what: 'more, and its events, which the JSON does not have', line };
}

/** A change of the pod's manifest: what, where, its effect. @param patch null: nothing to paste */
export function changePod(pod: PodFacts, what: string, patch: Json | null, effect = ''): Change {
  const end = effect === '' ? '' : `. ${effect}`;
  const lines = patch && formatYaml(patch);
  return { what: `${what} ${describeTemplate(pod)}${end}${lines === null ? '.' : ':'}`, in: 'podTemplate', lines };
}

/** Where a change of the pod's manifest is made; the end of a sentence. */
function describeTemplate({ owner, labels }: PodFacts): string {
  if (labels['managed-by'] === 'locust-k8s-operator') return 'in the pods of the Locust operator';
  if (owner === null) return "in the pod's manifest (delete the pod and create it again)";
  const where = `in the pod template of ${owner.kind} ${owner.name}`;
  if (owner.kind !== 'Job') return where;
  // The controller of CronJobs appends the minute (pkg/controller/cronjob/utils.go, getJobName).
  const [, cronJob = ''] = /^(.+)-\d{8}$/.exec(owner.name) ?? [];
  return cronJob === ''
    ? `${where} (delete the Job and create it again)`
    : `in the pod template of CronJob ${cronJob}, if that made Job ${owner.name}`;
}

/** Fields of one container. */
export function inContainer({ name, role }: ContainerFacts, fields: Json): Json {
  return { spec: { [role === 'regular' ? 'containers' : 'initContainers']: [{ name, ...fields }] } };
}

/** An annotation of the pod. */
export function annotate(name: string, value: string): Json {
  return { metadata: { annotations: { [name]: value } } };
}

/** A container as a native sidecar, and what follows it in the list. */
export function makeNative({ name }: ContainerFacts, ...more: readonly Json[]): Json {
  return { spec: { initContainers: [{ name, restartPolicy: 'Always' }, ...more] } };
}

/** lastscrape as a new container. */
export function addLastscrape(fields: Json = {}): Json {
  return { spec: { containers: [{ name: 'lastscrape', image: IMAGE, ...fields }] } };
}

/** A variable of lastscrape, set where it comes from: an annotation, or env with `more` entries. */
export function setVariable(
  container: ContainerFacts,
  name: string,
  value: string,
  ...more: readonly Variable[]
): Json {
  const entry = toObjects(container.spec['env']).find((each) => each['name'] === name) ?? {};
  const path = readName(at(at(entry, 'valueFrom'), 'fieldRef')['fieldPath']);
  const [, annotation] = /^metadata\.annotations\['([^']+)'\]$/.exec(path) ?? [];
  return annotation === undefined
    ? inContainer(container, { env: [{ name, value }, ...more] })
    : annotate(annotation, value);
}

/** Entries of env. */
export function toEnv(variables: Readonly<Record<string, string>>): readonly Variable[] {
  return Object.entries(variables).map(([name, value]) => ({ name, value }));
}

/** YAML from the first column, to show where it belongs. An item of a list is one line, if it has no list. */
export function formatYaml(value: Json, indent = ''): string {
  const lines = Object.entries(value).map(([key, each]) => {
    const head = `${indent}${formatFlow(key)}:`;
    if (isObject(each)) return `${head}\n${formatYaml(each, `${indent}  `)}`;
    const items = toObjects(each).map((item) => {
      const isFlat = Object.values(item).every((part) => toObjects(part).length === 0);
      return `${indent}  - ${isFlat ? `${formatFlow(item)}\n` : formatYaml(item, `${indent}    `).trimStart()}`;
    });
    return items.length === 0 ? `${head} ${formatFlow(each)}\n` : `${head}\n${items.join('')}`;
  });
  return lines.join('');
}

/** A text stands without quotes where YAML 1.1 and 1.2 read it as one. */
function formatFlow(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(formatFlow).join(', ')}]`;
  if (isObject(value)) {
    return `{${Object.entries(value)
      .map(([key, each]) => `${formatFlow(key)}: ${formatFlow(each)}`)
      .join(', ')}}`;
  }
  const text = String(value);
  const isPlain = /^[A-Za-z/][\w./-]*$/.test(text) && !/^(?:true|false|null|yes|no|on|off|y|n)$/i.test(text);
  return isPlain ? text : formatJson(value);
}
