// The lines to paste and the commands to run. YAML starts in the first column, to show where it belongs.
// Pure. A list is merged by the names of its items, as kubectl and the API server do it for containers and
// env.

import { at, toObjects } from '../base/json.ts';
import { VERSION } from '../base/version.ts';
import type { ContainerFacts } from './container.ts';
import type { Change, Command } from './finding.ts';
import type { Named, PodFacts } from './pod.ts';
import { quoteShell, quoteYaml, readName } from './words.ts';

/** Where a user pushed the image. */
export const IMAGE = `registry.example.com/lastscrape:${VERSION}`;

/** The variable by which lastscrape knows its pod, an entry of env. */
export const POD_NAME = '- {name: POD_NAME, valueFrom: {fieldRef: {fieldPath: metadata.name}}}';

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

/** A change of the pod's manifest: what to do, where, and its effect. @param lines null: nothing to paste */
export function changePod(pod: PodFacts, what: string, lines: string | null, effect = ''): Change {
  const end = effect === '' ? '' : `. ${effect}`;
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

/** Lines under `spec`. */
export function specLines(...lines: readonly string[]): string {
  return toLines('spec:', ...lines.map((line) => `  ${line}`));
}

/** Fields of one container. */
export function containerLines({ name, role }: ContainerFacts, ...fields: readonly string[]): string {
  return specLines(
    `${role === 'regular' ? 'containers' : 'initContainers'}:`,
    `  - name: ${quoteYaml(name)}`,
    ...fields.map((line) => `    ${line}`),
  );
}

/** An annotation of the pod. */
export function annotationLines(name: string, value: string): string {
  return toLines('metadata:', '  annotations:', `    ${name}: ${quoteValue(value)}`);
}

/** A container as a native sidecar, and what follows it in the list. */
export function nativeLines({ name }: ContainerFacts, ...more: readonly string[]): string {
  return specLines(
    'initContainers:',
    `  - name: ${quoteYaml(name)}   # cut it from containers, with all its lines,`,
    '    restartPolicy: Always   # and add this one',
    ...more,
  );
}

/** lastscrape as a new container. */
export function lastscrapeLines(...env: readonly string[]): string {
  return specLines(
    'containers:',
    '  - name: lastscrape',
    `    image: ${IMAGE}   # where you pushed it`,
    ...(env.length === 0 ? [] : ['    env:']),
    ...env.map((line) => `      ${line}`),
  );
}

/** A variable of lastscrape, set where it comes from: an annotation, or env with `more` entries. */
export function settingLines(
  container: ContainerFacts,
  variable: string,
  value: string,
  ...more: readonly string[]
): string {
  const entry = toObjects(container.spec['env']).find(({ name }) => name === variable) ?? {};
  const path = readName(at(at(entry, 'valueFrom'), 'fieldRef')['fieldPath']);
  const [, annotation] = /^metadata\.annotations\['([^']+)'\]$/.exec(path) ?? [];
  if (annotation !== undefined) return annotationLines(annotation, value);
  return containerLines(container, 'env:', ...[envLine(variable, value), ...more].map((line) => `  ${line}`));
}

/** One entry of env. */
export function envLine(name: string, value: string): string {
  return `- {name: ${name}, value: ${quoteValue(value)}}`;
}

/** The lines of a text. */
export function toLines(...lines: readonly string[]): string {
  return `${lines.join('\n')}\n`;
}

/** A value that must stay a string. */
function quoteValue(value: string): string {
  return /^[a-z][a-z-]*$/.test(value) ? quoteYaml(value) : JSON.stringify(value);
}
