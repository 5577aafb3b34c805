// The pod's processes in /proc, where its containers share a PID namespace: by name, by PID, by the port they
// listen on. Only reads, and never rejects. Formats: Linux man-pages, proc(5).

import { closeSync, openSync, readSync } from 'node:fs';
import { readdir, readFile, readlink } from './files.ts';
import { orNull } from './parse.ts';

/** One process; a PID alone may be reused. */
export type ProcessId = {
  readonly pid: number;
  /** Its start, in clock ticks since boot. */
  readonly startTicks: number;
};

/** The processes found, or why they are unknown. */
type FindResult =
  | { readonly kind: 'found'; readonly processes: readonly ProcessId[] }
  | { readonly kind: 'unknown'; readonly why: string };

const unknown = (why: string): FindResult => ({ kind: 'unknown', why });

/** Whose processes /proc shows: this container's, the pod's, or the whole node's (`hostPID`). */
export type Namespace = 'own' | 'shared' | 'node';

/** The kernel keeps 15 bytes of a program's name and a NUL (TASK_COMM_LEN, proc(5) "/proc/pid/comm"). */
const COMM_MAX_BYTES = 15;
/** The machine's first PID namespace (PROC_PID_INIT_INO in Linux's include/linux/proc_ns.h). */
const NODE_NAMESPACE = 'pid:[4026531836]';

type Stat = {
  readonly id: ProcessId;
  /** 0: outside this namespace. */
  readonly parentPid: number;
  readonly comm: string;
  readonly isRunning: boolean;
};

/**
 * Finds out whose processes can be seen. Without a shared namespace PID 1 is the container's own program
 * (Kubernetes documentation, "Share Process Namespace"): this process; the running lastscrape, if `kubectl
 * exec` started this one; or an init or shell that started this one.
 */
export async function readNamespace(ownPid: number): Promise<Namespace> {
  if (ownPid === 1) return 'own';
  const [first, self] = await Promise.all(['1', 'self'].map((pid) => readlink(`/proc/${pid}/exe`).catch(() => pid)));
  if (first === self) return 'own';
  const namespace = await readlink('/proc/self/ns/pid').catch(() => '');
  if (namespace === NODE_NAMESPACE) return 'node';
  return (await descendsFromFirst(ownPid)) ? 'own' : 'shared';
}

/**
 * Whether this process descends from PID 1. Not in a shared namespace: the runtime starts a container's first
 * program from outside, so its parent is 0 (pid_namespaces(7)). An orphan of PID 1 is mistaken for a
 * descendant: an error at the start, where the opposite mistake would stop helpers while main runs.
 */
async function descendsFromFirst(pid: number): Promise<boolean> {
  const stat = await readStat(pid);
  if (typeof stat === 'string' || stat.parentPid === 0) return false;
  return stat.parentPid === 1 || descendsFromFirst(stat.parentPid);
}

/** Why the processes of other containers cannot be named here: `what is; what to do`, or null. */
export async function findNamespaceProblem(ownPid: number): Promise<string | null> {
  const namespace = await readNamespace(ownPid);
  if (namespace === 'shared') return null;
  return namespace === 'own'
    ? 'the containers of this pod do not share a process namespace (PID 1 is lastscrape, or started it); set shareProcessNamespace: true in the spec of the pod'
    : 'every process of the node can be seen here (hostPID), those of other pods too; set shareProcessNamespace: true in the spec of the pod instead';
}

/** The namespace, for a person. */
export async function describeNamespace(ownPid: number): Promise<string> {
  const namespace = await readNamespace(ownPid);
  const need = 'process: and signal: need shareProcessNamespace: true';
  if (namespace === 'own') return `not shared (PID 1 is lastscrape, or started it); ${need}`;
  if (namespace === 'node') return `of the node (hostPID); ${need} instead`;
  const first = await readStat(1);
  return `shared; PID 1 is ${typeof first === 'string' ? 'hidden (hidepid)' : JSON.stringify(first.comm)}`;
}

/** Whether another process of this name runs, PID 1 included: it may be this container's lastscrape. */
export async function isRunningBeside(ownPid: number): Promise<boolean> {
  if (ownPid === 1 || (await readNamespace(ownPid)) === 'node') return false;
  const [own, first] = [await readStat(ownPid), await readStat(1)];
  if (typeof own === 'string') return false;
  if (typeof first !== 'string' && first.comm === own.comm) return true;
  const found = await findProcesses(own.comm, ownPid);
  return found.kind === 'found' && found.processes.length > 0;
}

/**
 * Finds the running processes named `name`, by comm or the base name of argv[0]. Never PID 1 (the pod's pause
 * process in a shared namespace), lastscrape itself, or a zombie.
 */
