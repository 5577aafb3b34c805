// The lines to paste, as YAML from the first column: what stands above them is part of them, so that it is plain where they belong. Pure.
// A list is merged by the names of its items, as kubectl and the API server do it for containers and env.

import { toText } from '../base/json.ts';
import { VERSION } from '../base/version.ts';
import type { Change, Command } from './finding.ts';
import type { ContainerFacts, PodFacts } from './pod.ts';
import { quoteShell, quoteYaml } from './words.ts';

/** Where a user pushed the image. */
export const IMAGE = `registry.example.com/lastscrape:${VERSION}`;

/** `kubectl --namespace=NS …` */
export function kubectl(namespace: string, rest: string): string {
  return `kubectl --namespace=${quoteShell(namespace)} ${rest}`;
}

/** What a container says. */
export function logsCommand({ namespace, name }: PodFacts, container: string, more = '--tail=20'): Command {
  return {
    what: 'what it says',
    line: kubectl(namespace, `logs ${quoteShell(name)} --container=${quoteShell(container)} ${more}`),
  };
}

/** What happened to a pod, which its JSON does not have. */
export function eventsCommand({ namespace, name }: PodFacts, kind = 'pod'): Command {
  return {
    what: 'what happened to it (the JSON has no events)',
    line: kubectl(namespace, `events --for=${kind}/${quoteShell(name)}`),
  };
}

/** Where a change of the pod's manifest is made; a part of a sentence. */
export function describeTemplate({ owner, labels }: PodFacts): string {
  if (labels['managed-by'] === 'locust-k8s-operator') return 'In the pods of the Locust operator';
  if (owner === null) return "In the pod's manifest (delete the pod, and create it anew)";
  if (owner.kind === 'ReplicaSet') return `In the pod template of the Deployment that made ReplicaSet ${owner.name}`;
  const where = `In the pod template of ${owner.kind} ${owner.name}`;
  if (owner.kind !== 'Job') return where;
  // The controller of CronJobs appends the minute (pkg/controller/cronjob/utils.go, getJobName).
  const [, cronJob = ''] = /^(.+)-\d{8}$/.exec(owner.name) ?? [];
  return cronJob === ''
    ? `${where} (delete it, and create it anew)`
    : `In the pod template of CronJob ${cronJob}, if that made Job ${owner.name}`;
}

/** A field of one container. */
export function containerLines({ name, role }: ContainerFacts, fields: readonly string[]): string {
  return toLines([
    'spec:',
    `  ${role === 'regular' ? 'containers' : 'initContainers'}:`,
    `    - name: ${quoteYaml(name)}`,
    ...fields.map((line) => `      ${line}`),
  ]);
}

/** An annotation of the pod. */
export function annotationLines(name: string, value: string): string {
  return toLines(['metadata:', '  annotations:', `    ${name}: ${quoteValue(value)}`]);
}

/** A container as a native sidecar, and what else comes behind it in the list. */
export function nativeLines({ name }: ContainerFacts, more: readonly string[] = []): string {
  return toLines([
    'spec:',
    '  initContainers:',
    `    - name: ${quoteYaml(name)}   # cut it from containers, with all its lines,`,
    '      restartPolicy: Always   # and add this one',
    ...more,
  ]);
}

/** lastscrape as a container of its own. */
export function lastscrapeLines(
  env: readonly (readonly [name: string, value: string])[],
  more: readonly string[] = [],
): string {
  return toLines([
    'spec:',
    '  containers:',
    '    - name: lastscrape',
    `      image: ${IMAGE}   # where you pushed it`,
    ...(env.length === 0 && more.length === 0 ? [] : ['      env:']),
    ...env.map((each) => `        ${envLine(each)}`),
    ...more.map((line) => `        ${line}`),
  ]);
}

/** A variable of lastscrape, where its value comes from: the annotation that it reads, or env. */
export function settingLines({ name, spec, role }: ContainerFacts, variable: string, value: string): string {
  const annotation = findAnnotation(spec['env'], variable);
  if (annotation !== null) return annotationLines(annotation, value);
  return toLines([
    'spec:',
    `  ${role === 'regular' ? 'containers' : 'initContainers'}:`,
    `    - name: ${quoteYaml(name)}`,
    '      env:',
    `        ${envLine([variable, value])}`,
  ]);
}

/** One entry of env. */
export function envLine([name, value]: readonly [name: string, value: string]): string {
  return `- {name: ${name}, value: ${quoteValue(value)}}`;
}

/** The annotation that a variable of a container comes from by the downward API; null: none. */
export function findAnnotation(env: unknown, name: string): string | null {
  const entries = Array.isArray(env) ? env : [];
  const path: unknown = entries.find((each) => each?.name === name)?.valueFrom?.fieldRef?.fieldPath;
  return /^metadata\.annotations\['([^']+)'\]$/.exec(toText(path))?.[1] ?? null;
}

/** Lines that belong into the pod template. */
export function podChange(what: string, lines: string | null): Change {
  return { what, in: 'podTemplate', lines };
}

/** The lines of a text. */
export function toLines(lines: readonly string[]): string {
  return `${lines.join('\n')}\n`;
}

/** A value that must stay a string. */
function quoteValue(value: string): string {
  return /^[a-z][a-z-]*$/.test(value) ? quoteYaml(value) : JSON.stringify(value);
}
