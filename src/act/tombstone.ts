// Writes lastscrape's own tombstone into kubexit's graveyard, so that containers under kubexit can wait for the last scrape:
// their KUBEXIT_DEATH_DEPS name it. Written when the hold ends, and again and again until exit, since kubexit reacts to
// events of the folder alone and ignores the files that are there when it starts (kubexit's README; its issue 8).

import { accessSync, closeSync, constants, openSync, renameSync, writeSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';

/** How often it is written anew: how long a kubexit that starts late may take to see it. */
export const REWRITE_MS = 2_000;

export type TombstoneOptions = {
  /** In the folder that kubexit calls graveyard; its last part is the name that others wait for. */
  readonly path: string;
  readonly pid: number;
  /** Now, as RFC 3339. */
  readonly time: () => string;
  /** Called once, with the first reason why it cannot be written; at once where its folder shows that. */
  readonly warn: (problem: string) => void;
};

/** The tombstone of a lastscrape that still runs. */
export type OwnTombstone = {
  /** The hold is over: writes it, and goes on writing it. */
  readonly declareDead: () => void;
  /** The end of the process: writes it for the last time, or not at all where the hold is not over. */
  readonly close: (exitCode: number) => void;
};

/** Opens the tombstone; lastscrape is born now. Writes nothing yet. */
export function openTombstone({ path, pid, time, warn }: TombstoneOptions): OwnTombstone {
  const born = time();
  let died: string | null = null;
  let rewriting: NodeJS.Timeout | undefined;
  let hasWarned = false;
  function warnOnce(problem: string | null): void {
    if (problem === null || hasWarned) return;
    hasWarned = true;
    warn(problem);
  }
  function write(exitCode: number): void {
    died ??= time();
    warnOnce(
      writeTombstone(
        path,
        `Born: ${JSON.stringify(born)}\nDied: ${JSON.stringify(died)}\nExitCode: ${exitCode}\n`,
        pid,
      ),
    );
  }
  warnOnce(findTombstoneProblem(path));
  return {
    declareDead() {
      write(0);
      rewriting ??= setInterval(() => write(0), REWRITE_MS);
    },
    close(exitCode) {
      clearInterval(rewriting);
      // Whoever waits for it would stop under a main that may run: after a bug, or a second signal.
      if (died !== null) write(exitCode);
    },
  };
}

/** Why no tombstone can be written there, as its folder shows; or null. */
export function findTombstoneProblem(path: string): string | null {
  try {
    accessSync(dirname(path), constants.W_OK);
    return null;
  } catch (error) {
    return describeProblem(path, error);
  }
}

function describeProblem(path: string, error: unknown): string {
  return `Cannot write ${path}: ${(error as NodeJS.ErrnoException).code}`;
}

/** A rename, so that nobody reads half of it: it arrives in the folder as one "create" under the name that is waited for. */
function writeTombstone(path: string, text: string, pid: number): string | null {
  const temporary = join(dirname(path), `.${basename(path)}.tmp-${pid}`);
  try {
    // A link that somebody put there is not followed.
    const flags = constants.O_WRONLY | constants.O_CREAT | constants.O_TRUNC | constants.O_NOFOLLOW;
    const file = openSync(temporary, flags, 0o644);
    try {
      writeSync(file, text);
    } finally {
      closeSync(file);
    }
    renameSync(temporary, path);
    return null;
  } catch (error) {
    return describeProblem(path, error);
  }
}