export async function findProcesses(name: string, ownPid: number): Promise<FindResult> {
  const pids = await listPids(ownPid);
  if (typeof pids === 'string') return unknown(pids);
  const processes: ProcessId[] = [];
  let hiddenPid: number | null = null;
  for (const pid of pids) {
    const stat = await readStat(pid);
    if (stat === 'hidden') hiddenPid ??= pid;
    else if (stat !== 'gone' && stat.isRunning && (await isNamed(name, stat))) processes.push(stat.id);
  }
  if (hiddenPid !== null && processes.length === 0) {
    return unknown(`/proc/${hiddenPid} cannot be read (is /proc mounted with hidepid?)`);
  }
  return { kind: 'found', processes };
}

/** Whether this process still runs; zombies and reused PIDs do not count. */
export async function isStillRunning({ pid, startTicks }: ProcessId): Promise<boolean | 'unknown'> {
  const stat = await readStat(pid);
  if (stat === 'hidden') return 'unknown';
  return stat !== 'gone' && stat.isRunning && stat.id.startTicks === startTicks;
}

/**
 * Finds the processes that listen on a TCP port of loopback or of all addresses: never PID 1 or lastscrape,
 * and only those named as one of `programs` (null: any). Reading another process's sockets takes its UID and
 * GID, or CAP_SYS_PTRACE (proc(5), "/proc/pid/fd"). The kernel walks all its sockets for this: for rare use.
 */
export async function findPortOwners(
  port: number,
  programs: readonly string[] | null,
  ownPid: number,
): Promise<FindResult> {
  const sockets = findListeningSockets(port);
  if (sockets.size === 0) return unknown(`nothing listens on port ${port}`);
  const pids = await listPids(ownPid);
  if (typeof pids === 'string') return unknown(pids);
  const processes: ProcessId[] = [];
  let hasStranger = false;
  for (const pid of pids) {
    if (!(await ownsSocket(pid, sockets))) continue;
    const stat = await readStat(pid);
    if (typeof stat === 'string') continue;
    const named = await Promise.all((programs ?? []).map((name) => isNamed(name, stat)));
    if (programs === null || named.includes(true)) processes.push(stat.id);
    else hasStranger = true;
  }
  if (processes.length > 0) return { kind: 'found', processes };
  if (hasStranger) return unknown(`port ${port} belongs to another program than ${programs?.join(' or ')}`);
  const needs = 'that needs its UID and GID, or CAP_SYS_PTRACE';
  return unknown(`the process that listens on port ${port} cannot be found; ${needs}`);
}

/** The effective UID of a process, for a person; `unknown` if it cannot be read. */
export async function readUid(pid: number | 'self'): Promise<string> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8').catch(() => '');
  return /^Uid:\s+\d+\s+(\d+)/m.exec(status)?.[1] ?? 'unknown';
}

/** Loopback or all addresses in /proc/net/tcp and tcp6: 32-bit words, little-endian. */
const LOOPBACK = /^(00000000|[0-9A-F]{6}7F|0{32}|0{24}01000000|0{16}FFFF0000[0-9A-F]{6}7F)$/;
/** TCP_LISTEN in Linux's include/net/tcp_states.h. */
const LISTENS = '0A';

/** The sockets that listen on a port of loopback, as the links in /proc/PID/fd name them. */
function findListeningSockets(port: number): ReadonlySet<string> {
  const sockets = SOCKET_TABLES.flatMap((path) => readSockets(path, port));
  const listening = sockets.filter(({ local, state }) => state === LISTENS && LOOPBACK.test(local.address));
  return new Set(listening.map(({ inode }) => `socket:[${inode}]`));
}

/** In the first are those of a socket that listens on all addresses, IPv4's too. */
const SOCKET_TABLES = ['/proc/net/tcp6', '/proc/net/tcp'];

/** The ports of a TCP connection. */
export type ConnectionPorts = { readonly localPort?: number | undefined; readonly remotePort?: number | undefined };

/** A row that moves while others come and go may be passed over in one read of the table. */
const TABLE_READS_COUNT = 3;

/**
 * Bytes of a TCP connection that its peer has not acknowledged, our end of it being one; Infinity: it was
 * reset. 0 for a socket that has ended, and where no /proc shows what listens there. Takes some ms, since the
 * kernel walks all its sockets; of this thread, so that no event of the connection comes in between.
 */
