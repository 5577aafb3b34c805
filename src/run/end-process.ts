// Ends the process although a thread of libuv still waits for a file system or a name service: exit(3) would
// wait for it, and PID 1 of a container cannot kill itself. execve(2) ends all threads at once, so the
// program replaces itself by one that does nothing but exit. Only a thread in state D keeps the process: the
// kernel kills none.

/** Makes the program exit at once with the code that follows; for `endProcess` alone. */
const EXIT_ARGUMENT = '--exit-with';

/** What runs on threads, as Node calls it: a file system's calls and a name's lookup. */
const THREAD_CALLS = ['FSReqCallback', 'FSReqPromise', 'GetAddrInfoReqWrap'];

type EndingProcess = Pick<NodeJS.Process, 'argv' | 'env' | 'execPath' | 'execve' | 'exit' | 'getActiveResourcesInfo'>;

/** Whether a call still runs on a thread, which would keep the process. */
export function hasThreadCall(host: Pick<EndingProcess, 'getActiveResourcesInfo'>): boolean {
  return host.getActiveResourcesInfo().some((name) => THREAD_CALLS.includes(name));
}

/** Ends the process with this code at once. */
export function endProcess(host: EndingProcess, code: number): void {
  if (hasThreadCall(host) && host.execve !== undefined) {
    const { argv, execPath } = host;
    // Node wants its script. The binary has none, and overlooks this: it is how it was called itself.
    const script = argv[1] ?? '';
    host.execve(execPath, [execPath, script, EXIT_ARGUMENT, String(code)], host.env);
  }
  host.exit(code);
}

/** The code to exit with at once, from the last two arguments; null: run as usual. */
export function readExitCode(argv: readonly string[]): number | null {
  const [name, code = ''] = argv.slice(-2);
  return name === EXIT_ARGUMENT && /^\d{1,3}$/.test(code) ? Number(code) : null;
}
