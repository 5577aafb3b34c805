// One container of a pod as kubectl prints it → its facts. Pure.

import { at, isObject, type Json, toNumber, toObjects, toText } from '../base/json.ts';
import { findProgram, type Program } from '../quit/programs.ts';
import type { Since } from './finding.ts';
import { readName, readTime } from './words.ts';

/** How a container ended. */
export type Ended = {
  readonly exitCode: number;
  readonly reason: string;
  readonly message: string;
  readonly atMs: number | null;
};

/** One container of a pod. */
export type ContainerFacts = {
  readonly name: string;
  /** `native`: an init container with restartPolicy Always. */
  readonly role: 'regular' | 'native' | 'init';
  readonly spec: Json;
  readonly program: Program | null;
  /** It ended, and will not be started again. */
  readonly isDone: boolean;
  /** null: it does not run. */
  readonly running: { readonly sinceMs: number | null; readonly hasStarted: boolean } | null;
  readonly waiting: { readonly reason: string; readonly message: string } | null;
  readonly ended: Ended | null;
  /** The end before this state. */
  readonly lastEnded: Ended | null;
  readonly restartCount: number;
};

/** Since when a container runs. */
export function sinceStart({ name, running }: ContainerFacts): Since {
  return { atMs: running?.sinceMs ?? null, what: `${name} was started` };
}

/** Whether its command cannot be run: reasons of the kubelet and CRI-O (pkg/kubelet/kuberuntime, 1.36). */
export function isNeverStarted(ended: Ended | null): boolean {
  return ended !== null && ['StartError', 'ContainerCannotRun'].includes(ended.reason);
}

/** The facts of one container. @param doneNames regular ones that have ended for good */
export function readContainer(
  spec: Json,
  status: Json,
  isInit: boolean,
  doneNames: ReadonlySet<string>,
): ContainerFacts {
  const name = readName(spec['name']);
  const state = at(status, 'state');
  const ended = readEnded(state['terminated']);
  const role = !isInit ? 'regular' : spec['restartPolicy'] === 'Always' ? 'native' : 'init';
  const { reason, message } = at(state, 'waiting');
  return {
    name,
    role,
    spec,
    program: findProgram({
      name,
      image: toText(spec['image']),
      variables: toObjects(spec['env']).map((each) => toText(each['name'])),
    }),
    isDone: role === 'regular' ? doneNames.has(name) : ended !== null && (role === 'native' || ended.exitCode === 0),
    running: isObject(state['running'])
      ? { sinceMs: readTime(state['running']['startedAt']), hasStarted: status['started'] !== false }
      : null,
    waiting: isObject(state['waiting']) ? { reason: toText(reason), message: toText(message) } : null,
    ended,
    lastEnded: readEnded(at(status, 'lastState')['terminated']),
    restartCount: toNumber(status['restartCount'], 0),
  };
}

function readEnded(value: unknown): Ended | null {
  if (!isObject(value)) return null;
  return {
    exitCode: toNumber(value['exitCode'], 0),
    reason: readName(value['reason']),
    message: toText(value['message']),
    atMs: readTime(value['finishedAt']),
  };
}