export function readUnacknowledged({ localPort, remotePort }: ConnectionPorts): number {
  if (localPort === undefined) return 0;
  for (let count = 0; count < TABLE_READS_COUNT; count++) {
    let isShown = false;
    for (const path of SOCKET_TABLES) {
      const sockets = readSockets(path, localPort);
      const found = sockets.filter(({ remote }) => remote.port === remotePort);
      if (found.length > 0) return Math.max(...found.map(({ unacknowledgedBytes }) => unacknowledgedBytes));
      isShown ||= sockets.length > 0;
    }
    if (!isShown) return 0;
  }
  return Number.POSITIVE_INFINITY;
}

/** What one read of such a table returns at most. */
const TABLE_PIECE_BYTES = 4096;

/**
 * The TCP sockets of this network namespace with that local port. Piece by piece: a load test's pod may have
 * 60,000 others in TIME_WAIT, whose rows together do not fit into the heap.
 */
function readSockets(path: string, localPort: number) {
  const file = orNull(() => openSync(path, 'r'));
  if (file === null) return [];
  const hex = `:${localPort.toString(16).toUpperCase().padStart(4, '0')} `;
  const piece = Buffer.allocUnsafe(TABLE_PIECE_BYTES);
  const found: string[] = [];
  let rest = '';
  for (let sizeBytes = 1; sizeBytes > 0; ) {
    sizeBytes = orNull(() => readSync(file, piece)) ?? 0;
    const rows = `${rest}${piece.toString('latin1', 0, sizeBytes)}`.split('\n');
    rest = rows.pop() ?? '';
    found.push(...rows.filter((row) => row.includes(hex)));
  }
  closeSync(file);
  return found.map(parseSocket).filter(({ local }) => local.port === localPort);
}

function parseSocket(row: string) {
  const [, local = '', remote = '', state, queues = '', , , , , inode] = row.trim().split(/\s+/);
  const unacknowledgedBytes = Number.parseInt(queues, 16);
  return { local: readEndpoint(local), remote: readEndpoint(remote), state, unacknowledgedBytes, inode };
}

function readEndpoint(text: string): { readonly address: string; readonly port: number } {
  const [address = '', port = ''] = text.split(':');
  return { address, port: Number.parseInt(port, 16) };
}

async function ownsSocket(pid: number, sockets: ReadonlySet<string>): Promise<boolean> {
  const folder = `/proc/${pid}/fd`;
  const names = await readdir(folder).catch((): string[] => []);
  for (const name of names) {
    if (sockets.has(await readlink(`${folder}/${name}`).catch(() => ''))) return true;
  }
  return false;
}

/** The PIDs of other processes, or why they are unknown. */
async function listPids(ownPid: number): Promise<readonly number[] | string> {
  const names = await readdir('/proc').catch((error: NodeJS.ErrnoException) => error);
  if (names instanceof Error) return `/proc cannot be read: ${names.code}`;
  const pids = names.filter((name) => /^\d+$/.test(name)).map(Number);
  // With hidepid=2 other users' processes are not listed, and PID 1 always exists.
  if (!pids.includes(1)) return '/proc does not show PID 1 (is it mounted with hidepid?)';
  return pids.filter((pid) => pid !== 1 && pid !== ownPid);
}

async function readStat(pid: number): Promise<Stat | 'gone' | 'hidden'> {
  try {
    const text = await readFile(`/proc/${pid}/stat`, 'utf8');
    // A name may hold blanks and parentheses: `12 (a) b) S 1 …`.
    const nameEnd = text.lastIndexOf(')');
    const fields = text.slice(nameEnd + 2).split(' ');
    const [state, parentPid] = fields;
    const threadCount = Number(fields[17]);
    return {
      id: { pid, startTicks: Number(fields[19]) },
      parentPid: Number(parentPid),
      comm: text.slice(text.indexOf('(') + 1, nameEnd),
      // The main thread may end before the others: it is a zombie then, and the process still runs.
      isRunning: (state !== 'Z' && state !== 'X') || threadCount > 1,
    };
  } catch (error) {
    // It ended: ENOENT before the file was opened, ESRCH after.
    const { code } = error as NodeJS.ErrnoException;
    return code === 'ENOENT' || code === 'ESRCH' ? 'gone' : 'hidden';
  }
}

async function isNamed(name: string, { id, comm }: Stat): Promise<boolean> {
  const isCut = Buffer.byteLength(name) > COMM_MAX_BYTES;
  if (!isCut && comm === name) return true;
  const commandLine = await readFile(`/proc/${id.pid}/cmdline`, 'utf8').catch(() => '');
  const programName = commandLine.slice(0, commandLine.indexOf('\0')).split('/').at(-1) ?? '';
  if (programName === name) return true;
  // A cut comm matches every name with this beginning; argv[0] decides, unless it is an interpreter's.
  const cutName = Buffer.from(name).subarray(0, COMM_MAX_BYTES).toString();
  return isCut && comm === cutName && !programName.startsWith(comm);
}
