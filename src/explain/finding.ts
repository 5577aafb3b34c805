// What `lastscrape explain` finds: for each object its findings, each with one change at most. Types only.

import type { Json } from '../base/json.ts';

/** Where lines belong: the pod template (a bare pod's manifest), or the values of the operator's chart. */
type ChangeIn = 'podTemplate' | 'chartValues';

/** The one thing to change. */
export type Change = {
  /** For a person: what to do, and where. */
  readonly what: string;
  readonly in: ChangeIn;
  /**
   * YAML from the first column, a strategic merge of what `in` names; a container that stands under
   * initContainers here is cut from containers. null: nothing to paste.
   */
  readonly lines: string | null;
};

/** A command for a shell, and what it is good for. */
export type Command = { readonly what: string; readonly line: string };

/** One thing that keeps an object. */
export type Finding = {
  /** Its id. */
  readonly reason: string;
  /** null: it is no container. */
  readonly container: string | null;
  /** Whether it stays until a person acts; null: the JSON does not show it. */
  readonly isStuck: boolean | null;
  /** One sentence that names the container and the reason. */
  readonly summary: string;
  readonly since: Since;
  readonly why: string;
  /** null: nothing that lastscrape knows of. */
  readonly change: Change | null;
  /** Must be run before the change works; null: nothing. */
  readonly first: Command | null;
  /** Shows what the JSON does not have; null: nothing is open. */
  readonly see: Command | null;
  /** Ends it for this object alone; null: nothing that is sure to work. */
  readonly now: Command | null;
};

/** A moment (epoch; null: not in the JSON) and what happened then, as a part of a sentence. */
export type Since = { readonly atMs: number | null; readonly what: string };

/** A finding as a row makes it: the id comes from the row, what is absent is null. */
export type Found = Omit<Finding, 'reason' | Optional> & Partial<Pick<Finding, Optional>>;
type Optional = 'container' | 'change' | 'first' | 'see' | 'now';

/** What finds one reason. @param nowMs epoch */
export type Find<Facts> = (facts: Facts, nowMs: number) => Found | readonly Found[] | null;

/** A table of reasons by their ids, a row each. */
export type Reasons<Facts> = Readonly<Record<string, Find<Facts>>>;

/** What Prometheus does with a pod's page, by its own targets. */
export type TargetFinding = {
  /** `scraped`, `failing`, else what keeps it from being scraped, such as `port` or `notReady`. */
  readonly rule: string;
  readonly text: string;
};

export type Explanation = {
  readonly kind: 'Pod' | 'Job';
  readonly namespace: string;
  readonly name: string;
  /** `stuck`: until a person acts; `unknown`: the JSON does not show it; `waiting`: passes; `ended`: over. */
  readonly state: 'stuck' | 'unknown' | 'waiting' | 'ended';
  /** The first finding's, or how it ended. */
  readonly summary: string;
  /** More about an object that has ended; blank: nothing. */
  readonly more: string;
  readonly findings: readonly Finding[];
  /** Of a pod that has ended, as its lastscrape wrote it. */
  readonly report?: Json;
  /** With --targets, of a pod that has a lastscrape and is not over. */
  readonly target?: TargetFinding;
};
