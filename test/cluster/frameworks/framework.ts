// What the frameworks that make batch pods have in common: how one is installed, and how it runs one task.

import type { Container, Namespace } from '../cluster.ts';
import type { Fixture } from '../scenario.ts';

/** How a task ends; `killed`: by exit code 137; `retried`: the first try fails; `deleted`: somebody deletes its pod. */
export const ENDINGS = ['succeeded', 'failed', 'killed', 'retried', 'timed out', 'deleted'] as const;
export type Ending = (typeof ENDINGS)[number];

/** One task to run: its main without a name, and what its pod has. Its pods are known by TASK_LABEL. */
export type Task = {
  readonly name: string;
  readonly ending: Ending;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
  readonly main: Omit<Container, 'name'> & { readonly env: readonly Variable[] };
};
type Variable = { readonly name: string; readonly value?: string; readonly valueFrom?: object };

export const TASK_LABEL = 'test.lastscrape.dev/task';
/** After this time a task of the ending `timed out` is to be ended by the framework, in seconds. */
export const DEADLINE_SECONDS = 20;

export type Framework = {
  readonly name: string;
  readonly version: string;
  readonly container: string;
  /** Main's number, if not that of stand-in/task.py. */
  readonly metric?: string;
  /** Between two starts, so that pods do not wait for each other. Default: 4. */
  readonly staggerSeconds?: number;
  /** What the framework says of a task with that ending; one that is missing cannot be had. */
  readonly states: Readonly<Partial<Record<Ending, string>>>;
  install(fixture: Fixture): Promise<void>;
  prepare?(namespace: Namespace): Promise<void>;
  start(namespace: Namespace, task: Task): Promise<void>;
  /** The state that it has come to; undefined while it goes on. */
  readState(namespace: Namespace, task: Task): Promise<string | undefined>;
};

/** Main with the number of this try where it is to be retried. */
export function addTry(task: Task, variable: Omit<Variable, 'name'>): Task['main'] {
  if (task.ending !== 'retried') return task.main;
  return { ...task.main, env: [...task.main.env, { name: 'TASK_RETRY', ...variable }] };
}
