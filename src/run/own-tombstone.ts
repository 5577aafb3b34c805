// Writes lastscrape's own tombstone into kubexit's graveyard, so that containers under kubexit can wait for
// the last scrape: their KUBEXIT_DEATH_DEPS name it. Written when the hold ends, and rewritten until exit,
// since kubexit reacts to events of the folder alone and ignores the files that are there when it starts
// (kubexit's README; its issue 8).

import { constants } from 'node:fs';
import { dirname } from 'node:path';
import { access, replaceFile } from '../base/files.ts';
import { prepareWriting } from '../base/thread-call.ts';
import type { Host } from './host.ts';

/** How often it is rewritten: how late a kubexit that starts late may see it. */
const REWRITE_MS = 2_000;

/** The tombstone of a running lastscrape. Calls end within two seconds, even if the file system hangs. */
export type OwnTombstone = {
  /** Warns at the start where its folder shows that it cannot be written. */
  readonly checkFolder: () => Promise<void>;
  /** The hold is over: writes it, and goes on writing it. */
  readonly declareDead: () => Promise<void>;
  /** The end of the process: writes it for the last time, or not at all where the hold is not over. */
  readonly close: (exitCode: number) => Promise<void>;
};

/**
 * Opens the tombstone; lastscrape is born now. Writes nothing yet. `path`: in the folder that kubexit calls
 * graveyard; its last part is the name that others wait for. `signal`: stop waiting for the file system.
 * `warn`: called once, with the first reason why it cannot be written.
 */
export function openTombstone(
  path: string,
  { pid, wallMs }: Pick<Host, 'pid' | 'wallMs'>,
  signal: AbortSignal,
  warn: (problem: string) => void,
): OwnTombstone {
  const born = new Date(wallMs()).toISOString();
  let died = '';
  let exitCode = 0;
  let rewriting: NodeJS.Timeout | undefined;
  let hasWarned = false;
  // kubexit sees one "create" for each.
  const callWrite = prepareWriting(path, () =>
    replaceFile(path, `Born: ${JSON.stringify(born)}\nDied: ${JSON.stringify(died)}\nExitCode: ${exitCode}\n`, pid),
  );
  function warnOnce(problem: string | null): void {
    if (problem === null || hasWarned || signal.aborted) return;
    hasWarned = true;
    warn(problem);
  }
  let writing = Promise.resolve();
  /** Writes it, or waits for the writing that is under way. */
  function write(): Promise<void> {
    writing = callWrite(signal).then(warnOnce);
    return writing;
  }
  return {
    async checkFolder() {
      warnOnce(await findTombstoneProblem(path, signal));
    },
    async declareDead() {
      died = new Date(wallMs()).toISOString();
      rewriting = setInterval(write, REWRITE_MS);
      await write();
    },
    async close(code) {
      clearInterval(rewriting);
      // After a bug or a second signal main may still run: what waits for this file must not stop.
      if (died === '') return;
      exitCode = code;
      // What is under way has the old code.
      await writing;
      await write();
    },
  };
}

/** Why no tombstone can be written there, as its folder shows in time; or null. */
export async function findTombstoneProblem(path: string, signal?: AbortSignal): Promise<string | null> {
  return prepareWriting(path, () => access(dirname(path), constants.W_OK))(signal);
}
