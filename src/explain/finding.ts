// What `lastscrape explain` comes to: for each object its findings, each with one change. Types, and nothing else.

/**
 * Where lines belong: into the pod template (or the manifest of a pod of its own), into the Job, into the object itself, into a new
 * one, or into the values of the chart of Locust's operator.
 */
export type ChangeIn = 'podTemplate' | 'job' | 'object' | 'newObject' | 'chartValues';

/** The one thing to change. */
export type Change = {
  /** For a person: what to do, and where. */
  readonly what: string;
  readonly in: ChangeIn;
  /**
   * YAML from the first column, a strategic merge of what `in` names; a container that stands under initContainers here is cut from
   * containers. null: nothing is to be pasted.
   */
  readonly lines: string | null;
};

/** A command for a shell, and what it is good for. */
export type Command = { readonly what: string; readonly line: string };

/** One thing that keeps an object. */
export type Finding = {
  /** The id of its row. */
  readonly reason: string;
  /** null: it is no container. */
  readonly container: string | null;
  /** Whether it stays until somebody does something; null: the JSON does not tell. */
  readonly isStuck: boolean | null;
  /** One sentence that names the container and the reason. */
  readonly summary: string;
  /** Epoch; null: the JSON does not tell. */
  readonly sinceMs: number | null;
  /** What happened then; a part of a sentence. */
  readonly sinceWhat: string;
  readonly why: string;
  readonly change: Change;
  /** Must be run before the change works; null: nothing. */
  readonly first: Command | null;
  /** Tells what the JSON cannot; null: nothing is open. */
  readonly see: Command | null;
  /** Ends it for this object alone; null: nothing that is sure to work. */
  readonly now: Command | null;
};

/** A finding as a row makes it: the id comes from the row. */
export type Found = Omit<Finding, 'reason' | Optional> & Partial<Pick<Finding, Optional>>;
type Optional = 'first' | 'see' | 'now';

/** A row of a table of reasons. */
export type Reason<Facts> = {
  readonly id: string;
  /** What it tells, for docs/explain.md. */
  readonly meaning: string;
  /** @param nowMs epoch */
  readonly find: (facts: Facts, nowMs: number) => readonly Found[];
};

/** One object, explained. */
export type Explanation = {
  readonly kind: 'Pod' | 'Job';
  readonly namespace: string;
  readonly name: string;
  /** `stuck`: something stays until somebody acts; `unknown`: the JSON does not tell; `waiting`: all of it passes; `ended`: nothing keeps it. */
  readonly state: 'stuck' | 'unknown' | 'waiting' | 'ended';
  /** The first finding's, or how it ended. */
  readonly summary: string;
  /** What else is told of one that has ended; blank: nothing. */
  readonly more: string;
  readonly findings: readonly Finding[];
};
