// A program that a test started: what it printed, how it ended, and waits for either, each with a bound.
import { type ChildProcess, spawn } from 'node:child_process';
import { setTimeout as delay } from 'node:timers/promises';

/** How a program ended: exit code or signal, and when the test learned it (epoch ms). */
export type Exit = { readonly code: number | null; readonly signal: NodeJS.Signals | null; readonly atMs: number };

/** A line that a program printed, on stdout or stderr, and when it was read (epoch ms). */
export type Line = { readonly stream: 'stdout' | 'stderr'; readonly text: string; readonly atMs: number };

export type Child = ReturnType<typeof startChild>;

/** What to start: a command with its arguments, the whole environment (nothing is inherited), and where. */
type ChildStart = {
  readonly name: string;
  readonly command: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly cwd: string;
};

/**
 * Starts a program; its stdin is empty. Disposing of it ends it with SIGKILL and waits until it is gone. Its waits
 * throw when time is up, or when it ended before.
 */
export function startChild({ name, command, env, cwd }: ChildStart) {
  const [file, ...args] = command;
  if (file === undefined) throw new Error(`Bug: ${name} has no command`);
  const started = spawn(file, args, { cwd, env, stdio: ['ignore', 'pipe', 'pipe'] });
  const lines: Line[] = [];
  const listeners = new Set<(line: Line) => void>();
  let exit: Exit | undefined;
  for (const stream of ['stdout', 'stderr'] as const) {
    readLines(started, stream, (text) => {
      const line = { stream, text, atMs: Date.now() };
      lines.push(line);
      for (const listener of listeners) listener(line);
    });
  }
  const exited = new Promise<Exit>((resolve) => {
    let atMs = 0;
    started.once('exit', () => {
      atMs = Date.now();
    });
    started.once('error', (error) => lines.push({ stream: 'stderr', text: String(error), atMs: Date.now() }));
    started.once('close', (code, signal) => {
      exit = { code, signal, atMs: atMs || Date.now() };
      resolve(exit);
    });
  });
  /** The last lines that it printed, for a message. */
  const tail = () =>
    `${name} (pid ${started.pid}, ${exit === undefined ? 'running' : `ended: ${exit.signal ?? exit.code}`}) printed last:\n${lines
      .slice(-40)
      .map((line) => `  ${line.text}`)
      .join('\n')}`;

  /** Has `listener` called for each line, those already there included. */
  function onLine(listener: (line: Line) => void): void {
    for (const line of lines) listener(line);
    listeners.add(listener);
  }

  return {
    name,
    pid: started.pid ?? -1,
    /** Everything printed so far, both streams, in the order read. */
    lines: lines as readonly Line[],
    /** Settles when the process ended and both its streams are read to the end. */
    exited,
    /** `undefined` while it runs. */
    get exit() {
      return exit;
    },
    onLine,
    /** The first line that matches, or the nth. */
    async waitForLine(pattern: RegExp, withinMs: number, nth = 1): Promise<Line> {
      const { promise, resolve, reject } = Promise.withResolvers<Line>();
      let matchCount = 0;
      const listener = (line: Line) => {
        if (!pattern.test(line.text)) return;
        matchCount += 1;
        if (matchCount === nth) resolve(line);
      };
      const gone = () => reject(new Error(`Cannot wait for ${pattern}: it ended; ${tail()}`));
      const timer = setTimeout(
        () => reject(new Error(`Cannot wait for ${pattern}: not there after ${withinMs} ms; ${tail()}`)),
        withinMs,
      );
      onLine(listener);
      void exited.then(gone);
      try {
        return await promise;
      } finally {
        clearTimeout(timer);
        listeners.delete(listener);
      }
    },
    async waitForExit(withinMs: number): Promise<Exit> {
      const late = new AbortController();
      try {
        const bound = delay(withinMs, undefined, { signal: late.signal }).catch(() => undefined);
        const ended = await Promise.race([exited, bound]);
        if (ended === undefined)
          throw new Error(`Cannot wait for the exit: still there after ${withinMs} ms; ${tail()}`);
        return ended;
      } finally {
        late.abort();
      }
    },
    signal(signalName: NodeJS.Signals): void {
      started.kill(signalName);
    },
    tail,
    async [Symbol.asyncDispose]() {
      if (exit === undefined) started.kill('SIGKILL');
      await exited;
    },
  };
}

function readLines(started: ChildProcess, stream: 'stdout' | 'stderr', onLine: (text: string) => void): void {
  let rest = '';
  const source = started[stream];
  source?.setEncoding('utf8');
  source?.on('data', (chunk: string) => {
    const parts = `${rest}${chunk}`.split('\n');
    rest = parts.pop() ?? '';
    for (const part of parts) onLine(part);
  });
  source?.on('end', () => {
    if (rest !== '') onLine(rest);
  });
}
